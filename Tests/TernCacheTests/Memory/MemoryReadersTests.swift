import Dispatch
import Synchronization
import Testing

@testable import TernCache

/// Concurrent look-ups, and writers beside them.
@Suite(.timeLimit(.minutes(1))) struct MemoryReadersTests {
    /// A value behind a gate that several threads can access.
    private final class Shards: Sendable {
        let array = ShardArray<Int>(count: 2) { 0 }

        func read(_ number: Int) -> Int { array.read(number) { ($0, .hit) } }
    }

    @Test func theGateOpensAfterEnoughLookUpsAndAWriterClosesIt() {
        let shards = Shards()
        for round in 1...3 {
            for _ in 1..<ReaderGate.LockedCounts.openingThreshold {
                #expect(shards.read(0) == round - 1)
                #expect(!(unsafe shards.array.gate(0).pointee.isOpen))
            }
            #expect(shards.read(0) == round - 1)
            #expect(unsafe shards.array.gate(0).pointee.isOpen)
            // Counted in a stripe.
            #expect(shards.read(0) == round - 1)
            shards.array.withLock(0) { $0 += 1 }
            #expect(!(unsafe shards.array.gate(0).pointee.isOpen))
        }
        #expect(!(unsafe shards.array.gate(1).pointee.isOpen))
        #expect(shards.array.readerCounts(0).hits == 3 * (ReaderGate.LockedCounts.openingThreshold + 1))
        #expect(shards.array.readerCounts(0).misses == 0 && shards.array.readerCounts(1).hits == 0)
    }

    @Test func aWriterWaitsForCurrentReaders() {
        let shards = Shards()
        let hasWritten = Atomic(false)
        let end = DispatchSemaphore(value: 0)
        for _ in 0..<ReaderGate.LockedCounts.openingThreshold { _ = shards.read(0) }
        let seen = shards.array.read(0) { value -> ([Int], ReaderStripe.LookUp) in
            let before = value
            DispatchQueue(label: "writer").async {
                shards.array.withLock(0) { $0 = 7 }
                hasWritten.store(true, ordering: .releasing)
                end.signal()
            }
            // Once the gate is closed, the writer waits.
            while unsafe shards.array.gate(0).pointee.isOpen {}
            for _ in 0..<10_000 where hasWritten.load(ordering: .acquiring) { return ([before, value, -1], .miss) }
            return ([before, value], .miss)
        }
        #expect(seen == [0, 0])
        end.wait()
        #expect(shards.read(0) == 7)
        #expect(shards.array.readerCounts(0).misses == 1)
    }

    @Test func concurrentReadersFindWholeValuesAndAreCounted() async {
        let cache = MemoryCache<Int, Token>(.quiet(cost: 300)) { _ in 1 }
        for key in 0..<300 { cache.insert(Token(key * 100), for: key) }
        let lookUps = 20_000
        await withTaskGroup(of: Bool.self) { group in
            for seed in 0..<3 {
                group.addTask {
                    var random = SeededRandom(seed: UInt64(seed))
                    return (0..<lookUps).allSatisfy { _ in
                        let key = Int.random(in: 0..<400, using: &random)
                        return cache[key].map { $0.number / 100 == key } ?? true
                    }
                }
            }
            group.addTask {
                var random = SeededRandom(seed: 9)
                for step in 0..<4_000 {
                    let key = Int.random(in: 0..<400, using: &random)
                    if step % 5 == 0 { cache.remove(key) } else { cache.insert(Token(key * 100 + 1), for: key) }
                    // Look-ups in between open and close gates all the time.
                    for near in key..<key + 20 { _ = cache.contains(near) }
                }
                return true
            }
            for await isRight in group { #expect(isRight) }
        }
        let statistics = cache.statistics
        #expect(statistics.hits + statistics.misses == 3 * lookUps)
        #expect(cache.count <= 300)
    }

    @Test func concurrentlyRemovedValuesAreReleasedOnce() async {
        let (made, ended) = (400, Counter())
        do {
            let cache = MemoryCache<Int, Token>(.quiet(count: 8)) { _ in 1 }
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<3 {
                    group.addTask { for step in 0..<40_000 { _ = cache[step % 10]?.number } }
                }
                group.addTask {
                    for step in 0..<made {
                        cache[step % 10] = Token(step) { ended.add() }
                        for _ in 0..<100 { _ = cache[step % 10] }
                    }
                }
            }
        }
        #expect(ended.value == made)
    }

    private final class Counter: Sendable {
        private let count = Atomic(0)
        func add() { count.add(1, ordering: .relaxed) }
        var value: Int { count.load(ordering: .relaxed) }
    }
}

@Suite struct KeyHashTests {
    @Test func numbersOfAllPlainTypesAreSpread() {
        let hash = KeyHash()
        for shift in [0, 3, 12, 24] {
            let hashes = (0..<4_096).map { hash($0 << shift) }
            #expect(Set(hashes).count == 4_096)
            // The two bits of the shard, and the lower bits of the fingerprint, which select the cell.
            for part in [hashes.map { $0 >> 30 & 3 }, hashes.map { $0 >> 32 & 3 }] {
                for value in UInt64(0)..<4 { #expect((700...1_350).contains(part.count { $0 == value })) }
            }
        }
        #expect(hash(Int64(-7)) == hash(-7) && hash(UInt64(9)) == hash(9))
        #expect(hash(UInt32(9)) == hash(9) && hash(Int32(9)) == hash(9))
    }

    @Test func equalKeysOfOtherTypesHaveEqualBits() {
        let hash = KeyHash()
        #expect(hash(0.0) == hash(-0.0))
        #expect(hash("caf\u{E9}") == hash("cafe\u{301}"))
        #expect(KeyHash.number("7") == nil && KeyHash.number(UInt8(7)) == nil && KeyHash.number(7.0) == nil)
    }

    @Test func twoCachesPlaceANumberDifferently() {
        #expect(KeyHash()(1) != KeyHash()(1))
    }
}
