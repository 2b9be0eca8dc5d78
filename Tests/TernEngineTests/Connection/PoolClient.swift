#if os(Linux)
import TernConcurrency
import Testing

@testable import TernEngine

/// The server that the exchanges of a test go to.
struct Endpoint: Sendable {
    var host = "localhost"
    var address: SocketAddress
    var policy: TLSPolicy?
    var allowsHTTP2 = false
    /// Speaks HTTP/2 without TLS.
    var assumesHTTP2 = false
    var takesAlternatives = false
    var proxy: ProxyAddress?
    /// The port of the origin; nil for that of the address. A Unix socket has none.
    var port: UInt16?

    init(_ address: SocketAddress, policy: TLSPolicy? = nil) {
        self.address = address
        self.policy = policy
    }

    init(_ server: ScriptedServer, policy: TLSPolicy? = nil) { self.init(server.address, policy: policy) }

    /// The endpoint of a server over HTTP/2 without TLS.
    init(_ server: FrameServer) {
        self.init(server.address)
        assumesHTTP2 = true
    }

    private var authority: String { "\(host):\(port ?? address.port)" }

    private var origin: String { "\(policy == nil ? "http" : "https")://\(authority)" }

    /// The key under which a client keeps the destination.
    var name: String { "\(origin) \(address.text) \(allowsHTTP2)" }

    func destination() -> Destination {
        var path: String?
        if address.family == .unix { path = address.text }
        return Destination(
            origin: origin, host: host, port: port ?? address.port, authority: authority, trust: policy,
            allowsHTTP2: allowsHTTP2, assumesHTTP2: assumesHTTP2, takesAlternatives: takesAlternatives,
            proxy: proxy, addresses: [address],
            unixSocketPath: path)
    }
}

/// The pool of a test on the shared loop. Confined to the loop's thread.
final class PoolClient: LoopClient {
    final class Work: Sendable {
        let body: @Sendable (PoolClient) -> Void
        init(_ body: @escaping @Sendable (PoolClient) -> Void) { self.body = body }
    }

    let pool: ExchangePool
    private let context: LoopContext
    private let id: UInt64
    private var exchanges: [TestExchange] = []
    private var destinations: [String: Destination] = [:]

    init(_ settings: ExchangePool.Settings, context: LoopContext, id: UInt64) {
        self.context = context
        self.id = id
        pool = ExchangePool(settings, context: context)
    }

    func receive(operation: UInt64, object: any AnyObject & Sendable) { (object as? Work)?.body(self) }

    func close() {
        for exchange in exchanges { if let made = exchange.exchange { pool.cancel(made) } }
        pool.close()
        context.remove(id)
    }

    func submit(_ settings: TestExchange.Settings, to endpoint: Endpoint, log: ExchangeLog) {
        let destination = destinations[endpoint.name] ?? endpoint.destination()
        destinations[endpoint.name] = destination
        let exchange = TestExchange(settings, to: destination, log: log, client: self)
        exchanges.append(exchange)
        if let made = exchange.exchange { pool.submit(made) }
    }

    func callAtTurnEnd(_ handler: any TurnEndHandler) { context.callAtTurnEnd(handler) }

    /// Returns the connection of an exchange that has switched to another protocol.
    func upgraded(of log: ExchangeLog) -> UpgradedConnection? { exchanges.first { $0.log === log }?.upgraded }

    func exchange(of log: ExchangeLog) -> HTTPExchange? { exchanges.first { $0.log === log }?.exchange }
}

/// The connections of a test, on the shared loop.
final class WireHarness: Sendable {
    private let client: UInt64

    init(
        connectionsPerOrigin: Int = 6, connections: Int = 64, headLimit: Int = 256 << 10,
        liveness: HTTP2Liveness.Limits = .init(), path: HTTP1Liveness.Limits = .init(),
        handshakeTurn: UInt64? = nil, http3HeadStart: UInt64? = nil, room: SharedRoom.Part? = nil,
        authorize: @escaping ProxyTunnel.Authorize = { _, _ in nil }
    ) throws {
        if let problem = EventLoop.shared.problem() { throw problem }
        client = EventLoop.shared.open { context, id in
            var settings = ExchangePool.Settings(
                connectionsPerOrigin: connectionsPerOrigin, connections: connections,
                idleLifetime: 60_000_000_000, isNewestFirst: false, authorizeProxy: { _, _ in authorize })
            settings.connection.headLimit = headLimit
            settings.connection.liveness = liveness
            settings.connection.path = path
            if let handshakeTurn { settings.handshakeTurn = handshakeTurn }
            if let http3HeadStart { settings.connection.http3HeadStart = http3HeadStart }
            settings.room = room
            return PoolClient(settings, context: context, id: id)
        }
    }

    deinit { EventLoop.shared.close(client) }

    /// Runs work on the loop.
    func perform(_ body: @escaping @Sendable (PoolClient) -> Void) {
        EventLoop.shared.post(to: client, operation: 0, object: PoolClient.Work(body))
    }

    /// Returns a value that is read on the loop.
    func value<Value: Sendable>(_ read: @escaping @Sendable (PoolClient) -> Value) async -> Value {
        await withCheckedContinuation { continuation in perform { continuation.resume(returning: read($0)) } }
    }

    @discardableResult
    func start(_ path: String = "/", to endpoint: Endpoint) -> ExchangeLog {
        var settings = TestExchange.Settings()
        settings.path = path
        return start(settings, to: endpoint)
    }

    @discardableResult
    func start(_ settings: TestExchange.Settings, to endpoint: Endpoint) -> ExchangeLog {
        let log = ExchangeLog()
        perform { $0.submit(settings, to: endpoint, log: log) }
        return log
    }

    /// Withdraws an exchange.
    func cancel(_ log: ExchangeLog) {
        perform { client in client.exchange(of: log).map { client.pool.cancel($0) } }
    }

    /// Changes the urgency of an exchange.
    func prioritize(_ log: ExchangeLog, urgency: UInt8) {
        perform { client in
            guard let exchange = client.exchange(of: log) else { return }
            exchange.urgency = urgency
            if !exchange.prioritizeOnConnection() { client.pool.prioritize(exchange) }
        }
    }

    /// Lets the reader of an exchange go on.
    func resume(_ log: ExchangeLog) {
        perform { client in client.exchange(of: log)?.set(isReading: true, isSending: true) }
    }
}
#endif
