#if os(Linux)
import TernEngine

/// The lane of a session on a loop that is not its home loop: connections, and the transfers that use them. Confined to
/// the loop's thread.
///
/// A transfer arrives when the session's pool has chosen a connection here, and ends here. Each event is reported to
/// the `HomeLane`.
final class AwayLane: LoopClient {
    private let context: LoopContext
    private let client: UInt64
    private let home: EventLoop
    private let homeClient: UInt64
    private let settings: LoopConnections.Settings
    private let lane: TransferLane
    private lazy var connections = LoopConnections(settings, context: context, observer: self)
    /// The transfers by their numbers.
    private var transfers: [UInt64: EngineTransfer] = [:]

    init(
        _ client: UInt64, context: LoopContext, home: EventLoop, homeClient: UInt64,
        settings: LoopConnections.Settings
    ) {
        self.client = client
        self.context = context
        self.home = home
        self.homeClient = homeClient
        self.settings = settings
        lane = TransferLane(context: context, pool: nil)
        lane.setOwner(self)
    }

    func receive(operation: UInt64, object: any AnyObject & Sendable) {
        if let order = object as? LaneOrder {
            perform(order)
        } else if let transfer = object as? Transfer,
            case .control(let command) = HomeLane.Operation(number: operation)
        {
            // The command of a transfer that was given back or has ended has no effect: the home loop knows the state
            // in which the transfer is to continue.
            if let running = transfers[transfer.id] { lane.control(running, command) }
        }
    }

    func close() {
        connections.closeAll()
        lane.close()
        context.remove(client)
    }

    private func perform(_ order: LaneOrder) {
        switch unsafe order.content {
        case .open(let connection, let destination, let authorize):
            connections.open(connection, to: destination, authorize: authorize)
        case .start(let running, let exchange, let connection):
            transfers[running.transfer.id] = running
            lane.keep(running)
            connections.start(exchange, on: connection)
        case .close(let connection):
            connections.close(connection)
        }
    }

    private func report(_ content: LaneReport.Content, _ transfer: EngineTransfer? = nil) {
        context.post(to: homeClient, on: home, operation: 0, object: LaneReport(content, transfer))
    }
}

extension AwayLane: TransferLaneOwner {
    func transferEnded(_ transfer: EngineTransfer) {
        transfers[transfer.transfer.id] = nil
        report(.ended(transfer.transfer))
    }
}

extension AwayLane: ConnectionObserver {
    func connected(_ connection: ConnectionPool.ConnectionID, capacity: Int, isShared: Bool) {
        report(.connected(connection, capacity: capacity, isShared: isShared))
    }

    func connectFailed(_ connection: ConnectionPool.ConnectionID, _ error: EngineError) {
        report(.connectFailed(connection, error))
    }

    func finished(on connection: ConnectionPool.ConnectionID, isReusable: Bool) {
        report(.finished(on: connection, isReusable: isReusable))
    }

    func detached(_ connection: ConnectionPool.ConnectionID) { report(.detached(connection)) }

    func closed(_ connection: ConnectionPool.ConnectionID) { report(.closed(connection)) }

    func capacityChanged(_ connection: ConnectionPool.ConnectionID, to capacity: Int) {
        report(.capacityChanged(connection, to: capacity))
    }

    func becameLive(on connection: ConnectionPool.ConnectionID) { report(.becameLive(connection)) }

    func extendedConnectChanged(_ connection: ConnectionPool.ConnectionID, isAllowed: Bool) {
        report(.extendedConnectChanged(connection, isAllowed: isAllowed))
    }

    func draining(_ connection: ConnectionPool.ConnectionID) { report(.draining(connection)) }

    func requiresHTTP1(_ connection: ConnectionPool.ConnectionID) { report(.requiresHTTP1(connection)) }

    func returned(_ exchange: HTTPExchange) {
        guard let running = exchange.handler as? EngineTransfer else { return }
        transfers[running.transfer.id] = nil
        lane.remove(running)
        report(.returned, running)
    }
}
#endif
