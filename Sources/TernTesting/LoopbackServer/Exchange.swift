import Synchronization
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension LoopbackServer {
    /// One request, and the methods to answer it with a complete response or byte by byte.
    ///
    /// The methods block. An exchange belongs to the connection's thread and must not be used after the handler has
    /// returned. All methods throw `Failure` when the client has closed the connection or the server stops; let the
    /// error leave the handler.
    public final class Exchange {
        /// The head of the request.
        public let request: Request

        /// The number of the request among all of the server, from 1, in the order in which `Counts.requestsReceived`
        /// counts them. Handlers of several connections can start in another order.
        public let number: Int

        /// A Boolean value that indicates whether the first read of the body answers `Expect: 100-continue` with `100
        /// Continue`. True by default.
        public var sendsContinue = true

        /// The number of bytes of the request body read so far, without framing.
        public internal(set) var bodyBytesRead = 0

        /// The fields after a chunked request body (RFC 9112, section 7.1.2), once the body was read to its end.
        public var trailers: Fields { framing.trailers }

        let connection: LoopbackConnection
        let serial: Int
        var framing: BodyFraming
        var mustContinue: Bool
        /// Whether any byte of a response was sent.
        var hasWritten = false
        var speedLimit: Throttle?

        init(_ request: Request, on connection: LoopbackConnection, logged: (serial: Int, number: Int)) {
            self.request = request
            self.connection = connection
            serial = logged.serial
            number = logged.number
            framing = BodyFraming(of: request)
            mustContinue = request["Expect"]?.lowercased() == "100-continue"
            if !request.keepsAlive { connection.isLast = true }
        }

        /// Calls the handler and prepares the connection for the next request.
        func run(_ handler: Handler) {
            do {
                try handler(self)
                if !hasWritten, !connection.isEnded {
                    try respond(status: 500, text: "The handler returned without an answer.\n")
                }
            } catch {
                answer(failure: error)
            }
            speedLimit = nil
            // A client that did not receive `100 Continue` may never send its body, so it cannot be drained.
            if mustContinue, !framing.isComplete { connection.isLast = true }
            guard !connection.isLast else { return }
            do { try drainBody(limit: 64 << 20) } catch { connection.isLast = true }
            if !framing.isComplete { connection.isLast = true }
        }

        private func answer(failure: any Error) {
            connection.isLast = true
            let isLost = (failure as? Failure)?.isConnectionLoss ?? false
            guard !hasWritten, !isLost, !connection.isEnded else { return }
            // `try?`: this response is the only way to report the handler's error, and the connection ends in any case.
            try? respond(status: 500, text: "The handler failed: \(failure)\n")
        }

        /// Answers with a body of known length. Adds `Content-Length`, and `Connection: close` if the connection ends.
        /// Omits the body after HEAD and for statuses without one.
        ///
        /// - Parameters:
        ///   - status: The status code.
        ///   - headers: Additional fields; a `Content-Length` among them is sent as given, right or wrong.
        ///   - body: The bytes of the body.
        public func respond(
            status: Int = 200, headers: Fields = [], body: some Collection<UInt8> = [UInt8]()
        ) throws {
            var fields = headers
            let hasNoBody = status < 200 || status == 204 || status == 304
            if !hasNoBody, !fields.contains(where: { $0.name.isSameFieldName(as: "Content-Length") }) {
                fields.append(("Content-Length", String(body.count)))
            }
            var bytes = head(status: status, headers: withConnection(fields))
            let isSent = !hasNoBody && request.method != "HEAD"
            // Sends a small response at once. A large body is not copied behind its head.
            if isSent, body.count <= 64 << 10 { bytes.append(contentsOf: body) }
            try write(bytes)
            if isSent, body.count > 64 << 10 { try write(body) }
        }

        /// Answers with a text of the type `text/plain; charset=utf-8`, unless `headers` has another type.
        public func respond(status: Int = 200, headers: Fields = [], text: String) throws {
            let fields = Self.typed(headers, "text/plain; charset=utf-8")
            try respond(status: status, headers: fields, body: Array(text.utf8))
        }

        /// Answers with a value as JSON of the type `application/json`, unless `headers` has another type.
        public func respond(status: Int = 200, headers: Fields = [], json: some Encodable) throws {
            var encoder = TernJSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let fields = Self.typed(headers, "application/json")
            try respond(status: status, headers: fields, body: try encoder.encode(json))
        }

        private static func typed(_ headers: Fields, _ type: String) -> Fields {
            if headers.contains(where: { $0.name.isSameFieldName(as: "Content-Type") }) { return headers }
            return headers + [("Content-Type", type)]
        }

        /// Returns the fields with `Connection: close` if this is the last exchange. A `Connection: close` in the
        /// fields makes it the last one.
        func withConnection(_ headers: Fields) -> Fields {
            if let option = headers.first(where: { $0.name.isSameFieldName(as: "Connection") })?.value {
                if option.lowercased().contains("close") { connection.isLast = true }
                return headers
            }
            if connection.isLast { return headers + [("Connection", "close")] }
            return request.version == "HTTP/1.0" ? headers + [("Connection", "keep-alive")] : headers
        }

        func head(status: Int, headers: Fields) -> [UInt8] {
            var text = "HTTP/1.1 \(status) \(Self.reasons[status] ?? "Scripted")\r\n"
            for (name, value) in headers { text += "\(name): \(value)\r\n" }
            text += "\r\n"
            return Array(text.utf8)
        }

        private static let reasons: [Int: String] = [
            100: "Continue", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content",
            206: "Partial Content", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
            307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized",
            403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict",
            412: "Precondition Failed", 416: "Range Not Satisfiable", 418: "I'm a teapot", 429: "Too Many Requests",
            500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
            504: "Gateway Timeout",
        ]
    }
}

