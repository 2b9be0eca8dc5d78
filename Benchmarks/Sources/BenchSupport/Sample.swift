#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(Glibc)
private let processItself = __rusage_who_t(RUSAGE_SELF.rawValue)
#else
private let processItself = RUSAGE_SELF
#endif

/// A point in time: wall clock and the processor time of this process, in seconds.
public struct Sample: Sendable {
    /// The monotonic clock.
    public var wall: Double
    /// The processor time.
    public var cpu: Double

    /// Returns the present point.
    public static func now() -> Sample {
        var time = timespec()
        var usage = rusage()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        unsafe getrusage(processItself, &usage)
        let cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime)
        return Sample(wall: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9, cpu: cpu)
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) / 1e6
    }
}

/// The most memory this process held, in MiB.
///
/// On Linux VmHWM: `ru_maxrss` would also count what the parent held when it forked.
public func peakResidentMiB() -> Double {
    #if canImport(Glibc)
    guard let status = unsafe fopen("/proc/self/status", "r") else { return 0 }
    defer { unsafe _ = fclose(status) }
    var line = [CChar](repeating: 0, count: 256)
    while unsafe fgets(&line, 256, status) != nil {
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard text.hasPrefix("VmHWM:") else { continue }
        return (Double(text.dropFirst(6).filter(\.isNumber)) ?? 0) / 1024
    }
    return 0
    #else
    var usage = rusage()
    unsafe getrusage(processItself, &usage)
    return Double(usage.ru_maxrss) / 1_048_576
    #endif
}

/// Writes a line to standard error.
public func complain(_ text: String) {
    let bytes = Array((text + "\n").utf8)
    _ = unsafe write(2, bytes, bytes.count)
}

/// Bytes of the file, 0 when there is none.
public func fileSize(_ path: String) -> Int {
    var information = stat()
    return unsafe stat(path, &information) == 0 ? Int(information.st_size) : 0
}
