#if os(Linux)
import Synchronization
import Testing

@testable import TernEngine

/// A loop on which nothing happens: it records its orders, and the test reports the events. Confined to the thread of
/// the pool's loop.
final class RecordingLoop: ConnectionLoop {
    var isAvailable = true
    private(set) var work = 0
    /// The connections that were to be opened, and those that were to be closed.
    private(set) var opened: [ConnectionPool.ConnectionID] = []
    private(set) var closed: [ConnectionPool.ConnectionID] = []
    /// The exchanges that were started.
    private(set) var started: [HTTPExchange] = []

    func open(
        _ connection: ConnectionPool.ConnectionID, to destination: Destination,
        authorize: @escaping ProxyTunnel.Authorize
    ) {
        opened.append(connection)
    }

    func start(_ exchange: HTTPExchange, on connection: ConnectionPool.ConnectionID) { started.append(exchange) }

    func close(_ connection: ConnectionPool.ConnectionID) { closed.append(connection) }

    func addWork(_ change: Int) { work += change }
}

/// A second loop with a thread of its own, on which a pool has connections. Confined to the thread of the pool's loop,
/// but for `value(_:)`.
final class OtherLoop: ConnectionLoop, Sendable {
    /// Work for one of the loops. The objects that it captures move with it.
    private final class Work: Sendable {
        // Read once, by the loop that receives the work.
        nonisolated(unsafe) let body: (OtherConnections) -> Void

        init(_ body: @escaping (OtherConnections) -> Void) { unsafe self.body = body }
    }

    /// The connections on the second loop. Confined to its thread.
    final class OtherConnections: LoopClient {
        private let id: UInt64
        private let home: UInt64
        private let context: LoopContext
        private(set) lazy var connections = LoopConnections(settings, context: context, observer: self)
        private let settings: LoopConnections.Settings

        init(_ id: UInt64, context: LoopContext, home: UInt64, settings: LoopConnections.Settings) {
            self.id = id
            self.context = context
            self.home = home
            self.settings = settings
        }

        func receive(operation: UInt64, object: any AnyObject & Sendable) {
            if let work = object as? Work { unsafe work.body(self) }
        }

        func close() {
            connections.closeAll()
            context.remove(id)
        }

        fileprivate func report(_ body: @escaping @Sendable (ExchangePool) -> Void) {
            EventLoop.shared.post(to: home, operation: 0, object: PoolClient.Work { body($0.pool) })
        }
    }

    private static let loop = EventLoop(0)

    private let client: UInt64
    /// The work of this test's pool alone, because pools of earlier tests can end later.
    private let ownWork = Atomic(0)
    /// The work after each change.
    let changesOfWork = AsyncStream<Int>.makeStream()

    /// - Parameter home: The number of the pool's client on the shared loop.
    init(home: UInt64, settings: LoopConnections.Settings) {
        _ = Self.loop.problem()
        client = Self.loop.open { context, id in
            OtherConnections(id, context: context, home: home, settings: settings)
        }
    }

    var isAvailable: Bool { Self.loop.problem() == nil }

    var work: Int { ownWork.load(ordering: .relaxed) }

    func addWork(_ change: Int) {
        changesOfWork.continuation.yield(ownWork.wrappingAdd(change, ordering: .relaxed).newValue)
    }

    /// Whether the caller runs on the second loop.
    static var isCurrent: Bool { loop.isCurrent }

    func open(
        _ connection: ConnectionPool.ConnectionID, to destination: Destination,
        authorize: @escaping ProxyTunnel.Authorize
    ) {
        post { $0.connections.open(connection, to: destination, authorize: authorize) }
    }

    func start(_ exchange: HTTPExchange, on connection: ConnectionPool.ConnectionID) {
        post { $0.connections.start(exchange, on: connection) }
    }

    func close(_ connection: ConnectionPool.ConnectionID) { post { $0.connections.close(connection) } }

    func close() { Self.loop.close(client) }

    private func post(_ body: @escaping (OtherConnections) -> Void) {
        Self.loop.post(to: client, operation: 0, object: Work(body))
    }

    /// Returns a value that is read on the second loop.
    func value<Value: Sendable>(_ read: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in post { _ in continuation.resume(returning: read()) } }
    }
}

extension OtherLoop.OtherConnections: ConnectionObserver {
    func connected(_ connection: ConnectionPool.ConnectionID, capacity: Int, isShared: Bool) {
        report { $0.connected(connection, capacity: capacity, isShared: isShared) }
    }

    func connectFailed(_ connection: ConnectionPool.ConnectionID, _ error: EngineError) {
        report { $0.connectFailed(connection, error) }
    }

    func finished(on connection: ConnectionPool.ConnectionID, isReusable: Bool) {
        report { $0.finished(on: connection, isReusable: isReusable) }
    }

    func detached(_ connection: ConnectionPool.ConnectionID) { report { $0.detached(connection) } }

    func closed(_ connection: ConnectionPool.ConnectionID) { report { $0.closed(connection) } }

    func capacityChanged(_ connection: ConnectionPool.ConnectionID, to capacity: Int) {
        report { $0.capacityChanged(connection, to: capacity) }
    }

    func becameLive(on connection: ConnectionPool.ConnectionID) { report { $0.becameLive(on: connection) } }

    func extendedConnectChanged(_ connection: ConnectionPool.ConnectionID, isAllowed: Bool) {
        report { $0.extendedConnectChanged(connection, isAllowed: isAllowed) }
    }

    func draining(_ connection: ConnectionPool.ConnectionID) { report { $0.draining(connection) } }

    func requiresHTTP1(_ connection: ConnectionPool.ConnectionID) { report { $0.requiresHTTP1(connection) } }

    func returned(_ exchange: HTTPExchange) { Issue.record("nothing is returned in these tests") }
}
#endif
