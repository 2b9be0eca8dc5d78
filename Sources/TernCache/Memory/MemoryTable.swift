/// A hash table of the entries of one shard. Each entry has a position, which stays the same as long as the table holds
/// the entry. A pure value.
///
/// The nodes of all entries lie in one array, and those of a bucket are linked by their positions. A dictionary would
/// hash the key again, after its hash has selected the shard, and has no position for the order of eviction.
@usableFromInline
struct MemoryTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Entry = MemoryEntry<Key, Value>

    /// An entry, or a free place for one.
    @usableFromInline
    struct Node: Sendable {
        @usableFromInline let hash: UInt64
        /// The next node of the bucket, or the next free one; -1 at the end.
        @usableFromInline var next = -1
        /// The uses since the order of eviction took them, up to 3.
        @usableFromInline var uses: UInt8 = 0
        // The fields of the entry. Measured: a nested entry is copied by each look-up, which costs 10 ns.
        @usableFromInline var deadline: UInt64
        /// Nil in a free node, as is the value.
        @usableFromInline var key: Key?
        @usableFromInline var value: Value?
        @usableFromInline var cost: Int
        @usableFromInline var reference: WeakReferences<Value>.Reference?

        @inlinable
        init(_ entry: Entry, hash: UInt64) {
            self.hash = hash
            key = entry.key
            value = entry.value
            cost = entry.cost
            deadline = entry.deadline
            reference = entry.reference
        }
    }

    /// The look-ups that returned a value.
    @usableFromInline var hits = 0
    /// The first node of each bucket, or -1. Their number is a power of two, and at least that of the nodes.
    @usableFromInline var buckets: [Int] = []
    /// The nodes by position.
    @usableFromInline var nodes: [Node] = []
    /// The first free node, or -1.
    @usableFromInline var firstFree = -1
    /// The look-ups that returned none.
    @usableFromInline var misses = 0

    @inlinable
    init() {}

    /// Returns the position of a key, whether or not its entry has expired.
    @inlinable @inline(__always)
    func find(_ key: Key, hash: UInt64) -> Int? {
        guard !buckets.isEmpty else { return nil }
        var position = buckets[bucket(of: hash)]
        while position >= 0 {
            if nodes[position].hash == hash, nodes[position].key == key { return position }
            position = nodes[position].next
        }
        return nil
    }

    /// Returns the entry of a key that has not expired, and counts a look-up and a use.
    @inlinable
    mutating func lookUp(_ key: Key, hash: UInt64, now: UInt64) -> (value: Value, position: Int)? {
        guard let position = find(key, hash: hash), let value = nodes[position].value, nodes[position].deadline > now
        else {
            misses += 1
            return nil
        }
        hits += 1
        recordUse(at: position)
        return (value, position)
    }

    /// Returns whether there is an entry of a key that has not expired.
    @inlinable
    func contains(_ key: Key, hash: UInt64, now: UInt64) -> Bool {
        find(key, hash: hash).map { !isExpired(at: $0, now: now) } ?? false
    }

    /// Returns whether the entry at a position has expired.
    @inlinable
    func isExpired(at position: Int, now: UInt64) -> Bool { nodes[position].deadline <= now }

    /// Counts a use of the entry at a position.
    @inlinable
    mutating func recordUse(at position: Int) {
        if nodes[position].uses < 3 { nodes[position].uses += 1 }
    }

    /// Returns the uses of an entry since the last call.
    @inlinable
    mutating func takeUses(at position: Int) -> UInt8 {
        defer { nodes[position].uses = 0 }
        return nodes[position].uses
    }

    /// Adds an entry whose key the table does not hold, and returns its position.
    @inlinable
    mutating func add(_ entry: Entry, hash: UInt64) -> Int {
        let position = firstFree >= 0 ? firstFree : nodes.count
        if firstFree >= 0 {
            firstFree = nodes[position].next
            nodes[position] = Node(entry, hash: hash)
        } else {
            nodes.append(Node(entry, hash: hash))
            if nodes.count > buckets.count { growBuckets() }
        }
        link(position)
        return position
    }

    /// Replaces the entry at a position by another one of its key, and returns the old one.
    @inlinable
    mutating func replace(at position: Int, with entry: Entry) -> Entry? {
        let old = takeEntry(at: position)
        var node = Node(entry, hash: nodes[position].hash)
        (node.next, node.uses) = (nodes[position].next, nodes[position].uses)
        nodes[position] = node
        return old
    }

    /// Removes and returns the entry at a position.
    @inlinable
    mutating func remove(at position: Int) -> Entry? {
        let bucket = bucket(of: nodes[position].hash)
        if buckets[bucket] == position {
            buckets[bucket] = nodes[position].next
        } else {
            var previous = buckets[bucket]
            while nodes[previous].next != position { previous = nodes[previous].next }
            nodes[previous].next = nodes[position].next
        }
        nodes[position].next = firstFree
        firstFree = position
        return takeEntry(at: position)
    }

    /// Returns the entry of a node, and leaves the node without one.
    @inlinable
    mutating func takeEntry(at position: Int) -> Entry? {
        guard let key = nodes[position].key.take(), let value = nodes[position].value.take() else { return nil }
        return Entry(
            key: key, value: value, cost: nodes[position].cost, deadline: nodes[position].deadline,
            reference: nodes[position].reference.take())
    }

    /// Returns the positions of the entries that have expired, and the earliest deadline of the others, or `.max`.
    func expired(at now: UInt64) -> (positions: [Int], earliest: UInt64) {
        var positions: [Int] = []
        var earliest = UInt64.max
        for (position, node) in nodes.enumerated() where node.key != nil {
            if node.deadline <= now { positions.append(position) } else { earliest = min(earliest, node.deadline) }
        }
        return (positions, earliest)
    }

    /// Removes all entries, and returns the table that held them. The counters stay.
    mutating func removeAll() -> MemoryTable {
        let old = self
        self = MemoryTable()
        (hits, misses) = (old.hits, old.misses)
        return old
    }

    /// Returns the bucket of a hash.
    @inlinable
    func bucket(of hash: UInt64) -> Int { Int(truncatingIfNeeded: hash) & (buckets.count &- 1) }

    /// Adds a node to its bucket.
    @inlinable
    mutating func link(_ position: Int) {
        let bucket = bucket(of: nodes[position].hash)
        nodes[position].next = buckets[bucket]
        buckets[bucket] = position
    }

    /// Doubles the number of buckets. The last node, which is new, is not linked yet, and no node is free.
    @usableFromInline
    mutating func growBuckets() {
        buckets = [Int](repeating: -1, count: max(8, buckets.count * 2))
        for position in nodes.indices.dropLast() { link(position) }
    }
}
