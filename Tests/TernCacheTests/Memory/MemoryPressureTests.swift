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
        // Of entries alone, where nothing else is limited.
        #expect(
            response.action(at: .warning, cost: 9, count: 10, limits: MemoryCacheLimits(cost: .max, count: 640))
                == .trim(cost: 9, count: 10, .memoryPressure))
        var small = response
        small.small = 0
        #expect(
            small.action(at: .warning, cost: 10, count: 10, limits: limits)
                == .trim(cost: 5, count: 5, .memoryPressure))
    }

    @Test func aStallIsCriticalWhereMemoryIsShortAlone() {
        func files(_ available: Int, _ group: [String: String] = [:]) -> SystemFiles {
            { path in path == "/proc/meminfo" ? "MemTotal: 32000000 kB\nMemAvailable: \(available) kB" : group[path] }
        }
        #expect(MemoryShortage.stall(.critical, files(20_000_000)) == .warning)
        #expect(MemoryShortage.stall(.warning, files(20_000_000)) == .warning)
        #expect(MemoryShortage.stall(.critical, files(2_000_000)) == .critical)
        #expect(MemoryShortage.stall(.critical, { _ in nil }) == .critical)
        let group = [
            "/proc/self/cgroup": "0::/app", "/sys/fs/cgroup/app/memory.max": "1000",
            "/sys/fs/cgroup/app/memory.current": "990",
        ]
        #expect(MemoryShortage.stall(.critical, files(20_000_000, group)) == .critical)
    }

    @Test func theListenerDoesNotKeepTheCacheAndEndsWithIt() async {
        let pressure = ManualPressure()
        let ended = Waiter<Void>()
        pressure.continuation.onTermination = { _ in ended.resume() }
        var cache: MemoryCache<Int, Int>? = makeCache(pressure)
        weak let store = cache?.store
        #expect(store != nil)
        cache = nil
        #expect(store == nil)
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
}

@Suite struct MemoryBudgetTests {
    private static let meminfo = "MemTotal:       8000000 kB\nMemFree:  1 kB\nMemAvailable:   500000 kB\nHuge: 5\n"

    @Test func theBudgetIsAPartOfTheSmallerLimit() {
        #expect(MemoryBudget(physicalMemory: nil).recommendedCost == 64 << 20)
        #expect(MemoryBudget(physicalMemory: 2_000_000_000).recommendedCost == 300_000_000)
        #expect(MemoryBudget(physicalMemory: 64 << 30).recommendedCost == 768 << 20)
        #expect(MemoryBudget(physicalMemory: 64 << 30, groupLimit: 1_000_000_000).recommendedCost == 150_000_000)
        #expect(MemoryBudget(physicalMemory: nil, groupLimit: 1_000).recommendedCost == 150)
        #expect(MemoryBudget.current.recommendedCost > 0)
    }

    @Test func version2TakesTheSmallestLimitOfTheGroupAndThoseAboveIt() {
        let files = [
            "/proc/meminfo": Self.meminfo, "/proc/self/cgroup": "0::/user.slice/app.scope\n",
            "/sys/fs/cgroup/user.slice/app.scope/memory.max": "max\n",
            "/sys/fs/cgroup/user.slice/memory.max": "536870912\n",
        ]
        let budget = MemoryBudget { files[$0] }
        #expect(budget == MemoryBudget(physicalMemory: 8_192_000_000, groupLimit: 536_870_912))
    }

    @Test func inAContainerTheMountIsTheGroup() {
        let files = ["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "1073741824\n"]
        #expect(MemoryBudget { files[$0] }.groupLimit == 1 << 30)
    }

    @Test func version1IsReadAndItsUnlimitedIsNone() {
        let files = [
            "/proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n",
            "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "268435456\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        ]
        #expect(MemoryBudget { files[$0] }.groupLimit == 256 << 20)
        let unlimited = files.mapValues { $0 == "268435456\n" ? "9223372036854771712\n" : $0 }
        #expect(MemoryBudget { unlimited[$0] }.groupLimit == nil)
    }

    @Test func unreadableAndStrangeFilesAreNoFigures() {
        #expect(MemoryBudget { _ in nil } == MemoryBudget(physicalMemory: nil))
        #expect(MemoryBudget { _ in "\n:::\nMemTotal: x kB\n-1" } == MemoryBudget(physicalMemory: nil))
        #expect(MemoryInfo("MemTotal: 99999999999999999999 kB\nMemAvailable: 18446744073709551615 kB").total == nil)
    }

    @Test func shortagesAreToldByWhatIsFree() {
        #expect(MemoryShortage.group(used: 850, droppable: 0, limit: 1_000) == nil)
        #expect(MemoryShortage.group(used: 920, droppable: 0, limit: 1_000) == .warning)
        #expect(MemoryShortage.group(used: 1_000, droppable: 0, limit: 1_000) == .critical)
        #expect(MemoryShortage.group(used: 1_000, droppable: 500, limit: 1_000) == nil)
        #expect(MemoryShortage.group(used: 100, droppable: 500, limit: 1_000) == nil)
        #expect(MemoryShortage.machine(MemoryInfo(Self.meminfo)) == .warning)
        #expect(MemoryShortage.machine(MemoryInfo("MemTotal: 1000 kB\nMemAvailable: 200 kB")) == nil)
        #expect(MemoryShortage.machine(MemoryInfo("MemTotal: 1000 kB\nMemAvailable: 20 kB")) == .critical)
        #expect(MemoryShortage.machine(MemoryInfo("")) == nil)
        #expect(MemoryShortage.worst(.warning, .critical) == .critical)
        #expect(MemoryShortage.worst(nil, .warning) == .warning && MemoryShortage.worst(nil, nil) == nil)
    }

    @Test func eventsOfAGroupAreJudgedByWhatRose() {
        let old = GroupEvents("low 0\nhigh 3\nmax 5\noom 0\noom_kill 0\n")
        #expect(old.change(to: old) == nil)
        #expect(old.change(to: GroupEvents("high 4\nmax 5\noom 0\noom_kill 0")) == .atLimit)
        #expect(old.change(to: GroupEvents("high 3\nmax 6\noom 0\noom_kill 0")) == .atLimit)
        #expect(old.change(to: GroupEvents("high 4\nmax 6\noom 1\noom_kill 0")) == .outOfMemory)
        #expect(old.change(to: GroupEvents("high 3\nmax 5\noom 0\noom_kill 1")) == .outOfMemory)
        #expect(old.change(to: GroupEvents("")) == nil)
    }
}
