/// S3-FIFO (Yang and others, SOSP 2023) over slots: three queues and two bits an entry. Pure.
///
/// A new entry goes into a small queue of a tenth of the weight; one that was used more than once before it reaches the
/// end goes on to the main queue, any other is evicted and remembered as a ghost. An entry that comes back while its
/// ghost is remembered goes straight to the main queue. There, an entry that was used gets another round, one use less.
/// A hit writes a counter at most: it moves nothing, and needs nobody to stand still.
@usableFromInline
struct S3FIFOOrder: Sendable {
    @usableFromInline
    struct Mark: Sendable {
        /// At least 1, so that a cache of entries without cost has queues too.
        @usableFromInline var weight = 1
        @usableFromInline var fingerprint: UInt32 = 0
        @usableFromInline var isMain = false

        @inlinable
        init() {}
    }

    /// Uses since admission, or since the last round. First, with the rest of what a hit touches.
    @usableFromInline private(set) var uses: UseCounts
    /// A copy of an order would share it; there is none.
    private var memory: UseCounts.Memory
    @usableFromInline var links: [SlotLink] = []
    @usableFromInline var marks: [Mark] = []
    @usableFromInline var small = SlotList()
    @usableFromInline var main = SlotList()
    @usableFromInline var ghosts = GhostTable()

    @usableFromInline
    init() {
        memory = UseCounts.Memory(0)
        uses = memory.counts
    }

    @inlinable var count: Int { small.count + main.count }

    /// Takes up `slot`, which it does not hold.
    @inlinable
    mutating func admit(_ slot: Slot, fingerprint: UInt32, cost: Int) {
        while marks.count <= Int(slot) {
            links.append(SlotLink())
            marks.append(Mark())
        }
        if uses.count <= Int(slot) { growUses() }
        uses[slot] = 0
        var mark = Mark()
        mark.weight = max(1, cost)
        mark.fingerprint = fingerprint
        mark.isMain = ghosts.take(fingerprint, capacity: count)
        marks[Int(slot)] = mark
        push(slot, mark)
    }

    /// `slot` was used now. May run beside itself.
    @inlinable @inline(__always)
    func touch(_ slot: Slot) { uses.note(slot) }

    /// `slot` holds a value of another cost now.
    @inlinable
    mutating func setCost(_ cost: Int, of slot: Slot) {
        let weight = max(1, cost)
        let change = weight - marks[Int(slot)].weight
        marks[Int(slot)].weight = weight
        if marks[Int(slot)].isMain { main.weight += change } else { small.weight += change }
    }

    /// Forgets `slot`, and leaves no ghost.
    @inlinable
    mutating func remove(_ slot: Slot) {
        let mark = marks[Int(slot)]
        if mark.isMain {
            main.remove(slot, weight: mark.weight, links: &links)
        } else {
            small.remove(slot, weight: mark.weight, links: &links)
        }
    }

    /// Forgets the entry that is to go first, and names it; nil when none is held.
    ///
    /// Ends: each round either evicts, or moves an entry from the small queue to the main one, or takes away a use.
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

    /// Gives the memory of its arrays back; it holds no entry. Ghosts stay.
    mutating func shrink() {
        links = []
        marks = []
        memory = UseCounts.Memory(0)
        uses = memory.counts
    }

    /// Room for the counts of twice as many slots as there are.
    @usableFromInline
    mutating func growUses() {
        memory = UseCounts.Memory(max(16, marks.count * 2), copying: uses)
        uses = memory.counts
    }

    @inlinable
    mutating func push(_ slot: Slot, _ mark: Mark) {
        if mark.isMain {
            main.push(slot, weight: mark.weight, links: &links)
        } else {
            small.push(slot, weight: mark.weight, links: &links)
        }
    }

    /// The oldest of the small queue, or nil if it has earned its place in the main one.
    @inlinable
    mutating func evictSmall() -> Slot? {
        let slot = small.oldest
        let mark = marks[Int(slot)]
        let capacity = count
        small.remove(slot, weight: mark.weight, links: &links)
        guard uses[slot] > 1 else {
            ghosts.insert(mark.fingerprint, capacity: capacity)
            return slot
        }
        uses[slot] = 0
        marks[Int(slot)].isMain = true
        main.push(slot, weight: mark.weight, links: &links)
        return nil
    }

    /// The oldest of the main queue, or nil if it gets another round.
    @inlinable
    mutating func evictMain() -> Slot? {
        let slot = main.oldest
        let mark = marks[Int(slot)]
        main.remove(slot, weight: mark.weight, links: &links)
        guard uses[slot] > 0 else { return slot }
        uses[slot] -= 1
        main.push(slot, weight: mark.weight, links: &links)
        return nil
    }
}
