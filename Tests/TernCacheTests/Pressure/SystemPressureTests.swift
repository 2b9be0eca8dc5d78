#if canImport(Glibc)
import Glibc
import TernConcurrency
import TernTesting
import Testing

@testable import TernCache

/// Creates a kernel from files, of which some accept triggers.
private func system(
    _ files: [String: String], triggers: Set<String> = [], texts: @escaping @Sendable (Int32) -> String? = { _ in nil },
    run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { _ in }
) -> PressureSystem {
    PressureSystem(
        files: { files[$0] }, trigger: { path, _ in triggers.contains(path) ? 100 : nil },
        watch: { files[$0] == nil ? nil : 200 }, text: texts, run: run)
}

@Suite(.timeLimit(.minutes(1))) struct SystemPressureTests {
    private static let version2 = [
        "/proc/self/cgroup": "0::/app\n", "/sys/fs/cgroup/app/memory.events": "oom 0\n",
    ]
    private static let version1 = [
        "/proc/self/cgroup": "4:memory:/app\n0::/\n",
        "/sys/fs/cgroup/memory/app/memory.limit_in_bytes": "1000000\n",
        "/sys/fs/cgroup/memory/app/memory.usage_in_bytes": "990000\n",
        "/sys/fs/cgroup/memory/app/memory.stat": "cache 1\ntotal_inactive_file 10000\n",
        "/proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 500 kB\n",
    ]

    @Test func stallsAndEventsOfTheOwnGroupComeFirst() {
        let plan = PressurePlan(
            system(Self.version2, triggers: ["/sys/fs/cgroup/app/memory.pressure", "/proc/pressure/memory"]))
        #expect(
            plan.availability.signals == [
                .pressureStalls("/sys/fs/cgroup/app/memory.pressure"),
                .groupEvents("/sys/fs/cgroup/app/memory.events"),
            ])
        #expect(plan.availability.interval == nil && plan.availability.missing.isEmpty)
        #expect(plan.targets.count == 3)
    }

    @Test func theMachinesStallsReplaceThoseOfTheGroup() {
        let plan = PressurePlan(system(Self.version1, triggers: ["/proc/pressure/memory"]))
        #expect(plan.availability.signals == [.pressureStalls("/proc/pressure/memory")])
        #expect(plan.availability.missing.count == 1)
    }

    @Test func withoutNotificationsTheFiguresAreSampled() {
        let plan = PressurePlan(system(Self.version1))
        #expect(plan.availability.signals == [.groupUsage("/sys/fs/cgroup/memory/app"), .availableMemory])
        #expect(plan.availability.interval == .seconds(5) && plan.availability.isAvailable)
        #expect(plan.availability.missing.count == 2)
    }

    @Test func absenceIsReportedAndTheStreamEnds() async {
        let source = SystemMemoryPressure(system([:]), clock: ManualClock())
        #expect(!source.availability.isAvailable)
        #expect(source.availability.missing.count == 4)
        for await _ in source.levels { Issue.record("nothing can come") }
    }

    @Test func aSampleReportsAShortageOfTheGroup() async throws {
        let clock = ManualClock()
        let source = SystemMemoryPressure(system(Self.version1), clock: clock)
        async let levels = source.levels.first(2)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(5))
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(5))
        #expect(await levels == [.critical, .critical])
        #expect(clock.sleeperCount == 0)
    }

    @Test func aSampleWithoutShortageReportsNothing() {
        var files = Self.version1
        files["/sys/fs/cgroup/memory/app/memory.stat"] = "total_inactive_file 500000\n"
        let sampler = PressureSampler(
            groups: ["/sys/fs/cgroup/memory/app"], includesMachine: true, files: { [files] in files[$0] },
            clock: ManualClock())
        #expect(sampler.sample() == nil)
    }

    @Test func reportsOfDescriptorsAreInterpreted() {
        let kernel = system([
            "/g/memory.max": "1000", "/g/memory.current": "990", "/g/memory.stat": "inactive_file 20",
        ])
        var trigger = MonitoredFile(.trigger(1, .warning), text: { _ in nil })
        #expect(trigger.handle(Int16(POLLPRI), hasStalls: true, system: kernel) == .level(.warning))
        #expect(trigger.handle(Int16(POLLERR), hasStalls: true, system: kernel) == .removed)
        func report(_ text: String?, hasStalls: Bool) -> MonitoredFile.Report {
            var watch = MonitoredFile(.events(1, folder: "/g"), text: { _ in "max 1\noom 0" })
            var next = kernel
            next.text = { _ in text }
            return watch.handle(Int16(POLLPRI | POLLERR), hasStalls: hasStalls, system: next)
        }
        #expect(report("max 1\noom 1", hasStalls: true) == .level(.critical))
        #expect(report("max 2\noom 0", hasStalls: true) == .nothing)
        #expect(report("max 2\noom 0", hasStalls: false) == .level(.critical))
        #expect(report("max 1\noom 0", hasStalls: false) == .nothing)
        #expect(report(nil, hasStalls: false) == .removed)
    }

    @Test func theMonitorReportsUntilNoDescriptorIsLeft() async throws {
        // The writing end of a pipe without a reader has a permanent error: a descriptor that always reports.
        var ends: [Int32] = [0, 0]
        let made = unsafe pipe(&ends)
        #expect(made == 0)
        close(ends[0])
        let writer = ends[1]
        let texts = Lock(["oom 0", "oom 1", "oom 1", "oom 2"])
        var kernel = system(
            Self.version2,
            texts: { _ in texts.withLock { $0.isEmpty ? nil : $0.removeFirst() } }, run: PressureSystem.startThread)
        kernel.watch = { $0 == "/sys/fs/cgroup/app/memory.events" ? writer : nil }
        let source = SystemMemoryPressure(kernel, clock: ManualClock())
        var levels: [MemoryPressureLevel] = []
        for await level in source.levels { levels.append(level) }
        #expect(levels == [.critical, .critical])
        // A later stream ends at once, because nothing more can come.
        for await _ in source.levels { Issue.record("nothing can come") }
    }

    @Test func thisMachineIsMonitoredOrExplainsWhyNot() {
        let availability = SystemMemoryPressure.shared.availability
        #expect(availability.isAvailable || !availability.missing.isEmpty)
        #expect((MemoryBudget.current.physicalMemory ?? 0) > 0)
    }
}
#endif
