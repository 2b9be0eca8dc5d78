import Testing

@testable import TernCache

/// The two policies as plain arrays, oldest first: slow, and obviously correct.
private struct ModelLRU {
    var slots: [Slot] = []

    mutating func touch(_ slot: Slot) {
        slots.removeAll { $0 == slot }
        slots.append(slot)
    }

    mutating func evict() -> Slot? { slots.isEmpty ? nil : slots.removeFirst() }
}

private struct ModelS3FIFO {
    var small: [Slot] = []
    var main: [Slot] = []
    var uses: [Slot: Int] = [:]
    var weight: [Slot: Int] = [:]

    mutating func admit(_ slot: Slot, cost: Int) {
        uses[slot] = 0
        weight[slot] = max(1, cost)
        small.append(slot)
    }

    mutating func touch(_ slot: Slot) { uses[slot] = min(3, (uses[slot] ?? 0) + 1) }

    mutating func remove(_ slot: Slot) {
        small.removeAll { $0 == slot }
        main.removeAll { $0 == slot }
    }

    private func sum(_ slots: [Slot]) -> Int { slots.reduce(0) { $0 + (weight[$1] ?? 0) } }

    mutating func evict() -> Slot? {
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

@Suite struct EvictionOrderTests {
    @Test(arguments: 0..<20) func lruEvictsInTheOrderOfAModel(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var order = LRUOrder()
        var model = ModelLRU()
        var free = (0..<64).map { Slot($0) }
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                guard let slot = free.popLast() else { continue }
                order.admit(slot, cost: Int.random(in: 0...9, using: &random))
                model.touch(slot)
            case 1:
                guard let slot = model.slots.randomElement(using: &random) else { continue }
                order.touch(slot)
                model.touch(slot)
            case 2:
                guard let slot = model.slots.randomElement(using: &random) else { continue }
                order.remove(slot)
                model.slots.removeAll { $0 == slot }
                free.append(slot)
            default:
                let slot = order.evict()
                #expect(slot == model.evict())
                if let slot { free.append(slot) }
            }
            #expect(order.list.count == model.slots.count)
        }
    }

    @Test(arguments: 0..<20) func s3FIFOEvictsInTheOrderOfAModel(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var order = S3FIFOOrder()
        var model = ModelS3FIFO()
        var free = (0..<64).map { Slot($0) }
        var fingerprint: UInt32 = 0
        for _ in 0..<2_000 {
            let held = model.small + model.main
            switch Int.random(in: 0..<8, using: &random) {
            case 0..<3:
                guard let slot = free.popLast() else { continue }
                let cost = Int.random(in: 0...9, using: &random)
                // A new fingerprint each time, so that no ghost returns.
                fingerprint += 1
                order.admit(slot, fingerprint: fingerprint, cost: cost)
                model.admit(slot, cost: cost)
            case 3..<6:
                guard let slot = held.randomElement(using: &random) else { continue }
                order.touch(slot)
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
                let slot = order.evict()
                #expect(slot == model.evict())
                if let slot { free.append(slot) }
            }
            #expect(order.small.count == model.small.count)
            #expect(order.main.count == model.main.count)
        }
    }

    @Test func entriesUsedOnceAreEvictedBeforeThoseUsedTwice() {
        var order = S3FIFOOrder()
        for slot in 0..<10 { order.admit(Slot(slot), fingerprint: UInt32(slot), cost: 1) }
        order.touch(0)
        order.touch(0)
        order.touch(1)
        #expect(order.evict() == 1)
        #expect(order.main.count == 1)
        #expect(order.evict() == 2)
    }

    @Test func usesAreKeptWhenTheOrderGrows() {
        var order = S3FIFOOrder()
        order.admit(0, fingerprint: 0, cost: 1)
        for _ in 0..<5 { order.touch(0) }
        for slot in 1..<1_000 { order.admit(Slot(slot), fingerprint: UInt32(slot), cost: 1) }
        #expect(order.uses[0] == 3)
        #expect((1..<1_000).allSatisfy { order.uses[Slot($0)] == 0 })
        order.releaseStorage()
        #expect(order.uses.count == 0)
    }

    @Test func anEntryThatComesBackSoonGoesToTheMainQueue() {
        var order = S3FIFOOrder()
        for slot in 0..<4 { order.admit(Slot(slot), fingerprint: UInt32(100 + slot), cost: 1) }
        #expect(order.evict() == 0)
        order.admit(0, fingerprint: 100, cost: 1)
        #expect(order.main.count == 1)
        // The ghost is used up, so the next new entry has none.
        #expect(order.evict() == 1)
        order.admit(1, fingerprint: 999, cost: 1)
        #expect(order.main.count == 1)
    }

    @Test func aScanKeepsFrequentlyUsedEntries() {
        var order = S3FIFOOrder()
        for slot in 0..<100 { order.admit(Slot(slot), fingerprint: UInt32(slot), cost: 1) }
        for slot in 0..<50 {
            order.touch(Slot(slot))
            order.touch(Slot(slot))
        }
        var gone: Set<Slot> = []
        for number in 0..<1_000 {
            guard let slot = order.evict() else { break }
            gone.insert(slot)
            order.admit(slot, fingerprint: UInt32(10_000 + number), cost: 1)
        }
        #expect(gone.allSatisfy { $0 >= 50 })
    }

    @Test func ghostsAreForgottenWithAgeAndRememberedUntilThen() {
        var ghosts = GhostTable()
        for number in 0..<1_000 { ghosts.insert(UInt32(number) &* 2_654_435_761, capacity: 100) }
        let recent = (950..<1_000).filter { ghosts.take(UInt32($0) &* 2_654_435_761, capacity: 100) }
        #expect(recent.count >= 45)
        #expect(!(0..<900).contains { ghosts.take(UInt32($0) &* 2_654_435_761, capacity: 100) })
        #expect(!recent.contains { ghosts.take(UInt32($0) &* 2_654_435_761, capacity: 100) })
    }

    @Test(arguments: 0..<20) func theIndexMatchesADictionary(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var index = SlotIndex()
        var model: [Slot: UInt32] = [:]
        for _ in 0..<3_000 {
            // A few adjacent fingerprints, which form chains that wrap around the end of the table.
            let fingerprint = UInt32.max - UInt32.random(in: 0..<40, using: &random)
            if Bool.random(using: &random) || model.isEmpty {
                let slot = Slot(Int.random(in: 0..<500, using: &random))
                if model[slot] == nil {
                    index.insert(slot, fingerprint: fingerprint)
                    model[slot] = fingerprint
                }
            } else if let (slot, fingerprint) = model.randomElement(using: &random) {
                index.remove(slot, fingerprint: fingerprint)
                model[slot] = nil
            }
            #expect(index.count == model.count)
        }
        for (slot, fingerprint) in model { #expect(index.find(fingerprint) { $0 == slot } == slot) }
        for slot in 0..<Slot(500) where model[slot] == nil {
            for fingerprint in 0..<UInt32(40) { #expect(index.find(UInt32.max - fingerprint) { $0 == slot } == nil) }
        }
    }
}
