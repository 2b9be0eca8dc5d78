import Testing

@testable import TernConcurrency

@Suite("Sleep queue")
struct SleepQueueTests {
    private let start = ContinuousClock.now

    private func time(_ seconds: Int) -> ContinuousClock.Instant { start.advanced(by: .seconds(seconds)) }

    @Test func sleepersWakeByTheirDeadlines() {
        var queue = SleepQueue<Int>()
        for (number, seconds) in [5, 1, 3, 1, 9, 5].enumerated() { _ = queue.add(number, time(seconds)) }
        #expect(queue.take(until: time(0)).isEmpty)
        #expect(queue.next(mayEnd: true) == .deadline(time(1)))
        #expect(queue.take(until: time(5)) == [1, 3, 2, 0, 5])
        #expect(queue.next(mayEnd: true) == .deadline(time(9)))
        #expect(queue.take(until: time(9)) == [4])
        #expect(queue.next(mayEnd: false) == .idleTimeout)
    }

    @Test func onlyAnEarlierDeadlineWakesTheThread() {
        var queue = SleepQueue<Int>()
        #expect(queue.add(0, time(5)) == .start)
        #expect(queue.add(1, time(5)) == .none)
        #expect(queue.add(2, time(6)) == .none)
        #expect(queue.add(3, time(4)) == .wake)
        #expect(queue.take(until: time(9)).count == 4)
        #expect(queue.add(4, time(9)) == .wake)
    }

    @Test func theThreadEndsOnlyWithoutSleepers() {
        var queue = SleepQueue<Int>()
        #expect(!queue.hasThread)
        _ = queue.add(0, time(1))
        #expect(queue.next(mayEnd: true) == .deadline(time(1)) && queue.hasThread)
        queue.remove { $0 == 0 }
        #expect(queue.next(mayEnd: false) == .idleTimeout && queue.hasThread)
        #expect(queue.next(mayEnd: true) == .end && !queue.hasThread)
        #expect(queue.add(1, time(1)) == .start)
    }

    @Test func sleepersEndWithoutAThread() {
        var queue = SleepQueue<Int>()
        _ = queue.add(0, time(2))
        _ = queue.add(1, time(1))
        #expect(queue.removeAllSleepers() == [1, 0])
        #expect(queue.add(2, time(1)) == .start)
    }
}

#if os(Linux)
@Suite("Sleep thread", .timeLimit(.minutes(1)))
struct SleepThreadTests {
    @Test func sleepNeverEndsBeforeItsDeadline() async throws {
        let thread = SleepThread()
        let start = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                let deadline = start.advanced(by: .milliseconds((number * 7) % 20))
                group.addTask {
                    try await thread.sleep(until: deadline)
                    #expect(ContinuousClock.now >= deadline)
                }
            }
            try await group.waitForAll()
        }
        try await thread.sleep(until: start)
    }

    @Test func cancellingEndsASleep() async throws {
        let thread = SleepThread(idleTimeout: .zero)
        let far = ContinuousClock.now.advanced(by: .seconds(3_600))
        for round in 0..<200 {
            let task = Task { try await thread.sleep(until: far) }
            for _ in 0..<(round % 5) { await Task.yield() }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func cancellingBeforeASleepEndsIt() async {
        let thread = SleepThread(idleTimeout: .zero)
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            try await thread.sleep(until: .now)
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(!thread.isRunning)
    }

    @Test func theThreadEndsAndStartsAgain() async throws {
        let thread = SleepThread(idleTimeout: .zero)
        for _ in 0..<100 {
            try await thread.sleep(until: .now.advanced(by: .microseconds(10)))
            while thread.isRunning { await Task.yield() }
        }
    }

    @Test func anUnusedThreadDoesNotRun() { #expect(!SleepThread().isRunning) }

    @Test func continuousClockSleepsOnTheThread() async throws {
        let clock: any Clock<Duration> = ContinuousClock()
        try await clock.sleepWithoutDescriptor(for: .microseconds(1))
        let task = Task { try await clock.sleepWithoutDescriptor(for: .seconds(3_600)) }
        while !SleepThread.shared.isRunning { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
#endif
