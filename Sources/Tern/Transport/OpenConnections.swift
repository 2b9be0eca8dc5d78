extension Session {
    /// The numbers of open connections of a session to one origin.
    public struct OpenConnections: Sendable, Hashable {
        /// The scheme, the host and the port of the requests, such as `https://example.com:443`, also behind a proxy
        /// and for a Unix socket. The port is always there, and an IPv6 address has brackets.
        public let origin: String
        /// The number of connections that carry a request, or a WebSocket.
        public let activeCount: Int
        /// The number of connections that wait for their next request.
        public let idleCount: Int
    }
}
