import TernConcurrency
import Testing

@testable import TernCache

@Suite struct MemoryCacheTests {
    @Test(arguments: MemoryCachePolicy.allCases) func anInsertedValueIsFoundReplacedAndRemoved(
        policy: MemoryCachePolicy
    ) {
        let cache = MemoryCache<String, Int>(.quiet(policy: policy)) { _ in 1 }
        #expect(cache["a"] == nil)
        #expect(cache.insert(1, for: "a"))
        cache["b"] = 2
        #expect(cache["a"] == 1 && cache.value(for: "b") == 2)
        cache["a"] = 3
        #expect(cache["a"] == 3)
        #expect(cache.count == 2 && cache.totalCost == 2)
        #expect(cache.contains("a") && !cache.contains("c"))
        #expect(cache.remove("a") == 3)
        #expect(cache.remove("a") == nil)
        cache["b"] = nil
        #expect(cache.count == 0 && cache.totalCost == 0)
    }

    @Test func costsComeFromTheClosureOrTheCallAndNeverBelowZero() {
        let cache = MemoryCache<Int, String>(.quiet()) { $0.utf8.count }
        cache[1] = "four"
        cache.insert("x", for: 2, cost: 10)
        cache.insert("x", for: 3, cost: -5)
        #expect(cache.totalCost == 14)
        cache[1] = "eleven char"
        #expect(cache.totalCost == 21)
    }

    @Test(arguments: MemoryCachePolicy.allCases) func anOversizedInsertRemovesTheOldValueOfItsKey(
        policy: MemoryCachePolicy
    ) {
        let cache = MemoryCache<Int, Int>(.quiet(cost: 100, entryCost: 10, policy: policy)) { $0 }
        #expect(cache.insert(10, for: 1))
        #expect(!cache.insert(11, for: 1))
        #expect(cache[1] == nil)
        #expect(cache.totalCost == 0 && cache.count == 0)
        #expect(cache.statistics.evictions == [.tooLarge: 1])
    }

    @Test func anEntryAboveTheWholeLimitIsRefused() {
        let cache = MemoryCache<Int, Int>(.quiet(cost: 100)) { $0 }
        #expect(cache.insert(100, for: 1))
        #expect(!cache.insert(101, for: 2))
        #expect(cache[1] == 100)
    }

    @Test func aCacheOfNoEntriesTakesNone() {
        let cache = MemoryCache<Int, Int>(.quiet(count: 0)) { _ in 0 }
        #expect(!cache.insert(1, for: 1))
        #expect(cache.count == 0)
    }

    @Test(arguments: [10, 255, 256, 1_000]) func theCountLimitIsExact(limit: Int) {
        let cache = MemoryCache<Int, Int>(.quiet(count: limit)) { _ in 1 }
        for key in 0..<limit * 3 {
            cache[key] = key
            #expect(cache.count == min(limit, key + 1))
            #expect(cache[key] == key)
        }
        #expect(cache.statistics.evictions == [.countLimit: limit * 2])
    }

    @Test func aLimitOfOneEntryAndOfCostOneHolds() {
        let cache = MemoryCache<Int, Int>(.quiet(cost: 1)) { _ in 1 }
        for key in 0..<100 {
            #expect(cache.insert(key, for: key))
            #expect(cache.count == 1 && cache[key] == key)
        }
    }

    @Test func hitsMissesAndEvictionsAreCounted() {
        let cache = MemoryCache<Int, Int>(.quiet(count: 2, policy: .lru)) { _ in 3 }
        for key in 0..<3 { cache[key] = key }
        _ = cache[0]
        _ = cache[1]
        _ = cache[2]
        _ = cache.contains(0)
        let statistics = cache.statistics
        #expect(statistics.hits == 2 && statistics.misses == 1 && statistics.insertions == 3)
        #expect(statistics.evictions == [.countLimit: 1] && statistics.evictionCount == 1)
        #expect(statistics.count == 2 && statistics.cost == 6)
        #expect(statistics.hitRatio == 2.0 / 3)
        #expect(MemoryCacheStatistics().hitRatio == nil)
    }

    @Test func anEmptiedShardIsFilledAgain() async {
        let cache = MemoryCache<Int, Int>(.quiet(cost: 1_000)) { _ in 1 }
        for key in 0..<1_000 { cache[key] = key }
        await cache.removeAll { cache.shards.shard(of: cache.shards.hash(of: $0)) == 2 }
        for key in 1_000..<20_000 {
            cache[key] = key
            #expect(cache.totalCost <= 1_000)
        }
        let counts = cache.shards.shards.map { $0.table.withLock { $0.nodes.count { $0.key != nil } } }
        #expect(counts.reduce(0, +) == 1_000 && counts[2] > 0)
    }

    @Test func aTrimmedCacheReleasesTheMemoryOfItsTables() async {
        let cache = MemoryCache<Int, Int>(.quiet()) { _ in 1 }
        for key in 0..<1_000 { cache[key] = key }
        await cache.trim(toCount: 0)
        #expect(cache.shards.shards.allSatisfy { $0.table.withLock { $0.nodes.isEmpty } })
        #expect(cache.state.withLock { $0.order.nodes.isEmpty })
    }

    @Test func zeroCostsBesideTheLargestFitAndAreEvicted() {
        let cache = MemoryCache<Int, Int>(.quiet()) { $0 }
        #expect(cache.insert(.max, for: 1) && cache.insert(0, for: 2) && cache.insert(1, for: 3))
        #expect(cache.totalCost == 1 && cache.count <= 2)
    }

