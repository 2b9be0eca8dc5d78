#if os(Linux)
import CTernCurl
import Synchronization
import TernConcurrency

/// A session's way to the loop: its connections are made with the first request, and closed when the session is gone and
/// its last transfer has ended.
final class CurlTransport: Transport {
    private static let nextPool = Atomic<UInt64>(1)

    private let loop = EventLoop.shared
    private let pool: UInt64
    private let settings: PoolSettings
    /// Why no request of the session can be sent.
    private let problem: TransferFailure?
    private let trusted = Lock(TrustedPools())

    init(_ configuration: Session.Configuration) {
        pool = Self.nextPool.wrappingAdd(1, ordering: .relaxed).oldValue
        settings = PoolSettings(configuration)
        problem = configuration.problem
        loop.post(.openPool(pool, settings))
        // Set up before the first request if possible. Otherwise, a request tries again.
        _ = loop.problem()
    }

    deinit {
        loop.post(.closePool(pool))
        for pool in trusted.withLock({ $0.all }) { loop.post(.closePool(pool)) }
    }

    var executor: any SerialExecutor { loop }

    /// On the loop a body would be decompressed as fast as it comes, up to a thousandfold, whether it is read or not.
    var leavesStreamsCompressed: Bool { true }

    func forwardsToProxy(_ target: Target) -> Bool { settings.proxies.forwards(target) }

    func refusal(of request: WireRequest) -> TransferFailure? {
        if let problem { return problem }
        if let problem = loop.problem() {
            let host = "\(request.target.host):\(request.target.port)"
            return TransferFailure(
                .connectionFailed, "no connection to \(host): \(problem)", underlying: OutOfDescriptors())
        }
        if request.trust == nil, settings.trust == nil { return nil }
        return refusalOfTrust(request)
    }

    private func refusalOfTrust(_ request: WireRequest) -> TransferFailure? {
        let host = request.target.host
        guard let policy = request.trust?.policy ?? (settings.trust ?? TrustPolicies()).policy(for: host) else {
            return TrustPolicies.refusal(of: host)
        }
        // The environment's as well, which the configuration does not know.
        let proxy = request.target.isSecure ? settings.proxies.https : settings.proxies.http
        if proxy?.lowercased().hasPrefix("https:") == true {
            return TransferFailure(.unsupported, TrustPolicies.proxyReason)
        }
        if let problem = Session.Configuration.problem(of: policy) { return problem }
        if policy.pins != nil, !request.target.isSecure {
            return TransferFailure(
                .invalidRequest, "the trust policy for \(host) has pins, and http has no certificates")
        }
        return nil
    }

    func start(_ transfer: Transfer) {
        guard let policy = transfer.request.trust?.policy else { return loop.post(.start(transfer, pool: pool)) }
        // Posted under the lock, which posting never waits in: a pool is opened before, and closed after, all its transfers.
        trusted.withLock { pools in
            let (pool, isNew, old) = pools.pool(for: policy) {
                Self.nextPool.wrappingAdd(1, ordering: .relaxed).oldValue
            }
            if isNew {
                var settings = settings
                settings.trust = TrustPolicies(for: policy)
                loop.post(.openPool(pool, settings))
            }
            loop.post(.start(transfer, pool: pool))
            if let old { loop.post(.closePool(old)) }
        }
    }

    func control(_ transfer: Transfer, _ command: TransferCommand) {
        loop.post(.control(transfer, command))
    }
}
#endif
