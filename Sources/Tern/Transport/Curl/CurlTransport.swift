#if os(Linux)
import CTernCurl
import Synchronization

/// A session's way to the loop: its connections are made with the first request, and closed when the session is gone and
/// its last transfer has ended.
final class CurlTransport: Transport {
    private static let nextPool = Atomic<UInt64>(1)

    private let loop = EventLoop.shared
    private let pool: UInt64
    /// Why no request of the session can be sent.
    private let problem: String?

    init(_ configuration: Session.Configuration) {
        pool = Self.nextPool.wrappingAdd(1, ordering: .relaxed).oldValue
        problem = configuration.networkProblem
        loop.post(.openPool(pool, PoolSettings(configuration)))
    }

    deinit {
        loop.post(.closePool(pool))
    }

    var executor: any SerialExecutor { loop }

    func refusal(of order: TransferOrder) -> TransferFailure? {
        problem.map { TransferFailure(.invalidRequest, "the session's configuration: \($0)") }
    }

    func start(_ transfer: Transfer) {
        loop.post(.start(transfer, pool: pool))
    }

    func control(_ transfer: Transfer, _ command: TransferCommand) {
        loop.post(.control(transfer, command))
    }
}
#endif
