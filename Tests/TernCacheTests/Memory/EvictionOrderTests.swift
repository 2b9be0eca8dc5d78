import Testing

@testable import TernCache

/// The two policies as plain arrays, oldest first: slow, and obviously correct.
private struct ModelLRU {
    var slots: [Int] = []

    mutating func touch(_ slot: Int) {
        slots.removeAll { $0 == slot }
        slots.append(slot)
    }

    mutating func evict() -> Int? { slots.isEmpty ? nil : slots.removeFirst() }
}

private struct ModelS3FIFO {
    var small: [Int] = []
    var main: [Int] = []
    var uses: [Int: Int] = [:]
    var weight: [Int: Int] = [:]

    mutating func admit(_ slot: Int, cost: Int) {
        uses[slot] = 0
        weight[slot] = max(1, cost)
        small.append(slot)
    }

    mutating func touch(_ slot: Int) { uses[slot] = min(3, (uses[slot] ?? 0) + 1) }

    mutating func remove(_ slot: Int) {
        small.removeAll { $0 == slot }
        main.removeAll { $0 == slot }
    }

    private func sum(_ slots: [Int]) -> Int { slots.reduce(0) { $0 + (weight[$1] ?? 0) } }

    mutating func evict() -> Int? {
        while !(small.isEmpty && main.isEmpty) {
            if !small.isEmpty, main.isEmpty || sum(small) >= (sum(small) + sum(main)) / 10 {
                let slot = small.removeFirst()
                if uses[slot] ?? 0 <= 1 { return slot }
                uses[slot] = 0
                main.append(slot)
            } else {
                let slot = main.removeFirst()
                guard let left = uses[slot], left > 0 else { return slot }
                uses[slot] = left - 1
                main.append(slot)
            }
        }
        return nil
    }
}

/// The uses of slots, as a table counts them.
private struct Uses {
    var counts: [Int: UInt8] = [:]

    mutating func add(_ slot: Int) { counts[slot] = min(3, counts[slot, default: 0] + 1) }

    mutating func take(_ slot: Int) -> UInt8 { counts.removeValue(forKey: slot) ?? 0 }
}

