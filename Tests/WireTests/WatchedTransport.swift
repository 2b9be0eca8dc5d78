import Tern
import TernConcurrency

/// A session's own transport, watched: a test learns that attempts have reached the wire's mailbox, which keeps their
/// order.
final class WatchedTransport: Transport {
    private let base: any Transport
    private let starts: AsyncStream<Int>
    private let started: AsyncStream<Int>.Continuation
    private let count = Lock(0)

    init(_ configuration: Session.Configuration) {
        base = Session(configuration: configuration).context.transport
        (starts, started) = AsyncStream.makeStream()
    }

    var executor: any SerialExecutor { base.executor }
    var leavesStreamsCompressed: Bool { base.leavesStreamsCompressed }

    func forwardsToProxy(_ target: Target) -> Bool { base.forwardsToProxy(target) }

    func refusal(of order: TransferOrder) -> TransferFailure? { base.refusal(of: order) }

    func start(_ transfer: Transfer) {
        base.start(transfer)
        let count = count.withLock { count in
            count += 1
            return count
        }
        started.yield(count)
    }

    func control(_ transfer: Transfer, _ command: TransferCommand) { base.control(transfer, command) }

    /// Returns once so many attempts were started, in all.
    func waitForStarts(_ count: Int) async {
        if self.count.withLock({ $0 >= count }) { return }
        for await started in starts where started >= count { return }
    }
}
