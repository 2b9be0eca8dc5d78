/// What figures of memory mean. Pure.
enum MemoryShortage {
    /// A control group of which less than a tenth is free is short, less than a twentieth critically so. What the kernel
    /// can drop (inactive pages of files) is free.
    static func group(used: UInt64, droppable: UInt64, limit: UInt64) -> MemoryPressureLevel? {
        let working = used - min(used, droppable)
        return level(free: limit - min(limit, working), of: limit, warning: 10, critical: 20)
    }

    /// A machine that has less than a tenth of its memory available is short, less than a thirtieth critically so.
    static func machine(_ info: MemoryInfo) -> MemoryPressureLevel? {
        guard let total = info.total, let available = info.available else { return nil }
        return level(free: available, of: total, warning: 10, critical: 30)
    }

    /// Returns the level of a stall. A stall of all tasks is critical if the machine, or a control group of this
    /// process, is short of memory. If memory is free, another process stalls at its own limit, and the caches need not
    /// be emptied.
    static func stall(_ level: MemoryPressureLevel, _ files: SystemFiles) -> MemoryPressureLevel {
        guard level == .critical, let info = files("/proc/meminfo").map({ MemoryInfo($0) }), info.available != nil
        else {
            return level
        }
        let groups = ControlGroup(files("/proc/self/cgroup") ?? "").version2
        let isShort = machine(info) != nil || groups.contains { GroupMemory.version2($0, files) != nil }
        return isShort ? .critical : .warning
    }

    /// The graver of two.
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

/// The state of one control group's memory, from its files. Pure but for the reading.
enum GroupMemory {
    /// The shortage in a folder of version 2; nil without a limit.
    static func version2(_ folder: String, _ files: SystemFiles) -> MemoryPressureLevel? {
        level(folder, files, used: "/memory.current", limit: "/memory.max", droppable: "inactive_file")
    }

    /// The shortage in a folder of version 1; nil without a limit.
    static func version1(_ folder: String, _ files: SystemFiles) -> MemoryPressureLevel? {
        level(
            folder, files, used: "/memory.usage_in_bytes", limit: "/memory.limit_in_bytes",
            droppable: "total_inactive_file")
    }

    /// Whether a folder of version 1 has a limit, and tells what is used.
    static func hasVersion1Limit(_ folder: String, _ files: SystemFiles) -> Bool {
        guard let limit = files(folder + "/memory.limit_in_bytes").flatMap(ControlGroup.number) else { return false }
        return limit < 1 << 62 && files(folder + "/memory.usage_in_bytes") != nil
    }

    private static func level(
        _ folder: String, _ files: SystemFiles, used: String, limit: String, droppable: Substring
    ) -> MemoryPressureLevel? {
        guard let limit = files(folder + limit).flatMap(ControlGroup.number), limit < 1 << 62,
            let used = files(folder + used).flatMap(ControlGroup.number)
        else { return nil }
        let lines = (files(folder + "/memory.stat") ?? "").split(separator: "\n").map { $0.split(separator: " ") }
        let spare = lines.first { $0.first == droppable }?.last.flatMap { UInt64($0) } ?? 0
        return MemoryShortage.group(used: used, droppable: spare, limit: limit)
    }
}
