import CacheTestSupport
import TernTesting
import Testing

@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Second level: look-ups", .timeLimit(.minutes(1))) struct SecondLevelCacheTests {
    private let key = CacheStoreKey(group: "images", name: "abc")
    private let value = SharedValue(received: Date(timeIntervalSince1970: 1_000), value: Data("value".utf8))
    private let now: @Sendable () -> Date = { Date(timeIntervalSince1970: 1_000) }

    /// A second level whose limits do not depend on the speed of the machine.
    private func level(_ store: any CacheStore) -> SecondLevelCache {
        var level = SecondLevelCache(store)
        level.timeLimit = .seconds(50)
        return level
    }

    /// A second level whose limits pass by a clock that the test sets.
    ///
    /// - Parameter timeLimit: Long where the test advances the clock again and again, which can happen during an
    ///   answer.
    private func level(_ store: any CacheStore, clock: ManualClock, timeLimit: Duration? = nil) -> SecondLevelCache {
        var level = SecondLevelCache(store)
        level.clock = clock
        if let timeLimit { level.timeLimit = timeLimit }
        return level
    }

    @Test func aMissIsReservedForOne() async throws {
        let store = TestStore()
        let level = level(store)
        #expect(await level.lookUp(key, reserves: false, now: now) == .missing(isReserved: false))
        #expect(store.reservations.isEmpty)
        #expect(await level.lookUp(key, reserves: true, now: now) == .missing(isReserved: true))
        #expect(store.reservations == [key])
        #expect(await level.insert(value, for: key, lifetime: .seconds(60)))
        #expect(store.reservations.isEmpty)
        #expect(await level.lookUp(key, reserves: true, now: now) == .found(value))
    }

    @Test func aLookUpWaitsForTheValueOfAnotherProcess() async throws {
        let store = TestStore()
        let level = level(store, clock: ManualClock(), timeLimit: .seconds(1_000_000))
        store.reservations = [key]
        let (clock, key, now) = (try #require(level.clock as? ManualClock), key, now)
        let lookUp = Task { await level.lookUp(key, reserves: true, now: now) }
        while store.reserveCount == 0 { await Task.yield() }
        store.values = [key: value.encoded(for: key)]
        while store.reserveCount == 1 {
            // Only while the look-up sleeps: otherwise its time could pass before it asks again. The limits on the
            // answers are far away.
            if let next = clock.nextDeadline, clock.now.duration(to: next) < .seconds(1) { clock.advance(to: next) }
            await Task.yield()
        }
        #expect(await lookUp.value == .found(value))
    }

    @Test func aLookUpWaitsForABoundedTime() async throws {
        let store = TestStore()
        let level = level(store, clock: ManualClock(), timeLimit: .seconds(1_000_000))
        store.reservations = [key]
        let (clock, key, now) = (try #require(level.clock as? ManualClock), key, now)
        let start = clock.now
        let lookUp = Task {
            let result = await level.lookUp(key, reserves: true, now: now)
            return (result, start.duration(to: clock.now))
        }
        let ended = Task { await lookUp.value }
        let pump = Task {
            while !Task.isCancelled {
                if clock.sleeperCount > 0 { clock.advance(by: .milliseconds(10)) }
                await Task.yield()
            }
        }
        let (result, time) = await ended.value
        pump.cancel()
        #expect(result == .missing(isReserved: false))
        #expect(time >= .milliseconds(1_500))
        #expect(store.reservations == [key])
    }

    @Test func aFailingStoreIsUnavailable() async throws {
        let level = level(TestStore(.error))
        #expect(await level.lookUp(key, reserves: true, now: now) == .unavailable)
        #expect(await level.insert(value, for: key, lifetime: .seconds(60)) == false)
        #expect(await level.remove(key) == false)
        let reason = try #require(await level.removeAll(inGroup: "images"))
        #expect(reason.contains("the test's store fails"))
    }

    @Test func aSilentStoreCostsItsTimeLimit() async throws {
        let store = TestStore(.silence)
        let clock = ManualClock()
        let level = level(store, clock: clock)
        let (key, now) = (key, now)
        let lookUp = Task { await level.lookUp(key, reserves: true, now: now) }
        try await clock.waitForSleepers(1)
        clock.advance(by: level.timeLimit)
        #expect(await lookUp.value == .unavailable)
        let removal = Task { await level.removeAll(inGroup: nil) }
        try await clock.waitForSleepers(1)
        clock.advance(by: level.waitLimit)
        #expect(await removal.value?.contains("did not answer") == true)
        store.answer()
    }

    @Test func aValueBeyondTheLimitIsNeitherStoredNorRead() async throws {
        let store = TestStore()
        var level = level(store)
        level.entryByteLimit = 1_000
        store.reservations = [key]
        let large = SharedValue(received: now(), value: Data(count: 1_000))
        #expect(await level.insert(large, for: key, lifetime: .seconds(60)) == false)
        #expect(store.values.isEmpty && store.reservations.isEmpty)
        store.values = [key: large.encoded(for: key)]
        #expect(await level.lookUp(key, reserves: false, now: now) == .missing(isReserved: false))
    }

    @Test func aDamagedValueIsRemovedAndFetched() async throws {
        let store = TestStore()
        store.values = [key: Data("anything".utf8)]
        #expect(await level(store).lookUp(key, reserves: true, now: now) == .missing(isReserved: true))
        #expect(store.values.isEmpty)
    }

    @Test func uploadsAreBoundedAndFinish() async throws {
        let uploads = SharedUploads()
        let gate = Gate()
        #expect(uploads.start(32 << 20) { await gate.wait() })
        #expect(!uploads.start(1) {})
        gate.open()
        await uploads.finish()
        #expect(uploads.start(1) {})
        await uploads.finish()
    }

    @Test func aDiskCacheIsAStore() async throws {
        try await withDiskFolder { folder in
            let time = TestTime()
            let disk = try await DiskCache(folder: folder, configuration: unlimited { $0.now = time.now })
            let store: any CacheStore = disk
            let (first, second) = (CacheStoreKey(group: "a", name: "b"), CacheStoreKey(group: "ab", name: ""))
            try await store.insert(Data("1".utf8), for: first, lifetime: .seconds(60))
            try await store.insert(Data("2".utf8), for: second, lifetime: .seconds(60))
            time.advance(20)
            let entry = try #require(try await store.entry(for: first))
            #expect(entry == CacheStoreEntry(value: Data("1".utf8), age: .seconds(20)))
            #expect(try await store.reserve(first, for: .seconds(1)) == .value(entry))
            try await store.removeAll(inGroup: "a")
            #expect(try await store.entry(for: first) == nil)
            #expect(try await store.reserve(first, for: .seconds(1)) == .granted)
            #expect(try await store.entry(for: second)?.value == Data("2".utf8))
            time.advance(41)
            #expect(try await store.entry(for: second) == nil)
            try await disk.close()
        }
    }
}

/// Lets tasks wait until it is opened.
private final class Gate: Sendable {
    private let stream = AsyncStream<Void>.makeStream()

    func open() { stream.continuation.finish() }

    func wait() async { for await _ in stream.stream {} }
}
