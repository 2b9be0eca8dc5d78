#if os(Linux)
import Foundation
import TernConcurrency
import Testing

@testable import TernEngine

/// The entries that exchanges record, for which tests wait.
final class ExchangeLog: Sendable {
    private struct State {
        var entries: [String] = []
        var waiters: [(prefix: String, count: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var body: [UInt8] = []
        var error: EngineError?
        var isDeadConnection = false
    }

    private let state = Lock(State())

    var entries: [String] { state.withLock { $0.entries } }
    var body: [UInt8] { state.withLock { $0.body } }
    var text: String { String(decoding: body, as: UTF8.self) }
    var error: EngineError? { state.withLock { $0.error } }

    func add(_ entry: String) {
        let ready = state.withLock { state in
            state.entries.append(entry)
            let entries = state.entries
            let ready = state.waiters.filter { waiter in Self.count(waiter.prefix, in: entries) >= waiter.count }
            state.waiters.removeAll { waiter in Self.count(waiter.prefix, in: entries) >= waiter.count }
            return ready.map(\.continuation)
        }
        for continuation in ready { continuation.resume() }
    }

    func add(body: [UInt8]) { state.withLock { $0.body += body } }

    func end(_ error: EngineError?) {
        state.withLock { $0.error = error }
        add(error.map { "failed \($0.kind)" } ?? "ended")
        add("done")
    }

    private static func count(_ prefix: String, in entries: [String]) -> Int {
        entries.count { $0.hasPrefix(prefix) }
    }

    /// Waits for this number of entries that begin with a text.
    func wait(for prefix: String, count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if Self.count(prefix, in: state.entries) >= count { return true }
                state.waiters.append((prefix, count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Waits for the end of the exchange. Returns the entries, without those for each piece of bytes.
    @discardableResult func waitForEnd() async -> [String] {
        await wait(for: "done")
        return entries.filter { $0 != "bytes" && $0 != "body" && $0 != "done" }
    }
}

/// An exchange of a test. Confined to the loop's thread.
final class TestExchange: ExchangeHandler {
    struct Settings: Sendable {
        var method = "GET"
        var path = "/"
        var body = RequestBody.none
        /// The bytes of the request's body.
        var bytes = 0
        /// The number of bytes of the response's head.
        var headLimit = 64 << 10
        /// Pauses the reader at the first piece of the body.
        var pauses = false
        /// The protocol that the request asks for.
        var upgrade: String?
        /// Delivers the bytes of the new protocol at once.
        var reads = true
        /// The number of bytes of the new protocol after which the log has the entry "all".
        var expected = 0
        /// Called on the loop at the end of the exchange.
        var atEnd: (@Sendable (PoolClient) -> Void)?
    }

    let log: ExchangeLog
    private let settings: Settings
    private unowned let client: PoolClient
    private var missing: Int
    private(set) var exchange: HTTPExchange?
    /// The connection after the switch to another protocol.
    fileprivate var upgraded: UpgradedConnection?

    init(_ settings: Settings, to destination: Destination, log: ExchangeLog, client: PoolClient) {
        self.settings = settings
        self.log = log
        self.client = client
        missing = settings.bytes
        exchange = HTTPExchange(
            to: destination, method: settings.method, path: settings.path, fields: RequestFields(),
            body: settings.body, limits: HeadLimits(bytes: settings.headLimit), priority: 0,
            needsFreshConnection: false, handler: self)
        exchange?.upgrade = settings.upgrade
    }

    func didStartConnecting() { log.add("connecting") }
    func didStopConnecting() { log.add("stopped") }
    func didConnect(_ connection: ConnectionInfo) {
        log.add("connected \(connection.version) \(connection.isReused ? "reused" : "new")")
    }
    func didSend(_ count: Int) {}
    func didReceiveBytes(_ count: Int) { log.add("bytes") }
    func didReceive(interim head: ReceivedHead) { log.add("interim \(head.status)") }
    func didReceive(_ head: ReceivedHead) { log.add("head \(head.status)") }
    func didReceive(body bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe log.add(body: Array(bytes))
        log.add("body")
        if settings.pauses, exchange?.isReading == true, log.entries.count(where: { $0 == "paused" }) == 0 {
            exchange?.set(isReading: false, isSending: true)
            log.add("paused")
        }
        return true
    }
    func didReceive(trailers: [UInt8]) { log.add("trailers") }
    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let count = min(missing, buffer.count)
        guard count > 0 else { return .end }
        for index in 0..<count { unsafe buffer[index] = 0x78 }
        missing -= count
        return .bytes(count)
    }
    func didEnd(_ error: EngineError?, isDeadConnection: Bool) {
        if isDeadConnection { log.add("dead connection") }
        log.end(error)
        settings.atEnd?(client)
    }
}

extension TestExchange: UpgradedConnectionHandler {
    func didUpgrade(_ connection: UpgradedConnection) {
        upgraded = connection
        connection.handler = self
        connection.isReading = settings.reads
        log.add("upgraded")
    }

    func didReceive(_ bytes: UnsafeRawBufferPointer) {
        unsafe log.add(body: Array(bytes))
        if log.body.count == settings.expected { log.add("all") }
    }

    func didWriteAll() { log.add("written") }
    func didEndReceiving() { log.add("end of the server") }
    func didClose(_ error: EngineError?) { log.add("closed\(error.map { " \($0.kind)" } ?? "")") }
}

/// The place that the exchanges of a test go to.
struct Place: Sendable {
    var host = "localhost"
    var address: SocketAddress
    var policy: TLSPolicy?
    var allowsHTTP2 = false
    /// Speaks HTTP/2 without TLS.
    var assumesHTTP2 = false
    var proxy: ProxyAddress?
    /// The port of the origin; nil for that of the address. A Unix socket has none.
    var port: UInt16?

    init(_ address: SocketAddress, policy: TLSPolicy? = nil) {
        self.address = address
        self.policy = policy
    }

    init(_ server: ScriptedServer, policy: TLSPolicy? = nil) { self.init(server.address, policy: policy) }

    private var authority: String { "\(host):\(port ?? address.port)" }

    private var origin: String { "\(policy == nil ? "http" : "https")://\(authority)" }

    /// The key under which a client keeps the destination.
    var name: String { "\(origin) \(address.text) \(allowsHTTP2)" }

    func destination() -> Destination {
        var path: String?
        if address.family == .unix { path = address.text }
        return Destination(
            origin: origin, host: host, port: port ?? address.port, authority: authority, trust: policy,
            allowsHTTP2: allowsHTTP2, assumesHTTP2: assumesHTTP2, proxy: proxy, addresses: [address],
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

    func submit(_ settings: TestExchange.Settings, to place: Place, log: ExchangeLog) {
        let destination = destinations[place.name] ?? place.destination()
        destinations[place.name] = destination
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
        authorize: @escaping ProxyTunnel.Authorize = { _, _ in nil }
    ) throws {
        if let problem = EventLoop.shared.problem() { throw problem }
        client = EventLoop.shared.open { context, id in
            var settings = ExchangePool.Settings(
                connectionsPerOrigin: connectionsPerOrigin, connections: connections,
                idleLifetime: 60_000_000_000, isNewestFirst: false, authorizeProxy: { _, _ in authorize })
            settings.connection.headLimit = headLimit
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

    func start(_ path: String = "/", to place: Place) -> ExchangeLog {
        var settings = TestExchange.Settings()
        settings.path = path
        return start(settings, to: place)
    }

    func start(_ settings: TestExchange.Settings, to place: Place) -> ExchangeLog {
        let log = ExchangeLog()
        perform { $0.submit(settings, to: place, log: log) }
        return log
    }

    /// Withdraws an exchange.
    func cancel(_ log: ExchangeLog) {
        perform { client in client.exchange(of: log).map { client.pool.cancel($0) } }
    }

    /// Lets the reader of an exchange go on.
    func resume(_ log: ExchangeLog) {
        perform { client in client.exchange(of: log)?.set(isReading: true, isSending: true) }
    }
}
#endif
