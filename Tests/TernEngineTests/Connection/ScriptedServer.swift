#if os(Linux)
import CTernTestTLS
import Dispatch
import Foundation
import Glibc
import TernConcurrency

@testable import TernEngine

/// The failure of a script.
struct ScriptFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Lets one thread wait for another.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func open() { semaphore.signal() }

    /// Blocks the thread until the gate is opened, at most 20 seconds.
    func wait() throws {
        guard semaphore.wait(timeout: .now() + 20) == .success else { throw ScriptFailure("a gate was not opened") }
    }
}

/// A server whose connections follow scripts, each on a thread of its own: the first connection the first script, and
/// so on. A connection without a script is closed at once.
final class ScriptedServer: Sendable {
    typealias Script = @Sendable (ScriptedConnection) throws -> Void

    let address: SocketAddress
    private let listener: Int32
    private let tls: TLS?
    private let scripts: [Script]
    private let state = Lock(State())

    /// The settings of TLS. They do not change, and OpenSSL allows their use by many threads.
    private struct TLS: @unchecked Sendable {
        let server: TestServer
    }

    private struct State {
        var accepted = 0
        var running = 0
        var isListening = true
        var failures: [String] = []
        var requests: [[String]] = []
    }

    /// - Parameters:
    ///   - path: The path of a Unix socket; nil for a port of 127.0.0.1.
    ///   - tls: Starts each connection with a handshake, unless the script does it (`ScriptedConnection.handshake()`).
    init(path: String? = nil, tls: TestServer? = nil, _ scripts: Script...) throws {
        let wanted = try path.map { try SocketAddress.unix(path: $0) } ?? .ipv4(0x7F00_0001, port: 0)
        let listener = try Socket.open(for: wanted)
        guard unsafe wanted.withSystemAddress({ unsafe bind(listener, $0, $1) }) == 0, listen(listener, 64) == 0,
            let address = path == nil ? Socket.local(of: listener) : wanted
        else { throw ScriptFailure("no listener: \(SystemError.last.text)") }
        self.address = address
        self.listener = listener
        self.tls = tls.map { TLS(server: $0) }
        self.scripts = scripts
        Thread.detachNewThread { self.accept() }
    }

    /// Ends the listener. Connections follow their scripts to the end.
    func stop() {
        // A descriptor that is closed can be another's by now.
        state.withLock { if $0.isListening { _ = shutdown(listener, Int32(SHUT_RDWR)) } }
    }

    /// The number of connections so far.
    var accepted: Int { state.withLock { $0.accepted } }
    /// The errors of the scripts.
    var failures: [String] { state.withLock { $0.failures } }
    /// The request lines of each connection.
    var requests: [[String]] { state.withLock { $0.requests } }

    private func accept() {
        while true {
            var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&entry, 1, -1) == 1 else { continue }
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                if entry.revents & Int16(POLLHUP) != 0 || errno != EAGAIN { break }
                continue
            }
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            let number = state.withLock { state in
                state.accepted += 1
                state.requests.append([])
                return state.accepted - 1
            }
            guard number < scripts.count else {
                Glibc.close(descriptor)
                continue
            }
            let script = scripts[number]
            Thread.detachNewThread { self.run(script, on: descriptor, number: number) }
        }
        state.withLock { state in
            state.isListening = false
            Glibc.close(listener)
        }
    }

    private func run(_ script: Script, on descriptor: Int32, number: Int) {
        do {
            let connection = try ScriptedConnection(descriptor, tls: tls?.server) { line in
                self.state.withLock { $0.requests[number].append(line) }
            }
            defer { connection.close() }
            try script(connection)
        } catch {
            state.withLock { $0.failures.append("connection \(number + 1): \(error)") }
        }
    }
}

/// The server's side of one connection. Its methods block the thread, at most 20 seconds.
@safe final class ScriptedConnection {
    private static let limit: Int32 = 20_000

    private let descriptor: Int32
    private let session: OpaquePointer?
    private let noteRequest: (String) -> Void
    private var input: [UInt8] = []
    private var isSecure = false
    private var isOpen = true

