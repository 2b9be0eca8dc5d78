public import Synchronization

/// Whether readers may be at a shard without its lock. It is closed by a writer, and stays closed until so many look-ups
/// came with the lock that closing it anew is paid for: where much is inserted, an insert costs what it costs without
/// stripes.
@usableFromInline
struct ReaderGate: ~Copyable, Sendable {
    @usableFromInline let isOpened = Atomic<Bool>(false)

    @usableFromInline
    init() {}

    /// Whether it is worth it to enter a stripe.
    @inlinable var seemsOpen: Bool { isOpened.load(ordering: .relaxed) }
    /// For a reader in its stripe, and, with the lock, for a writer.
    @inlinable var isOpen: Bool { isOpened.load(ordering: .sequentiallyConsistent) }

    @inlinable
    func close() { isOpened.store(false, ordering: .sequentiallyConsistent) }

    @inlinable
    func open() { isOpened.store(true, ordering: .releasing) }

    /// What a shard's lock guards beside its value: the look-ups that came with the lock.
    @usableFromInline
    struct Turn: Sendable {
        /// Since the last writer.
        @usableFromInline var lookUps = 0
        @usableFromInline var hits = 0
        @usableFromInline var misses = 0

        @usableFromInline
        init() {}

        /// Closing the gate costs a writer some 50 to 200 ns, this many look-ups some 500.
        @inlinable static var patience: Int { 16 }

        /// Whether the gate is to be opened now.
        @inlinable
        mutating func note(_ counted: ReaderStripe.Count) -> Bool {
            switch counted {
            case .nothing: break
            case .hit: hits += 1
            case .miss: misses += 1
            }
            lookUps += 1
            return lookUps == Self.patience
        }
    }
}
