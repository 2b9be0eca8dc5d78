import TernTesting
import Testing

@testable import TernCache

@Suite(.timeLimit(.minutes(1))) struct MemoryCacheExpiryTests {
    private func makeCache(
        _ clock: ManualClock, timeToLive: Duration? = nil, weakReferences: WeakReferences<Token>? = nil
    ) -> MemoryCache<Int, Token> {
        var configuration = MemoryCacheConfiguration.quiet()
        configuration.clock = clock
        configuration.timeToLive = timeToLive
        return MemoryCache(configuration, weakReferences: weakReferences) { _ in 1 }
    }

    @Test func anEntryIsReturnedUntilItExpires() {
        let clock = ManualClock()
        let cache = makeCache(clock, timeToLive: .seconds(10))
        cache[1] = Token(1)
        cache.insert(Token(2), for: 2, timeToLive: .seconds(20))
        clock.advance(by: .seconds(10) - .nanoseconds(1))
        #expect(cache[1] != nil && cache.contains(1))
        clock.advance(by: .nanoseconds(1))
        #expect(!cache.contains(1))
        #expect(cache[1] == nil && cache[2] != nil)
        #expect(cache.statistics.evictions == [.expired: 1])
        #expect(cache.count == 1)
    }

    @Test func replacingAnEntryBeginsItsTimeAnew() {
        let clock = ManualClock()
        let cache = makeCache(clock, timeToLive: .seconds(10))
        cache[1] = Token(1)
        clock.advance(by: .seconds(9))
        cache[1] = Token(2)
        clock.advance(by: .seconds(9))
        #expect(cache[1]?.number == 2)
    }

    @Test func removingAnExpiredEntryReturnsNil() {
        let clock = ManualClock()
        let cache = makeCache(clock, timeToLive: .seconds(1))
        cache[1] = Token(1)
        clock.advance(by: .seconds(1))
        #expect(cache.remove(1) == nil && cache.count == 0)
    }

    @Test func aDeadlineBeyondTheClockNeverExpires() {
        let cache = makeCache(ManualClock(), timeToLive: .seconds(Int64.max))
        cache[1] = Token(1)
        #expect(cache[1] != nil)
    }

    @Test func expiredEntriesAreSweptWithoutALookUp() async throws {
        let clock = ManualClock()
        let cache = makeCache(clock)
        let evictions = cache.evictions
        for key in 0..<1_000 { cache.insert(Token(key), for: key, timeToLive: .seconds(key < 900 ? 61 : 500)) }
        try await clock.waitForSleepers(1)
        #expect(clock.nextDeadline?.offset == .seconds(61))
        clock.advance(by: .seconds(61))
        let told = await evictions.first(900).compactMap(\.eviction)
        #expect(Set(told.map(\.key)) == Set(0..<900) && told.allSatisfy { $0.reason == .expired })
        // The next sweep waits for the remaining entries, and there is none after the last.
        try await clock.waitForSleepers(1)
        #expect(clock.nextDeadline?.offset == .seconds(500))
        clock.advance(by: .seconds(500))
        _ = await evictions.first(100)
        #expect(cache.count == 0 && clock.sleeperCount == 0)
    }

    @Test func aSweepIsNotScheduledSoonerThanTheInterval() async throws {
        let clock = ManualClock()
        let cache = makeCache(clock)
        cache.insert(Token(1), for: 1, timeToLive: .seconds(1))
        try await clock.waitForSleepers(1)
        #expect(clock.nextDeadline?.offset == .seconds(60))
        #expect(cache.count == 1)
    }

    @Test func aCacheWithoutTimesToLiveSchedulesNothing() {
        let clock = ManualClock()
        let cache = makeCache(clock)
        for key in 0..<100 { cache[key] = Token(key) }
        #expect(clock.sleeperCount == 0 && cache.count == 100)
    }

    @Test func theEndOfTheCacheEndsItsSweep() async throws {
        let clock = ManualClock()
        var cache: MemoryCache<Int, Token>? = makeCache(clock, timeToLive: .seconds(100))
        cache?[1] = Token(1)
        try await clock.waitForSleepers(1)
        cache = nil
        while clock.sleeperCount > 0 { await Task.yield() }
    }

    @Test func anExpiredValueInUseIsNotFound() async {
        let clock = ManualClock()
        let cache = makeCache(clock, timeToLive: .seconds(10), weakReferences: .objects)
        let token = Token(1)
        cache[1] = token
        await cache.trim(toCost: 0)
        #expect(cache[1] === token)
        await cache.trim(toCost: 0)
        clock.advance(by: .seconds(10))
        #expect(cache[1] == nil)
    }
}
