import TernConcurrency
import Testing

@testable import TernCache

@Suite(.timeLimit(.minutes(1))) struct MemoryCacheEvictionTests {
    @Test func evictionsCarryKeyCostAndReason() async {
        let cache = MemoryCache<Int, Int>(.quiet(cost: 10, policy: .lru)) { $0 }
        let evictions = cache.evictions
        cache[1] = 6
        cache[2] = 6
        cache[3] = 11
        cache.remove(2)
        cache[4] = 5
        cache[4] = 4
        await cache.trim(toCost: 0)
        let told = await evictions.first(3).compactMap(\.eviction)
        #expect(told.map(\.key) == [1, 3, 4])
        #expect(told.map(\.cost) == [6, 11, 4])
        #expect(told.map(\.reason) == [.costLimit, .tooLarge, .trimmed])
    }

    @Test(arguments: MemoryCachePolicy.allCases) func aTrimBelowZeroIsOneToZero(policy: MemoryCachePolicy) async {
        let cache = MemoryCache<Int, Int>(.quiet(cost: 10_000, policy: policy)) { $0 }
        for key in 0..<100 { cache[key] = key }
        await cache.trim(toCost: -5)
        #expect(cache.totalCost == 0)
        await cache.trim(toCount: .min)
        #expect(cache.count == 0)
        await cache.trim(toCount: -1)
        #expect(cache.count == 0)
    }

    @Test func eachStreamIsIndependentAndCountsDroppedEvents() async {
        var configuration = MemoryCacheConfiguration.quiet(count: 1)
        configuration.eventLimit = 5
        let cache = MemoryCache<Int, Int>(configuration) { _ in 1 }
        let first = cache.evictions
        let second = cache.evictions
        for key in 0..<21 { cache[key] = key }
        for stream in [first, second] {
            let events = await stream.first(6)
            #expect(events.compactMap { $0.eviction?.key } == [0, 1, 2, 3, 4])
            guard case .dropped(15)? = events.last else {
                Issue.record("the gap was not told")
                return
            }
        }
    }

    @Test func theStreamsEndWithTheCache() async {
        var cache: MemoryCache<Int, Int>? = MemoryCache(.quiet(count: 1)) { _ in 1 }
        let evictions = cache?.evictions
        cache?[1] = 1
        cache?[2] = 2
        cache = nil
        var keys: [Int] = []
        if let evictions { for await event in evictions { keys += [event.eviction?.key].compactMap(\.self) } }
        #expect(keys == [1])
    }

    @Test func aReleasedStreamReceivesNoEvents() {
        let cache = MemoryCache<Int, Int>(.quiet(count: 1)) { _ in 1 }
        do { _ = cache.evictions }
        #expect(cache.evictionEvents.hasSubscribers)
        cache[1] = 1
        cache[2] = 2
        #expect(!cache.evictionEvents.hasSubscribers)
    }

    @Test(arguments: MemoryCachePolicy.allCases) func theDeinitOfAValueCanUseTheCache(policy: MemoryCachePolicy) async {
        let box = Lock<MemoryCache<Int, Token>?>(nil)
        let ended = Lock<[Int]>([])
        let end: @Sendable (Int) -> Void = { number in
            // Under the cache's lock, each of these calls would deadlock.
            guard let cache = box.withLock({ $0 }) else { return }
            _ = cache[number]
            _ = cache.contains(number)
            if number < 1_000 { cache[number + 1_000] = Token(number + 1_000) }
            cache.remove(number)
            ended.withLock { $0.append(number) }
        }
        let cache = MemoryCache<Int, Token>(.quiet(cost: 100, entryCost: 50, policy: policy)) { _ in 10 }
        box.withLock { $0 = cache }
        for key in 0..<30 { cache[key] = Token(key) { end(key) } }
        cache[29] = Token(100) { end(100) }
        cache.insert(Token(101) { end(101) }, for: 29, cost: 51)
        cache[28] = nil
        await cache.trim(toCost: 20)
        cache[200] = Token(200) { end(200) }
        await cache.trim(for: .critical)
        cache[201] = Token(201) { end(201) }
        cache.removeAll()
        #expect(ended.withLock { Set($0) } == Set(0..<30).union([100, 101, 200, 201]))
        box.withLock { $0 = nil }
    }
}
