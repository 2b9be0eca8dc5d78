import Tern
import TernConcurrency

/// Wraps the transport of a session: a test can wait until attempts have reached the mailbox of the loop, which keeps
/// their order, and can act between the making of an attempt and its start.
final class WatchedTransport: Transport {
    private let base: any Transport
    private let starts: AsyncStream<Int>
    private let started: AsyncStream<Int>.Continuation
    private let count = Lock(0)
    private let beforeStart = Lock<(@Sendable (Attempt) -> Void)?>(nil)
    private let sent = Lock<[AttemptCommand]>([])

    /// The commands so far, in their order.
    var commands: [AttemptCommand] { sent.withLock { $0 } }

    init(_ configuration: Session.Configuration) {
        base = Session(configuration: configuration).tasks.transport
        (starts, started) = AsyncStream.makeStream()
    }

    var executor: any MessageExecutor { base.executor }
    var leavesStreamsCompressed: Bool { base.leavesStreamsCompressed }

    func forwardsToProxy(_ target: Target) -> Bool { base.forwardsToProxy(target) }

    func refusal(of attempt: Attempt) -> FailureCause? {
        beforeStart.withLock { $0 }?(attempt)
        return base.refusal(of: attempt)
    }

    /// Calls a function with each attempt that was made, before it starts.
    func callBeforeStart(_ body: @escaping @Sendable (Attempt) -> Void) { beforeStart.withLock { $0 = body } }

    func start(_ attempt: Attempt) {
        base.start(attempt)
        let count = count.withLock { count in
            count += 1
            return count
        }
        started.yield(count)
    }

    func control(_ attempt: Attempt, _ command: AttemptCommand) {
        sent.withLock { $0.append(command) }
        base.control(attempt, command)
    }

    /// Returns once this number of attempts was started in all.
    func waitForStarts(_ count: Int) async {
        if self.count.withLock({ $0 >= count }) { return }
        for await started in starts where started >= count { return }
    }
}
