#if os(Linux)
import TernConcurrency
import TernEngine

/// The transfers of a session on one loop, their time limits, and the work that they leave for later. Confined to the
/// loop's thread.
final class TransferTable {
    let context: LoopContext
    /// The pool in which exchanges wait.
    let pool: ExchangePool
    /// Set once, before the first transfer.
    private unowned var owner: LoopSession?
    /// The transfers under way, each at its `tableIndex`, and the indices that are free.
    private let transfers = Confined<[EngineTransfer?]>([])
    private let freeIndices = Confined<[Int]>([])
    /// The number of transfers under way.
    private var count = 0
    private let limitTimer = LoopTimer()
    private let publicationTimer = LoopTimer()
    /// Transfers with bytes or numbers that their session has not seen, or with bytes to send at the end of the turn.
    private let changed = Confined<[EngineTransfer]>([])
    /// The storage of those that are being flushed, for the next turn.
    private let spareChanged = Confined<[EngineTransfer]>([])
    private var willFlush = false
    /// Transfers whose progress is watched and has changed.
    private var unpublished: [EngineTransfer] = []

    init(context: LoopContext, pool: ExchangePool) {
        self.context = context
        self.pool = pool
        limitTimer.setHandler(self)
        publicationTimer.setHandler(self)
    }

    func setOwner(_ owner: LoopSession) { self.owner = owner }

    var now: UInt64 { context.now }

    var isEmpty: Bool { count == 0 }

    /// The transfer at an index of the table.
    subscript(_ index: Int) -> EngineTransfer? { transfers.value[index] }

    // MARK: Transfers

    /// Takes a transfer in.
    func keep(_ transfer: EngineTransfer) {
        context.awaitResponses(1)
        count += 1
        if let index = freeIndices.value.popLast() {
            transfers.value[index] = transfer
            transfer.tableIndex = index
        } else {
            transfer.tableIndex = transfers.value.count
            transfers.value.append(transfer)
        }
        limitTimer.isNeeded = true
        watch(transfer.clock)
    }

    /// Lets a transfer go that has ended.
    private func remove(_ transfer: EngineTransfer) {
        context.awaitResponses(-1)
        count -= 1
        transfers.value[transfer.tableIndex] = nil
        freeIndices.value.append(transfer.tableIndex)
        transfer.tableIndex = -1
        // An idle process makes no wake-ups. Most often, the next transfer begins before the loop sleeps.
        if isEmpty { context.cancelBeforeSleep(limitTimer) }
    }

    /// Ends a transfer, on the wire or in the queue. Does nothing for one that has ended.
    func end(_ transfer: EngineTransfer, _ failure: TransferFailure?, after phase: Timeouts.Phase? = nil) {
        guard transfer.tableIndex >= 0 else { return }
        remove(transfer)
        transfer.leave(after: phase)
        transfer.complete(failure)
        owner?.transferEnded(transfer)
    }

    func control(_ transfer: EngineTransfer, _ command: TransferCommand) {
        switch command {
        case .cancel: end(transfer, .cancelled)
        case .pause: transfer.setPaused(true)
        case .resume: transfer.setPaused(false)
        case .demand: transfer.readerTookAll()
        case .bodyReady: transfer.sourceIsReady()
        case .usePipe: transfer.usePipe()
        case .prioritize(let priority): transfer.prioritize(priority)
        }
    }

    /// Stops the timers. No transfer is left.
    func close() {
        context.cancel(limitTimer)
        context.cancel(publicationTimer)
    }

    // MARK: The work that transfers leave for later

    func watch(_ clock: TransferClock) {
        if clock.nextDeadline < limitTimer.deadline { context.schedule(limitTimer, at: clock.nextDeadline) }
    }

    func flushLater(_ transfer: EngineTransfer) {
        changed.value.append(transfer)
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
        // An end can change the table.
        for index in transfers.value.indices {
            guard let transfer = transfers.value[index] else { continue }
            if let phase = transfer.clock.expired(context.now), !transfer.mayWaitOn(after: phase) {
                end(transfer, transfer.timeout(phase), after: phase)
                continue
            }
            if transfer.takeStart() { transfer.submit() }
            // It can have ended by now.
            if transfers.value[index] === transfer {
                next = min(next, transfer.clock.nextDeadline)
            }
        }
        if !isEmpty, next < limitTimer.deadline { context.schedule(limitTimer, at: next) }
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

extension TransferTable: TimerHandler, TurnEndHandler {
    func timerFired(_ timer: LoopTimer) {
        if timer === limitTimer { checkLimits() } else { publishProgress() }
    }

    /// Hands on the bytes of the turn. Small pieces wait while more arrive.
    func turnEnds(isIdle: Bool) -> Bool {
        // Transfers that change meanwhile belong to the next turn.
        var flushing: [EngineTransfer] = []
        swap(&flushing, &spareChanged.value)
        swap(&flushing, &changed.value)
        for transfer in flushing where transfer.flush(isIdle: isIdle) { changed.value.append(transfer) }
        flushing.removeAll(keepingCapacity: flushing.count <= 1_024)
        swap(&flushing, &spareChanged.value)
        willFlush = !changed.value.isEmpty
        return willFlush
    }
}
#endif
