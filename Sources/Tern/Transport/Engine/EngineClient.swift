#if os(Linux)
import Synchronization
import TernConcurrency
import TernEngine

/// The transfers of one session on the loop. Confined to the loop's thread.
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

    let settings: ConnectionSettings
    let context: LoopContext
    let pool: ExchangePool
    private let client: UInt64
    private var destinations: DestinationCache
    private var fields = RequestFieldsCache()
    /// The transfers under way, each at its `place`, and the places that are free.
    private var transfers: [EngineTransfer?] = []
    private var freePlaces: [Int] = []
    private var isClosing = false
    private lazy var limitTimer = LoopTimer(self)
    private lazy var publicationTimer = LoopTimer(self)
    /// Transfers with bytes or numbers that their session has not seen.
    private var changed: [EngineTransfer] = []
    private var willFlush = false
    /// Transfers whose progress is watched and has changed.
    private var unpublished: [EngineTransfer] = []

    init(_ settings: ConnectionSettings, context: LoopContext, client: UInt64) {
        self.settings = settings
        self.context = context
        self.client = client
        destinations = DestinationCache(settings)
        pool = ExchangePool(
            ExchangePool.Settings(
                connectionsPerOrigin: settings.maximumConnectionsPerHost, connections: settings.maximumConnections,
                idleLifetime: settings.idleNanoseconds,
                isNewestFirst: settings.queueOrder == .lastInFirstOut,
                authorizeProxy: { ProxyAuthorization.answers(of: $0, for: $1) }),
            context: context)
    }

    var now: UInt64 { context.now }

    // MARK: Messages

    func receive(operation: UInt64, object: any AnyObject & Sendable) {
        guard let transfer = object as? Transfer, let operation = Operation(number: operation) else { return }
        switch operation {
        case .start: start(transfer)
        case .control(let command):
            let place = transfer.place.load(ordering: .relaxed)
            if place >= 0, let running = transfers[place] { control(running, command) }
        }
    }

    func close() {
        isClosing = true
        endIfDone()
    }

    private func endIfDone() {
        guard isClosing, freePlaces.count == transfers.count else { return }
        pool.close()
        context.cancel(limitTimer)
        context.cancel(publicationTimer)
        context.remove(client)
    }

    private func start(_ transfer: Transfer) {
        let running = EngineTransfer(transfer, client: self)
        keep(running)
        watch(running.clock)
        do {
            let request = transfer.request
            let destination = try destinations.destination(for: request)
            let fields = try fields.fields(of: request, to: destination)
            running.prepare(to: destination, fields: fields)
        } catch {
            return end(running, error)
        }
        running.submit(to: pool)
    }

    private func keep(_ running: EngineTransfer) {
        context.awaitedResponses += 1
        if let place = freePlaces.popLast() {
            transfers[place] = running
            running.transfer.place.store(place, ordering: .relaxed)
        } else {
            running.transfer.place.store(transfers.count, ordering: .relaxed)
            transfers.append(running)
        }
    }

    private func control(_ transfer: EngineTransfer, _ command: TransferCommand) {
        switch command {
        case .cancel: end(transfer, .cancelled)
        case .pause: transfer.setPaused(true, pool)
        case .resume: transfer.setPaused(false, pool)
        case .demand: transfer.readerTookAll()
        case .bodyReady: transfer.sourceIsReady()
        case .prioritize(let priority): transfer.prioritize(priority, pool)
        }
    }

    /// Ends a transfer, on the wire or in the queue. Does nothing for one that has ended.
    func end(_ transfer: EngineTransfer, _ failure: TransferFailure?, after phase: Timeouts.Phase? = nil) {
        let place = transfer.transfer.place.exchange(-1, ordering: .relaxed)
        guard place >= 0 else { return }
        transfers[place] = nil
        freePlaces.append(place)
        context.awaitedResponses -= 1
        transfer.leave(pool, after: phase)
        transfer.complete(failure)
        // An idle process makes no wake-ups.
        if freePlaces.count == transfers.count { context.cancel(limitTimer) }
        if isClosing { endIfDone() }
    }

    // MARK: The work that transfers leave for later

    func watch(_ clock: TransferClock) {
        if clock.nextDeadline < limitTimer.deadline { context.schedule(limitTimer, at: clock.nextDeadline) }
    }

    func flushLater(_ transfer: EngineTransfer) {
        changed.append(transfer)
        if willFlush { return }
        willFlush = true
        context.callAtTurnEnd(self)
    }

    func publishLater(_ transfer: EngineTransfer) {
        unpublished.append(transfer)
        let time = max(transfer.nextPublication, context.now)
        if time < publicationTimer.deadline { context.schedule(publicationTimer, at: time) }
    }

    func forgetPublication(of transfer: EngineTransfer) { unpublished.removeAll { $0 === transfer } }

    /// Ends the transfers that have reached a limit. Activity only moves a limit further away, so no transfer is
    /// checked before the earliest known limit. Then all are.
    private func checkLimits() {
        var next = UInt64.max
        for transfer in transfers {
            guard let transfer else { continue }
            if let phase = transfer.clock.expired(context.now) {
                end(transfer, transfer.timeout(phase), after: phase)
            } else {
                next = min(next, transfer.clock.nextDeadline)
            }
        }
        if next < limitTimer.deadline { context.schedule(limitTimer, at: next) }
    }

    private func publishProgress() {
        var next = UInt64.max
        unpublished.removeAll { transfer in
            if transfer.nextPublication <= context.now {
                transfer.publishProgress()
                return true
            }
            next = min(next, transfer.nextPublication)
            return false
        }
        context.schedule(publicationTimer, at: next)
    }
}

extension EngineClient: TimerHandler, TurnEndHandler {
    func timerFired(_ timer: LoopTimer) {
        if timer === limitTimer { checkLimits() } else { publishProgress() }
    }

    /// Hands on the bytes of the turn. Small pieces wait while more arrive.
    func turnEnds(isIdle: Bool) -> Bool {
        let flushing = changed
        changed.removeAll(keepingCapacity: true)
        for transfer in flushing where transfer.flush(isIdle: isIdle) { changed.append(transfer) }
        willFlush = !changed.isEmpty
        return willFlush
    }
}
#endif
