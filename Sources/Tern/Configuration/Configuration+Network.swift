extension Session.Configuration {
    /// The order of requests of the same priority that wait for a connection.
    public enum QueueOrder: Sendable, Hashable {
        /// The oldest request goes first.
        case firstInFirstOut
        /// The newest request goes first. For lists that scroll, where the last requested item is the visible one.
        case lastInFirstOut
    }

    /// The use of HTTP/3.
    package enum HTTP3Use: Sendable, Hashable {
        /// HTTP/3 is not used.
        case never
        /// Servers over TLS are asked over HTTP/3 alone, because they are known to speak it.
        case always
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
            return timeouts.problem.map { "timeouts: \($0)" }
        }
        return "\(wrong.0) is \(wrong.1), and must be at least \(wrong.2)"
    }
}
