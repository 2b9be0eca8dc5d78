#if os(Linux)
import Glibc

/// Tells whether all processors have work, from the number of threads that can run (/proc/loadavg). Confined to the
/// loop's thread.
package struct ProcessorLoad {
    /// The time in nanoseconds for which an answer counts.
    private static let lifetime: UInt64 = 5_000_000

    private let processors = Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    private lazy var descriptor = unsafe open("/proc/loadavg", O_RDONLY | O_CLOEXEC)
    private var nextLook: UInt64 = 0
    private var isBusy = true

    package init() {}

    /// Returns whether as many threads as processors can run, the calling one included; true if that is not known.
    package mutating func areBusy(now: UInt64) -> Bool {
        guard now >= nextLook else { return isBusy }
        nextLook = now + Self.lifetime
        isBusy = processors < 2 || (runnable() ?? .max) >= processors
        return isBusy
    }

    private mutating func runnable() -> Int? {
        let descriptor = descriptor
        guard descriptor >= 0 else { return nil }
        var line = [UInt8](repeating: 0, count: 128)
        let count = unsafe line.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, 0) }
        return count > 0 ? Self.runnable(in: line[..<count]) : nil
    }

    /// Returns the number of threads that can run, from a line such as "0.42 0.38 0.21 2/345 6789".
    package static func runnable(in line: ArraySlice<UInt8>) -> Int? {
        let fields = line.split(separator: UInt8(ascii: " "))
        guard fields.count > 3 else { return nil }
        return Int(String(decoding: fields[3].prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self))
    }
}
#endif
