#if os(Linux)
/// The pools of requests with a trust policy of their own: a connection made under one is never used under another. Pure.
struct TrustedPools {
    /// Beyond so many policies the oldest pool ends with its last transfer.
    private static let limit = 32

    private var pools: [(policy: TrustPolicy, pool: UInt64)] = []

    var all: [UInt64] { pools.map(\.pool) }

    /// The pool of a policy, whether it is to be opened, and which one is to be closed for it.
    mutating func pool(for policy: TrustPolicy, make: () -> UInt64) -> (pool: UInt64, isNew: Bool, old: UInt64?) {
        if let place = pools.firstIndex(where: { $0.policy == policy }) {
            let known = pools.remove(at: place)
            pools.append(known)
            return (known.pool, false, nil)
        }
        let pool = make()
        pools.append((policy, pool))
        return (pool, true, pools.count > Self.limit ? pools.removeFirst().pool : nil)
    }
}
#endif
