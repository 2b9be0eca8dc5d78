/// Lets a memory cache hold the values that it evicts weakly, so that it finds them again while they are in use
/// elsewhere.
///
/// A value that is held weakly counts towards no limit, and a look-up stores it again. For values that are objects:
/// ```swift
/// let cache = MemoryCache<URL, Document>(weakReferences: .objects) { $0.byteCount }
/// ```
/// For a value that is a struct around a shared object, specify how to hold that object weakly and how to create the
/// value from it:
/// ```swift
/// WeakReferences<Picture> { picture in
///     let scale = picture.scale
///     return { [weak pixels = picture.pixels] in pixels.map { Picture(pixels: $0, scale: scale) } }
/// }
/// ```
public struct WeakReferences<Value: Sendable>: Sendable {
    /// A weak reference: returns the value while something else holds it, and nil from then on.
    public typealias Reference = @Sendable () -> Value?

    /// Returns a weak reference to a value; nil for a value that cannot be found again. Called once for each insert, in
    /// the caller's thread and without a lock held. The same is true of the reference.
    public let makeReference: @Sendable (Value) -> Reference?

    /// Creates weak references with a closure that returns the one to each value.
    public init(makeReference: @escaping @Sendable (Value) -> Reference?) {
        self.makeReference = makeReference
    }
}

extension WeakReferences where Value: AnyObject {
    /// Weak references to values that are objects.
    public static var objects: WeakReferences {
        WeakReferences { value in { [weak value] in value } }
    }
}

/// The evicted values of a shard that may still be in use elsewhere, held by their references. A pure value: the caller
/// runs the references, without a lock held.
@usableFromInline
struct RecoverableTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline
    struct Entry: Sendable {
        @usableFromInline let reference: WeakReferences<Value>.Reference
        @usableFromInline let cost: Int
        @usableFromInline let deadline: UInt64
        /// Distinguishes this entry from a later one of the same key.
        @usableFromInline let generation: UInt64
    }

    @usableFromInline private(set) var entries: [Key: Entry] = [:]
    private var lastGeneration: UInt64 = 0
    /// The number of entries at which a sweep is worth its cost: twice the number that the last sweep left.
    private var threshold = 64

    /// Whether enough entries came since the last sweep. Each of them then pays a constant share of the next one.
    var needsSweep: Bool { entries.count >= threshold }

    /// Adds an evicted value that has a reference. A key is either stored or recoverable, never both.
    @usableFromInline
    mutating func add(_ entry: MemoryEntry<Key, Value>) {
        guard let reference = entry.reference else { return }
        lastGeneration += 1
        entries[entry.key] = Entry(
            reference: reference, cost: entry.cost, deadline: entry.deadline, generation: lastGeneration)
    }

    /// Removes a key whose value was replaced or removed.
    @usableFromInline
    mutating func remove(_ key: Key) -> Entry? {
        entries.isEmpty ? nil : entries.removeValue(forKey: key)
    }

    /// Removes the entry of a key. Returns nil if a later entry has replaced it.
    mutating func remove(_ key: Key, generation: UInt64) -> Entry? {
        guard entries[key]?.generation == generation else { return nil }
        return entries.removeValue(forKey: key)
    }

    /// Removes the entries whose values were released, and sets the next threshold.
    mutating func sweep(_ unused: [(key: Key, generation: UInt64)]) -> [Entry] {
        let removed = unused.compactMap { remove($0.key, generation: $0.generation) }
        threshold = max(64, entries.count * 2)
        return removed
    }
}
