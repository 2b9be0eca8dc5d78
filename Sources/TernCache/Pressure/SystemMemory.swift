/// The text of the files in which Linux tells of memory, by their paths; nil for one that is not there or not readable.
/// The seam between what is read and what is made of it.
typealias SystemFiles = @Sendable (_ path: String) -> String?

/// The figures of `/proc/meminfo`, in bytes (proc_meminfo(5); the file counts in KiB).
struct MemoryInfo: Hashable {
    var total: UInt64?
    var available: UInt64?

    init(_ text: String) {
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

/// Where the control groups of this process keep their files on memory (cgroups(7), `/proc/self/cgroup`).
///
/// The mount points are those that systemd and the container runtimes use. In a container the path that the kernel names
/// may be outside of what is mounted: then the mount's root is the process's own group. Every folder from the own group up
/// to the root counts, as a limit of any of them holds.
struct ControlGroup: Hashable {
    /// Folders of version 2, the own group first; of the hybrid layout too.
    var version2: [String] = []
    /// Folders of version 1's memory controller, the own group first.
    var version1: [String] = []

    /// - Parameter text: the contents of `/proc/self/cgroup`.
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

    /// "/a/b" → "/a/b", "/a", "".
    private static func ancestors(_ path: Substring) -> [String] {
        var names = path.split(separator: "/")
        var result: [String] = []
        while !names.isEmpty {
            result.append("/" + names.joined(separator: "/"))
            names.removeLast()
        }
        return result + [""]
    }

    /// The smallest limit on the memory of the process, in bytes; nil if no group has one. What is not a number ("max")
    /// is none; version 1 writes a number near 2⁶³ for none.
    func limit(_ files: SystemFiles) -> UInt64? {
        let texts = version2.map { files($0 + "/memory.max") } + version1.map { files($0 + "/memory.limit_in_bytes") }
        return texts.compactMap { $0.flatMap(Self.number) }.filter { $0 < 1 << 62 }.min()
    }

    /// A file that holds one number.
    static func number(_ text: String) -> UInt64? {
        UInt64(text.split(whereSeparator: \.isWhitespace).first ?? "")
    }
}
