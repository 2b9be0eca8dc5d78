import TernConcurrency
import TernJSON

/// The time at which decoding has to end, for code that can look at it.
enum DecodingLimit {
    /// In nanoseconds of `MonotonicClock`; nil for no limit.
    @TaskLocal static var deadline: UInt64?

    /// The error of a value that was not decoded in time.
    struct Passed: Error {}

    /// Decodes a value. Throws ``Passed`` if it is not done at the deadline.
    static func withDeadline<Value>(_ deadline: UInt64, _ decode: () throws -> Value) throws -> Value {
        try $deadline.withValue(deadline) {
            // The decoder of JSON calls it from time to time.
            let value = try DecodingCheckpoint.$check.withValue(check, operation: decode)
            try check()
            return value
        }
    }

    /// Throws if the deadline has passed.
    @Sendable private static func check() throws { if hasPassed { throw Passed() } }

    static var hasPassed: Bool { deadline.map { MonotonicClock.nanoseconds() > $0 } ?? false }
}
