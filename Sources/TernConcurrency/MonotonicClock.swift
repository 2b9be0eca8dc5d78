#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Nanoseconds of a clock that never goes back: one cheap call, read once per loop turn.
package enum MonotonicClock {
    package static func nanoseconds() -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

extension Duration {
    /// Whole nanoseconds, at most what 64 bits hold.
    package var wholeNanoseconds: UInt64 {
        UInt64(clamping: attoseconds / 1_000_000_000)
    }
}
