/// The order in which a memory cache evicts its entries, which it knows by their slots. A pure value.
///
/// S3-FIFO (Yang and others, SOSP 2023): a new entry goes into a small queue of a tenth of the weight. An entry that
/// was used more than once before it reaches the end moves to the main queue; any other entry is evicted and remembered
/// as a ghost. An entry that returns while its ghost is remembered goes directly to the main queue. There, an entry
/// that was used gets another round, with one use less. A hit moves nothing: it only counts a use in the table.
///
/// LRU has the main queue alone. A use moves its entry to the newest end.
@usableFromInline
struct EvictionOrder: Sendable {
    /// The place of a slot in its queue.
    struct Node: Sendable {
        var newer = -1
        var older = -1
        /// The cost, at least 1, so that a cache of entries without cost has queues too.
        var weight: UInt32 = 1
        var fingerprint: UInt32 = 0
        /// The uses that were taken from the table and not spent yet.
        var uses: UInt8 = 0
        var isMain = false
    }

    /// The ends of a list of nodes, its length and its weight.
    struct Queue: Sendable {
        var newest = -1
        var oldest = -1
        var count = 0
        var weight = 0

        /// Adds a slot at the newest end.
        mutating func push(_ slot: Int, in nodes: inout [Node]) {
            nodes[slot].newer = -1
            nodes[slot].older = newest
            if newest < 0 { oldest = slot } else { nodes[newest].newer = slot }
            newest = slot
            count += 1
            weight += Int(nodes[slot].weight)
        }

        /// Removes a slot, which must be in this queue.
        mutating func remove(_ slot: Int, from nodes: inout [Node]) {
            let (newer, older) = (nodes[slot].newer, nodes[slot].older)
            if newer < 0 { newest = older } else { nodes[newer].older = older }
            if older < 0 { oldest = newer } else { nodes[older].newer = newer }
            count -= 1
            weight -= Int(nodes[slot].weight)
        }
    }

    /// Whether the policy is LRU.
    @usableFromInline let isLRU: Bool
    private(set) var nodes: [Node] = []
    private(set) var small = Queue()
    private(set) var main = Queue()
    private var ghosts = GhostTable()

    init(_ policy: MemoryCachePolicy) {
        isLRU = policy == .lru
    }

    /// The number of slots in the order.
    var count: Int { small.count + main.count }

    /// Adds a slot, which must not be in the order, as the newest.
    @usableFromInline
    mutating func admit(_ slot: Int, fingerprint: UInt32, cost: Int) {
        while nodes.count <= slot { nodes.append(Node()) }
        nodes[slot].weight = UInt32(clamping: max(1, cost))
        nodes[slot].fingerprint = fingerprint
        nodes[slot].uses = 0
        nodes[slot].isMain = isLRU || ghosts.take(fingerprint, capacity: count)
        push(slot)
    }

    /// Makes a slot the newest.
    @usableFromInline
    mutating func moveToNewest(_ slot: Int) {
        guard nodes[slot].newer >= 0 else { return }
        remove(slot)
        push(slot)
    }

    /// Changes the cost of a slot.
    @usableFromInline
    mutating func setCost(_ cost: Int, of slot: Int) {
        let old = nodes[slot].weight
        nodes[slot].weight = UInt32(clamping: max(1, cost))
        let change = Int(nodes[slot].weight) - Int(old)
        if nodes[slot].isMain { main.weight += change } else { small.weight += change }
    }

    /// Removes a slot, without a ghost.
    @usableFromInline
    mutating func remove(_ slot: Int) {
        if nodes[slot].isMain { main.remove(slot, from: &nodes) } else { small.remove(slot, from: &nodes) }
    }

    /// Removes and returns the slot to evict next; nil if the order is empty.
    ///
    /// The loop ends: each round evicts an entry, moves one from the small queue to the main queue, or takes away a
    /// use.
    /// - Parameter takeUses: Returns the uses of a slot since the last call for it.
    @usableFromInline
    mutating func evict(takingUses takeUses: (Int) -> UInt8) -> Int? {
        while count > 0 {
            let isSmall = main.count == 0 || small.count > 0 && small.weight >= (small.weight + main.weight) / 10
            let slot = isSmall ? small.oldest : main.oldest
            remove(slot)
            let uses = isLRU ? 0 : min(3, nodes[slot].uses + takeUses(slot))
            guard uses > (isSmall ? 1 : 0) else {
                if isSmall { ghosts.insert(nodes[slot].fingerprint, capacity: count + 1) }
                return slot
            }
            nodes[slot].uses = isSmall ? 0 : uses - 1
            nodes[slot].isMain = true
            push(slot)
        }
        return nil
    }

    /// Adds a slot to its queue.
    private mutating func push(_ slot: Int) {
        if nodes[slot].isMain { main.push(slot, in: &nodes) } else { small.push(slot, in: &nodes) }
    }
}

/// The recently evicted entries, by 32 bits of their keys' hashes. A pure value of at most 16 bytes per entry.
///
/// A bucket has four cells, each with a fingerprint and the number of the eviction that wrote it. Cells are not removed
/// for their age: a cell with too old a number counts as empty. A full bucket drops its oldest cell, and two keys can
/// share a fingerprint (1 in 2³²). Both only make one admission less accurate.
struct GhostTable: Sendable {
    private struct Cell {
        var fingerprint: UInt32 = 0
        /// The number of the eviction; zero for an empty cell.
        var time: UInt32 = 0
    }

    private var cells: [Cell] = []
    /// The number of the latest eviction.
    private var now: UInt32 = 0

    /// Remembers an evicted entry. The latest `capacity` entries can be found again.
    mutating func insert(_ fingerprint: UInt32, capacity: Int) {
        if cells.count < capacity { grow(to: capacity) }
        now = now == .max ? 1 : now + 1
        write(fingerprint, time: now)
    }

    /// Returns whether this entry is among the latest `capacity` evicted entries, and removes it.
    mutating func take(_ fingerprint: UInt32, capacity: Int) -> Bool {
        guard !cells.isEmpty else { return false }
        for index in bucket(of: fingerprint) where cells[index].fingerprint == fingerprint && cells[index].time != 0 {
            defer { cells[index].time = 0 }
            return Int(now &- cells[index].time) < capacity
        }
        return false
    }

    /// Returns the cells that may hold a fingerprint.
    private func bucket(of fingerprint: UInt32) -> Range<Int> {
        let start = Int(fingerprint) &* 4 & (cells.count - 1)
        return start..<start + 4
    }

    /// Writes to the oldest cell of the bucket. An empty cell is older than all.
    private mutating func write(_ fingerprint: UInt32, time: UInt32) {
        var oldest = bucket(of: fingerprint).lowerBound
        for index in bucket(of: fingerprint) where now &- cells[index].time > now &- cells[oldest].time {
            oldest = index
        }
        cells[oldest].fingerprint = fingerprint
        cells[oldest].time = time
    }

    /// Makes room for twice this number of entries.
    private mutating func grow(to capacity: Int) {
        let old = cells
        cells = [Cell](repeating: Cell(), count: max(16, cells.count))
        while cells.count < capacity * 2 { cells += cells }
        for cell in old where cell.time != 0 { write(cell.fingerprint, time: cell.time) }
    }
}
