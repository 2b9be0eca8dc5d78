import Synchronization
import TernConcurrency
import TernTesting
import Testing

@testable import TernCache

@Suite(.timeLimit(.minutes(1))) struct MemoryCacheThreadTests {
    @Test(arguments: MemoryCachePolicy.allCases) func manyThreadsNeverExceedTheLimitsAndTheSumsAddUp(
        policy: MemoryCachePolicy
    ) async {
        let limits = MemoryCacheLimits(cost: 4_000, count: 400, entryCost: 90)
        var configuration = MemoryCacheConfiguration(limits: limits, policy: policy)
        configuration.pressure = nil
        configuration.clock = ManualClock()
        let cache = MemoryCache<Int, Token>(configuration, weakReferences: .objects) { $0.number % 100 }
        await withTaskGroup(of: Bool.self) { group in
            for seed in 0..<8 {
                group.addTask {
                    var random = SeededRandom(seed: UInt64(seed))
                    var isRight = true
                    var held: [Token] = []
                    for step in 0..<4_000 {
                        let key = Int.random(in: 0..<800, using: &random)
                        switch Int.random(in: 0..<20, using: &random) {
                        case 0..<10:
                            if let token = cache[key] { isRight = isRight && token.number / 100 == key }
                        case 10..<18:
                            let token = Token(key * 100 + Int.random(in: 0..<100, using: &random))
                            cache.insert(token, for: key, timeToLive: step % 3 == 0 ? .seconds(9) : nil)
                            if step % 50 == 0 { held.append(token) }
                        case 18:
                            cache.remove(key)
                        default:
                            if step % 100 == 0 { await cache.trim(toCost: 2_000) }
                            if step % 900 == 0 { cache.removeAll() }
                        }
                        isRight = isRight && cache.totalCost <= limits.cost && cache.count <= limits.count
                    }
                    return isRight
                }
            }
            for await isRight in group { #expect(isRight) }
        }
        let costs = cache.shards.shards.flatMap { shard in
            shard.table.withLock { $0.nodes.filter { $0.key != nil }.map(\.cost) }
        }
        #expect(costs.reduce(0, +) == cache.totalCost && costs.count == cache.count)
        #expect(cache.state.withLock { $0.order.count } == cache.count)
    }

    @Test func twoThreadsAtALimitOfOneEntryBothMakeProgress() async {
        let cache = MemoryCache<Int, Int>(.quiet(cost: 10)) { _ in 10 }
        await withTaskGroup(of: Int.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    (0..<5_000).count { cache.insert($0, for: $0 * 4 + thread) && cache.totalCost <= 10 }
                }
            }
            for await stored in group { #expect(stored == 5_000) }
        }
        #expect(cache.count == 1 && cache.totalCost == 10)
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
                        cache[step % 10] = Token(step) { ended.add(1) }
                        for _ in 0..<100 { _ = cache[step % 10] }
                    }
                }
            }
        }
        #expect(ended.value == made)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let policy: MemoryCachePolicy
        let limits: MemoryCacheLimits
        var testDescription: String { "\(policy) \(limits.cost)/\(limits.count)/\(limits.costAfterPurge)" }
    }

    static let cases: [Case] = MemoryCachePolicy.allCases.flatMap { policy in
        [
            MemoryCacheLimits(cost: 2_000), MemoryCacheLimits(cost: 5_000, count: 60),
            MemoryCacheLimits(cost: 2_000, entryCost: 80, costAfterPurge: 1_200),
            MemoryCacheLimits(cost: .max, count: 1),
        ].map { Case(policy: policy, limits: $0) }
    }

    /// Random operations of several threads, beside one that watches: the limits hold at every instant that it sees,
    /// and each value is released once, when it leaves the cache.
    @Test(arguments: cases) func interleavedOperationsKeepTheLimitsAndLoseNoValue(_ test: Case) async {
        let live = Counter()
        var configuration = MemoryCacheConfiguration(limits: test.limits, policy: test.policy)
        configuration.pressure = nil
        let cache = MemoryCache<Int, Token>(configuration) { $0.number % 100 }
        let ended = Counter()
        let isWithinLimits: @Sendable () -> Bool = {
            let (limits, statistics) = (test.limits, cache.statistics)
            return cache.totalCost <= limits.cost && cache.count <= limits.count && statistics.cost <= limits.cost
                && statistics.count <= limits.count
        }
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                while ended.value == 0 { guard isWithinLimits() else { return false } }
                return true
            }
            for seed in 0..<4 {
                group.addTask { await Self.operate(on: cache, seed: UInt64(seed), live: live) }
            }
            for number in 0..<5 {
                #expect(await group.next() == true)
                // All but the one that watches have ended.
                if number == 3 { ended.add(1) }
            }
        }
        let held = cache.keys.compactMap { cache[$0] }
        #expect(held.count == cache.count && held.reduce(0) { $0 + $1.number % 100 } == cache.totalCost)
        #expect(live.value == held.count)
        cache.removeAll()
        #expect(live.value == held.count && cache.totalCost == 0 && cache.keys.isEmpty)
        withExtendedLifetime(held) {}
    }

    private static func operate(on cache: MemoryCache<Int, Token>, seed: UInt64, live: Counter) async -> Bool {
        var random = SeededRandom(seed: seed)
        for step in 0..<3_000 {
            let key = Int.random(in: 0..<200, using: &random)
            switch Int.random(in: 0..<40, using: &random) {
            case 0..<16:
                live.add(1)
                let number = key * 100 + Int.random(in: 0..<100, using: &random)
                cache[key] = Token(number) { live.add(-1) }
            case 16..<34:
                if let token = cache[key], token.number / 100 != key { return false }
            case 34..<37:
                if let token = cache.remove(key), token.number / 100 != key { return false }
            case 37:
                _ = cache.contains(key)
            case 38:
                await cache.trim(toCount: key)
                await cache.removeAll { $0 % 50 == key }
            default:
                if step % 20 == 0 { cache.removeAll() }
            }
        }
        return true
    }

    private final class Counter: Sendable {
        private let count = Atomic(0)
        func add(_ number: Int) { count.add(number, ordering: .relaxed) }
        var value: Int { count.load(ordering: .relaxed) }
    }
}