@Suite struct EvictionOrderTests {
    @Test(arguments: 0..<20) func lruEvictsInTheOrderOfAModel(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var order = EvictionOrder(.lru)
        var model = ModelLRU()
        var free = Array(0..<64)
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                guard let slot = free.popLast() else { continue }
                order.admit(slot, fingerprint: UInt32(slot), cost: Int.random(in: 0...9, using: &random))
                model.touch(slot)
            case 1:
                guard let slot = model.slots.randomElement(using: &random) else { continue }
                order.moveToNewest(slot)
                model.touch(slot)
            case 2:
                guard let slot = model.slots.randomElement(using: &random) else { continue }
                order.remove(slot)
                model.slots.removeAll { $0 == slot }
                free.append(slot)
            default:
                // LRU spends no uses.
                let slot = order.evict { _ in 3 }
                #expect(slot == model.evict())
                if let slot { free.append(slot) }
            }
            #expect(order.count == model.slots.count)
        }
    }

    @Test(arguments: 0..<20) func s3FIFOEvictsInTheOrderOfAModel(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var order = EvictionOrder(.s3FIFO)
        var model = ModelS3FIFO()
        var uses = Uses()
        var free = Array(0..<64)
        var fingerprint: UInt32 = 0
        for _ in 0..<2_000 {
            let held = model.small + model.main
            switch Int.random(in: 0..<8, using: &random) {
            case 0..<3:
                guard let slot = free.popLast() else { continue }
                let cost = Int.random(in: 0...9, using: &random)
                // A new fingerprint each time, so that no ghost returns.
                fingerprint += 1
                uses.counts[slot] = nil
                order.admit(slot, fingerprint: fingerprint, cost: cost)
                model.admit(slot, cost: cost)
            case 3..<6:
                guard let slot = held.randomElement(using: &random) else { continue }
                uses.add(slot)
                model.touch(slot)
            case 6:
                guard let slot = held.randomElement(using: &random) else { continue }
                if Bool.random(using: &random) {
                    order.remove(slot)
                    model.remove(slot)
                    free.append(slot)
                } else {
                    order.setCost(7, of: slot)
                    model.weight[slot] = 7
                }
            default:
                let slot = order.evict { uses.take($0) }
                #expect(slot == model.evict())
                if let slot { free.append(slot) }
            }
            #expect(order.small.count == model.small.count)
            #expect(order.main.count == model.main.count)
        }
    }

    @Test func entriesUsedOnceAreEvictedBeforeThoseUsedTwice() {
        var order = EvictionOrder(.s3FIFO)
        var uses = Uses(counts: [0: 2, 1: 1])
        for slot in 0..<10 { order.admit(slot, fingerprint: UInt32(slot), cost: 1) }
        #expect(order.evict { uses.take($0) } == 1)
        #expect(order.main.count == 1)
        #expect(order.evict { uses.take($0) } == 2)
    }

    @Test func usesInSeveralRoundsAddUpToThree() {
        var order = EvictionOrder(.s3FIFO)
        order.admit(0, fingerprint: 0, cost: 1)
        var rounds = [3, 3, 3].map { UInt8($0) }
        // The first three move the slot to the main queue. There, three more, and two that are left and three more,
        // count as three each.
        var calls = 0
        let slot = order.evict { _ in
            calls += 1
            return rounds.isEmpty ? 0 : rounds.removeFirst()
        }
        #expect(slot == 0 && calls == 6)
    }

    @Test func anEntryThatComesBackSoonGoesToTheMainQueue() {
        var order = EvictionOrder(.s3FIFO)
        for slot in 0..<4 { order.admit(slot, fingerprint: UInt32(100 + slot), cost: 1) }
        #expect(order.evict { _ in 0 } == 0)
        order.admit(0, fingerprint: 100, cost: 1)
        #expect(order.main.count == 1)
        // The ghost is used up, so the next new entry has none.
        #expect(order.evict { _ in 0 } == 1)
        order.admit(1, fingerprint: 999, cost: 1)
        #expect(order.main.count == 1)
    }

    @Test func aScanKeepsFrequentlyUsedEntries() {
        var order = EvictionOrder(.s3FIFO)
        var uses = Uses()
        for slot in 0..<100 { order.admit(slot, fingerprint: UInt32(slot), cost: 1) }
        for slot in 0..<50 { uses.counts[slot] = 2 }
        var gone: Set<Int> = []
        for number in 0..<1_000 {
            guard let slot = order.evict(takingUses: { uses.take($0) }) else { break }
            gone.insert(slot)
            order.admit(slot, fingerprint: UInt32(10_000 + number), cost: 1)
        }
        #expect(gone.allSatisfy { $0 >= 50 })
    }

    @Test func weightsOfAnyCostAddUp() {
        var order = EvictionOrder(.s3FIFO)
        for slot in 0..<10 { order.admit(slot, fingerprint: UInt32(slot), cost: slot == 0 ? .max : 0) }
        order.setCost(.max, of: 1)
        let evicted = (0..<10).map { _ in order.evict { _ in 0 } }
        #expect(evicted == Array(0..<10) && order.small.weight == 0)
    }

    @Test func ghostsAreForgottenWithAgeAndRememberedUntilThen() {
        var ghosts = GhostTable()
        for number in 0..<1_000 { ghosts.insert(UInt32(number) &* 2_654_435_761, capacity: 100) }
        let recent = (950..<1_000).filter { ghosts.take(UInt32($0) &* 2_654_435_761, capacity: 100) }
        #expect(recent.count >= 45)
        #expect(!(0..<900).contains { ghosts.take(UInt32($0) &* 2_654_435_761, capacity: 100) })
        #expect(!recent.contains { ghosts.take(UInt32($0) &* 2_654_435_761, capacity: 100) })
    }
}
