/// Decides whether a loop that waits for responses polls for a short time before it sleeps. Pure.
///
/// A sleeping thread on a halted processor needs some tens of microseconds to wake up, which is longer than a server on
/// the same machine or network needs for its response. A loop polls only while that was so lately: each poll in vain
/// counts against the next one.
package struct PollPolicy {
    /// The longest time of a poll in nanoseconds.
    package static let limit: UInt64 = 50_000
    /// A sleep that ends within this time in nanoseconds could have been a poll.
    package static let shortSleep: UInt64 = 150_000
    private static let mostCredit = 8

    private var credit = 0

    package init() {}

    /// Whether the next event will probably come during a poll.
    package var isWorthwhile: Bool {
        #if TERN_NO_POLLING
        false
        #else
        credit > 0
        #endif
    }

    /// Takes account of a poll.
    package mutating func polled(found: Bool) { credit = found ? min(credit + 1, Self.mostCredit) : max(credit - 2, 0) }

    /// Takes account of a sleep, whose time is in nanoseconds.
    package mutating func slept(for time: UInt64) {
        if time <= Self.shortSleep { credit = min(credit + 1, Self.mostCredit) }
    }
}
