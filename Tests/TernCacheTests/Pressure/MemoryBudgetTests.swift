import Testing

@testable import TernCache

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

    @Test func invalidFilesGiveNoFigures() {
        #expect(MemoryBudget { _ in nil } == MemoryBudget(physicalMemory: nil))
        #expect(MemoryBudget { _ in "\n:::\nMemTotal: x kB\n-1" } == MemoryBudget(physicalMemory: nil))
        #expect(MemoryInfo("MemTotal: 99999999999999999999 kB\nMemAvailable: 18446744073709551615 kB").total == nil)
    }

    @Test func freeMemoryDeterminesTheShortage() {
        #expect(MemoryShortage.group(used: 850, reclaimable: 0, limit: 1_000) == nil)
        #expect(MemoryShortage.group(used: 920, reclaimable: 0, limit: 1_000) == .warning)
        #expect(MemoryShortage.group(used: 1_000, reclaimable: 0, limit: 1_000) == .critical)
        #expect(MemoryShortage.group(used: 1_000, reclaimable: 500, limit: 1_000) == nil)
        #expect(MemoryShortage.group(used: 100, reclaimable: 500, limit: 1_000) == nil)
        #expect(MemoryShortage.machine(MemoryInfo(Self.meminfo)) == .warning)
        #expect(MemoryShortage.machine(MemoryInfo("MemTotal: 1000 kB\nMemAvailable: 200 kB")) == nil)
        #expect(MemoryShortage.machine(MemoryInfo("MemTotal: 1000 kB\nMemAvailable: 20 kB")) == .critical)
        #expect(MemoryShortage.machine(MemoryInfo("")) == nil)
        #expect(MemoryShortage.worst(.warning, .critical) == .critical)
        #expect(MemoryShortage.worst(nil, .warning) == .warning && MemoryShortage.worst(nil, nil) == nil)
    }

    @Test func risingCountersAreTheEventsOfAGroup() {
        let old = ControlGroupEvents("low 0\nhigh 3\nmax 5\noom 0\noom_kill 0\n")
        #expect(old.change(to: old) == nil)
        #expect(old.change(to: ControlGroupEvents("high 4\nmax 5\noom 0\noom_kill 0")) == .atLimit)
        #expect(old.change(to: ControlGroupEvents("high 3\nmax 6\noom 0\noom_kill 0")) == .atLimit)
        #expect(old.change(to: ControlGroupEvents("high 4\nmax 6\noom 1\noom_kill 0")) == .outOfMemory)
        #expect(old.change(to: ControlGroupEvents("high 3\nmax 5\noom 0\noom_kill 1")) == .outOfMemory)
        #expect(old.change(to: ControlGroupEvents("")) == nil)
    }
}
