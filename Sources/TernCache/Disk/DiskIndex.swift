/// The entries in memory: by hash, in the order of use, with their expiry. Pure, on flat arrays: a look-up is some tens
/// of nanoseconds, and moving an entry to the front allocates nothing.
struct DiskIndex {
    /// Where an entry's value is.
    struct Location: Sendable, Equatable {
        var id: Int64
        var size: Int
        /// The length of the trailer behind the value in its file; 0 for a value in the index.
        var trailer: Int
        /// Bytes on the disk for a file, the row's bytes otherwise.
        var allocated: Int
        var expires: Int64
        var isTagged = false
        /// Whether a row of the order of use exists.
        var isRanked = false

        var isInline: Bool { trailer == 0 }
    }

    private struct Slot {
        var hash: UInt64
        var location: Location
        var tick: Int64
        var previous: Int32 = -1
        var next: Int32 = -1
        var isTouched = false
    }

    private var slots: [Slot] = []
    private var free: [Int32] = []
    private var byHash: [UInt64: Int32] = [:]
    private var newest: Int32 = -1
    private var oldest: Int32 = -1
    private var touched: [Int32] = []
    private var expiries = ExpiryHeap()
    /// The next number for an entry or for a use: both count in one sequence, so that an entry that was never used is
    /// ranked by its insertion and needs no row in the order of use.
    private(set) var sequence: Int64 = 1
    private(set) var fileBytes = 0

    init() {}

    /// Empty, and goes on counting where `other` has stopped: numbers of entries are not used twice.
    init(after other: DiskIndex) { sequence = other.sequence }

    var count: Int { byHash.count }
    var touchedCount: Int { touched.count }

    mutating func reserve(_ count: Int) {
        slots.reserveCapacity(count)
        byHash.reserveCapacity(count)
    }

    mutating func drawSequence() -> Int64 {
        defer { sequence += 1 }
        return sequence
    }

    /// Numbers up to this one are taken.
    mutating func advanceSequence(past number: Int64) { sequence = max(sequence, number + 1) }

    /// The entry of a hash, if it has not expired.
    func find(_ hash: UInt64, now: Int64) -> Location? {
        guard let index = byHash[hash] else { return nil }
        let location = slots[Int(index)].location
        return location.expires > now ? location : nil
    }

    func location(_ hash: UInt64) -> Location? { byHash[hash].map { slots[Int($0)].location } }

    func isHeld(_ hash: UInt64, id: Int64) -> Bool { location(hash)?.id == id }

    /// `find`, and the entry becomes the one used last.
    mutating func use(_ hash: UInt64, now: Int64) -> Location? {
        guard let index = byHash[hash], slots[Int(index)].location.expires > now else { return nil }
        // What stands at the front already needs no new rank.
        if index != newest {
            slots[Int(index)].tick = drawSequence()
            if !slots[Int(index)].isTouched {
                slots[Int(index)].isTouched = true
                touched.append(index)
            }
            unlink(index)
            linkNewest(index)
        }
        return slots[Int(index)].location
    }

    /// Adds an entry as the one used last. The caller has removed the one of that hash.
    mutating func insert(_ hash: UInt64, _ location: Location, tick: Int64? = nil) {
        remove(hash)
        let slot = Slot(hash: hash, location: location, tick: tick ?? location.id)
        let index: Int32
        if let reused = free.popLast() {
            index = reused
            slots[Int(index)] = slot
        } else {
            index = Int32(slots.count)
            slots.append(slot)
        }
        byHash[hash] = index
        linkNewest(index)
        if !location.isInline { fileBytes += location.allocated }
        guard location.expires != .max else { return }
        expiries.push((location.expires, hash, location.id))
        // Replaced entries leave theirs behind: once they are the most, all are looked through.
        if expiries.count > 2 * count + 64 {
            let (byHash, slots) = (byHash, slots)
            expiries.compact { element in
                byHash[element.hash].map { slots[Int($0)].location.id == element.id } ?? false
            }
        }
    }

    @discardableResult
    mutating func remove(_ hash: UInt64) -> Location? {
        guard let index = byHash.removeValue(forKey: hash) else { return nil }
        unlink(index)
        let location = slots[Int(index)].location
        if !location.isInline { fileBytes -= location.allocated }
        // Its number may still stand in `touched`: that is told by the flag, and a reused slot's new use is its own.
        slots[Int(index)].isTouched = false
        free.append(index)
        return location
    }

    /// The least recently used entries, up to `limit`, until their bytes reach `bytes` and their number `count`.
    func victims(bytes: Int, count: Int, limit: Int) -> [(hash: UInt64, location: Location)] {
        var found: [(hash: UInt64, location: Location)] = []
        var sum = 0
        var index = oldest
        while index >= 0, found.count < limit, sum < bytes || found.count < count {
            let slot = slots[Int(index)]
            found.append((slot.hash, slot.location))
            sum += slot.location.allocated
            index = slot.previous
        }
        return found
    }

    /// Expired entries, up to `limit`; they stay until removed.
    mutating func expired(now: Int64, limit: Int) -> [(hash: UInt64, location: Location)] {
        var found: [(hash: UInt64, location: Location)] = []
        while found.count < limit, let first = expiries.first, first.expires <= now {
            expiries.pop()
            // An entry that was replaced or removed leaves its expiry behind.
            if let location = location(first.hash), location.id == first.id { found.append((first.hash, location)) }
        }
        return found
    }

    /// Whether something may be left for `expired`.
    func hasExpired(_ now: Int64) -> Bool { expiries.first.map { $0.expires <= now } ?? false }

    /// The entries used since the last call, with their ranks.
    mutating func takeTouched() -> [(id: Int64, tick: Int64)] {
        defer { touched.removeAll(keepingCapacity: true) }
        return touched.compactMap { index in
            guard slots[Int(index)].isTouched else { return nil }
            slots[Int(index)].isTouched = false
            slots[Int(index)].location.isRanked = true
            return (slots[Int(index)].location.id, slots[Int(index)].tick)
        }
    }

    var hashes: [UInt64] { Array(byHash.keys) }

    /// Hashes from the least to the most recently used.
    var order: [UInt64] {
        var hashes: [UInt64] = []
        var index = oldest
        while index >= 0 {
            hashes.append(slots[Int(index)].hash)
            index = slots[Int(index)].previous
        }
        return hashes
    }

    private mutating func linkNewest(_ index: Int32) {
        slots[Int(index)].next = newest
        slots[Int(index)].previous = -1
        if newest >= 0 { slots[Int(newest)].previous = index }
        newest = index
        if oldest < 0 { oldest = index }
    }

    private mutating func unlink(_ index: Int32) {
        let slot = slots[Int(index)]
        if slot.previous >= 0 { slots[Int(slot.previous)].next = slot.next } else { newest = slot.next }
        if slot.next >= 0 { slots[Int(slot.next)].previous = slot.previous } else { oldest = slot.previous }
    }
}
