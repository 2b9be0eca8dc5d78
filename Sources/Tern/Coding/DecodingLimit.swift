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
            // JSON is looked at from time to time.
            let value = try DecodingCheckpoint.$check.withValue({ try check() }, operation: decode)
            if hasPassed { throw Passed() }
            return value
        }
    }

    /// Throws if the current task is cancelled, or the deadline has passed.
    static func check() throws {
        try Task.checkCancellation()
        if hasPassed { throw Passed() }
    }

    static var hasPassed: Bool { deadline.map { MonotonicClock.nanoseconds() > $0 } ?? false }
}
