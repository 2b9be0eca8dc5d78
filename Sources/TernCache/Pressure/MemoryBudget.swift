#if canImport(Darwin)
import Darwin
#endif

/// The memory that this process can use, and the part of it that a cache should take.
public struct MemoryBudget: Sendable, Hashable {
    /// The machine's memory, in bytes; nil if it is unknown.
    public let physicalMemory: UInt64?
    /// The smallest limit of the process's control groups (Linux), in bytes; nil if there is none.
    public let groupLimit: UInt64?

    /// Creates a budget from both values, in bytes.
    public init(physicalMemory: UInt64?, groupLimit: UInt64? = nil) {
        self.physicalMemory = physicalMemory
        self.groupLimit = groupLimit
    }

    /// The budget of this process when it was first read.
    public static let current = MemoryBudget.system()

    /// The memory that the process can have, in bytes: the smaller of the two values; nil if neither is known.
    public var memory: UInt64? {
        switch (physicalMemory, groupLimit) {
        case (let physical?, let limit?): min(physical, limit)
        case (let memory?, nil), (nil, let memory?): memory
        case (nil, nil): nil
        }
    }

    /// The default cost limit of a cache, in bytes: 15% of `memory`, at most 768 MiB; 64 MiB if it is unknown.
    public var recommendedCost: Int {
        guard let memory else { return 64 << 20 }
        return Int(min(memory / 20 * 3, 768 << 20))
    }

    /// Creates a budget from the files of Linux.
    init(files: SystemFileReader) {
        self.init(
            physicalMemory: MemoryInfo(files: files)?.total,
            groupLimit: files("/proc/self/cgroup").flatMap { ControlGroup($0).limit(files) })
    }

    #if canImport(Darwin)
    private static func system() -> MemoryBudget {
        var size: UInt64 = 0
        var length = MemoryLayout<UInt64>.size
        let result = unsafe sysctlbyname("hw.memsize", &size, &length, nil, 0)
        return MemoryBudget(physicalMemory: result == 0 ? size : nil)
    }
    #else
    private static func system() -> MemoryBudget { MemoryBudget(files: SystemDescriptor.contents) }
    #endif
}

/// Returns the text of a system file by its path; nil if it does not exist or is not readable. Tests replace it.
typealias SystemFileReader = @Sendable (_ path: String) -> String?

/// The figures of `/proc/meminfo`, in bytes (proc_meminfo(5); the file counts in KiB).
package struct MemoryInfo: Hashable, Sendable {
    package private(set) var total: UInt64?
    package private(set) var available: UInt64?

    /// The figures of this machine now; nil where the system has no such file.
    package static var current: MemoryInfo? {
        #if canImport(Darwin)
        nil
        #else
        MemoryInfo(files: SystemDescriptor.contents)
        #endif
    }

    init?(files: SystemFileReader) {
        guard let text = files("/proc/meminfo") else { return nil }
        self.init(text)
    }

    package init(_ text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 2, let kibibytes = UInt64(words[1]) else { continue }
            let (bytes, overflows) = kibibytes.multipliedReportingOverflow(by: 1_024)
            guard !overflows else { continue }
            switch words[0] {
            case "MemTotal:": total = bytes
            case "MemAvailable:": available = bytes
            default: break
            }
        }
    }
}

/// The folders in which the control groups of this process keep their memory files (cgroups(7), `/proc/self/cgroup`).
///
/// The mount points are those that systemd and the container runtimes use. In a container, the path that the kernel
/// reports may be outside of the mount. Then the root of the mount is the process's own group. Every folder from the
/// own group up to the root counts, because the limit of each of them holds.
struct ControlGroup: Hashable {
    /// The folders of version 2, including the hybrid layout, with the own group first.
    var version2: [String] = []
    /// The folders of version 1's memory controller, with the own group first.
    var version1: [String] = []

    /// - Parameter text: The contents of `/proc/self/cgroup`.
    init(_ text: String) {
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            let ancestors = Self.ancestors(parts[2])
            if parts[0] == "0", parts[1].isEmpty {
                version2 = ancestors.map { "/sys/fs/cgroup" + $0 } + ancestors.map { "/sys/fs/cgroup/unified" + $0 }
            } else if parts[1].split(separator: ",").contains("memory") {
                version1 = ancestors.map { "/sys/fs/cgroup/memory" + $0 }
            }
        }
    }

    /// Returns "/a/b", "/a" and "" for "/a/b".
    private static func ancestors(_ path: Substring) -> [String] {
        var names = path.split(separator: "/")
        var result: [String] = []
        while !names.isEmpty {
            result.append("/" + names.joined(separator: "/"))
            names.removeLast()
        }
        return result + [""]
    }

    /// Returns the smallest memory limit of the process, in bytes; nil if no group has one. "max" is no limit; version
    /// 1 writes a number near 2⁶³ for no limit.
    func limit(_ files: SystemFileReader) -> UInt64? {
        let texts = version2.map { files($0 + "/memory.max") } + version1.map { files($0 + "/memory.limit_in_bytes") }
        return texts.compactMap { $0.flatMap(Self.number) }.filter { $0 < 1 << 62 }.min()
    }

    /// Returns the number in the text of a file that holds one number.
    static func number(_ text: String) -> UInt64? {
        UInt64(text.split(whereSeparator: \.isWhitespace).first ?? "")
    }
}
