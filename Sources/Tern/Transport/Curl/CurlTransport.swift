#if os(Linux)
import CTernCurl
import Synchronization

/// A session's way to the loop: its connections are made with the first request, and closed when the session is gone and
/// its last transfer has ended.
final class CurlTransport: Transport {
    private static let nextPool = Atomic<UInt64>(1)

    private let loop = EventLoop.shared
    private let pool: UInt64

    init(_ configuration: Session.Configuration) {
        pool = Self.nextPool.wrappingAdd(1, ordering: .relaxed).oldValue
        loop.post(.openPool(pool, PoolSettings(configuration)))
    }

    deinit {
        loop.post(.closePool(pool))
    }

    var executor: any SerialExecutor { loop }

    func start(_ transfer: Transfer) {
        loop.post(.start(transfer, pool: pool))
    }

    func control(_ transfer: Transfer, _ command: TransferCommand) {
        loop.post(.control(transfer, command))
    }
}
#endif