/// The position in the body of a request (RFC 9112, section 6).
struct BodyFraming {
    private enum Part: Equatable {
        /// This number of bytes of the body, or of a chunk, follows.
        case bytes(Int)
        case chunkSize
        case chunkEnd
        case trailers
        case complete
    }

    /// The next step in reading the body.
    enum Step: Equatable {
        case takeBytes(Int)
        case takeLine
        case stop
    }

    private var part: Part
    private let isChunked: Bool
    private(set) var trailers: LoopbackServer.Fields = []

    init(of request: LoopbackServer.Request) {
        isChunked = request.isChunked
        let length = request.contentLength ?? 0
        part = isChunked ? .chunkSize : length > 0 ? .bytes(length) : .complete
    }

    var isComplete: Bool { part == .complete }

    var next: Step {
        switch part {
        case .bytes(let count): .takeBytes(count)
        case .chunkSize, .chunkEnd, .trailers: .takeLine
        case .complete: .stop
        }
    }

    mutating func advance(bytes count: Int) {
        guard case .bytes(let left) = part else { return }
        part = left > count ? .bytes(left - count) : isChunked ? .chunkEnd : .complete
    }

    mutating func advance(line: ArraySlice<UInt8>) throws(LoopbackServer.Failure) {
        switch part {
        case .chunkSize:
            let digits = String(decoding: line.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self).trimmingOuterSpace
            guard let size = Int(digits, radix: 16), size >= 0 else {
                throw LoopbackServer.Failure("the request's body has a chunk of the size \"\(digits)\"")
            }
            part = size > 0 ? .bytes(size) : .trailers
        case .chunkEnd:
            guard line.isEmpty else { throw LoopbackServer.Failure("a chunk of the request's body is too long") }
            part = .chunkSize
        case .trailers:
            if line.isEmpty {
                part = .complete
            } else {
                let field = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
                let parts = field.map { String(decoding: $0, as: UTF8.self).trimmingOuterSpace }
                guard parts.count == 2 else { throw LoopbackServer.Failure("a trailer of the request has no colon") }
                trailers.append((parts[0], parts[1]))
            }
        case .bytes, .complete: break
        }
    }
}

extension LoopbackServer.Exchange {
    /// Returns the next bytes of the request body as received, without chunked framing; nil after the last.
    ///
    /// The slice shares the buffer of the connection. Release it before the next call, so that nothing is copied.
    ///
    /// - Parameter size: The maximum number of bytes.
    public func readChunk(upTo size: Int = 256 << 10) throws -> ArraySlice<UInt8>? {
        guard let count = try advanceToBytes() else { return nil }
        guard let bytes = try connection.take(upTo: min(count, max(1, size))) else { throw truncated() }
        advance(bytes.count)
        return bytes
    }

    /// Passes the request body to a closure in pieces of at most `size` bytes, and keeps none of them.
    public func readBody(upTo size: Int = 256 << 10, _ receive: (ArraySlice<UInt8>) throws -> Void) throws {
        while let bytes = try readChunk(upTo: size) { try receive(bytes) }
    }

    /// Returns the whole request body.
    ///
    /// - Parameter limit: The maximum number of bytes; a longer body throws.
    public func readBody(limit: Int = 64 << 20) throws -> [UInt8] {
        var body: [UInt8] = []
        if let length = request.contentLength, !request.isChunked { body.reserveCapacity(min(length, limit)) }
        try readBody { bytes in
            guard body.count + bytes.count <= limit else {
                throw LoopbackServer.Failure("the request's body has more than \(limit) bytes")
            }
            body.append(contentsOf: bytes)
        }
        return body
    }

    /// Decodes the whole request body from JSON.
    public func readJSON<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try TernJSONDecoder().decode(type, from: Data(try readBody()))
    }

    /// Receives and discards the rest of the request body, without a copy where the system can.
    ///
    /// - Returns: The number of bytes of the whole body.
    @discardableResult
    public func drainBody() throws -> Int {
        try drainBody(limit: .max)
        return bodyBytesRead
    }

    func drainBody(limit: Int) throws(LoopbackServer.Failure) {
        var left = limit
        while left > 0, let count = try advanceToBytes() {
            // With a limited speed each piece must be small enough to be delayed.
            let most = speedLimit?.piece ?? .max
            let discarded = try connection.discard(upTo: min(count, left, most))
            if discarded == 0 { throw truncated() }
            left -= discarded
            advance(discarded)
            if let delay = speedLimit?.delay(after: discarded) { _ = try connection.wait(milliseconds: delay) }
        }
    }

    /// Reads framing until bytes of the body follow; returns nil at the end of the body.
    private func advanceToBytes() throws(LoopbackServer.Failure) -> Int? {
        if mustContinue, !framing.isComplete {
            mustContinue = false
            if sendsContinue, !hasWritten { try connection.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
        }
        while true {
            switch framing.next {
            case .takeBytes(let count): return count
            case .stop: return nil
            case .takeLine:
                guard let line = try connection.takeLine() else { throw truncated() }
                try framing.advance(line: line)
            }
        }
    }

    private func advance(_ count: Int) {
        framing.advance(bytes: count)
        bodyBytesRead += count
        connection.core.setBodySize(bodyBytesRead, of: serial)
    }

    private func truncated() -> LoopbackServer.Failure {
        .connection("the client ended the connection after \(bodyBytesRead) bytes of its body")
    }
}
