import TernCache

/// A cache of keys alone, by count: what of a trace it would have served.
protocol ComparedPolicy {
    init(capacity: Int)
    /// Looks a key up, and adds it if the policy admits it. Returns whether it was there.
    mutating func access(_ key: Int) -> Bool
}

/// Ours, through its public interface.
struct OursS3FIFO: ComparedPolicy {
    private let cache: MemoryCache<Int, Bool>

    init(capacity: Int) { cache = MemoryCache(.count(capacity, .s3FIFO)) { _ in 1 } }

    func access(_ key: Int) -> Bool {
        if cache.value(for: key) != nil { return true }
        cache.insert(true, for: key)
        return false
    }
}

/// Ours, with the LRU policy.
struct OursLRU: ComparedPolicy {
    private let cache: MemoryCache<Int, Bool>

    init(capacity: Int) { cache = MemoryCache(.count(capacity, .lru)) { _ in 1 } }

    func access(_ key: Int) -> Bool {
        if cache.value(for: key) != nil { return true }
        cache.insert(true, for: key)
        return false
    }
}

/// Keys in the order of their use, newest first, as links in flat arrays.
struct RecencyList {
    private(set) var slots: [Int: Int] = [:]
    private var keys: [Int] = []
    private var newer: [Int] = []
    private var older: [Int] = []
    private var free: [Int] = []
    private var newest = -1
    private var oldest = -1

    var count: Int { slots.count }
    var last: Int? { oldest < 0 ? nil : keys[oldest] }

    func contains(_ key: Int) -> Bool { slots[key] != nil }

    /// The key before this one, towards the newest; nil at the end.
    func next(after key: Int) -> Int? {
        guard let slot = slots[key], newer[slot] >= 0 else { return nil }
        return keys[newer[slot]]
    }

    mutating func push(_ key: Int) {
        let slot: Int
        if let last = free.popLast() {
            slot = last
            keys[slot] = key
        } else {
            slot = keys.count
            keys.append(key)
            newer.append(-1)
            older.append(-1)
        }
        newer[slot] = -1
        older[slot] = newest
        if newest >= 0 { newer[newest] = slot } else { oldest = slot }
        newest = slot
        slots[key] = slot
    }

    mutating func remove(_ key: Int) {
        guard let slot = slots.removeValue(forKey: key) else { return }
        if newer[slot] >= 0 { older[newer[slot]] = older[slot] } else { newest = older[slot] }
        if older[slot] >= 0 { newer[older[slot]] = newer[slot] } else { oldest = newer[slot] }
        free.append(slot)
    }

    mutating func touch(_ key: Int) {
        remove(key)
        push(key)
    }
}

/// SIEVE (Zhang and others, NSDI 2024): one queue, a bit an entry, and a hand that goes from old to new.
struct Sieve: ComparedPolicy {
    private let capacity: Int
    private var queue = RecencyList()
    private var visited: Set<Int> = []
    private var hand: Int?

    init(capacity: Int) { self.capacity = capacity }

    mutating func access(_ key: Int) -> Bool {
        if queue.contains(key) {
            visited.insert(key)
            return true
        }
        if queue.count >= capacity { evict() }
        queue.push(key)
        return false
    }

    private mutating func evict() {
        guard var candidate = hand ?? queue.last else { return }
        while visited.remove(candidate) != nil {
            guard let next = queue.next(after: candidate) ?? queue.last else { return }
            candidate = next
        }
        hand = queue.next(after: candidate)
        queue.remove(candidate)
    }
}

/// W-TinyLFU (Einziger and others, 2017): a window of 1%, a segmented LRU of 20% and 80%, and a sketch of frequencies
/// that decides who may come in. The sketch is four rows of counters up to 15, halved after ten times the capacity.
struct WTinyLFU: ComparedPolicy {
    private let windowCapacity: Int
    private let mainCapacity: Int
    private let protectedCapacity: Int
    private var window = RecencyList()
    private var probation = RecencyList()
    private var protected = RecencyList()
    private var sketch: [UInt8]
    private let mask: Int
    private var additions = 0
    private let sample: Int

    init(capacity: Int) {
        windowCapacity = max(1, capacity / 100)
        mainCapacity = capacity - windowCapacity
        protectedCapacity = mainCapacity * 4 / 5
        var width = 64
        while width < capacity * 4 { width *= 2 }
        sketch = [UInt8](repeating: 0, count: width * 4)
        mask = width - 1
        sample = capacity * 10
    }

    mutating func access(_ key: Int) -> Bool {
        count(key)
        if window.contains(key) {
            window.touch(key)
            return true
        }
        if protected.contains(key) {
            protected.touch(key)
            return true
        }
        if probation.contains(key) {
            promote(key)
            return true
        }
        window.push(key)
        if window.count > windowCapacity, let candidate = window.last {
            window.remove(candidate)
            admit(candidate)
        }
        return false
    }

    private mutating func promote(_ key: Int) {
        probation.remove(key)
        protected.push(key)
        if protected.count > protectedCapacity, let demoted = protected.last {
            protected.remove(demoted)
            probation.push(demoted)
        }
    }

    private mutating func admit(_ candidate: Int) {
        guard probation.count + protected.count >= mainCapacity else {
            probation.push(candidate)
            return
        }
        guard let victim = probation.last ?? protected.last, frequency(candidate) > frequency(victim) else { return }
        probation.remove(victim)
        protected.remove(victim)
        probation.push(candidate)
    }

    private func places(_ key: Int) -> [Int] {
        (0..<4).map { row in
            var hash = UInt64(bitPattern: Int64(key)) &+ UInt64(row + 1) &* 0x9E37_79B9_7F4A_7C15
            hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
            hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
            return row * (mask + 1) + (Int(truncatingIfNeeded: hash ^ (hash >> 31)) & mask)
        }
    }

    private func frequency(_ key: Int) -> UInt8 { places(key).map { sketch[$0] }.min() ?? 0 }

    private mutating func count(_ key: Int) {
        for place in places(key) where sketch[place] < 15 { sketch[place] += 1 }
        additions += 1
        if additions >= sample {
            additions /= 2
            for place in sketch.indices { sketch[place] /= 2 }
        }
    }
}