    @Test(arguments: MemoryCachePolicy.allCases) func trimmingKeepsUsedEntries(policy: MemoryCachePolicy) async {
        let cache = MemoryCache<Int, Int>(.quiet(policy: policy)) { _ in 10 }
        for key in 0..<1_000 { cache[key] = key }
        for _ in 0..<3 { for key in 0..<100 { _ = cache[key] } }
        await cache.trim(toCost: 5_000)
        #expect(cache.totalCost == 5_000)
        #expect((0..<100).allSatisfy { cache[$0] == $0 })
        await cache.trim(toCount: 200)
        #expect(cache.count == 200)
        await cache.trim(toCost: 0)
        #expect(cache.count == 0 && cache.totalCost == 0)
        cache[1] = 1
        #expect(cache[1] == 1)
        #expect(cache.statistics.evictions == [.trimmed: 1_000])
    }

    @Test func lowerLimitsTakeEffectAtOnce() async {
        let cache = MemoryCache<Int, Int>(.quiet(cost: 1_000)) { _ in 1 }
        for key in 0..<1_000 { cache[key] = key }
        await cache.setLimits(MemoryCacheLimits(cost: 400, count: 300))
        #expect(cache.totalCost == 300 && cache.count == 300)
        #expect(cache.limits == MemoryCacheLimits(cost: 400, count: 300))
        for key in 0..<1_000 { cache[key] = key }
        #expect(cache.count == 300)
    }

    @Test func allIsRemovedAtOnceAndTheStatisticsStay() {
        let cache = MemoryCache<Int, Int>(.quiet()) { _ in 1 }
        for key in 0..<1_000 { cache[key] = key }
        #expect(Set(cache.keys) == Set(0..<1_000))
        cache.removeAll()
        #expect(cache.count == 0 && cache.totalCost == 0 && cache.keys.isEmpty)
        #expect(cache.statistics.insertions == 1_000 && cache.statistics.evictions.isEmpty)
        cache[7] = 7
        #expect(cache[7] == 7)
    }

    @Test func keysOfOneHashAreDistinguished() {
        struct Poor: Hashable {
            let number: Int
            func hash(into hasher: inout Hasher) {}
        }
        let cache = MemoryCache<Poor, Int>(.quiet(count: 500)) { _ in 1 }
        for number in 0..<400 { cache[Poor(number: number)] = number }
        #expect((0..<400).allSatisfy { cache[Poor(number: $0)] == $0 })
        for number in stride(from: 0, to: 400, by: 2) { cache.remove(Poor(number: number)) }
        #expect((0..<400).allSatisfy { cache[Poor(number: $0)] == ($0 % 2 == 0 ? nil : $0) })
    }
}

/// networking-behaviours §1.8: AFAutoPurgingImageCache, in the LRU policy.
@Suite struct AutoPurgingTests {
    private static let size = 1_020_000

    private func makeCache(pressure: (any MemoryPressureSource)? = nil) -> MemoryCache<Int, Int> {
        var configuration = MemoryCacheConfiguration.quiet(
            cost: Self.size * 10, costAfterPurge: Self.size * 6, policy: .lru)
        configuration.pressure = pressure
        configuration.response.warning = 0
        return MemoryCache(configuration) { _ in Self.size }
    }

    @Test func theDefaultsCanBeConfigured() {
        // 100 MiB, 60 MiB after a purge; width × height × 4 bytes of pixels.
        let limits = MemoryCacheLimits(cost: 100 << 20, costAfterPurge: 60 << 20)
        var configuration = MemoryCacheConfiguration(limits: limits, policy: .lru)
        configuration.pressure = nil
        let cache = MemoryCache<String, (width: Int, height: Int)>(configuration) { $0.width * $0.height * 4 }
        cache.insert((510, 500), for: "image")
        #expect(cache.totalCost == Self.size)
        #expect(cache.limits.cost == 104_857_600 && cache.limits.costAfterPurge == 62_914_560)
    }

    @Test func replacingSubtractsTheOldCost() {
        let cache = makeCache()
        for _ in 0..<20 { cache[0] = 0 }
        #expect(cache.totalCost == Self.size)
    }

    @Test func usageGrowsToTheCapacityAndTheEleventhPurgesToThePreferredOne() {
        let cache = makeCache()
        for number in 0..<10 {
            cache[number] = number
            #expect(cache.totalCost == Self.size * (number + 1))
        }
        cache[10] = 10
        #expect(cache.totalCost == Self.size * 6)
        #expect((0...10).filter(cache.contains) == [5, 6, 7, 8, 9, 10])
    }

    @Test func readingRefreshesTheAccess() {
        let cache = makeCache()
        for number in 0..<10 { cache[number] = number }
        #expect(cache[0] == 0)
        cache[10] = 10
        #expect((0...10).filter(cache.contains) == [0, 6, 7, 8, 9, 10])
    }

    @Test(.timeLimit(.minutes(1))) func aMemoryWarningEmptiesIt() async {
        let pressure = ManualPressure()
        let cache = makeCache(pressure: pressure)
        let evictions = cache.evictions
        for number in 0..<10 { cache[number] = number }
        pressure.continuation.yield(.warning)
        let reasons = await evictions.first(10).map { $0.eviction?.reason }
        #expect(reasons == Array(repeating: .memoryPressure, count: 10))
        #expect(cache.count == 0)
    }
}
