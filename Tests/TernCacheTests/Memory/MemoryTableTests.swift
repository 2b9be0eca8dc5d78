import Testing

@testable import TernCache

@Suite struct MemoryTableTests {
    private func makeEntry(_ key: Int, _ value: Int) -> MemoryEntry<Int, Int> {
        MemoryEntry(key: key, value: value, cost: value, deadline: .max, reference: nil)
    }

    @Test(arguments: 0..<20) func aTableMatchesADictionary(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var table = MemoryTable<Int, Int>()
        var model: [Int: (value: Int, position: Int)] = [:]
        // A few hashes, so that many keys share a bucket, and some a hash.
        func hash(_ key: Int) -> UInt64 { UInt64(key % 40) }
        for step in 0..<3_000 {
            let key = Int.random(in: 0..<500, using: &random)
            let position = table.find(key, hash: hash(key))
            #expect(position == model[key]?.position)
            if Bool.random(using: &random) || model.isEmpty {
                if let position {
                    #expect(table.replace(at: position, with: makeEntry(key, step))?.value == model[key]?.value)
                    model[key] = (step, position)
                } else {
                    model[key] = (step, table.add(makeEntry(key, step), hash: hash(key)))
                }
            } else if let (key, old) = model.randomElement(using: &random) {
                let removed = table.remove(at: old.position)
                #expect(removed?.key == key && removed?.value == old.value && removed?.cost == old.value)
                model[key] = nil
            }
        }
        let found = (0..<500).map { table.lookUp($0, hash: hash($0), now: 0) }
        #expect(found.map { $0?.position } == (0..<500).map { model[$0]?.position })
        #expect(found.map { $0?.value } == (0..<500).map { model[$0]?.value })
        #expect(Set(model.values.map(\.position)).count == model.count)
        #expect(table.hits == model.count && table.misses == 500 - model.count)
        let old = table.removeAll()
        #expect(old.nodes.count { $0.key != nil } == model.count && table.nodes.isEmpty && table.hits == model.count)
    }

    @Test func usesAreCountedToThreeAndKeptWhenTheTableGrows() {
        var table = MemoryTable<Int, Int>()
        let first = table.add(makeEntry(0, 0), hash: 0)
        for _ in 0..<5 { _ = table.lookUp(0, hash: 0, now: 0) }
        let others = (1..<1_000).map { table.add(makeEntry($0, 0), hash: UInt64($0)) }
        _ = table.replace(at: first, with: makeEntry(0, 1))
        #expect(table.takeUses(at: first) == 3)
        #expect(table.takeUses(at: first) == 0)
        #expect(others.map { table.takeUses(at: $0) }.max() == 0)
    }

    @Test func hashesAreSpreadOverShardsAndBuckets() {
        let shards = MemoryShards<Int, Int>()
        for shift in [0, 3, 12, 24] {
            let hashes = (0..<8_192).map { shards.hash(of: $0 << shift) }
            #expect(Set(hashes).count == 8_192)
            for parts in [hashes.map { $0 >> 58 }, hashes.map { $0 & 63 }] {
                #expect((UInt64(0)..<64).allSatisfy { part in (50...300).contains(parts.count { $0 == part }) })
            }
        }
    }

    @Test func equalKeysHaveEqualHashes() {
        let numbers = MemoryShards<Double, Int>()
        #expect(numbers.hash(of: 0.0) == numbers.hash(of: -0.0))
        let strings = MemoryShards<String, Int>()
        #expect(strings.hash(of: "caf\u{E9}") == strings.hash(of: "cafe\u{301}"))
    }
}
