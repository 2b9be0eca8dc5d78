public import Synchronization

/// S3-FIFO (Yang and others, SOSP 2023) over slots: three queues and two bits per entry. A pure value.
///
/// A new entry goes into a small queue of a tenth of the weight. An entry that was used more than once before it
/// reaches the end moves to the main queue; any other entry is evicted and remembered as a ghost. An entry that returns
/// while its ghost is remembered goes directly to the main queue. There, an entry that was used gets another round,
/// with one use less. A hit at most writes a counter. It moves nothing, and needs no lock.
@usableFromInline
struct S3FIFOOrder: Sendable {
    @usableFromInline
    struct SlotState: Sendable {
        /// The weight, at least 1, so that a cache of entries without cost has queues too.
        @usableFromInline var weight = 1
        @usableFromInline var fingerprint: UInt32 = 0
        @usableFromInline var isMain = false

        @inlinable
        init() {}
    }

    /// The uses since admission, or since the last round. First, beside the other properties that a hit reads.
    @usableFromInline private(set) var uses: UseCounts
    /// The memory of the counts. A copy of an order would share it, but orders are not copied.
    private var memory: UseCounts.Memory
    @usableFromInline var links: [SlotLink] = []
    @usableFromInline var slotStates: [SlotState] = []
    @usableFromInline var small = SlotList()
    @usableFromInline var main = SlotList()
    @usableFromInline var ghosts = GhostTable()

    @usableFromInline
    init() {
        memory = UseCounts.Memory(0)
        uses = memory.counts
    }

    @inlinable var count: Int { small.count + main.count }

    /// Adds a slot, which must not be in the order.
    @inlinable
    mutating func admit(_ slot: Slot, fingerprint: UInt32, cost: Int) {
        while slotStates.count <= Int(slot) {
            links.append(SlotLink())
            slotStates.append(SlotState())
        }
        if uses.count <= Int(slot) { growUses() }
        uses[slot] = 0
        var slotState = SlotState()
        slotState.weight = max(1, cost)
        slotState.fingerprint = fingerprint
        slotState.isMain = ghosts.take(fingerprint, capacity: count)
        slotStates[Int(slot)] = slotState
        push(slot, slotState)
    }

    /// Records a use of a slot. Can run concurrently with itself.
    @inlinable @inline(__always)
    func touch(_ slot: Slot) { uses.increment(slot) }

    /// Changes the cost of a slot.
    @inlinable
    mutating func setCost(_ cost: Int, of slot: Slot) {
        let weight = max(1, cost)
        let change = weight - slotStates[Int(slot)].weight
        slotStates[Int(slot)].weight = weight
        if slotStates[Int(slot)].isMain { main.weight += change } else { small.weight += change }
    }

    /// Removes a slot, without a ghost.
    @inlinable
    mutating func remove(_ slot: Slot) {
        let slotState = slotStates[Int(slot)]
        if slotState.isMain {
            main.remove(slot, weight: slotState.weight, links: &links)
        } else {
            small.remove(slot, weight: slotState.weight, links: &links)
        }
    }

    /// Removes and returns the slot to evict next; nil if the order is empty.
    ///
    /// The loop ends: each round evicts an entry, moves one from the small queue to the main queue, or takes away a
    /// use.
    @inlinable
    mutating func evict() -> Slot? {
        while true {
            let prefersSmall = small.weight >= (small.weight + main.weight) / 10
            if small.count > 0, prefersSmall || main.count == 0 {
                if let slot = evictSmall() { return slot }
            } else if main.count > 0 {
                if let slot = evictMain() { return slot }
            } else {
                return nil
            }
        }
    }

    /// Frees the arrays of an order without entries. Ghosts stay.
    mutating func releaseStorage() {
        links = []
        slotStates = []
        memory = UseCounts.Memory(0)
        uses = memory.counts
    }

    /// Makes room for the counts of twice the current number of slots.
    @usableFromInline
    mutating func growUses() {
        memory = UseCounts.Memory(max(16, slotStates.count * 2), copying: uses)
        uses = memory.counts
    }

    @inlinable
    mutating func push(_ slot: Slot, _ slotState: SlotState) {
        if slotState.isMain {
            main.push(slot, weight: slotState.weight, links: &links)
        } else {
            small.push(slot, weight: slotState.weight, links: &links)
        }
    }

    /// Removes the oldest slot of the small queue. Returns nil if it moved to the main queue instead.
    @inlinable
    mutating func evictSmall() -> Slot? {
        let slot = small.oldest
        let slotState = slotStates[Int(slot)]
        let capacity = count
        small.remove(slot, weight: slotState.weight, links: &links)
        guard uses[slot] > 1 else {
            ghosts.insert(slotState.fingerprint, capacity: capacity)
            return slot
        }
        uses[slot] = 0
        slotStates[Int(slot)].isMain = true
        main.push(slot, weight: slotState.weight, links: &links)
        return nil
    }

    /// Removes the oldest slot of the main queue. Returns nil if it gets another round instead.
    @inlinable
    mutating func evictMain() -> Slot? {
        let slot = main.oldest
        let slotState = slotStates[Int(slot)]
        main.remove(slot, weight: slotState.weight, links: &links)
        guard uses[slot] > 0 else { return slot }
        uses[slot] -= 1
        main.push(slot, weight: slotState.weight, links: &links)
        return nil
    }
}

