extension Request {
    /// A request method: a well-known one, or any other token.
    ///
    /// Methods are case-sensitive (RFC 9110 §9.1): `"get"` is not ``get``.
    public struct Method: Sendable, Hashable, RawRepresentable {
        /// The method as it is sent.
        public let rawValue: String

        /// Creates a method from its name. The name is validated when a request is sent, not here.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Creates a method from its name. The name is validated when a request is sent, not here.
        public init(_ name: String) { rawValue = name }

        /// Requests a representation.
        public static let get = Method("GET")
        /// Requests the head of the response to ``get``, without the body.
        public static let head = Method("HEAD")
        /// Sends the body for processing.
        public static let post = Method("POST")
        /// Replaces the resource by the body.
        public static let put = Method("PUT")
        /// Changes a part of the resource (RFC 5789).
        public static let patch = Method("PATCH")
        /// Removes the resource.
        public static let delete = Method("DELETE")
        /// Requests the options that the server supports.
        public static let options = Method("OPTIONS")
        /// Asks the server to return the request that it received.
        public static let trace = Method("TRACE")
        /// Requests a tunnel through a proxy.
        public static let connect = Method("CONNECT")

        /// A Boolean value that indicates whether the method only reads (RFC 9110 §9.2.1): GET, HEAD, OPTIONS and
        /// TRACE.
        public var isSafe: Bool {
            switch self {
            case .get, .head, .options, .trace: true
            default: false
            }
        }

        /// A Boolean value that indicates whether repeating the method has the same effect as sending it once (RFC 9110
        /// §9.2.2): the safe methods, PUT and DELETE.
        public var isIdempotent: Bool { isSafe || self == .put || self == .delete }

        /// Whether the name is a token (RFC 9110 §9.1), so that a request line can contain it.
        package var isValidToken: Bool {
            // Most methods, at the cost of one comparison of numbers.
            rawValue == "GET" || !rawValue.isEmpty && rawValue.consists(of: .token)
        }
    }
}

extension Request.Method: ExpressibleByStringLiteral {
    /// Creates a method from its name, as in `"PURGE"`.
    public init(stringLiteral value: String) { rawValue = value }
}

extension Request.Method: CustomStringConvertible {
    /// The method as it is sent.
    public var description: String { rawValue }
}
