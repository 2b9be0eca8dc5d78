extension Session.Configuration {
    /// The order of requests of the same priority that wait for a connection.
    public enum QueueOrder: Sendable, Hashable {
        /// The oldest request goes first.
        case firstInFirstOut
        /// The newest request goes first. For lists that scroll, where the last requested item is the visible one.
        case lastInFirstOut
    }

    /// The use of connections over HTTP/2 (RFC 9113).
    public struct HTTP2Settings: Sendable, Hashable {
        /// A Boolean value that indicates whether requests to an origin wait for a stream of its open connection when
        /// that carries as many as the server allows. False by default: another connection is opened, up to
        /// `maximumConnectionsPerHost`.
        ///
        /// With true, an origin has one connection on each event loop. A further one is opened when a connection takes
        /// no more requests, because of GOAWAY or its age. A request that waits keeps its order and its time limit
        /// `queue`. With both values, a new connection carries one request until the server's SETTINGS state how many
        /// it allows.
        public var waitsForStreams = false
        /// The silences of the server after which a connection with requests in flight sends PING: before the first,
        /// the second, and each further one, until a frame of a response arrives. 15, 60 and 300 seconds by default;
        /// empty for no PING. Each is at least 1 second.
        ///
        /// Servers end connections whose client sends PING often without need (`ENHANCE_YOUR_CALM`). Those of gRPC
        /// accept one in 5 minutes by default, with two exceptions between two frames of a response, which the
        /// defaults keep to. A connection without requests sends none.
        public var pingIntervals: [Duration] = [.seconds(15), .seconds(60), .seconds(300)]
        /// The time that the server has to answer PING. 10 seconds by default, at least 1 millisecond. A connection
        /// without an answer ends, and its requests fail with `.connectionLost`.
        public var pingTimeout: Duration = .seconds(10)

        /// Creates the default settings.
        public init() {}

        /// The reason why the settings are invalid; nil if they are valid.
        var problem: String? {
            if let interval = pingIntervals.first(where: { $0 < .seconds(1) }) {
                return "http2.pingIntervals has \(interval), and each must be at least 1 second"
            }
            return pingTimeout < .milliseconds(1) ? "http2.pingTimeout is below 1 millisecond" : nil
        }
    }

    /// The local endpoint of connections.
    public enum LocalEndpoint: Sendable, Hashable {
        /// The endpoint that the system chooses.
        case any
        /// A network interface, such as `eth0`. The process may need the right to bind to one.
        case interface(String)
        /// An IPv4 or IPv6 address of this machine.
        case address(String)
    }

    /// The reason why the network settings are invalid; nil if they are valid. It is the error of every request.
    var networkProblem: String? {
        if let problem = proxies.given.lazy.compactMap(\.problem).first { return problem }
        #if os(Linux) && !TERN_URLSESSION
        // On other systems `.environment` means the system's settings.
        if proxies == .environment, let problem = ProxySelector.environment.problem { return problem }
        #endif
        if let wrong = proxies.exceptions.first(where: { ProxyExceptions.Entry($0) == nil }) {
            return "\"\(wrong.printable(limit: 80))\" is no host or network to reach without the proxy"
        }
        if let problem = HostOverride.problem(hostAddresses) { return problem }
        switch localEndpoint {
        case .any: return nil
        case .interface(let name):
            let isName = !name.isEmpty && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "!") }
            return isName ? nil : "\"\(name.printable(limit: 80))\" is no name of a network interface"
        case .address(let address):
            return IPAddress.isValid(address)
                ? nil : "\"\(address.printable(limit: 80))\" is no address to connect from"
        }
    }
}

extension Session.Configuration {
    /// Checks for settings that make every request of a session fail: limits below their minimum, invalid addresses,
    /// and trust policies that this platform does not support. A session with such a configuration fails each request
    /// with the same error, before anything is sent.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` or `.unsupported`; the latter names what is not supported.
    public func check() throws(NetworkError) {
        if let problem { throw NetworkError(problem.kind, reason: problem.reason) }
    }

    var problem: FailureCause? {
        if let limitProblem {
            return FailureCause(.invalidRequest, "the session's configuration: \(limitProblem)")
        }
        if let problem = SessionHeaders(headers, secretsTo: secretHeaderOrigins).problem {
            return FailureCause(.invalidRequest, "the session's configuration: \(problem)")
        }
        if let networkProblem {
            return FailureCause(.invalidRequest, "the session's configuration: \(networkProblem)")
        }
        #if TERN_URLSESSION || !os(Linux)
        if keyLog != nil { return FailureCause(.unsupported, "URLSession does not tell the secrets of TLS: keyLog") }
        #endif
        if let problem = trust.problem {
            return FailureCause(.invalidRequest, "the session's trust policies: \(problem)")
        }
        if let problem = trust.all.lazy.compactMap(\.problem).first { return problem }
        return nil
    }

    /// The reason why a limit is invalid: no connections, or a negative number of bytes.
    private var limitProblem: String? {
        let limits = [
            ("maximumConnectionsPerHost", Int64(maximumConnectionsPerHost), 1),
            ("maximumConnections", Int64(maximumConnections), 1), ("maximumHeadSize", Int64(maximumHeadSize), 1),
            ("maximumBodySize", Int64(maximumBodySize), 0), ("maximumDecompressedSize", maximumDecompressedSize, 0),
            ("maximumDecompressionRatio", Int64(maximumDecompressionRatio), 1),
            ("maximumConnectionUses", Int64(maximumConnectionUses ?? 1), 1),
            ("errorBodyLimit", Int64(errorBodyLimit), 0), ("maximumRedirects", Int64(maximumRedirects), 0),
        ]
        guard let wrong = limits.first(where: { $0.1 < $0.2 }) else {
            if idleConnectionLifetime < .zero { return "idleConnectionLifetime is negative" }
            if let age = maximumConnectionAge, age <= .zero { return "maximumConnectionAge is not above zero" }
            return http2.problem ?? timeouts.problem.map { "timeouts: \($0)" }
        }
        return "\(wrong.0) is \(wrong.1), and must be at least \(wrong.2)"
    }
}
