import TernTesting
import Testing

@Suite("Manual clock", .timeLimit(.minutes(1)))
struct ManualClockTests {
    @Test func timeMovesOnlyWhenAdvanced() {
        let clock = ManualClock()
        let start = clock.now
        #expect(clock.now == start)
        clock.advance(by: .seconds(2))
        #expect(start.duration(to: clock.now) == .seconds(2))
        clock.advance(to: start)
        #expect(clock.now == start.advanced(by: .seconds(2)))
    }

    @Test func sleeperWakesAtItsDeadline() async throws {
        let clock = ManualClock()
        let deadline = ManualClock.Instant(offset: .seconds(10))
        let sleeper = Task {
            try await clock.sleep(until: deadline)
            return clock.now
        }
        try await clock.waitForSleepers(1)
        #expect(clock.nextDeadline == deadline)
        clock.advance(by: .seconds(9))
        #expect(clock.sleeperCount == 1)
        clock.advance(by: .seconds(1))
        #expect(clock.sleeperCount == 0 && clock.nextDeadline == nil)
        #expect(try await sleeper.value == deadline)
    }

    @Test func deadlineInThePastDoesNotSleep() async throws {
        let clock = ManualClock(now: .init(offset: .seconds(5)))
        try await clock.sleep(until: .init(offset: .seconds(5)))
        try await clock.sleep(until: .init(offset: .seconds(1)))
    }

    @Test func oneAdvanceWakesAllDueSleepers() async throws {
        let clock = ManualClock()
        try await withThrowingTaskGroup { group in
            for seconds in [3, 1, 2, 9] { group.addTask { try await clock.sleep(for: .seconds(seconds)) } }
            try await clock.waitForSleepers(4)
            clock.advance(by: .seconds(3))
            #expect(clock.sleeperCount == 1)
            for _ in 0..<3 { try await group.next() }
            clock.advance(by: .seconds(6))
            try await group.waitForAll()
        }
    }

    @Test func cancelledSleepThrowsAtEveryMoment() async throws {
        let clock = ManualClock()
        for cancelsWhileAsleep in [true, false] {
            let task = Task { try await clock.sleep(for: .seconds(1)) }
            if cancelsWhileAsleep { try await clock.waitForSleepers(1) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(clock.sleeperCount == 0)
        }
        let finished = Task { try await clock.sleep(for: .seconds(1)) }
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        try await finished.value
        finished.cancel()
        #expect(clock.sleeperCount == 0)
    }

    @Test func cancellingTheWatcherEndsItsWait() async throws {
        let clock = ManualClock()
        let task = Task { try await clock.waitForSleepers(1) }
        await Task.yield()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test(arguments: [Duration.zero, .milliseconds(20)]) func missingSleepersAreAnError(limit: Duration) async throws {
        let clock = ManualClock()
        let sleeper = Task { try await clock.sleep(for: .seconds(1)) }
        try await clock.waitForSleepers(1)
        let error = await #expect(throws: ManualClock.MissingSleepers.self) {
            try await clock.waitForSleepers(2, within: limit)
        }
        #expect(error?.expected == 2 && error?.sleeping == 1 && error?.limit == limit)
        #expect("\(try #require(error))".hasPrefix("1 of 2 callers sleep"))
        // Nothing of the wait is left.
        clock.advance(by: .seconds(1))
        try await sleeper.value
    }

    @Test func racingSleepersAndCancellationsAllEnd() async throws {
        let clock = ManualClock()
        for _ in 0..<50 {
            let tasks = (0..<20).map { index in
                Task {
                    if index.isMultiple(of: 3) { await Task.yield() }
                    try await clock.sleep(for: .milliseconds(1 + index % 4))
                }
            }
            for task in tasks[..<10] { task.cancel() }
            for task in tasks[..<10] { _ = await task.result }
            try await clock.waitForSleepers(10)
            clock.advance(by: .milliseconds(4))
            for task in tasks[10...] { try await task.value }
            #expect(clock.sleeperCount == 0)
        }
    }
}
