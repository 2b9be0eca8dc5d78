#if canImport(Glibc)
import Glibc
import TernConcurrency
import TernTesting
import Testing

@testable import TernCache

/// A kernel made of files, and of triggers that some of them take.
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
        #expect(plan.watched.count == 3)
    }

    @Test func theMachinesStallsStandInForTheGroups() {
        let plan = PressurePlan(system(Self.version1, triggers: ["/proc/pressure/memory"]))
        #expect(plan.availability.signals == [.pressureStalls("/proc/pressure/memory")])
        #expect(plan.availability.missing.count == 1)
    }

    @Test func withoutNoticesTheFiguresAreLookedAt() {
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

    @Test func aLookTellsAShortageOfTheGroup() async throws {
        let clock = ManualClock()
        let source = SystemMemoryPressure(system(Self.version1), clock: clock)
        async let told = source.levels.first(2)
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(5))
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(5))
        #expect(await told == [.critical, .critical])
        #expect(clock.sleeperCount == 0)
    }

    @Test func noShortageTellsNothing() {
        var files = Self.version1
        files["/sys/fs/cgroup/memory/app/memory.stat"] = "total_inactive_file 500000\n"
        let sampler = PressureSampler(
            groups: ["/sys/fs/cgroup/memory/app"], machine: true, files: { [files] in files[$0] },
            clock: ManualClock())
        #expect(sampler.look() == nil)
    }

    @Test func whatADescriptorSaysIsUnderstood() {
        let kernel = system([
            "/g/memory.max": "1000", "/g/memory.current": "990", "/g/memory.stat": "inactive_file 20",
        ])
        var trigger = Watch(.trigger(1, .warning), text: { _ in nil })
        #expect(trigger.heard(Int16(POLLPRI), hasStalls: true, kernel) == .level(.warning))
        #expect(trigger.heard(Int16(POLLERR), hasStalls: true, kernel) == .gone)
        func heard(_ text: String?, hasStalls: Bool) -> Watch.Answer {
            var watch = Watch(.events(1, folder: "/g"), text: { _ in "max 1\noom 0" })
            var next = kernel
            next.text = { _ in text }
            return watch.heard(Int16(POLLPRI | POLLERR), hasStalls: hasStalls, next)
        }
        #expect(heard("max 1\noom 1", hasStalls: true) == .level(.critical))
        #expect(heard("max 2\noom 0", hasStalls: true) == .nothing)
        #expect(heard("max 2\noom 0", hasStalls: false) == .level(.critical))
        #expect(heard("max 1\noom 0", hasStalls: false) == .nothing)
        #expect(heard(nil, hasStalls: false) == .gone)
    }

    @Test func theThreadTellsWhatItHearsUntilNothingIsLeft() async throws {
        // The writing end of a pipe without a reader has an error for ever: a descriptor that always speaks.
        var ends: [Int32] = [0, 0]
        let made = unsafe pipe(&ends)
        #expect(made == 0)
        close(ends[0])
        let writer = ends[1]
        let texts = Lock(["oom 0", "oom 1", "oom 1", "oom 2"])
        var kernel = system(
            Self.version2,
            texts: { _ in texts.withLock { $0.isEmpty ? nil : $0.removeFirst() } }, run: PressureThread.run)
        kernel.watch = { $0 == "/sys/fs/cgroup/app/memory.events" ? writer : nil }
        let source = SystemMemoryPressure(kernel, clock: ManualClock())
        var levels: [MemoryPressureLevel] = []
        for await level in source.levels { levels.append(level) }
        #expect(levels == [.critical, .critical])
        // Who comes later is told at once that nothing more can come.
        for await _ in source.levels { Issue.record("nothing can come") }
    }

    @Test func thisMachineIsListenedToOrSaysWhyNot() {
        let availability = SystemMemoryPressure.shared.availability
        #expect(availability.isAvailable || !availability.missing.isEmpty)
        #expect((MemoryBudget.current.physicalMemory ?? 0) > 0)
    }
}
#endif
