#if os(Linux)
import Synchronization
import TernConcurrency
import TernEngine

/// A message of `EngineTransport` about the connections of its session.
final class PoolOrder: Sendable {
    enum Content: Sendable {
        case drain
        case closeOldestIdle
        case count(Waiter<[Session.OpenConnections]>)
    }

    let content: Content

    init(_ content: Content) { self.content = content }

    deinit {
        // A lane that has ended receives no message, and has no connection. A waiter that has its answer keeps it.
        if case .count(let answer) = content { answer.resume(returning: []) }
    }
}

/// The lane of a session on its home loop: the transfers there, and the pool of connections, which can live on other
/// loops. Confined to the thread of the home loop.
///
/// A session has one lane on each loop that carries its transfers: this one, and an `AwayLane` on each other loop,
/// which this one reaches through an `AwayLaneHandle`.
final class HomeLane: LoopClient {
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
            case .control(.usePipe): 6
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
            case 6: self = .control(.usePipe)
            default:
                let value = Int(clamping: number) - Int(Self.firstPriority)
                guard let priority = Request.Priority(rawValue: value) else { return nil }
                self = .control(.prioritize(priority))
            }
        }
    }

    /// The value of `Transfer.tableIndex` for a transfer on another loop, and for one that has ended.
    private static let awayIndex = -2
    private static let endedIndex = -1

    private let context: LoopContext
    private let client: UInt64
    private let pool: ExchangePool
    private let destinations: Confined<DestinationCache>
    private let fields = Confined(RequestFieldsCache())
    private let lane: TransferLane
    /// The lanes on the other loops, on which connections can live.
    private let awayLanes: [AwayLaneHandle]
    /// The transfers on other loops, by their numbers.
    private var awayTransfers: [UInt64: AwayTransfer] = [:]
    private var isClosing = false

    init(_ settings: ConnectionSettings, context: LoopContext, client: UInt64, others: [EventLoop]) {
        self.context = context
        self.client = client
        destinations = Confined(DestinationCache(settings))
        awayLanes = others.map {
            AwayLaneHandle(on: $0, context: context, client: client, settings: settings.connection)
        }
        var poolSettings = ExchangePool.Settings(
            connectionsPerOrigin: settings.maximumConnectionsPerHost, connections: settings.maximumConnections,
            idleLifetime: settings.idleNanoseconds,
            isNewestFirst: settings.queueOrder == .lastInFirstOut,
            authorizeProxy: { ProxyAuthorization.answers(of: $0, for: $1) })
        poolSettings.liveConnectionsPerOrigin = settings.maximumConnectionsPerHost
        poolSettings.lowPriority = Request.Priority.low.rawValue
        poolSettings.connection = settings.connection
        poolSettings.spares = SpareDescriptors.Holder { [loop = context.loop] in
            loop.post(to: client, operation: 0, object: PoolOrder(.closeOldestIdle))
        }
        pool = ExchangePool(poolSettings, context: context, others: awayLanes)
        lane = TransferLane(context: context, pool: pool)
        lane.setOwner(self)
        for lane in awayLanes { lane.owner = self }
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
        } else if let order = object as? PoolOrder {
            switch order.content {
            case .drain: pool.drain()
            case .closeOldestIdle: pool.closeOldestIdle()
            case .count(let answer): answer.resume(returning: Session.OpenConnections.all(of: pool))
            }
        }
    }

    func close() {
        isClosing = true
        endIfDone()
    }

    private func endIfDone() {
        guard isClosing, lane.isEmpty, awayTransfers.isEmpty else { return }
        pool.close()
        for lane in awayLanes { lane.close() }
        lane.close()
        context.remove(client)
    }

    private func start(_ transfer: Transfer) {
        transfer.owner?.perform(0)
        let running = EngineTransfer(transfer, lane: lane)
        keep(running)
        do {
            let destination = try destinations.value.destination(for: transfer)
            let fields = try fields.value.fields(of: transfer, to: destination)
            running.prepare(to: consume destination, fields: consume fields)
            if running.isUpgrade {
                running.exchange?.sharedDestination = destinations.value.sharedDestination(for: transfer.request)
            }
        } catch {
            return lane.end(running, error)
        }
        if transfer.request.startDelay > .zero {
            return running.delayStart(by: transfer.request.startDelay)
        }
        running.submit(to: pool)
    }

    private func keep(_ running: EngineTransfer) {
        lane.keep(running)
        running.transfer.tableIndex.store(running.tableIndex, ordering: .relaxed)
    }

    private func control(_ transfer: Transfer, _ command: TransferCommand) {
        let index = transfer.tableIndex.load(ordering: .relaxed)
        if index >= 0 {
            if let running = lane[index] { lane.control(running, command) }
        } else if index == Self.awayIndex {
            awayTransfers[transfer.id]?.control(transfer, command)
        }
    }

    /// A transfer on another loop, and the state in which it continues if it is given back. It is only given back in
    /// the message that starts it there, so that none of the commands here has had an effect then.
    private struct AwayTransfer {
        let lane: AwayLaneHandle
        private(set) var isPaused = false
        private(set) var isCancelled = false
        private(set) var priority: Request.Priority?

        init(lane: AwayLaneHandle) { self.lane = lane }

        mutating func control(_ transfer: Transfer, _ command: TransferCommand) {
            switch command {
            case .pause: isPaused = true
            case .resume: isPaused = false
            case .cancel: isCancelled = true
            case .prioritize(let priority): self.priority = priority
            // Nothing was received or sent.
            case .demand, .bodyReady, .usePipe: break
            }
            lane.control(transfer, command)
        }
    }

    /// Continues a transfer that another loop gave back.
    private func takeBack(_ running: EngineTransfer) {
        guard let exchange = running.exchange,
            let left = awayTransfers.removeValue(forKey: running.transfer.id)
        else { return }
        keep(running)
        if left.isCancelled { return lane.end(running, .cancelled) }
        if let priority = left.priority { running.prioritize(priority) }
        if left.isPaused { return running.setPaused(true) }
        pool.returned(exchange)
    }

    // MARK: Other loops

    /// Lets a transfer go, whose exchange has been given a connection on another loop.
    func moved(_ running: EngineTransfer, to awayLane: AwayLaneHandle) {
        lane.remove(running)
        running.transfer.tableIndex.store(Self.awayIndex, ordering: .relaxed)
        awayTransfers[running.transfer.id] = AwayTransfer(lane: awayLane)
    }

    private func receive(_ report: LaneReport) {
        switch report.content {
        case .connected(let connection, let capacity, let isShared):
            pool.connected(connection, capacity: capacity, isShared: isShared)
        case .connectFailed(let connection, let error): pool.connectFailed(connection, error)
        case .finished(let connection, let isReusable): pool.finished(on: connection, isReusable: isReusable)
        case .detached(let connection): pool.detached(connection)
        case .closed(let connection): pool.closed(connection)
        case .capacityChanged(let connection, let capacity): pool.capacityChanged(connection, to: capacity)
        case .becameLive(let connection): pool.becameLive(on: connection)
        case .extendedConnectChanged(let connection, let isAllowed):
            pool.extendedConnectChanged(connection, isAllowed: isAllowed)
        case .draining(let connection): pool.draining(connection)
        case .requiresHTTP1(let connection): pool.requiresHTTP1(connection)
        case .returned:
            if let running = unsafe report.transfer { takeBack(running) }
        case .ended(let transfer):
            awayTransfers[transfer.id] = nil
            transfer.tableIndex.store(Self.endedIndex, ordering: .relaxed)
            endIfDone()
        }
    }
}

extension Session.OpenConnections {
    fileprivate static func all(of pool: ExchangePool) -> [Self] {
        var counts: [String: ConnectionPool.OpenCount] = [:]
        for (name, count) in pool.openCounts {
            // The path of a Unix socket comes before the origin, and a space between them.
            let origin = name.lastIndex(of: " ").map { String(name[name.index(after: $0)...]) } ?? name
            counts[origin, default: ConnectionPool.OpenCount()].active += count.active
            counts[origin, default: ConnectionPool.OpenCount()].idle += count.idle
        }
        return counts.sorted { $0.key < $1.key }.map { origin, count in
            Self(origin: origin, activeCount: count.active, idleCount: count.idle)
        }
    }
}

extension HomeLane: TransferLaneOwner {
    func transferEnded(_ transfer: EngineTransfer) {
        transfer.transfer.tableIndex.store(Self.endedIndex, ordering: .relaxed)
        if isClosing { endIfDone() }
    }
}
#endif
