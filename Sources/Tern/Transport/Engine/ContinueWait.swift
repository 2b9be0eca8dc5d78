#if os(Linux)
import TernEngine

/// The time for which the body of a request waits for 100 (Continue). Confined to the loop's thread.
final class ContinueWait: TimerHandler {
    private(set) var isActive = false
    private var onEnd: (() -> Void)?
    private var context: LoopContext?
    private lazy var timer = LoopTimer(self)

    /// Begins to wait, for at most this number of nanoseconds.
    func begin(for limit: UInt64, _ context: LoopContext, onEnd: @escaping () -> Void) {
        isActive = true
        self.context = context
        self.onEnd = onEnd
        let (deadline, isBeyond) = context.now.addingReportingOverflow(limit)
        if !isBeyond { context.schedule(timer, at: deadline) }
    }

    /// Ends the wait: the body can be sent. Does nothing if the body does not wait.
    func end() {
        guard isActive else { return }
        let onEnd = onEnd
        cancel()
        onEnd?()
    }

    /// Ends the wait without effect, because the attempt has ended.
    func cancel() {
        guard isActive else { return }
        isActive = false
        onEnd = nil
        context?.cancel(timer)
    }

    func timerFired(_ timer: LoopTimer) { end() }
}
#endif
