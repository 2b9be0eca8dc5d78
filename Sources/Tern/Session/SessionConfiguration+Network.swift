extension Session.Configuration {
    /// Which proxies are used.
    public enum Proxies: Sendable, Hashable {
        /// As the environment says, read once per process.
        case environment
        /// None, whatever the environment says.
        case none
        /// One proxy for all requests, except to the hosts in `except`: names such as `example.com`, which include
        /// every name below them, addresses, networks such as `10.0.0.0/8`, or `*` for all hosts.
        case only(Proxy, except: [String] = [])
        /// One for http and another for https; nil connects directly.
        case schemes(http: Proxy?, https: Proxy?, except: [String] = [])
    }

    /// The redirects that a session follows.
    ///
    /// A redirect that is not followed is the response, and its 3xx status is accepted regardless of the validation.
    public enum Redirects: Sendable, Hashable {
        /// Follows every redirect that the rules of RFC 9110 §15.4 allow. A redirect to a scheme other than http and
        /// https, or from https to http, fails with an error of kind `.redirect`.
        case follow
        /// Follows no redirect.
        case stop
        /// Follows redirects to the scheme, host and port of the request that was answered.
        case sameOrigin

        func stops(at target: Target, _ request: Request) -> Bool {
            switch self {
            case .follow: false
            case .stop: true
            case .sameOrigin: target.origin != request.target.origin
            }
        }

        /// Returns whether a refused redirect is the response. With `.sameOrigin`, a redirect beyond the maximum number
        /// is an error instead, because the redirects before it stayed on one origin.
        func stops(atRefused kind: NetworkError.Kind) -> Bool {
            self == .stop || self == .sameOrigin && kind == .redirect
        }
    }

    /// Who goes first among those of the same priority that wait for a connection.
    public enum QueueOrder: Sendable, Hashable {
        /// The oldest.
        case firstInFirstOut
        /// The newest: for lists that scroll, where what was asked for last is what is seen.
        case lastInFirstOut
    }

    /// Where connections begin on this machine.
    public enum LocalEndpoint: Sendable, Hashable {
        /// As the system routes them.
        case any
        /// At a network interface, such as `eth0`; the process may need the right to bind to one.
        case interface(String)
        /// At an address of this machine, IPv4 or IPv6.
        case address(String)
    }

    var givenProxies: [Proxy] {
        switch proxies {
        case .environment, .none: []
        case .only(let proxy, _): [proxy]
        case .schemes(let http, let https, _): [http, https].compactMap { $0 }
        }
    }

    private var givenExceptions: [String] {
        switch proxies {
        case .environment, .none: []
        case .only(_, let except), .schemes(_, _, let except): except
        }
    }

    /// What cannot be meant: found before the first request of the session is sent, and the error of each.
    var networkProblem: String? {
        if let problem = givenProxies.lazy.compactMap(\.problem).first { return problem }
        #if os(Linux) && !TERN_URLSESSION
        // On other systems `.environment` means the system's settings.
        if proxies == .environment, let problem = ProxyEnvironment.process.problem { return problem }
        #endif
        if let wrong = givenExceptions.first(where: { ProxyExceptions.Entry($0) == nil }) {
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
