import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension LoopbackServer {
    /// One request and the means to answer it, with complete answers or byte by byte. Its calls block; it belongs to
    /// the connection's thread and is of no use after the handler has returned.
    ///
    /// All calls throw `Failure` when the client has gone or the server stops; a handler lets it pass.
    public final class Exchange {
        /// The request's head.
        public let request: Request

        /// Whether the first reading of the body answers `Expect: 100-continue` with `100 Continue`.
        public var sendsContinue = true

        /// Bytes of the request's body read so far, framing not counted.
        public internal(set) var bodyBytesRead = 0

        let connection: LoopbackConnection
        let serial: Int
        var framing: BodyFraming
        var mustContinue: Bool
        /// Whether any byte of an answer was sent.
        var hasWritten = false
        var pace: Pace?

        init(_ request: Request, on connection: LoopbackConnection, serial: Int) {
            self.request = request
            self.connection = connection
            self.serial = serial
            framing = BodyFraming(of: request)
            mustContinue = request["Expect"]?.lowercased() == "100-continue"
            if !request.keepsAlive { connection.isLast = true }
        }

        /// Runs the handler and puts the connection in order for the next request.
        func run(_ handler: Handler) {
            do {
                try handler(self)
                if !hasWritten, !connection.isEnded {
                    try respond(status: 500, text: "The handler returned without an answer.\n")
                }
            } catch {
                answer(failure: error)
            }
            pace = nil
            // A client that was not told to continue may never send its body, so that nothing can be drained.
            if mustContinue, !framing.isComplete { connection.isLast = true }
            guard !connection.isLast else { return }
            do { try drainBody(limit: 64 << 20) } catch { connection.isLast = true }
            if !framing.isComplete { connection.isLast = true }
        }

        private func answer(failure: any Error) {
            connection.isLast = true
            let isLost = (failure as? Failure)?.isConnectionLoss ?? false
            guard !hasWritten, !isLost, !connection.isEnded else { return }
            // `try?`: the handler's error has no other way out than this answer, and the connection ends either way.
            try? respond(status: 500, text: "The handler failed: \(failure)\n")
        }

        /// Answers with a body of known length. Adds `Content-Length`, and `Connection: close` where the connection
        /// ends; omits the body after HEAD and for statuses that have none.
        /// - Parameters:
        ///   - status: the status code.
        ///   - headers: further fields; a `Content-Length` among them stands as it is, right or wrong.
        ///   - body: the body's bytes.
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
            // One send for a small answer; a large body is not copied for the sake of its head.
            if isSent, body.count <= 64 << 10 { bytes.append(contentsOf: body) }
            try write(bytes)
            if isSent, body.count > 64 << 10 { try write(body) }
        }

        /// Answers with a text; its type is `text/plain; charset=utf-8` unless `headers` name another.
        public func respond(status: Int = 200, headers: Fields = [], text: String) throws {
            let fields = Self.typed(headers, "text/plain; charset=utf-8")
            try respond(status: status, headers: fields, body: Array(text.utf8))
        }

        /// Answers with a value as JSON; its type is `application/json` unless `headers` name another.
        public func respond(status: Int = 200, headers: Fields = [], json: some Encodable) throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let fields = Self.typed(headers, "application/json")
            try respond(status: status, headers: fields, body: try encoder.encode(json))
        }

        private static func typed(_ headers: Fields, _ type: String) -> Fields {
            if headers.contains(where: { $0.name.isSameFieldName(as: "Content-Type") }) { return headers }
            return headers + [("Content-Type", type)]
        }

        /// With `Connection: close` if this is the last exchange, and heeding a `Connection: close` that stands there.
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
