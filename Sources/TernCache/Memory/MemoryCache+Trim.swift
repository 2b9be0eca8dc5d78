extension MemoryCache {
    /// Evicts in the policy's order until the sum of costs is at most `cost`; entries that cost nothing may stay.
    ///
    /// With four shards each gives in proportion to what it holds, which may be one entry of each more than needed.
    public func trim(toCost cost: Int) { store.trim(toCost: cost, .trimmed) }

    /// Evicts in the policy's order until at most so many entries are left.
    public func trim(toCount count: Int) { store.trim(toCount: count, .trimmed) }

    /// Takes out every entry whose time is over. The cache does so by itself too, not more often than the
    /// configuration's `expiryInterval`.
    public func removeExpired() { _ = store.removeExpired() }

    /// Takes out every entry for whose key the condition holds, also of evicted values that are still in use. It is asked
    /// under no lock, once for each key that is held at the start.
    public func removeAll(where condition: @Sendable (Key) -> Bool) {
        for key in store.allKeys where condition(key) { _ = store.remove(key) }
    }

    /// Changes the limits; what is above them now is evicted before this returns. Negative values count as zero.
    ///
    /// The number of shards stays as it was made: a limit of few entries is better given to `init`.
    public func setLimits(_ limits: MemoryCacheLimits) {
        store.ledger.setLimits(limits)
        store.trim(toCost: limits.cost, .trimmed)
        store.trim(toCount: limits.count, .trimmed)
    }

    /// Frees memory as the configuration's `response` says. Called for each level that the source of pressure tells; to
    /// be called by hand where the app knows more, as with `.background`.
    public func relieve(_ level: MemoryPressureLevel) { store.relieve(level, response) }
}

extension MemoryStore {
    func relieve(_ level: MemoryPressureLevel, _ response: MemoryPressureResponse) {
        let action = response.action(
            at: level, cost: ledger.cost, count: ledger.count,
            limits: ledger.limits)
        switch action {
        case .empty(let reason):
            evictAll(reason)
        case .trim(let cost, let count, let reason):
            trim(toCost: cost, reason)
            trim(toCount: count, reason)
        }
    }
}
