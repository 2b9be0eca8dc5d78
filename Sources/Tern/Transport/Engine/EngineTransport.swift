#if os(Linux)
import TernConcurrency
import TernEngine

/// Sends the requests of a session over the engine. Connections are made with the first request, and closed when the
/// session is gone and its last attempt has ended.
final class EngineTransport: Transport {
    private let loop: EventLoop
    private let client: UInt64
    /// The loops that carry the attempts; nil if the home loop carries all.
    private let loops: SessionLoops?
    private let settings: ConnectionSettings
    /// The reason why no request of the session can be sent.
    private let problem: FailureCause?
    /// Whether each request can be sent that has no trust policy of its own, as long as there is an event loop. Known
    /// without copies.
    private let acceptsAll: Bool

    init(_ configuration: Session.Configuration) {
        let settings = ConnectionSettings(configuration)
        self.settings = settings
        problem = configuration.problem
        acceptsAll = problem == nil && settings.trust == nil
        let all = EventLoops.nextInTurn()
        loop = all[0]
        loops = SessionLoops(all, settings)
        client =
            loops == nil ? loop.open { LoopSession(settings, context: $0, client: $1, sharing: nil) } : 0
        // Set up before the first request if possible. Otherwise, a request tries again.
        _ = loop.problem()
        settings.keyLog?.warn()
    }

    deinit {
        if let loops { loops.close() } else { loop.close(client) }
    }

    var executor: any MessageExecutor { loop }

    var taskExecutor: any TaskExecutor { loop.taskExecutor }

    /// The session decompresses, at the reader's speed: a small compressed body can become very large.
    var leavesStreamsCompressed: Bool { true }

    func forwardsToProxy(_ target: Target) -> Bool { settings.proxies.forwards(target) }

    func proxyCredential(for target: Target) -> Credential? {
        guard settings.proxies.forwards(target), let proxy = settings.proxies.proxy(for: target), let user = proxy.user
        else { return nil }
        return .user(user, password: proxy.password ?? "")
    }

    func refusal(of attempt: Attempt) -> FailureCause? {
        if !acceptsAll, let problem { return problem }
        if let problem = loop.problem() {
            let target = attempt.request.target
            let reason = "no connection to \(target.host):\(target.port): \(problem.reason)"
            let isLack = problem.kind == .outOfDescriptors
            return FailureCause(.connectionFailed, reason, underlying: isLack ? OutOfDescriptors() : nil)
        }
        if acceptsAll, attempt.request.trust == nil { return nil }
        return refusalOfTrust(attempt.request)
    }

    private func refusalOfTrust(_ request: WireRequest) -> FailureCause? {
        let host = request.target.host
        guard let policy = request.trust ?? (settings.trust ?? TrustPolicies()).policy(for: host) else {
            return TrustPolicies.refusal(of: host)
        }
        if let problem = policy.problem { return problem }
        if policy.pins != nil, !request.target.isSecure {
            return FailureCause(
                .invalidRequest, "the trust policy for \(host) has pins, and http has no certificates")
        }
        return nil
    }

    func start(_ attempt: Attempt) {
        let operation = LoopSession.Operation.start.number
        if let loops { return loops.start(attempt, operation: operation) }
        loop.post(to: client, operation: operation, object: attempt)
    }

    func control(_ attempt: Attempt, _ command: AttemptCommand) {
        let operation = LoopSession.Operation.control(command).number
        if let loops { return loops.control(attempt, operation: operation) }
        loop.post(to: client, operation: operation, object: attempt)
    }

    func preconnect(_ attempt: Attempt, count: Int) -> Bool {
        let order = PoolOrder(.connect(attempt, count: count))
        if let loops { loops.preconnect(order) } else { loop.post(to: client, operation: 0, object: order) }
        return true
    }

    func openConnections() async -> [Session.OpenConnections] {
        guard let loops else { return await openConnections { post(.count($0)) } }
        var counts: [String: Session.OpenConnections] = [:]
        for number in loops.open {
            for count in await openConnections(asking: { loops.post(.count($0), to: number) }) {
                let known = counts[count.origin]
                counts[count.origin] = Session.OpenConnections(
                    origin: count.origin, activeCount: count.activeCount + (known?.activeCount ?? 0),
                    idleCount: count.idleCount + (known?.idleCount ?? 0))
            }
        }
        return counts.values.sorted { $0.origin < $1.origin }
    }

