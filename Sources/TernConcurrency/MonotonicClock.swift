#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A clock that never goes back, in nanoseconds. Reading it is one cheap call.
package enum MonotonicClock {
    package static func nanoseconds() -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

extension Duration {
    /// The duration in whole nanoseconds, clamped to 0 … `UInt64.max`.
    package var wholeNanoseconds: UInt64 {
        UInt64(clamping: attoseconds / 1_000_000_000)
    }
}
