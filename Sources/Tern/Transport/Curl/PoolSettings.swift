/// What a session's configuration means for its connections.
struct PoolSettings: Sendable {
    let maximumConnectionsPerHost: Int
    let maximumConnections: Int
    let idleSeconds: Int
    let allowsHTTP2: Bool
    let authorities: Session.Configuration.Authorities
    let proxies: ProxyEnvironment

    init(_ configuration: Session.Configuration) {
        maximumConnectionsPerHost = max(1, configuration.maximumConnectionsPerHost)
        maximumConnections = max(1, configuration.maximumConnections)
        idleSeconds = Int(min(configuration.idleConnectionLifetime.components.seconds, 86_400))
        allowsHTTP2 = configuration.allowsHTTP2
        authorities = configuration.authorities
        proxies = configuration.proxies == .environment ? .process : ProxyEnvironment([:])
    }
}

/// The proxies that the environment names, by the rules of curl and most other tools.
struct ProxyEnvironment: Sendable, Equatable {
    let http: String?
    let https: String?
    let exceptions: String?

    init(_ environment: [String: String]) {
        func value(_ names: String...) -> String? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        }
        let all = value("all_proxy", "ALL_PROXY")
        // Upper-case HTTP_PROXY is left alone: a CGI server sets it from a request's Proxy header.
        http = value("http_proxy") ?? all
        https = value("https_proxy", "HTTPS_PROXY") ?? all
        exceptions = value("no_proxy", "NO_PROXY")
    }
}