    private func openConnections(
        asking ask: (Waiter<[Session.OpenConnections]>) -> Void
    ) async -> [Session.OpenConnections] {
        let answer = Waiter<[Session.OpenConnections]>()
        ask(answer)
        // A cancelled task gets the answer, too: the loop gives it at once.
        return await answer.wait(onCancel: {})
    }

    func drain() {
        guard let loops else { return post(.drain) }
        for number in loops.open { loops.post(.drain, to: number) }
    }

    private func post(_ content: PoolOrder.Content) {
        // A loop that is not set up has no connections, and keeps its messages. The order ends here then.
        let order = PoolOrder(content)
        if loop.isRunning { loop.post(to: client, operation: 0, object: order) }
    }
}

/// The settings of a session's connections, derived from its configuration.
struct ConnectionSettings: Sendable {
    let maximumConnectionsPerHost: Int
    let maximumConnections: Int
    /// The settings of connections on every loop.
    let connection: LoopConnections.Settings
    let waitsForStreams: Bool
    let queueOrder: Session.Configuration.QueueOrder
    let idleNanoseconds: UInt64
    /// The age and the number of uses at which a connection takes no further attempt; the greatest number for none.
    let ageNanoseconds: UInt64
    let uses: Int
    let allowsHTTP2: Bool
    let usesHTTP2WithoutTLS: Bool
    let http3: Session.Configuration.HTTP3Use
    let authorities: Session.Configuration.Authorities
    let keyLog: TLSKeyLog?
    /// The trust policies of hosts; nil if every host has the default policy.
    let trust: TrustPolicies?
    let proxies: ProxySelector
    /// The addresses to use for `host:port` in place of the resolved ones.
    let addresses: [String: [SocketAddress]]
    let localEndpoint: LocalEndpoint

    /// Returns the use of HTTP/3 that is possible. The first use loads the libraries.
    static func usable(_ use: Session.Configuration.HTTP3Use) -> Session.Configuration.HTTP3Use {
        use == .whenOffered && HTTP3Session.obstacle != nil ? .never : use
    }

    init(_ configuration: Session.Configuration) {
        maximumConnectionsPerHost = max(1, configuration.maximumConnectionsPerHost)
        maximumConnections = max(1, configuration.maximumConnections)
        var connection = LoopConnections.Settings()
        connection.headLimit = configuration.maximumHeadSize
        connection.http3HeadStart = configuration.http3HeadStart.wholeNanoseconds
        connection.setLiveness(
            silences: configuration.http2.pingIntervals.map(\.wholeNanoseconds),
            answer: configuration.http2.pingTimeout.wholeNanoseconds)
        self.connection = connection
        waitsForStreams = configuration.http2.waitsForStreams
        trust = configuration.trust.isDefault ? nil : configuration.trust
        queueOrder = configuration.queueOrder
        idleNanoseconds = configuration.idleConnectionLifetime.wholeNanoseconds
        ageNanoseconds = configuration.maximumConnectionAge?.wholeNanoseconds ?? .max
        uses = configuration.maximumConnectionUses ?? .max
        allowsHTTP2 = configuration.allowsHTTP2
        usesHTTP2WithoutTLS = configuration.usesHTTP2WithoutTLS
        http3 = Self.usable(configuration.http3)
        authorities = configuration.authorities
        keyLog = configuration.keyLog
        proxies = ProxySelector(configuration.proxies)
        // The addresses are numeric: any other is a `problem`, which prevents every request.
        addresses = HostOverride.addresses(configuration.hostAddresses).mapValues { texts in
            texts.compactMap { text in
                HostOverride.address(text).flatMap { SocketAddress(numeric: $0.address, port: $0.port ?? 0) }
            }
        }
        localEndpoint =
            switch configuration.localEndpoint {
            case .any: .any
            case .interface(let name): .interface(name)
            // An invalid address is a `problem`, which prevents every request.
            case .address(let address): SocketAddress(numeric: address, port: 0).map { .address($0) } ?? .any
            }
    }
}
#endif
