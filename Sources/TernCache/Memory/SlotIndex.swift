/// From 32 bits of a key's hash to the slot that may hold it: open addressing with linear probing in one flat array, at
/// most half full. Pure. The caller compares the keys.
///
/// A dictionary would hash the key again, after the hash has chosen the shard.
@usableFromInline
struct SlotIndex: Sendable {
    /// Fingerprint in the upper half, slot + 1 in the lower one; zero is empty.
    @usableFromInline var cells: [UInt64]
    @usableFromInline var count = 0

    @inlinable
    init() {
        cells = [UInt64](repeating: 0, count: 16)
    }

    /// The first slot under this fingerprint for which `matches` holds; nil if there is none.
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

    /// Adds a slot that is not in it.
    @inlinable
    mutating func insert(_ slot: Slot, fingerprint: UInt32) {
        if (count + 1) * 2 > cells.count { resize(to: cells.count * 2) }
        place(UInt64(fingerprint) << 32 | UInt64(UInt32(bitPattern: slot + 1)))
        count += 1
    }

    /// Takes out a slot that is in it.
    @inlinable
    mutating func remove(_ slot: Slot, fingerprint: UInt32) {
        let mask = cells.count &- 1
        let wanted = UInt64(fingerprint) << 32 | UInt64(UInt32(bitPattern: slot + 1))
        var hole = Int(truncatingIfNeeded: fingerprint) & mask
        while cells[hole] != wanted {
            precondition(cells[hole] != 0, "a slot was taken out of the index twice")
            hole = (hole + 1) & mask
        }
        // What follows moves up, as far as its own chain allows: no tombstones.
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
