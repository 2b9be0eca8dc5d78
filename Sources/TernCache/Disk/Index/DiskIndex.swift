/// The entries in memory: by hash, in the order of use, with their expiry. A pure value on flat arrays: a look-up takes
/// tens of nanoseconds, and moving an entry to the front allocates nothing.
struct DiskIndex {
    /// The place of an entry's value, with its sizes and its expiry.
    struct Location: Sendable, Equatable {
        var id: Int64
        var size: Int
        /// The length of the trailer behind the value in its file; 0 for a value in the index.
        var trailer: Int
        /// The bytes on the disk for a file, or the bytes of the row.
        var allocated: Int
        var expires: Int64
        var isTagged = false
        /// Whether the table of the order of use has a row for the entry.
        var hasSavedUse = false

        var isInline: Bool { trailer == 0 }

        /// The first number that the cache would not have written, in words; nil if all are valid. The space of
        /// 100,000 valid entries has a sum that does not overflow.
        var problem: String? {
            if !DiskIndex.numbers.contains(id) { return "the number \(id) of an entry is out of bounds" }
            if !(0...Self.largestSize).contains(size) { return "the size \(size) of a value is out of bounds" }
            if trailer != 0, !DiskTrailer.counts.contains(trailer) {
                return "the length \(trailer) of a trailer is out of bounds"
            }
            if !(0...2 * Self.largestSize).contains(allocated) {
                return "the space \(allocated) of a value is out of bounds"
            }
            return nil
        }

        /// The maximum size of a value in bytes: 16 TiB.
        private static let largestSize = 1 << 44
    }

    /// The valid numbers of entries and of uses. More than a cache can count in its life, and far from an overflow.
    static let numbers: ClosedRange<Int64> = 1...1 << 62

    private struct Slot {
        var hash: UInt64
        var location: Location
        /// The number of the last use, or of the insertion.
        var useNumber: Int64
        var previous: Int32 = -1
        var next: Int32 = -1
        var hasUnsavedUse = false
    }

    private var slots: [Slot] = []
    private var free: [Int32] = []
    private var byHash: [UInt64: Int32] = [:]
    private var newest: Int32 = -1
    private var oldest: Int32 = -1
    /// The slots of the entries with a use that the table does not contain yet.
    private var unsavedUses: [Int32] = []
    private var expiries = ExpiryHeap()
    /// The next number for an entry or for a use. Both count in one sequence, so that an entry that was never used is
    /// ordered by its insertion and needs no saved use.
    private(set) var freeNumber: Int64 = 1
    private(set) var fileBytes = 0

    init() {}

    /// Creates an empty index that continues the numbers of `other`, so that no number is used twice.
    init(after other: DiskIndex) { freeNumber = other.freeNumber }

    var count: Int { byHash.count }
    var unsavedUseCount: Int { unsavedUses.count }

    mutating func reserve(_ count: Int) {
        slots.reserveCapacity(count)
        byHash.reserveCapacity(count)
    }

    /// Returns the next number, and reserves it.
    mutating func nextNumber() -> Int64 {
        defer { freeNumber += 1 }
        return freeNumber
    }

    /// Reserves the numbers up to this one.
    mutating func reserveNumbers(upTo number: Int64) { freeNumber = max(freeNumber, number + 1) }

    /// Returns the entry of a hash, unless it has expired.
    func find(_ hash: UInt64, now: Int64) -> Location? {
        guard let index = byHash[hash] else { return nil }
        let location = slots[Int(index)].location
        return location.expires > now ? location : nil
    }

    func location(_ hash: UInt64) -> Location? { byHash[hash].map { slots[Int($0)].location } }

    func isHeld(_ hash: UInt64, id: Int64) -> Bool { location(hash)?.id == id }

    /// Returns the entry of a hash like `find`, and makes it the most recently used one.
    mutating func use(_ hash: UInt64, now: Int64) -> Location? {
        guard let index = byHash[hash], slots[Int(index)].location.expires > now else { return nil }
        // The entry at the front needs no new number.
        if index != newest {
            slots[Int(index)].useNumber = nextNumber()
            if !slots[Int(index)].hasUnsavedUse {
                slots[Int(index)].hasUnsavedUse = true
                unsavedUses.append(index)
            }
            unlink(index)
            linkNewest(index)
        }
        return slots[Int(index)].location
    }

