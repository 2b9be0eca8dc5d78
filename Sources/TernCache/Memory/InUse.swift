/// The way in which a memory cache finds a value again that it evicted, while it is still in use elsewhere.
///
/// The cache then holds the value weakly, at no cost, and a look-up stores it again. For values that are objects:
/// ```swift
/// let cache = MemoryCache<URL, Document>(inUse: .references) { $0.byteCount }
/// ```
/// For a value that is a struct around a shared object, specify how to hold that object weakly and how to create the value
/// from it:
/// ```swift
/// InUse<Picture> { picture in
///     let scale = picture.scale
///     return { [weak pixels = picture.pixels] in pixels.map { Picture(pixels: $0, scale: scale) } }
/// }
/// ```
public struct InUse<Value: Sendable>: Sendable {
    /// Returns the value while something else holds it, and nil from then on.
    public typealias Finder = @Sendable () -> Value?

    /// Returns the finder of a value, which must not hold the value strongly; nil for a value that cannot be found again.
    /// Called once for each insert, in the caller's thread and without a lock held. The same is true of the finder.
    public let finder: @Sendable (Value) -> Finder?

    /// Creates a way to find values from a closure that returns the finder of each value.
    public init(finder: @escaping @Sendable (Value) -> Finder?) {
        self.finder = finder
    }
}

extension InUse where Value: AnyObject {
    /// Holds values that are objects by weak references.
    public static var references: InUse {
        InUse { value in { [weak value] in value } }
    }
}

/// The evicted values of a shard that may still be in use elsewhere, held by their finders. A pure value: the caller runs
/// the finders, without a lock held.
@usableFromInline
struct RecoverableTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline
    struct Entry: Sendable {
        @usableFromInline let finder: InUse<Value>.Finder
        @usableFromInline let cost: Int
        @usableFromInline let deadline: UInt64
        /// Distinguishes this entry from a later one of the same key.
        @usableFromInline let generation: UInt64
    }

    @usableFromInline let isEnabled: Bool
    @usableFromInline private(set) var entries: [Key: Entry] = [:]
    private var lastGeneration: UInt64 = 0
    /// The number of entries at which a sweep is worth its cost: twice the number that the last sweep left.
    @usableFromInline private(set) var threshold = 64

    init(isEnabled: Bool) {
        self.isEnabled = isEnabled
    }

    /// A Boolean value that indicates whether enough entries came since the last sweep. Each of them then pays a constant
    /// share of the next one.
    @inlinable var needsSweep: Bool { entries.count >= threshold }

    /// Adds the evicted value of a key that is not in the table. A key is either stored or recoverable, never both.
    @usableFromInline
    mutating func add(_ key: Key, finder: @escaping InUse<Value>.Finder, cost: Int, deadline: UInt64) {
        lastGeneration += 1
        entries[key] = Entry(finder: finder, cost: cost, deadline: deadline, generation: lastGeneration)
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