    init(_ descriptor: Int32, tls: TestServer?, noteRequest: @escaping (String) -> Void) throws {
        self.descriptor = descriptor
        self.noteRequest = noteRequest
        unsafe session = unsafe tls.flatMap { unsafe tern_test_server_create($0.settings, descriptor) }
    }

    deinit {
        close()
        unsafe tern_test_server_free(session)
    }

    /// Closes the socket without close_notify.
    func close() {
        guard isOpen else { return }
        isOpen = false
        Glibc.close(descriptor)
    }

    /// Vanishes from the network: the system drops each segment of the client, and answers none.
    func vanish() throws {
        // A filter of one instruction, which returns 0: no byte of a segment is kept (SO_ATTACH_FILTER,
        // linux/filter.h).
        var code: UInt64 = 0x06
        let result = unsafe withUnsafeMutableBytes(of: &code) { code in
            var program = (count: 1, code: UInt(bitPattern: code.baseAddress))
            return unsafe setsockopt(descriptor, SOL_SOCKET, 26, &program, 16)
        }
        guard result == 0 else { throw ScriptFailure("no filter: \(SystemError.last.text)") }
    }

    /// Sends close_notify.
    func endTLS() {
        if unsafe session != nil { unsafe tern_test_server_close(session) }
    }

    /// Ends the direction to the client.
    func endSending() { Socket.endSending(descriptor) }

    /// Holds back small segments while on.
    func cork(_ isOn: Bool) { _ = Socket.set(TCP_CORK, level: Int32(IPPROTO_TCP), to: isOn ? 1 : 0, on: descriptor) }

    /// Sends a record of TLS without data.
    func updateKeys() throws {
        guard unsafe tern_test_server_update_keys(session) == 1 else { throw ScriptFailure("no new keys") }
    }

    /// The name that the client asked for.
    var requestedName: String? {
        guard let name = unsafe tern_test_server_name(session) else { return nil }
        return unsafe String(cString: name)
    }

    /// Whether the handshake resumed an earlier session.
    var isResumed: Bool { unsafe tern_test_server_is_resumed(session) == 1 }

    func handshake() throws {
        guard unsafe session != nil, !isSecure else { return }
        while true {
            let result = unsafe tern_test_server_handshake(session)
            if result == 1 { break }
            guard result == 0 else { throw ScriptFailure("the handshake failed") }
            try wait(for: Int16(POLLIN))
        }
        isSecure = true
    }

    private func wait(for events: Int16) throws {
        var entry = pollfd(fd: descriptor, events: events, revents: 0)
        guard unsafe poll(&entry, 1, Self.limit) == 1 else { throw ScriptFailure("the client is silent") }
    }

    // MARK: Writing