/// The recent uses of each slot, 0 to 3. The only part of a shard that concurrent look-ups write.
///
/// The counts are relaxed: two simultaneous uses can count as one, and a use orders no other memory access. A use that
/// changes no count writes nothing, so that frequently used entries stay in the caches of all processors.
@usableFromInline
@safe
// Sendable by hand: `base` never changes, and points to atomics that live as long as their `Memory`.
struct UseCounts: @unchecked Sendable {
    @usableFromInline let base: UnsafeMutablePointer<Atomic<UInt8>>
    @usableFromInline let count: Int

    @inlinable static var maximum: UInt8 { 3 }

    @inlinable
    subscript(slot: Slot) -> UInt8 {
        get {
            precondition(slot >= 0 && slot < count, "there is no such slot")
            return unsafe base[Int(slot)].load(ordering: .relaxed)
        }
        nonmutating set {
            precondition(slot >= 0 && slot < count, "there is no such slot")
            unsafe base[Int(slot)].store(newValue, ordering: .relaxed)
        }
    }

    /// Adds a use.
    @inlinable @inline(__always)
    func increment(_ slot: Slot) {
        let uses = self[slot]
        if uses < Self.maximum { self[slot] = uses + 1 }
    }

    /// The memory of the counts. Separate from them, so that a look-up needs no reference to it.
    @usableFromInline
    final class Memory: Sendable {
        @usableFromInline let counts: UseCounts

        /// Allocates counts for `count` slots, and copies those of `old`. Must not run concurrently with look-ups.
        init(_ count: Int, copying old: UseCounts? = nil) {
            counts = unsafe UseCounts(base: .allocate(capacity: count), count: count)
            for slot in 0..<count {
                let uses = old.map { slot < $0.count ? $0[Slot(slot)] : 0 } ?? 0
                unsafe (counts.base + slot).initialize(to: Atomic(uses))
            }
        }

        deinit {
            unsafe counts.base.deinitialize(count: counts.count)
            unsafe counts.base.deallocate()
        }
    }
}

/// The recently evicted entries, by 32 bits of their keys' hashes. A pure value of at most 16 bytes per entry.
///
/// A set-associative table: a bucket has four cells, each with a fingerprint and the number of the eviction that wrote
/// it. Cells are not removed for their age: a cell with too old a number counts as empty. A full bucket drops its
/// oldest cell, and two keys can share a fingerprint (1 in 2³²). Both only make one admission less accurate.
@usableFromInline
struct GhostTable: Sendable {
    @usableFromInline
    struct Cell: Sendable {
        @usableFromInline var fingerprint: UInt32 = 0
        /// The number of the eviction; zero for a cell that was never written, or was removed.
        @usableFromInline var time: UInt32 = 0

        @inlinable
        init() {}
    }

    @usableFromInline var cells: [Cell] = []
    /// The number of the latest eviction.
    @usableFromInline var now: UInt32 = 0

    @inlinable
    init() {}

    /// Remembers an evicted entry. At least the latest `capacity` entries can be found again.
    @inlinable
    mutating func insert(_ fingerprint: UInt32, capacity: Int) {
        if cells.count < capacity { grow(to: capacity) }
        guard !cells.isEmpty else { return }
        // Zero marks an empty cell.
        now = now == .max ? 1 : now + 1
        write(fingerprint, time: now)
    }

    /// Returns whether this entry is among the latest `capacity` evicted entries, and removes it.
    @inlinable
    mutating func take(_ fingerprint: UInt32, capacity: Int) -> Bool {
        guard !cells.isEmpty else { return false }
        let start = bucket(of: fingerprint)
        for index in start..<start + 4
        where cells[index].time != 0 && cells[index].fingerprint == fingerprint {
            let age = Int(now &- cells[index].time)
            cells[index].time = 0
            return age < capacity
        }
        return false
    }

    @inlinable
    func bucket(of fingerprint: UInt32) -> Int {
        // The shard's index uses the low bits of the same fingerprint. The multiplication spreads it again.
        let spread = (fingerprint &* 0x9E37_79B1) >> 7
        return (Int(spread) &* 4) & (cells.count - 1)
    }

    @usableFromInline
    mutating func write(_ fingerprint: UInt32, time: UInt32) {
        let start = bucket(of: fingerprint)
        var chosen = start
        for index in start..<start + 4 {
            if cells[index].time == 0 || cells[index].fingerprint == fingerprint {
                chosen = index
                break
            }
            if now &- cells[index].time > now &- cells[chosen].time { chosen = index }
        }
        cells[chosen].fingerprint = fingerprint
        cells[chosen].time = time
    }

    @usableFromInline
    mutating func grow(to capacity: Int) {
        var size = max(16, cells.count)
        while size < capacity &* 2 { size &*= 2 }
        let old = cells
        cells = [Cell](repeating: Cell(), count: size)
        for cell in old where cell.time != 0 { write(cell.fingerprint, time: cell.time) }
    }
}
