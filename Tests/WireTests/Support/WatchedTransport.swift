import Tern
import TernConcurrency

/// Wraps the transport of a session: a test can wait until attempts have reached the mailbox of the loop, which keeps
/// their order, and can act between the making of an attempt and its start.
final class WatchedTransport: Transport {
    private let base: any Transport
    private let starts: AsyncStream<Int>
    private let started: AsyncStream<Int>.Continuation
    private let count = Lock(0)
    private let beforeStart = Lock<(@Sendable (Transfer) -> Void)?>(nil)
    private let sent = Lock<[TransferCommand]>([])

    /// The commands so far, in their order.
    var commands: [TransferCommand] { sent.withLock { $0 } }

    init(_ configuration: Session.Configuration) {
        base = Session(configuration: configuration).tasks.transport
        (starts, started) = AsyncStream.makeStream()
    }

    var executor: any MessageExecutor { base.executor }
    var leavesStreamsCompressed: Bool { base.leavesStreamsCompressed }

    func forwardsToProxy(_ target: Target) -> Bool { base.forwardsToProxy(target) }

    func refusal(of transfer: Transfer) -> TransferFailure? {
        beforeStart.withLock { $0 }?(transfer)
        return base.refusal(of: transfer)
    }

    /// Calls a function with each attempt that was made, before it starts.
    func callBeforeStart(_ body: @escaping @Sendable (Transfer) -> Void) { beforeStart.withLock { $0 = body } }

    func start(_ transfer: Transfer) {
        base.start(transfer)
        let count = count.withLock { count in
            count += 1
            return count
        }
        started.yield(count)
    }

    func control(_ transfer: Transfer, _ command: TransferCommand) {
        sent.withLock { $0.append(command) }
        base.control(transfer, command)
    }

    /// Returns once this number of attempts was started in all.
    func waitForStarts(_ count: Int) async {
        if self.count.withLock({ $0 >= count }) { return }
        for await started in starts where started >= count { return }
    }
}
