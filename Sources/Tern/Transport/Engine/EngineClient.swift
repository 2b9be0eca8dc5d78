#if os(Linux)
import Synchronization
import TernConcurrency
import TernEngine

/// The transfers of one session on its own loop, and its pool of connections, which can live on other loops. Confined to
/// the loop's thread.
final class EngineClient: LoopClient {
    /// A message of `EngineTransport`, with the transfer as its object.
    enum Operation {
        case start
        case control(TransferCommand)

        private static let firstPriority: UInt64 = 16

        /// The form in which the message is posted.
        var number: UInt64 {
            switch self {
            case .start: 0
            case .control(.pause): 1
            case .control(.resume): 2
            case .control(.cancel): 3
            case .control(.demand): 4
            case .control(.bodyReady): 5
            case .control(.prioritize(let priority)): Self.firstPriority + UInt64(priority.rawValue)
            }
        }

        init?(number: UInt64) {
            switch number {
            case 0: self = .start
            case 1: self = .control(.pause)
            case 2: self = .control(.resume)
            case 3: self = .control(.cancel)
            case 4: self = .control(.demand)
            case 5: self = .control(.bodyReady)
            default:
                let value = Int(clamping: number) - Int(Self.firstPriority)
                guard let priority = Request.Priority(rawValue: value) else { return nil }
                self = .control(.prioritize(priority))
            }
        }
    }

    /// The value of `Transfer.place` for a transfer on another loop, and for one that has ended.
    private static let awayPlace = -2
    private static let endedPlace = -1

    private let context: LoopContext
    private let client: UInt64
    private let pool: ExchangePool
    private var destinations: DestinationCache
    private var fields = RequestFieldsCache()
    private lazy var lane = TransferLane(context: context, pool: pool, owner: self)
    /// The other loops on which connections can live.
    private let others: [RemoteLane]
    /// The transfers on other loops, by their numbers.
    private var away: [UInt64: AwayTransfer] = [:]
    private var isClosing = false

    init(_ settings: ConnectionSettings, context: LoopContext, client: UInt64, others: [EventLoop]) {
        self.context = context
        self.client = client
        destinations = DestinationCache(settings)
        self.others = others.map {
            RemoteLane(on: $0, home: context.loop, client: client, settings: settings.connection)
        }
        var poolSettings = ExchangePool.Settings(
            connectionsPerOrigin: settings.maximumConnectionsPerHost, connections: settings.maximumConnections,
            idleLifetime: settings.idleNanoseconds,
            isNewestFirst: settings.queueOrder == .lastInFirstOut,
            authorizeProxy: { ProxyAuthorization.answers(of: $0, for: $1) })
        poolSettings.connection = settings.connection
        pool = ExchangePool(poolSettings, context: context, others: self.others)
        for other in self.others { other.owner = self }
    }

    // MARK: Messages

    func receive(operation: UInt64, object: any AnyObject & Sendable) {
        if let transfer = object as? Transfer {
            switch Operation(number: operation) {
            case .start: start(transfer)
            case .control(let command): control(transfer, command)
            case nil: return
            }
        } else if let report = object as? LaneReport {
            receive(report)
        }
    }

    func close() {
        isClosing = true
        endIfDone()
    }

    private func endIfDone() {
        guard isClosing, lane.isEmpty, away.isEmpty else { return }
        pool.close()
        for other in others { other.close() }
        lane.close()
        context.remove(client)
    }

    private func start(_ transfer: Transfer) {
        let running = EngineTransfer(transfer, lane: lane)
        keep(running)
        do {
            let request = transfer.request
            let destination = try destinations.destination(for: request)
            let fields = try fields.fields(of: request, to: destination)
            running.prepare(to: destination, fields: fields)
        } catch {
            return lane.end(running, error)
        }
        running.submit()
    }

    private func keep(_ running: EngineTransfer) {
        lane.keep(running)
        running.transfer.place.store(running.place, ordering: .relaxed)
    }

    private func control(_ transfer: Transfer, _ command: TransferCommand) {
        let place = transfer.place.load(ordering: .relaxed)
        if place >= 0 {
            if let running = lane[place] { lane.control(running, command) }
        } else if place == Self.awayPlace {
            away[transfer.id]?.control(transfer, command)
        }
    }

    /// A transfer on another loop, and the state in which it continues if it is given back. It is only given back in the
    /// message that starts it there, so that none of the commands here has had an effect then.
    private struct AwayTransfer {
        let lane: RemoteLane
        private(set) var isPaused = false
        private(set) var isCancelled = false
        private(set) var priority: Request.Priority?

        init(lane: RemoteLane) { self.lane = lane }

        mutating func control(_ transfer: Transfer, _ command: TransferCommand) {
            switch command {
            case .pause: isPaused = true
            case .resume: isPaused = false
            case .cancel: isCancelled = true
            case .prioritize(let priority): self.priority = priority
            // Nothing was received or sent.
            case .demand, .bodyReady: break
            }
            lane.control(transfer, command)
        }
    }

    /// Continues a transfer that another loop gave back.
    private func takeBack(_ running: EngineTransfer) {
        guard let exchange = running.exchange, let left = away.removeValue(forKey: running.transfer.id) else { return }
        keep(running)
        if left.isCancelled { return lane.end(running, .cancelled) }
        if let priority = left.priority { running.prioritize(priority) }
        if left.isPaused { return running.setPaused(true) }
        pool.returned(exchange)
    }

    // MARK: Other loops

    /// Lets a transfer go, whose exchange has been given a connection on another loop.
    func moved(_ running: EngineTransfer, to other: RemoteLane) {
        lane.remove(running)
        running.transfer.place.store(Self.awayPlace, ordering: .relaxed)
        away[running.transfer.id] = AwayTransfer(lane: other)
    }

    private func receive(_ report: LaneReport) {
        switch report.content {
        case .connected(let connection, let capacity, let isShared):
            pool.connected(connection, capacity: capacity, isShared: isShared)
        case .connectFailed(let connection, let error): pool.connectFailed(connection, error)
        case .finished(let connection, let isReusable): pool.finished(on: connection, isReusable: isReusable)
        case .closed(let connection): pool.closed(connection)
        case .capacityChanged(let connection, let capacity): pool.capacityChanged(connection, to: capacity)
        case .draining(let connection): pool.draining(connection)
        case .requiresHTTP1(let connection): pool.requiresHTTP1(connection)
        case .returned:
            if let running = unsafe report.transfer { takeBack(running) }
        case .ended(let transfer):
            away[transfer.id] = nil
            transfer.place.store(Self.endedPlace, ordering: .relaxed)
            endIfDone()
        }
    }
}

extension EngineClient: TransferLaneOwner {
    func transferEnded(_ transfer: EngineTransfer) {
        transfer.transfer.place.store(Self.endedPlace, ordering: .relaxed)
        if isClosing { endIfDone() }
    }
}
#endif
