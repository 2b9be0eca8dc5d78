/// Values by numbers that the session gives out, such as those of tasks, without I/O.
///
/// A hash table with open addresses, whose hash is one multiplication. It spreads ascending numbers evenly, and no peer
/// chooses them. A `Dictionary` hashes with a key, which costs ten times as many instructions, twice for each request.
struct NumberTable<Value> {
    private struct Entry {
        let number: UInt64
        let value: Value
    }

    /// The places, a power of two of them, or none. At least a quarter of them is empty.
    private var places: [Entry?] = []
    private(set) var count = 0

    private static var smallestSize: Int { 8 }

    var isEmpty: Bool { count == 0 }

    /// The value of a number; nil without one. Setting nil removes it.
    subscript(_ number: UInt64) -> Value? {
        get { find(number).flatMap { places[$0]?.value } }
        set {
            if let newValue { insert(newValue, for: number) } else { _ = removeValue(for: number) }
        }
    }

    /// The numbers, in any order.
    var numbers: [UInt64] { places.compactMap { $0?.number } }

    /// The values, in any order.
    var values: [Value] { places.compactMap { $0?.value } }

    /// Sets the value of a number.
    private mutating func insert(_ value: Value, for number: UInt64) {
        if (count + 1) * 4 > places.count * 3 { grow() }
        var place = home(of: number)
        while let entry = places[place] {
            if entry.number == number {
                places[place] = Entry(number: number, value: value)
                return
            }
            place = next(place)
        }
        places[place] = Entry(number: number, value: value)
        count += 1
    }

    /// Removes and returns the value of a number; nil without one.
    mutating func removeValue(for number: UInt64) -> Value? {
        guard let found = find(number) else { return nil }
        let value = places[found].take()?.value
        count -= 1
        closeGap(at: found)
        if count == 0, places.count > 4_096 { places = [] }
        return value
    }

    private func find(_ number: UInt64) -> Int? {
        if count == 0 { return nil }
        var place = home(of: number)
        while let entry = places[place] {
            if entry.number == number { return place }
            place = next(place)
        }
        return nil
    }

    /// Moves the entries after a gap forward, so that each is found from its home without an empty place between.
    private mutating func closeGap(at start: Int) {
        var gap = start
        var place = next(gap)
        while let entry = places[place] {
            // The entry can move unless its home lies cyclically behind the gap.
            let distance = (place &- home(of: entry.number)) & (places.count &- 1)
            if distance >= (place &- gap) & (places.count &- 1) {
                places.swapAt(gap, place)
                gap = place
            }
            place = next(place)
        }
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: nil, count: max(Self.smallestSize, old.count * 2))
        count = 0
        for entry in old {
            if let entry { insert(entry.value, for: entry.number) }
        }
    }

    /// The place of a number if no other takes it: bits of its product with 2^64 divided by the golden ratio, which lie
    /// so high that near numbers differ in them.
    private func home(of number: UInt64) -> Int {
        Int(truncatingIfNeeded: (number &* 0x9E37_79B9_7F4A_7C15) >> 32) & (places.count &- 1)
    }

    private func next(_ place: Int) -> Int { (place &+ 1) & (places.count &- 1) }
}
