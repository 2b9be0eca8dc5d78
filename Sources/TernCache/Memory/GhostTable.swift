/// Which entries were evicted lately, by 32 bits of their keys' hashes. Pure; memory of 16 bytes or less an entry.
///
/// A set-associative table: a bucket has four places, each with a fingerprint and the number of the eviction that wrote
/// it. Nothing is ever taken out for its age: a place whose number is too old counts as empty. A bucket that overflows
/// forgets its oldest, and two keys may share a fingerprint (1 in 2³²): both only make one admission less apt.
@usableFromInline
struct GhostTable: Sendable {
    @usableFromInline
    struct Place: Sendable {
        @usableFromInline var fingerprint: UInt32 = 0
        /// Zero: never written, or taken out.
        @usableFromInline var time: UInt32 = 0

        @inlinable
        init() {}
    }

    @usableFromInline var places: [Place] = []
    /// The number of the latest eviction.
    @usableFromInline var now: UInt32 = 0

    @inlinable
    init() {}

    /// Remembers an evicted entry; at least the latest `capacity` of them are to be found again.
    @inlinable
    mutating func insert(_ fingerprint: UInt32, capacity: Int) {
        if places.count < capacity { grow(to: capacity) }
        guard !places.isEmpty else { return }
        // Zero is the mark of an empty place.
        now = now == .max ? 1 : now + 1
        write(fingerprint, time: now)
    }

    /// Whether this entry was among the latest `capacity` evicted ones; it is not any more afterwards.
    @inlinable
    mutating func take(_ fingerprint: UInt32, capacity: Int) -> Bool {
        guard !places.isEmpty else { return false }
        let start = bucket(of: fingerprint)
        for place in start..<start + 4
        where places[place].time != 0 && places[place].fingerprint == fingerprint {
            let age = Int(now &- places[place].time)
            places[place].time = 0
            return age < capacity
        }
        return false
    }

    @inlinable
    func bucket(of fingerprint: UInt32) -> Int {
        // The shard's index uses the low bits of the same fingerprint; a product spreads it anew.
        let spread = (fingerprint &* 0x9E37_79B1) >> 7
        return (Int(spread) &* 4) & (places.count - 1)
    }

    @usableFromInline
    mutating func write(_ fingerprint: UInt32, time: UInt32) {
        let start = bucket(of: fingerprint)
        var chosen = start
        for place in start..<start + 4 {
            if places[place].time == 0 || places[place].fingerprint == fingerprint {
                chosen = place
                break
            }
            if now &- places[place].time > now &- places[chosen].time { chosen = place }
        }
        places[chosen].fingerprint = fingerprint
        places[chosen].time = time
    }

    @usableFromInline
    mutating func grow(to capacity: Int) {
        var size = max(16, places.count)
        while size < capacity &* 2 { size &*= 2 }
        let old = places
        places = [Place](repeating: Place(), count: size)
        for place in old where place.time != 0 { write(place.fingerprint, time: place.time) }
    }
}