    /// Writes bytes that are not encrypted.
    func writeBelowTLS(_ bytes: [UInt8]) throws {
        guard unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
            throw ScriptFailure("the bytes were not written")
        }
    }

    func write(_ text: String) throws { try write(Array(text.utf8)) }

    func write(_ bytes: [UInt8]) throws {
        try handshake()
        var sent = 0
        while sent < bytes.count {
            let count = try tryWrite(Array(bytes[sent...]))
            sent += count
            if count == 0 { try wait(for: Int16(POLLOUT)) }
        }
    }

    /// Writes as many bytes as the socket takes. Returns their number.
    func tryWrite(_ bytes: [UInt8]) throws -> Int {
        if unsafe session != nil {
            let count = unsafe bytes.withUnsafeBufferPointer {
                unsafe tern_test_server_write(session, $0.baseAddress, $0.count)
            }
            guard count >= 0 else { throw ScriptFailure("the write failed") }
            return count
        }
        return switch unsafe bytes.withUnsafeBytes({ unsafe Socket.send(descriptor, from: $0) }) {
        case .bytes(let count): count
        case .wouldBlock, .end: 0
        case .failed(let error): throw ScriptFailure("the write failed: \(error.text)")
        }
    }

    /// Writes bytes of one value until the socket takes none, or there are this many. Returns the number of those that
    /// are missing. A client that does not read leaves the socket full.
    func fill(with value: UInt8, upTo count: Int) throws -> Int {
        var missing = count
        while missing > 0 {
            let written = try tryWrite([UInt8](repeating: value, count: min(missing, 64 << 10)))
            if written == 0 { break }
            missing -= written
        }
        return missing
    }

    // MARK: Reading

    /// Reads more bytes. Returns false at the end.
    private func readMore() throws -> Bool {
        try handshake()
        // Small, so that most of a large body stays in the socket.
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let capacity = buffer.count
            let count: Int
            if unsafe session != nil {
                count = unsafe buffer.withUnsafeMutableBufferPointer {
                    unsafe tern_test_server_read(session, $0.baseAddress, capacity)
                }
                if count < 0 { return false }
            } else {
                switch unsafe buffer.withUnsafeMutableBytes({ unsafe Socket.receive(descriptor, into: $0) }) {
                case .bytes(let read): count = read
                case .wouldBlock: count = 0
                case .end, .failed: return false
                }
            }
            if count > 0 {
                input += buffer[..<count]
                return true
            }
            try wait(for: Int16(POLLIN))
        }
    }

    func read(_ count: Int) throws -> [UInt8] {
        while input.count < count { guard try readMore() else { throw ScriptFailure("the client has ended") } }
        defer { input.removeFirst(count) }
        return Array(input[..<count])
    }

    /// Reads the bytes that come next, at least one. Returns none at the end.
    func readSome() throws -> [UInt8] {
        if input.isEmpty, try !readMore() { return [] }
        defer { input = [] }
        return input
    }

    /// Reads the head of a request.
    @discardableResult func readHead() throws -> String {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let range = input.firstRange(of: end) {
                let head = String(decoding: input[..<range.upperBound], as: UTF8.self)
                input.removeFirst(range.upperBound)
                noteRequest(head.prefix { $0 != "\r\n" }.description)
                return head
            }
            guard try readMore() else { throw ScriptFailure("the client has ended") }
        }
    }

    /// Reads the head of a request, and answers with a body that is the request's path.
    func answer(fields: String = "") throws {
        let path = try readHead().split(separator: " ")[1]
        try write("HTTP/1.1 200 OK\r\n\(fields)Content-Length: \(path.utf8.count)\r\n\r\n\(path)")
    }

    /// Answers requests until the client closes the connection.
    func answerAll() throws {
        while try !input.isEmpty || readMore() { try answer() }
    }

    /// Waits until the client has closed the connection. Other bytes are a failure.
    func waitForEnd() throws {
        guard try !readMore() else { throw ScriptFailure("\(input.count) bytes in place of the end") }
    }

    /// Returns whether bytes or the end come within a time in milliseconds.
    func hasInput(within milliseconds: Int32) throws -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, milliseconds) != 0
    }

    /// Waits until the client has closed its Unix socket, without reading.
    func waitForHangUp() throws { try wait(for: 0) }

    /// Reads and drops the bytes of the socket until the client has closed the connection.
    func waitForEndOfBytes() throws {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            switch unsafe buffer.withUnsafeMutableBytes({ unsafe Socket.receive(descriptor, into: $0) }) {
            case .bytes: continue
            case .wouldBlock: try wait(for: Int16(POLLIN))
            case .end, .failed: return
            }
        }
    }

    // MARK: HTTP/2

    func write(_ frames: TestFrame...) throws { try write(frames.flatMap(\.bytes)) }

    /// Reads the client's preface, and sends SETTINGS.
    func beginHTTP2(_ entries: [(UInt16, UInt32)] = []) throws {
        _ = try read(24)
        try write(.settings(entries), .settingsAnswer)
    }

    /// Reads until the client has closed the connection.
    func waitForEndOfFrames() throws {
        repeat { input.removeAll() } while try readMore()
    }

    /// Reads until a frame of this type comes.
    func readFrame(_ type: UInt8) throws -> TestFrame {
        while true {
            let header = try read(9)
            let length = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
            let stream = header[5...8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            let frame = TestFrame(
                type: header[3], flags: header[4], stream: Int32(bitPattern: stream), payload: try read(length))
            if frame.type == type { return frame }
        }
    }
}
#endif
