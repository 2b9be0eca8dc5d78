/// What failed lately and need not be tried again: bounded, each with its time to live. Pure, on time that it is given.
///
/// Only failures that the same request would meet again are kept: a status that says so, bytes that are no picture.
/// Whatever a network may be to blame for is not.
struct NegativeCache<Key: Hashable & Sendable>: Sendable {
    private let limit: Int
    private let lifetime: Duration
    private var entries: [Key: (error: ImageError, until: Duration)] = [:]

    init(limit: Int, lifetime: Duration) {
        self.limit = limit
        self.lifetime = lifetime
    }

    var count: Int { entries.count }

    mutating func error(for key: Key, at now: Duration) -> ImageError? {
        guard let entry = entries[key] else { return nil }
        if entry.until > now { return entry.error }
        entries[key] = nil
        return nil
    }

    mutating func record(_ error: ImageError, for key: Key, at now: Duration) {
        guard lifetime > .zero, limit > 0, error.isRemembered else { return }
        if entries.count >= limit, entries[key] == nil {
            entries = entries.filter { $0.value.until > now }
            // Still full: whatever was to go first goes.
            if entries.count >= limit, let first = entries.min(by: { $0.value.until < $1.value.until }) {
                entries[first.key] = nil
            }
        }
        entries[key] = (error, now + lifetime)
    }

    mutating func remove(_ key: Key) { entries[key] = nil }

    /// The network has come back, or the user asks: everything may be tried again.
    mutating func removeAll() { entries = [:] }
}