    /// Adds an entry as the most recently used one, and replaces the entry of that hash.
    mutating func insert(_ hash: UInt64, _ location: Location, useNumber: Int64? = nil) {
        let slot = Slot(hash: hash, location: location, useNumber: useNumber ?? location.id)
        let index: Int32
        if let reused = free.popLast() {
            index = reused
            slots[Int(index)] = slot
        } else {
            index = Int32(slots.count)
            slots.append(slot)
        }
        if let replaced = byHash.updateValue(index, forKey: hash) { release(replaced) }
        linkNewest(index)
        if !location.isInline { fileBytes += location.allocated }
        guard location.expires != .max else { return }
        expiries.push((location.expires, hash, location.id))
        // Replaced entries leave their expiry behind. Once those are the majority, all are filtered.
        if expiries.count > 2 * count + 64 {
            let (byHash, slots) = (byHash, slots)
            expiries.compact { element in
                byHash[element.hash].map { slots[Int($0)].location.id == element.id } ?? false
            }
        }
    }

    @discardableResult
    mutating func remove(_ hash: UInt64) -> Location? {
        byHash.removeValue(forKey: hash).map { release($0) }
    }

    /// Frees the slot of an entry that has left the table of hashes, and returns the entry's place.
    @discardableResult
    private mutating func release(_ index: Int32) -> Location {
        unlink(index)
        let location = slots[Int(index)].location
        if !location.isInline { fileBytes -= location.allocated }
        // The slot's number can still be in `unsavedUses`. The flag marks it as obsolete, also when the slot is reused.
        slots[Int(index)].hasUnsavedUse = false
        free.append(index)
        return location
    }

    /// Returns the least recently used entries, up to `limit`, until their bytes reach `bytes` and their number
    /// `count`.
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

    /// Returns expired entries, up to `limit`. They stay until they are removed.
    mutating func expired(now: Int64, limit: Int) -> [(hash: UInt64, location: Location)] {
        var found: [(hash: UInt64, location: Location)] = []
        while found.count < limit, let first = expiries.first, first.expires <= now {
            expiries.pop()
            // An entry that was replaced or removed leaves its expiry behind.
            if let location = location(first.hash), location.id == first.id { found.append((first.hash, location)) }
        }
        return found
    }

    /// Returns whether `expired` may return more entries.
    func hasExpired(_ now: Int64) -> Bool { expiries.first.map { $0.expires <= now } ?? false }

    /// Returns the entries used since the last call, with the numbers of their uses.
    mutating func takeUnsavedUses() -> [(id: Int64, useNumber: Int64)] {
        defer { unsavedUses.removeAll(keepingCapacity: true) }
        return unsavedUses.compactMap { index in
            guard slots[Int(index)].hasUnsavedUse else { return nil }
            slots[Int(index)].hasUnsavedUse = false
            slots[Int(index)].location.hasSavedUse = true
            return (slots[Int(index)].location.id, slots[Int(index)].useNumber)
        }
    }

    var hashes: [UInt64] { Array(byHash.keys) }

    /// The hashes of the entries whose values are files, by the numbers of the values.
    var files: [Int64: UInt64] {
        var files: [Int64: UInt64] = [:]
        var index = newest
        while index >= 0 {
            let slot = slots[Int(index)]
            if !slot.location.isInline { files[slot.location.id] = slot.hash }
            index = slot.next
        }
        return files
    }

    /// The hashes from the least to the most recently used.
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

/// A heap with the earliest expiry first. A pure value. The caller recognises entries that were removed elsewhere.
struct ExpiryHeap {
    typealias Element = (expires: Int64, hash: UInt64, id: Int64)
    private var elements: [Element] = []

    var first: Element? { elements.first }
    var count: Int { elements.count }

    mutating func push(_ element: Element) {
        elements.append(element)
        var child = elements.count - 1
        while child > 0, elements[(child - 1) / 2].expires > elements[child].expires {
            elements.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func pop() {
        guard let last = elements.popLast(), !elements.isEmpty else { return }
        elements[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < elements.count && elements[child].expires < elements[least].expires {
                least = child
            }
            if least == parent { return }
            elements.swapAt(parent, least)
            parent = least
        }
    }

    /// Removes the elements that `keep` rejects, so that replaced entries do not accumulate.
    mutating func compact(keep: (Element) -> Bool) {
        let kept = elements.filter(keep)
        elements.removeAll(keepingCapacity: true)
        for element in kept { push(element) }
    }
}
