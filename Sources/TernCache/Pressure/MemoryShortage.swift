import TernConcurrency

/// Derives the level of memory pressure from figures. Pure.
enum MemoryShortage {
    /// Returns the level of a control group: a warning below a tenth of free memory, critical below a twentieth. Memory
    /// that the kernel can reclaim (inactive pages of files) counts as free.
    static func group(used: UInt64, reclaimable: UInt64, limit: UInt64) -> MemoryPressureLevel? {
        let working = used - min(used, reclaimable)
        return level(free: limit - min(limit, working), of: limit, warning: 10, critical: 20)
    }

    /// Returns the level of a machine: a warning below a tenth of available memory, critical below a thirtieth.
    static func machine(_ info: MemoryInfo) -> MemoryPressureLevel? {
        guard let total = info.total, let available = info.available else { return nil }
        return level(free: available, of: total, warning: 10, critical: 30)
    }

    /// Returns the level of a stall. A stall of all tasks is critical if the machine, or a control group of this
    /// process, is short of memory. If memory is free, another process stalls at its own limit, and the caches need not
    /// be emptied.
    static func stall(_ level: MemoryPressureLevel, files: SystemFileReader) -> MemoryPressureLevel {
        guard level == .critical, let info = MemoryInfo(files: files), info.available != nil else { return level }
        let groups = ControlGroup(files("/proc/self/cgroup") ?? "").version2
        let isShort = machine(info) != nil || groups.contains { ControlGroupMemory.version2($0, files: files) != nil }
        return isShort ? .critical : .warning
    }

    /// Returns the more severe of two levels.
    static func worst(_ left: MemoryPressureLevel?, _ right: MemoryPressureLevel?) -> MemoryPressureLevel? {
        if left == .critical || right == .critical { return .critical }
        return left ?? right
    }

    private static func level(
        free: UInt64, of total: UInt64, warning: UInt64, critical: UInt64
    ) -> MemoryPressureLevel? {
        if free < total / critical { return .critical }
        return free < total / warning ? .warning : nil
    }
}

/// The memory of one control group, from its files. Pure, except for reading them.
enum ControlGroupMemory {
    /// Returns the level in a folder of version 2; nil without a limit.
    static func version2(_ folder: String, files: SystemFileReader) -> MemoryPressureLevel? {
        let names = Names(used: "/memory.current", limit: "/memory.max", reclaimable: "inactive_file")
        return level(folder, files: files, names: names)
    }

    /// Returns the level in a folder of version 1; nil without a limit.
    static func version1(_ folder: String, files: SystemFileReader) -> MemoryPressureLevel? {
        let names = Names(
            used: "/memory.usage_in_bytes", limit: "/memory.limit_in_bytes", reclaimable: "total_inactive_file")
        return level(folder, files: files, names: names)
    }

    /// Returns whether a folder of version 1 has a limit, and reports the memory in use.
    static func hasVersion1Limit(_ folder: String, files: SystemFileReader) -> Bool {
        guard let limit = files(folder + "/memory.limit_in_bytes").flatMap(ControlGroup.number) else { return false }
        return limit < 1 << 62 && files(folder + "/memory.usage_in_bytes") != nil
    }

    /// The names of the files, and of a line in `memory.stat`.
    private struct Names {
        let used: String
        let limit: String
        let reclaimable: Substring
    }

    private static func level(_ folder: String, files: SystemFileReader, names: Names) -> MemoryPressureLevel? {
        guard let limit = files(folder + names.limit).flatMap(ControlGroup.number), limit < 1 << 62,
            let used = files(folder + names.used).flatMap(ControlGroup.number)
        else { return nil }
        let lines = (files(folder + "/memory.stat") ?? "").split(separator: "\n").map { $0.split(separator: " ") }
        let reclaimable = lines.first { $0.first == names.reclaimable }?.last.flatMap { UInt64($0) } ?? 0
        return MemoryShortage.group(used: used, reclaimable: reclaimable, limit: limit)
    }
}

/// The counters of a control group's `memory.events` (version 2). Pure.
struct ControlGroupEvents: Hashable {
    private var counts: [Substring: UInt64] = [:]

    init(_ text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2, let count = UInt64(words[1]) { counts[words[0]] = count }
        }
    }

    /// Returns the event between the counters of `self` and newer ones.
    ///
    /// `oom` and `oom_kill` are critical. `high` and `max` alone are no pressure: a group whose page cache has filled
    /// its limit counts them all the time.
    func change(to new: ControlGroupEvents) -> Change? {
        if new.exceeds(self, "oom") || new.exceeds(self, "oom_kill") { return .outOfMemory }
        return new.exceeds(self, "high") || new.exceeds(self, "max") ? .atLimit : nil
    }

    enum Change: Hashable {
        /// The group reached its limit. Its use without the page cache decides whether that is pressure.
        case atLimit
        case outOfMemory
    }

    private func exceeds(_ old: ControlGroupEvents, _ name: Substring) -> Bool {
        (counts[name] ?? 0) > (old.counts[name] ?? 0)
    }
}

/// Reads figures periodically, for one listener, where the kernel does not notify. Each reading that finds a shortage
/// reports it again, so that caches continue to free memory.
struct PressureSampler: Sendable {
    let groups: [String]
    let includesMachine: Bool
    let files: SystemFileReader
    let clock: any Clock<Duration>
    var interval = Duration.seconds(5)

    func stream() -> AsyncStream<MemoryPressureLevel> {
        AsyncStream { await next() }
    }

    /// Returns the next level, or nil when the listener is cancelled.
    private func next() async -> MemoryPressureLevel? {
        while true {
            do { try await clock.sleepWithoutDescriptor(for: interval) } catch { return nil }
            if let level = sample() { return level }
        }
    }

    func sample() -> MemoryPressureLevel? {
        let levels = groups.map { ControlGroupMemory.version1($0, files: files) }
        let machine = includesMachine ? MemoryInfo(files: files).flatMap(MemoryShortage.machine) : nil
        return levels.reduce(machine, MemoryShortage.worst)
    }
}
