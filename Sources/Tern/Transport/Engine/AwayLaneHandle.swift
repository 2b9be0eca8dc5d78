#if os(Linux)
import TernEngine

/// A message from a session's home loop to another one, on which connections of the session live.
///
/// A transfer moves with it: the sender does not touch a transfer that it has sent, until the other loop gives it back.
final class LaneOrder: Sendable {
    enum Content {
        case open(ConnectionPool.ConnectionID, Destination, authorize: ProxyTunnel.Authorize)
        case start(EngineTransfer, HTTPExchange, on: ConnectionPool.ConnectionID)
        case close(ConnectionPool.ConnectionID)
    }

    // Read once, by the other loop. The properties of a destination that change are used by the home loop only.
    nonisolated(unsafe) let content: Content

    init(_ content: Content) { unsafe self.content = content }
}

/// A message from another loop to the session's home loop: what happened to a connection or to a transfer.
final class LaneReport: Sendable {
    enum Content: Sendable {
        case connected(ConnectionPool.ConnectionID, capacity: Int, isShared: Bool)
        case connectFailed(ConnectionPool.ConnectionID, EngineError)
        case finished(on: ConnectionPool.ConnectionID, isReusable: Bool)
        case detached(ConnectionPool.ConnectionID)
        case closed(ConnectionPool.ConnectionID)
        case capacityChanged(ConnectionPool.ConnectionID, to: Int)
        case becameLive(ConnectionPool.ConnectionID)
        case extendedConnectChanged(ConnectionPool.ConnectionID, isAllowed: Bool)
        case draining(ConnectionPool.ConnectionID)
        case requiresHTTP1(ConnectionPool.ConnectionID)
        /// Nothing of the transfer in the message was sent.
        case returned
        case ended(Transfer)
    }

    let content: Content
    // Read once, by the home loop. The other loop no longer touches it.
    nonisolated(unsafe) let transfer: EngineTransfer?

    init(_ content: Content, _ transfer: EngineTransfer? = nil) {
        self.content = content
        unsafe self.transfer = transfer
    }
}

/// Sends orders and commands from a session's home loop to its `AwayLane` on another loop. Confined to the thread of
/// the home loop.
final class AwayLaneHandle: ConnectionLoop {
    private let loop: EventLoop
    private let context: LoopContext
    private let homeClient: UInt64
    private let settings: LoopConnections.Settings
    /// The number of the client on the other loop, which is opened with the first connection.
    private var client: UInt64?
    weak var owner: HomeLane?

    /// - Parameter context: The home loop.
    init(on loop: EventLoop, context: LoopContext, client: UInt64, settings: LoopConnections.Settings) {
        self.loop = loop
        self.context = context
        homeClient = client
        self.settings = settings
    }

    var isAvailable: Bool { loop.problem() == nil }

    var work: Int { loop.work }

    func addWork(_ change: Int) { loop.addWork(change) }

    func open(
        _ connection: ConnectionPool.ConnectionID, to destination: Destination,
        authorize: @escaping ProxyTunnel.Authorize
    ) {
        if client == nil {
            let (home, homeClient, settings) = (context.loop, homeClient, settings)
            client = loop.open { context, id in
                AwayLane(id, context: context, home: home, homeClient: homeClient, settings: settings)
            }
        }
        post(.open(connection, destination, authorize: authorize))
    }

    func start(_ exchange: HTTPExchange, on connection: ConnectionPool.ConnectionID) {
        guard let running = exchange.handler as? EngineTransfer else { return }
        owner?.moved(running, to: self)
        post(.start(running, exchange, on: connection))
    }

    func close(_ connection: ConnectionPool.ConnectionID) { post(.close(connection)) }

    func control(_ transfer: Transfer, _ command: TransferCommand) {
        guard let client else { return }
        context.post(to: client, on: loop, operation: HomeLane.Operation.control(command).number, object: transfer)
    }

    /// Closes the connections. No transfer is left.
    func close() {
        if let client { loop.close(client) }
        client = nil
    }

    private func post(_ content: LaneOrder.Content) {
        guard let client else { return }
        context.post(to: client, on: loop, operation: 0, object: LaneOrder(content))
    }
}
#endif
