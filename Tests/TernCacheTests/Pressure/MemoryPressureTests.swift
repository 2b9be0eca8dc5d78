import TernConcurrency
import TernTesting
import Testing

@testable import TernCache

@Suite(.timeLimit(.minutes(1))) struct MemoryPressureTests {
    private func makeCache(_ pressure: ManualPressure) -> MemoryCache<Int, Int> {
        var configuration = MemoryCacheConfiguration.quiet(cost: 1_000, policy: .lru)
        configuration.pressure = pressure
        return MemoryCache(configuration) { _ in 1 }
    }

    @Test func eachLevelFreesItsPart() async {
        let pressure = ManualPressure()
        let cache = makeCache(pressure)
        let evictions = cache.evictions
        for key in 0..<800 { cache[key] = key }
        pressure.continuation.yield(.warning)
        _ = await evictions.first(400)
        #expect(cache.totalCost == 400)
        pressure.continuation.yield(.background)
        let reasons = await evictions.first(300).map { $0.eviction?.reason }
        #expect(Set(reasons) == [.background])
        #expect(cache.totalCost == 100)
        pressure.continuation.yield(.critical)
        _ = await evictions.first(100)
        #expect(cache.count == 0)
        #expect(cache.statistics.evictions == [.memoryPressure: 500, .background: 300])
    }

    @Test func lastingWarningsLeaveASmallCacheItsShare() {
        let response = MemoryPressureResponse()
        let limits = MemoryCacheLimits(cost: 640 << 20)
        var (cost, count) = (13 << 20, 300)
        for _ in 0..<20 {
            guard
                case .trim(let less, let fewer, .memoryPressure) =
                    response.action(at: .warning, cost: cost, count: count, limits: limits)
            else {
                Issue.record("emptied")
                return
            }
            (cost, count) = (less, fewer)
        }
        #expect(cost > 9 << 20 && count > 200)
        // Only the number of entries is limited.
        #expect(
            response.action(at: .warning, cost: 9, count: 10, limits: MemoryCacheLimits(cost: .max, count: 640))
                == .trim(cost: 9, count: 10, .memoryPressure))
        var small = response
        small.minimumKept = 0
        #expect(
            small.action(at: .warning, cost: 10, count: 10, limits: limits)
                == .trim(cost: 5, count: 5, .memoryPressure))
    }

    @Test func aStallIsCriticalOnlyIfMemoryIsShort() {
        func files(_ available: Int, _ group: [String: String] = [:]) -> SystemFileReader {
            { path in path == "/proc/meminfo" ? "MemTotal: 32000000 kB\nMemAvailable: \(available) kB" : group[path] }
        }
        #expect(MemoryShortage.stall(.critical, files: files(20_000_000)) == .warning)
        #expect(MemoryShortage.stall(.warning, files: files(20_000_000)) == .warning)
        #expect(MemoryShortage.stall(.critical, files: files(2_000_000)) == .critical)
        #expect(MemoryShortage.stall(.critical, files: { _ in nil }) == .critical)
        let group = [
            "/proc/self/cgroup": "0::/app", "/sys/fs/cgroup/app/memory.max": "1000",
            "/sys/fs/cgroup/app/memory.current": "990",
        ]
        #expect(MemoryShortage.stall(.critical, files: files(20_000_000, group)) == .critical)
    }

    @Test func theListenerDoesNotKeepTheCacheAndEndsWithIt() async {
        let pressure = ManualPressure()
        let ended = Waiter<Void>()
        pressure.continuation.onTermination = { _ in ended.resume() }
        var cache: MemoryCache<Int, Int>? = makeCache(pressure)
        weak let held = cache
        #expect(held != nil)
        cache = nil
        #expect(held == nil)
        await ended.wait()
    }

    @Test func theResponseIsBoundedAndCountsToo() {
        let response = MemoryPressureResponse(warning: 1.5, critical: -1, background: .nan)
        let limits = MemoryCacheLimits(cost: .max, count: 50)
        #expect(
            response.action(at: .warning, cost: 10, count: 4, limits: limits)
                == .trim(cost: 10, count: 4, .memoryPressure))
        #expect(response.action(at: .critical, cost: 10, count: 4, limits: limits) == .empty(.memoryPressure))
        #expect(response.action(at: .background, cost: 10, count: 4, limits: limits) == .empty(.background))
        #expect(
            MemoryPressureResponse().action(at: .background, cost: 9, count: 4, limits: limits)
                == .trim(cost: Int((Double(Int.max) * 0.1).rounded(.down)), count: 5, .background))
    }

    @Test func aSlowReaderReceivesTheLatestLevels() async {
        let broadcast = EventBroadcast<MemoryPressureLevel>()
        let stream = broadcast.stream()
        for _ in 0..<10 { broadcast.send(.critical) }
        for _ in 0..<10 { broadcast.send(.warning) }
        broadcast.finish()
        var levels: [MemoryPressureLevel] = []
        for await level in stream { levels.append(level) }
        #expect(levels == Array(repeating: .critical, count: 6) + Array(repeating: .warning, count: 10))
        for await _ in broadcast.stream() { Issue.record("a finished broadcast sends nothing") }
    }

    @Test func aReleasedStreamEndsItsSubscription() {
        let broadcast = EventBroadcast<MemoryPressureLevel>()
        #expect(!broadcast.hasSubscribers)
        do {
            let stream = broadcast.stream()
            #expect(broadcast.hasSubscribers)
            withExtendedLifetime(stream) {}
        }
        broadcast.send(.warning)
        #expect(!broadcast.hasSubscribers)
    }
}
