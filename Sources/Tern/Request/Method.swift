extension Request {
    /// A request method: one of the well-known ones, or any other token.
    ///
    /// Methods are case-sensitive (RFC 9110 §9.1): `"get"` is not ``get``.
    public struct Method: Sendable, Hashable, RawRepresentable {
        /// The method as it stands on the wire.
        public let rawValue: String

        /// Makes a method from its name on the wire. The name is validated when a request is sent, not here.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Makes a method from its name on the wire. The name is validated when a request is sent, not here.
        public init(_ name: String) { rawValue = name }

        /// Asks for a representation.
        public static let get = Method("GET")
        /// Asks for what ``get`` would answer, without the body.
        public static let head = Method("HEAD")
        /// Hands the body over for processing.
        public static let post = Method("POST")
        /// Replaces what stands at the URL by the body.
        public static let put = Method("PUT")
        /// Changes a part of what stands at the URL (RFC 5789).
        public static let patch = Method("PATCH")
        /// Removes what stands at the URL.
        public static let delete = Method("DELETE")
        /// Asks what the server can do.
        public static let options = Method("OPTIONS")
        /// Asks for the request as the server received it.
        public static let trace = Method("TRACE")
        /// Asks a proxy for a tunnel.
        public static let connect = Method("CONNECT")

        /// Whether the method only reads (RFC 9110 §9.2.1): GET, HEAD, OPTIONS and TRACE.
        public var isSafe: Bool {
            switch self {
            case .get, .head, .options, .trace: true
            default: false
            }
        }

        /// Whether doing it twice is as good as once (RFC 9110 §9.2.2): the safe methods, PUT and DELETE.
        public var isIdempotent: Bool { isSafe || self == .put || self == .delete }

        /// Whether the name is a token (RFC 9110 §9.1), so that it can stand in a request line.
        package var isValidToken: Bool {
            !rawValue.isEmpty && rawValue.consists(of: .token)
        }
    }
}

extension Request.Method: ExpressibleByStringLiteral {
    /// Makes a method from its name on the wire, as in `"PURGE"`.
    public init(stringLiteral value: String) { rawValue = value }
}

extension Request.Method: CustomStringConvertible {
    /// The method as it stands on the wire.
    public var description: String { rawValue }
}
