#if os(Linux) && !TERN_URLSESSION
import TernTesting

/// One request of HTTP/1.1 and the ways to answer it, over TCP or over TLS. The methods block and belong to the
/// connection's thread.
protocol ChaosExchange {
    var method: String { get }
    var path: String { get }
    /// The layer of TLS; nil without one.
    var socket: ChaosSocket? { get }

    func write(_ bytes: some Collection<UInt8>) throws
    /// Reads the rest of the body of the request.
    func wholeBody() throws -> [UInt8]
    /// Ends the connection after the bytes so far: close_notify if there is TLS, and FIN.
    func close()
    func reset()
    func waitForClientToClose() throws
    /// Waits until the client has received the bytes so far, if the system says so.
    func waitUntilReceived() throws
    func pause(for duration: Duration) throws
}

extension LoopbackServer.Exchange: ChaosExchange {
    var method: String { request.method }
    var path: String { request.path }
    var socket: ChaosSocket? { nil }

    func wholeBody() throws -> [UInt8] { try readBody() }
}

/// A connection of HTTP/1.1 over TLS, which reads one request after another.
final class ChaosTLSConnection: ChaosExchange {
    private enum Framing {
        case bytes(Int)
        case chunked
    }

    let socket: ChaosSocket?
    private let link: ChaosSocket
    private(set) var method = ""
    private(set) var path = ""
    private var framing = Framing.bytes(0)
    private var isBodyRead = true
    private var input: [UInt8] = []

    init(_ socket: ChaosSocket) {
        self.socket = socket
        link = socket
    }

    /// Serves requests until the connection ends.
    func serve(_ answer: (ChaosTLSConnection) throws -> Void) {
        // `try?`: the client has closed the connection, or an answer has broken it on purpose.
        try? serveRequests(answer)
        link.finish()
    }

    private func serveRequests(_ answer: (ChaosTLSConnection) throws -> Void) throws {
        while !link.isEnded, try readHead() {
            try answer(self)
            if !link.isEnded, !isBodyRead { _ = try wholeBody() }
        }
    }

    /// Reads the head of a request. Returns false at the end of the connection.
    private func readHead() throws -> Bool {
        guard let first = try line() else { return false }
        let words = first.split(separator: " ")
        guard words.count == 3 else { throw ChaosSocket.Lost() }
        (method, path, framing, isBodyRead) = (String(words[0]), String(words[1]), .bytes(0), false)
        while let line = try line(), !line.isEmpty {
            let field = line.lowercased().split(separator: ":", maxSplits: 1)
            guard field.count == 2 else { continue }
            if field[0] == "content-length" {
                framing = .bytes(Int(field[1].drop { $0 == " " }) ?? 0)
            } else if field[0] == "transfer-encoding" {
                framing = .chunked
            }
        }
        return true
    }

    func wholeBody() throws -> [UInt8] {
        if isBodyRead { return [] }
        isBodyRead = true
        guard case .bytes(let count) = framing else { return try chunks() }
        return try take(count)
    }

    private func chunks() throws -> [UInt8] {
        var body: [UInt8] = []
        while let line = try line(), let size = Int(line, radix: 16) {
            body += try take(size)
            if try self.line() != "" { throw ChaosSocket.Lost() }
            if size == 0 { return body }
        }
        throw ChaosSocket.Lost()
    }

    private func line() throws -> String? {
        var searched = 0
        while true {
            if let end = input[searched...].firstIndex(of: 10) {
                let line = String(decoding: input[..<end].filter { $0 != 13 }, as: UTF8.self)
                input.removeFirst(end + 1)
                return line
            }
            searched = input.count
            guard try link.receive(into: &input) else { return nil }
        }
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while input.count < count { guard try link.receive(into: &input) else { throw ChaosSocket.Lost() } }
        defer { input.removeFirst(count) }
        return Array(input.prefix(count))
    }

    // MARK: The response

    func write(_ bytes: some Collection<UInt8>) throws { try link.sendAll(Array(bytes)) }
    func close() { link.endWriting() }
    func reset() { link.reset() }
    func waitForClientToClose() throws { try link.waitForClientToClose() }
    func waitUntilReceived() throws {}
    func pause(for duration: Duration) throws { try link.pause(for: duration) }
}
#endif
