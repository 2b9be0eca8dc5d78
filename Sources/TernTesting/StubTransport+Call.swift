public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension StubTransport {
    /// What a stub was asked: one attempt of one request, as a server would have received it.
    public struct Call: Sendable {
        /// The method.
        public let method: Request.Method
        /// The absolute URL, as it is sent.
        public let urlString: String
        /// The path as it is sent, percent-encoded, without the query.
        public let path: String
        /// What follows the question mark, as it is sent; nil without one.
        public let query: String?
        /// The header fields: the session's, the client's and the call's, and Content-Length where the length is known.
        public let headers: Headers
        /// The whole body, whatever it was made from.
        public let body: Data
        /// 0 for the first call of this stub, 1 for the next: for answers that change from call to call.
        public internal(set) var index: Int

        init(_ order: TransferOrder, body: Data) {
            method = order.method
            urlString = order.target.string
            path = order.target.path
            query = order.target.query
            var headers = order.headers
            switch order.source {
            case .none: break
            case .bytes(let data): headers["Content-Length"] = String(data.count)
            case .pipe(_, let length): headers["Content-Length"] = length.map { String($0) }
            }
            self.headers = headers
            self.body = body
            index = 0
        }

        /// The absolute URL.
        public var url: URL? { URL(string: urlString) }

        /// The body as UTF-8 text.
        public var text: String { String(decoding: body, as: UTF8.self) }
    }

    /// A method and a path, and a query where it matters: `"GET /users/1"`, `"GET /users?page=2"`. A key of a stub's table.
    public struct Route: Sendable, Hashable, ExpressibleByStringLiteral {
        private let text: String

        /// The route of a method and a path that begins with a slash.
        public init(_ method: Request.Method, _ path: String) { text = "\(method.rawValue) \(path)" }

        /// A method, a space, and a path that begins with a slash.
        public init(stringLiteral value: String) { text = value }

        /// What a call can be found under, the exact one first.
        static func candidates(for call: Call) -> [Route] {
            let plain = Route(call.method, call.path)
            guard let query = call.query else { return [plain] }
            return [Route(call.method, "\(call.path)?\(query)"), plain]
        }
    }

    /// A way to fail: thrown by a stub's closure, or a step of an answer.
    public struct Failure: Error, Sendable {
        /// The kind of the `NetworkError` that the task fails with.
        public let kind: NetworkError.Kind
        /// Its reason.
        public let reason: String
        let isDeadPooledConnection: Bool

        /// A failure of any kind; the reason becomes the error's.
        public init(_ kind: NetworkError.Kind, _ reason: String = "the stub was told to fail") {
            self.kind = kind
            self.reason = reason
            isDeadPooledConnection = false
        }

        private init() {
            kind = .connectionLost
            reason = "the pooled connection was closed before a response came; the server may have acted"
            isDeadPooledConnection = true
        }

        /// A connection that was kept alive and turns out to be closed: the one failure after which a session sends a safe
        /// request again, once.
        public static let deadPooledConnection = Failure()
    }
}

extension StubTransport.Call: CustomStringConvertible, CustomReflectable {
    /// The method and the URL without secrets.
    public var description: String { "\(method) \(Target.redact(urlString))" }

    /// The method, the URL and the headers without secrets. Without this mirror, `dump` would show the secrets and the
    /// body.
    public var customMirror: Mirror {
        Mirror(self, children: ["method": method, "url": Target.redact(urlString), "headers": headers])
    }
}
