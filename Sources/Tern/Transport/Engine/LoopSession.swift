#if os(Linux)
import Synchronization
import TernConcurrency
import TernEngine

/// A message of `EngineTransport` about the connections of its session.
final class PoolOrder: Sendable {
    enum Content: Sendable {
        case drain
        /// Open connections for requests like that of an attempt.
        case connect(Attempt, count: Int)
        /// A message of the pool on another loop, or of others in the process that lack a descriptor.
        case room(SharedRoom.Message)
        case count(Waiter<[Session.OpenConnections]>)
    }

    let content: Content

    init(_ content: Content) { self.content = content }

    deinit {
        // A client that has ended receives no message, and has no connection. A waiter that has its answer keeps it.
        if case .count(let answer) = content { answer.resume(returning: []) }
    }
}

/// The part of a session that lives on one loop: the attempts there, and the pool of their connections. Confined to the
/// loop's thread.
///
/// An attempt stays on the loop that `OriginPlaces` has chosen. A session with several of these shares the limits of
/// its connections by `SharedRoom`.
final class LoopSession: LoopClient {
    /// A message of `EngineTransport`, with the attempt as its object.
    enum Operation {
        case start
        case control(AttemptCommand)

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

    /// The value of `Attempt.tableIndex` for an attempt that has ended.
    private static let endedIndex = -1

    private let context: LoopContext
    private let client: UInt64
    private let pool: ExchangePool
    private let destinations: Confined<DestinationCache>
    private let fields = Confined(RequestFieldsCache())
    private let table: AttemptTable
    /// The loops of the session; nil if it uses one.
    private let loops: SessionLoops?
    private var isClosing = false

    init(_ settings: ConnectionSettings, context: LoopContext, client: UInt64, sharing: LoopSharing?) {
        self.context = context
        self.client = client
        loops = sharing?.loops
        destinations = Confined(DestinationCache(settings))
        var poolSettings = ExchangePool.Settings(
            connectionsPerOrigin: settings.maximumConnectionsPerHost, connections: settings.maximumConnections,
            idleLifetime: settings.idleNanoseconds,
            isNewestFirst: settings.queueOrder == .lastInFirstOut,
            authorizeProxy: { ProxyAuthorization.answers(of: $0, for: $1) })
        poolSettings.liveConnectionsPerOrigin = settings.maximumConnectionsPerHost
        poolSettings.age = settings.ageNanoseconds
        poolSettings.uses = settings.uses
        poolSettings.waitsForStreams = settings.waitsForStreams
        poolSettings.lowPriority = Request.Priority.low.rawValue
        poolSettings.connection = settings.connection
        if let sharing {
            poolSettings.room = sharing.room
            poolSettings.learn = { [loops = sharing.loops] in loops.learn($1, of: $0) }
        }
        poolSettings.spares = SpareDescriptors.Holder { [loop = context.loop] in
            loop.post(to: client, operation: 0, object: PoolOrder(.room(.closeOldestIdle)))
        }
        pool = ExchangePool(poolSettings, context: context)
        table = AttemptTable(context: context, pool: pool)
        table.setOwner(self)
    }

    // MARK: Messages

    func receive(operation: UInt64, object: any AnyObject & Sendable) {
        if let attempt = object as? Attempt {
            switch Operation(number: operation) {
            case .start: start(attempt)
            case .control(let command): control(attempt, command)
            case nil: return
            }
        } else if let order = object as? PoolOrder {
            switch order.content {
            case .drain: pool.drain()
            case .connect(let attempt, let count): connect(attempt, count: count)
            case .room(let message): pool.receive(message)
            case .count(let answer): answer.resume(returning: Session.OpenConnections.all(of: pool))
            }
        }
    }

    func close() {
        isClosing = true
        endIfDone()
    }

    private func endIfDone() {
        guard isClosing, table.isEmpty else { return }
        pool.close()
        table.close()
        context.remove(client)
    }

    private func start(_ attempt: Attempt) {
        let running = EngineAttempt(attempt, table: table)
        table.keep(running)
        attempt.tableIndex.store(running.tableIndex, ordering: .relaxed)
        do {
            let destination = try destinations.value.destination(for: attempt)
            let fields = try fields.value.fields(of: attempt, to: destination)
            running.prepare(to: consume destination, fields: consume fields)
            if running.isUpgrade {
                running.exchange?.sharedDestination = destinations.value.sharedDestination(for: attempt.request)
            }
        } catch {
            return table.end(running, error)
        }
        if attempt.request.startDelay > .zero {
            return running.delayStart(by: attempt.request.startDelay)
        }
        running.submit()
    }

    /// Opens connections. `try?`: a request that follows reports why none can be opened.
    private func connect(_ attempt: Attempt, count: Int) {
        guard !isClosing, let destination = try? destinations.value.destination(for: attempt) else { return }
        pool.connect(to: destination, count: count)
    }

    private func control(_ attempt: Attempt, _ command: AttemptCommand) {
        let index = attempt.tableIndex.load(ordering: .relaxed)
        if index >= 0, let running = table[index] { table.control(running, command) }
    }

    /// Receives the end of an attempt, which has left the table.
    func attemptEnded(_ running: EngineAttempt) {
        running.attempt.tableIndex.store(Self.endedIndex, ordering: .relaxed)
        loops?.ended(running.attempt)
        if isClosing { endIfDone() }
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
#endif
