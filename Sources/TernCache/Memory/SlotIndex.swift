/// An index from 32 bits of a key's hash to the slot that may hold it: open addressing with linear probing in one flat
/// array, at most half full. A pure value. The caller compares the keys.
///
/// A dictionary would hash the key again, after its hash has selected the shard.
@usableFromInline
struct SlotIndex: Sendable {
    /// The cells: the fingerprint in the upper half, slot + 1 in the lower half. Zero is an empty cell.
    @usableFromInline var cells: [UInt64]
    @usableFromInline var count = 0

    @inlinable
    init() {
        cells = [UInt64](repeating: 0, count: 16)
    }

    /// Returns the first slot with this fingerprint for which `matches` is true; nil if there is none.
    @inlinable @inline(__always)
    func find(_ fingerprint: UInt32, where matches: (Slot) -> Bool) -> Slot? {
        let mask = cells.count &- 1
        var place = Int(truncatingIfNeeded: fingerprint) & mask
        while true {
            let cell = cells[place]
            if cell == 0 { return nil }
            if UInt32(truncatingIfNeeded: cell >> 32) == fingerprint {
                let slot = Slot(truncatingIfNeeded: cell) &- 1
                if matches(slot) { return slot }
            }
            place = (place &+ 1) & mask
        }
    }

    /// Adds a slot, which must not be in the index.
    @inlinable
    mutating func insert(_ slot: Slot, fingerprint: UInt32) {
        if (count + 1) * 2 > cells.count { resize(to: cells.count * 2) }
        place(UInt64(fingerprint) << 32 | UInt64(UInt32(bitPattern: slot + 1)))
        count += 1
    }

    /// Removes a slot, which must be in the index.
    @inlinable
    mutating func remove(_ slot: Slot, fingerprint: UInt32) {
        let mask = cells.count &- 1
        let wanted = UInt64(fingerprint) << 32 | UInt64(UInt32(bitPattern: slot + 1))
        var hole = Int(truncatingIfNeeded: fingerprint) & mask
        while cells[hole] != wanted {
            precondition(cells[hole] != 0, "a slot was taken out of the index twice")
            hole = (hole + 1) & mask
        }
        // The following cells move up as far as their own chains allow, so that there are no tombstones.
        var next = (hole + 1) & mask
        while cells[next] != 0 {
            let home = Int(truncatingIfNeeded: cells[next] >> 32) & mask
            if (next - home) & mask >= (next - hole) & mask {
                cells[hole] = cells[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        cells[hole] = 0
        count -= 1
    }

    @usableFromInline
    mutating func resize(to size: Int) {
        let old = cells
        cells = [UInt64](repeating: 0, count: size)
        for cell in old where cell != 0 { place(cell) }
    }

    @inlinable
    mutating func place(_ cell: UInt64) {
        let mask = cells.count &- 1
        var place = Int(truncatingIfNeeded: cell >> 32) & mask
        while cells[place] != 0 { place = (place &+ 1) & mask }
        cells[place] = cell
    }
}

/// The number of a position in a shard's flat arrays.
@usableFromInline typealias Slot = Int32

/// The absence of a slot, at the end of a list.
@usableFromInline let noSlot: Slot = -1

/// The neighbours of a slot in a list that runs through a flat array. An entry needs no object, and a link takes 4
/// bytes.
@usableFromInline
struct SlotLink: Sendable {
    @usableFromInline var newer: Slot = noSlot
    @usableFromInline var older: Slot = noSlot

    @inlinable
    init() {}
}

/// The two ends of a list, its length and its weight. Several lists share the array of links.
@usableFromInline
struct SlotList: Sendable {
    @usableFromInline var newest: Slot = noSlot
    @usableFromInline var oldest: Slot = noSlot
    @usableFromInline var count = 0
    @usableFromInline var weight = 0

    @inlinable
    init() {}

    /// Adds a slot, which must not be in any list, at the newest end.
    @inlinable
    mutating func push(_ slot: Slot, weight added: Int, links: inout [SlotLink]) {
        links[Int(slot)].newer = noSlot
        links[Int(slot)].older = newest
        if newest == noSlot { oldest = slot } else { links[Int(newest)].newer = slot }
        newest = slot
        count += 1
        weight += added
    }

    /// Removes a slot, which must be in this list.
    @inlinable
    mutating func remove(_ slot: Slot, weight removed: Int, links: inout [SlotLink]) {
        let link = links[Int(slot)]
        if link.newer == noSlot { newest = link.older } else { links[Int(link.newer)].older = link.older }
        if link.older == noSlot { oldest = link.newer } else { links[Int(link.older)].newer = link.newer }
        count -= 1
        weight -= removed
    }
}

/// Computes the 64 bits of a key that select its shard and its cell.
@usableFromInline
struct KeyHash: Sendable {
    /// Random, so that nobody can choose keys that collide.
    @usableFromInline let seed = UInt64.random(in: 0 ... .max)

    @usableFromInline
    init() {}

    /// Returns evenly spread bits, also in the upper half. Equal keys of one cache have equal bits.
    @inlinable @inline(__always)
    func callAsFunction<Key: Hashable>(_ key: Key) -> UInt64 {
        // The standard library's hash is made for whole strings, and takes a fourth of a look-up by a number.
        if let number = Self.number(key) {
            let product = (number ^ seed).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
            return product.high ^ product.low
        }
        // The multiplication also fills the upper bits from a type's own poor `hashValue`.
        return UInt64(UInt(bitPattern: key.hashValue)) &* 0x9E37_79B9_7F4A_7C15
    }

    /// Returns the key as a number if it has one of the plain types. In specialised code, the compiler resolves the
    /// checks.
    @inlinable @inline(__always)
    static func number<Key: Hashable>(_ key: Key) -> UInt64? {
        if Key.self == Int.self { return unsafe UInt64(bitPattern: Int64(unsafeBitCast(key, to: Int.self))) }
        if Key.self == UInt64.self { return unsafe unsafeBitCast(key, to: UInt64.self) }
        if Key.self == Int64.self { return unsafe UInt64(bitPattern: unsafeBitCast(key, to: Int64.self)) }
        if Key.self == UInt32.self { return unsafe UInt64(unsafeBitCast(key, to: UInt32.self)) }
        if Key.self == Int32.self { return unsafe UInt64(UInt32(bitPattern: unsafeBitCast(key, to: Int32.self))) }
        return nil
    }
}
