/// The settings of a session's connections, derived from its configuration.
struct PoolSettings: Sendable {
    let maximumConnectionsPerHost: Int
    let maximumConnections: Int
    let queueOrder: Session.Configuration.QueueOrder
    let idleSeconds: Int
    let allowsHTTP2: Bool
    let authorities: Session.Configuration.Authorities
    /// The trust policies of hosts; nil if every host has the default policy.
    var trust: TrustPolicies?
    let proxies: ProxyEnvironment
    /// The overrides in libcurl's format.
    let hostOverrides: [String]
    let localEndpoint: String?

    init(_ configuration: Session.Configuration) {
        maximumConnectionsPerHost = max(1, configuration.maximumConnectionsPerHost)
        maximumConnections = max(1, configuration.maximumConnections)
        trust = configuration.trust.isDefault ? nil : configuration.trust
        queueOrder = configuration.queueOrder
        idleSeconds = Int(min(configuration.idleConnectionLifetime.components.seconds, 86_400))
        allowsHTTP2 = configuration.allowsHTTP2
        authorities = configuration.authorities
        proxies =
            switch configuration.proxies {
            case .environment: .process
            case .none: ProxyEnvironment([:])
            case .only(let proxy, let except): ProxyEnvironment(http: proxy, https: proxy, except)
            case .schemes(let http, let https, let except): ProxyEnvironment(http: http, https: https, except)
            }
        hostOverrides = HostOverride.lines(configuration.hostAddresses)
        localEndpoint =
            switch configuration.localEndpoint {
            case .any: nil
            case .interface(let name): "if!\(name)"
            case .address(let address): "host!\(address)"
            }
    }
}
