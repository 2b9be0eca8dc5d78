#if TERN_URLSESSION || !os(Linux)
/// Proxies as `URLSessionConfiguration.connectionProxyDictionary` names them.
struct URLSessionProxies: Sendable {
    private let http: Proxy?
    private let https: Proxy?
    private let exceptions: [String]
    /// The system's own, which are those of its settings.
    private let isSystems: Bool

    init(_ proxies: Session.Configuration.Proxies) {
        isSystems = proxies == .environment
        switch proxies {
        case .environment, .none: (http, https, exceptions) = (nil, nil, [])
        case .only(let proxy, let except): (http, https, exceptions) = (proxy, proxy, except)
        case .schemes(let http, let https, let except): (self.http, self.https, exceptions) = (http, https, except)
        }
    }

    /// nil to leave the system's settings as they are; empty for no proxies.
    var dictionary: [AnyHashable: Any]? {
        if isSystems { return nil }
        var result: [AnyHashable: Any] = [:]
        add(http, "HTTP", to: &result)
        add(https, "HTTPS", to: &result)
        // Networks, and names with a leading dot, stay unchanged.
        let hosts = exceptions.map { (try? CanonicalHost($0))?.text ?? $0 }
        if !hosts.isEmpty { result["ExceptionsList"] = hosts }
        return result
    }

    private func add(_ proxy: Proxy?, _ scheme: String, to result: inout [AnyHashable: Any]) {
        guard let proxy else { return }
        let name =
            switch proxy.kind {
            case .http, .https: scheme
            case .socks5, .socks5WithLocalNames: "SOCKS"
            }
        result["\(name)Enable"] = 1
        result["\(name)Proxy"] = proxy.canonicalHost?.text ?? proxy.host
        result["\(name)Port"] = Int(proxy.port)
    }
}
#endif
