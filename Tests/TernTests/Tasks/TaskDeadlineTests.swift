import Testing

@testable import Tern

@Suite("TaskDeadline")
struct TaskDeadlineTests {
    private func at(_ seconds: Double) -> UInt64 { UInt64(seconds * 1e9) }

    @Test func timeIsLeftUntilTheLimit() {
        let deadline = TaskDeadline(.seconds(2), now: at(10))
        #expect(deadline.left(at(10)) == .seconds(2))
        #expect(deadline.left(at(11.5)) == .milliseconds(500))
        #expect(deadline.left(at(12)) == .zero && deadline.left(at(99)) == .zero)
        // A clock that stands before the start counts as one at the start.
        #expect(deadline.left(at(9)) == .seconds(2))
    }

    @Test func pausesDoNotCount() {
        var deadline = TaskDeadline(.seconds(2), now: at(10))
        deadline.pause(at(11))
        deadline.pause(at(12))
        #expect(deadline.left(at(20)) == .seconds(1))
        deadline.resume(at(20))
        deadline.resume(at(30))
        #expect(deadline.left(at(20.5)) == .milliseconds(500))
        deadline.pause(at(20.5))
        deadline.resume(at(21.5))
        #expect(deadline.left(at(21.75)) == .milliseconds(250) && deadline.left(at(22)) == .zero)
    }

    @Test func limitsOfAnySizeAreKept() {
        #expect(TaskDeadline(.zero, now: 0).left(0) == .zero)
        let longest = Duration.seconds(Int64.max)
        #expect(TaskDeadline(longest, now: .max).left(.max) == longest)
        #expect(TaskDeadline(longest, now: 0).left(.max) < longest)
    }

    // MARK: The limits of a request

    /// Each row: attempt, total, spent, left of the task, and the end.
    @Test(
        arguments: [
            (nil, nil, 0, nil, nil, nil), (3, nil, 0, nil, 3, .attempt), (nil, 5, 0, nil, 5, .total),
            (3, 5, 0, nil, 3, .attempt), (5, 3, 0, nil, 3, .total), (3, 3, 0, nil, 3, .attempt),
            (3, 5, 1, nil, 2, .attempt), (3, 5, 9, nil, 0, .attempt), (nil, 5, 1, 2, 2, .total),
            (3, 5, 0, 1, 1, .total), (3, 5, 2, 2, 1, .attempt), (nil, nil, 0, 4, 4, .total), (3, nil, 0, 0, 0, .total),
        ] as [(Int?, Int?, Int, Int?, Int?, Timeouts.Phase?)])
    func theFirstOfTheLimitsEndsARequest(
        attempt: Int?, total: Int?, spent: Int, left: Int?, end: Int?, limit: Timeouts.Phase?
    ) {
        var timeouts = Timeouts(attempt: attempt.map { .seconds($0) }, total: total.map { .seconds($0) })
        timeouts.spent = .seconds(spent)
        timeouts.left = left.map { .seconds($0) }
        #expect(timeouts.end?.after == end.map { .seconds($0) } && timeouts.end?.limit == limit)
        var clock = AttemptClock(timeouts, now: 0)
        clock.connecting(0)
        clock.connected(0)
        let deadline = end.map { UInt64($0) * 1_000_000_000 }
        #expect(clock.nextDeadline == min(deadline ?? .max, 60_000_000_000))
        if let deadline { #expect(clock.expired(deadline) == limit) }
    }
}
