extension Session.Configuration {
    /// The proxies of a session.
    public enum Proxies: Sendable, Hashable {
        /// The proxies of the environment, read once per process.
        case environment
        /// No proxies, regardless of the environment.
        case none
        /// One proxy for all requests, except to the hosts in `except`: names such as `example.com`, which include
        /// every name below them, addresses, networks such as `10.0.0.0/8`, or `*` for all hosts. A name or an address
        /// with a port, such as `example.com:8080` or `[::1]:8080`, excepts that port alone (Linux).
        case only(Proxy, except: [String] = [])
        /// One proxy for http and another for https; nil connects directly.
        case schemes(http: Proxy?, https: Proxy?, except: [String] = [])

        /// The proxies that the caller names.
        var given: [Proxy] {
            switch self {
            case .environment, .none: []
            case .only(let proxy, _): [proxy]
            case .schemes(let http, let https, _): [http, https].compactMap { $0 }
            }
        }

        /// The hosts that the caller excepts.
        var exceptions: [String] {
            switch self {
            case .environment, .none: []
            case .only(_, let except), .schemes(_, _, let except): except
            }
        }
    }
}
