/// How much memory there is for this process, and how much of it a cache should take.
public struct MemoryBudget: Sendable, Hashable {
    /// The machine's memory, in bytes; nil where it is not told.
    public let physicalMemory: UInt64?
    /// The smallest limit of the process's control groups (Linux), in bytes; nil if there is none.
    public let groupLimit: UInt64?

    /// A budget of these two, in bytes.
    public init(physicalMemory: UInt64?, groupLimit: UInt64? = nil) {
        self.physicalMemory = physicalMemory
        self.groupLimit = groupLimit
    }

    /// What this process had when it was first asked for.
    public static let current = MemoryBudget.system()

    /// The memory that the process can have, in bytes: the smaller of the two; nil if neither is known.
    public var memory: UInt64? {
        switch (physicalMemory, groupLimit) {
        case (let physical?, let limit?): min(physical, limit)
        case (let memory?, nil), (nil, let memory?): memory
        case (nil, nil): nil
        }
    }

    /// The cost limit of a cache that says nothing else, in bytes: 15% of `memory`, at most 768 MiB; 64 MiB where it is
    /// not known.
    public var recommendedCost: Int {
        guard let memory else { return 64 << 20 }
        return Int(min(memory / 20 * 3, 768 << 20))
    }

    /// From what the files of Linux say.
    init(files: SystemFiles) {
        self.init(
            physicalMemory: files("/proc/meminfo").flatMap { MemoryInfo($0).total },
            groupLimit: files("/proc/self/cgroup").flatMap { ControlGroup($0).limit(files) })
    }
}

#if canImport(Darwin)
import Darwin

extension MemoryBudget {
    private static func system() -> MemoryBudget {
        var size: UInt64 = 0
        var length = MemoryLayout<UInt64>.size
        let result = unsafe sysctlbyname("hw.memsize", &size, &length, nil, 0)
        return MemoryBudget(physicalMemory: result == 0 ? size : nil)
    }
}
#else
extension MemoryBudget {
    private static func system() -> MemoryBudget { MemoryBudget(files: SystemDescriptor.contents) }
}
#endif
