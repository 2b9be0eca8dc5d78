import Tern
import TernConcurrency

/// Wraps the transport of a session: a test can wait until attempts have reached the mailbox of the loop, which keeps
/// their order.
final class WatchedTransport: Transport {
    private let base: any Transport
    private let starts: AsyncStream<Int>
    private let started: AsyncStream<Int>.Continuation
    private let count = Lock(0)

    init(_ configuration: Session.Configuration) {
        base = Session(configuration: configuration).tasks.transport
        (starts, started) = AsyncStream.makeStream()
    }

    var executor: any MessageExecutor { base.executor }
    var leavesStreamsCompressed: Bool { base.leavesStreamsCompressed }

    func forwardsToProxy(_ target: Target) -> Bool { base.forwardsToProxy(target) }

    func refusal(of transfer: Transfer) -> TransferFailure? { base.refusal(of: transfer) }

    func start(_ transfer: Transfer) {
        base.start(transfer)
        let count = count.withLock { count in
            count += 1
            return count
        }
        started.yield(count)
    }

    func control(_ transfer: Transfer, _ command: TransferCommand) { base.control(transfer, command) }

    /// Returns once this number of attempts was started in all.
    func waitForStarts(_ count: Int) async {
        if self.count.withLock({ $0 >= count }) { return }
        for await started in starts where started >= count { return }
    }
}
