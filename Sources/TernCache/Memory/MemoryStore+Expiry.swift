import Synchronization

extension MemoryStore {
    /// An entry with a deadline comes in: from now on look-ups read the clock, and expired entries are swept out.
    @usableFromInline
    func expect(_ deadline: UInt64) {
        if !hasDeadlines.load(ordering: .relaxed) {
            hasDeadlines.store(true, ordering: .relaxed)
            looksFurther.store(true, ordering: .relaxed)
        }
        guard expiry.wants(deadline) else { return }
        expiry.schedule(deadline, clock: clock) { [weak self] in self?.sweepExpired() }
    }

    func sweepExpired() {
        let earliest = removeExpired()
        if earliest != .max { expect(earliest) }
    }
}
