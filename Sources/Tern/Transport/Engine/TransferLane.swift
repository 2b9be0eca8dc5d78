#if os(Linux)
import TernEngine

/// The owner of a lane. Confined to the thread of the lane's loop.
protocol TransferLaneOwner: AnyObject {
    /// Called after a transfer has ended and left the lane.
    func transferEnded(_ transfer: EngineTransfer)
}

/// The transfers of one session on one loop: their time limits, and the work that they leave for later. Confined to the
/// loop's thread.
final class TransferLane {
    let context: LoopContext
    /// The pool in which exchanges wait; nil on a loop that is not the session's own, where all have connections.
    let pool: ExchangePool?
    private unowned let owner: any TransferLaneOwner
    /// The transfers under way, each at its `place`, and the places that are free.
    private var transfers: [EngineTransfer?] = []
    private var freePlaces: [Int] = []
    private lazy var limitTimer = LoopTimer(self)
    private lazy var publicationTimer = LoopTimer(self)
    /// Transfers with bytes or numbers that their session has not seen.
    private var changed: [EngineTransfer] = []
    private var willFlush = false
    /// Transfers whose progress is watched and has changed.
    private var unpublished: [EngineTransfer] = []

    init(context: LoopContext, pool: ExchangePool?, owner: any TransferLaneOwner) {
        self.context = context
        self.pool = pool
        self.owner = owner
    }

    var now: UInt64 { context.now }

    var isEmpty: Bool { freePlaces.count == transfers.count }

    /// The transfer at a place of the table.
    subscript(_ place: Int) -> EngineTransfer? { transfers[place] }

    // MARK: Transfers

    /// Takes a transfer in.
    func keep(_ transfer: EngineTransfer) {
        context.awaitedResponses += 1
        transfer.lane = self
        if let place = freePlaces.popLast() {
            transfers[place] = transfer
            transfer.place = place
        } else {
            transfer.place = transfers.count
            transfers.append(transfer)
        }
        watch(transfer.clock)
    }

    /// Lets a transfer go that has ended, or that moves to another loop.
    func remove(_ transfer: EngineTransfer) {
        context.awaitedResponses -= 1
        transfers[transfer.place] = nil
        freePlaces.append(transfer.place)
        transfer.place = -1
        // An idle process makes no wake-ups.
        if isEmpty { context.cancel(limitTimer) }
    }

    /// Ends a transfer, on the wire or in the queue. Does nothing for one that has ended.
    func end(_ transfer: EngineTransfer, _ failure: TransferFailure?, after phase: Timeouts.Phase? = nil) {
        guard transfer.place >= 0 else { return }
        remove(transfer)
        transfer.leave(after: phase)
        transfer.complete(failure)
        owner.transferEnded(transfer)
    }

    func control(_ transfer: EngineTransfer, _ command: TransferCommand) {
        switch command {
        case .cancel: end(transfer, .cancelled)
        case .pause: transfer.setPaused(true)
        case .resume: transfer.setPaused(false)
        case .demand: transfer.readerTookAll()
        case .bodyReady: transfer.sourceIsReady()
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
        // An end can change the table.
        for place in transfers.indices {
            guard let transfer = transfers[place] else { continue }
            if let phase = transfer.clock.expired(context.now) {
                end(transfer, transfer.timeout(phase), after: phase)
            } else {
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

extension TransferLane: TimerHandler, TurnEndHandler {
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
