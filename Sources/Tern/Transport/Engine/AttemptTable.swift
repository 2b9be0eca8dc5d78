#if os(Linux)
import TernConcurrency
import TernEngine

/// The attempts of a session on one loop, their time limits, and the work that they leave for later. Confined to the
/// loop's thread.
final class AttemptTable {
    let context: LoopContext
    /// The pool in which exchanges wait.
    let pool: ExchangePool
    /// Set once, before the first attempt.
    private unowned var owner: LoopSession?
    /// The attempts under way, each at its `tableIndex`, and the indices that are free.
    private let attempts = Confined<[EngineAttempt?]>([])
    private let freeIndices = Confined<[Int]>([])
    /// The number of attempts under way.
    private var count = 0
    private let limitTimer = LoopTimer()
    private let publicationTimer = LoopTimer()
    /// Attempts with bytes or numbers that their session has not seen, or with bytes to send at the end of the turn.
    private let changed = Confined<[EngineAttempt]>([])
    /// The storage of those that are being flushed, for the next turn.
    private let spareChanged = Confined<[EngineAttempt]>([])
    private var willFlush = false
    /// Attempts whose progress is watched and has changed.
    private var unpublished: [EngineAttempt] = []

    init(context: LoopContext, pool: ExchangePool) {
        self.context = context
        self.pool = pool
        limitTimer.setHandler(self)
        publicationTimer.setHandler(self)
    }

    func setOwner(_ owner: LoopSession) { self.owner = owner }

    var now: UInt64 { context.now }

    var isEmpty: Bool { count == 0 }

    /// The attempt at an index of the table.
    subscript(_ index: Int) -> EngineAttempt? { attempts.value[index] }

    // MARK: Attempts

    /// Takes an attempt in.
    func keep(_ attempt: EngineAttempt) {
        context.awaitResponses(1)
        count += 1
        if let index = freeIndices.value.popLast() {
            attempts.value[index] = attempt
            attempt.tableIndex = index
        } else {
            attempt.tableIndex = attempts.value.count
            attempts.value.append(attempt)
        }
        limitTimer.isNeeded = true
        watch(attempt.clock)
    }

    /// Lets an attempt go that has ended.
    private func remove(_ attempt: EngineAttempt) {
        context.awaitResponses(-1)
        count -= 1
        attempts.value[attempt.tableIndex] = nil
        freeIndices.value.append(attempt.tableIndex)
        attempt.tableIndex = -1
        // An idle process makes no wake-ups. Most often, the next attempt begins before the loop sleeps.
        if isEmpty { context.cancelBeforeSleep(limitTimer) }
    }

    /// Ends an attempt, on the wire or in the queue. Does nothing for one that has ended.
    func end(_ attempt: EngineAttempt, _ failure: FailureCause?, after phase: Timeouts.Phase? = nil) {
        guard attempt.tableIndex >= 0 else { return }
        remove(attempt)
        attempt.leave(after: phase)
        attempt.complete(failure)
        owner?.attemptEnded(attempt)
    }

    func control(_ attempt: EngineAttempt, _ command: AttemptCommand) {
        switch command {
        case .cancel: end(attempt, .cancelled)
        case .pause: attempt.setPaused(true)
        case .resume: attempt.setPaused(false)
        case .demand: attempt.readerTookAll()
        case .bodyReady: attempt.sourceIsReady()
        case .usePipe: attempt.usePipe()
        case .prioritize(let priority): attempt.prioritize(priority)
        }
    }

    /// Stops the timers. No attempt is left.
    func close() {
        context.cancel(limitTimer)
        context.cancel(publicationTimer)
    }

    // MARK: The work that attempts leave for later

    func watch(_ clock: AttemptClock) {
        if clock.nextDeadline < limitTimer.deadline { context.schedule(limitTimer, at: clock.nextDeadline) }
    }

    func flushLater(_ attempt: EngineAttempt) {
        changed.value.append(attempt)
        if willFlush { return }
        willFlush = true
        context.callAtTurnEnd(self)
    }

    func publishLater(_ attempt: EngineAttempt) {
        unpublished.append(attempt)
        let time = max(attempt.nextPublication, context.now)
        if time < publicationTimer.deadline { context.schedule(publicationTimer, at: time) }
    }

    func forgetPublication(of attempt: EngineAttempt) { unpublished.removeAll { $0 === attempt } }

    /// Ends the attempts that have reached a limit. Activity only moves a limit further away, so no attempt is
    /// checked before the earliest known limit. Then all are.
    private func checkLimits() {
        var next = UInt64.max
        // An end can change the table.
        for index in attempts.value.indices {
            guard let attempt = attempts.value[index] else { continue }
            if let phase = attempt.clock.expired(context.now), !attempt.mayWaitOn(after: phase) {
                end(attempt, attempt.timeout(phase), after: phase)
                continue
            }
            if attempt.takeStart() { attempt.submit() }
            // It can have ended by now.
            if attempts.value[index] === attempt {
                next = min(next, attempt.clock.nextDeadline)
            }
        }
        if !isEmpty, next < limitTimer.deadline { context.schedule(limitTimer, at: next) }
    }

    private func publishProgress() {
        var next = UInt64.max
        unpublished.removeAll { attempt in
            if attempt.nextPublication <= context.now {
                attempt.publishProgress()
                return true
            }
            next = min(next, attempt.nextPublication)
            return false
        }
        context.schedule(publicationTimer, at: next)
    }
}

extension AttemptTable: TimerHandler, TurnEndHandler {
    func timerFired(_ timer: LoopTimer) {
        if timer === limitTimer { checkLimits() } else { publishProgress() }
    }

    /// Hands on the bytes of the turn. Small pieces wait while more arrive.
    func turnEnds(isIdle: Bool) -> Bool {
        // Attempts that change meanwhile belong to the next turn.
        var flushing: [EngineAttempt] = []
        swap(&flushing, &spareChanged.value)
        swap(&flushing, &changed.value)
        for attempt in flushing where attempt.flush(isIdle: isIdle) { changed.value.append(attempt) }
        flushing.removeAll(keepingCapacity: flushing.count <= 1_024)
        swap(&flushing, &spareChanged.value)
        willFlush = !changed.value.isEmpty
        return willFlush
    }
}
#endif
