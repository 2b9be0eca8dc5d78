import TernConcurrency
import Testing

@testable import Tern

@Suite("Waiter", .timeLimit(.minutes(1)))
struct WaiterTests {
    @Test func existingValueIsReturnedAtOnce() async {
        let waiter = Waiter<Int>()
        waiter.resume(returning: 1)
        #expect(await waiter.wait(cancelled: -1) == 1)
    }

    @Test func laterValueIsAwaited() async {
        let waiter = Waiter<Int>()
        async let value = waiter.wait(cancelled: -1)
        await Task.yield()
        waiter.resume(returning: 2)
        #expect(await value == 2)
    }

    @Test func theFirstValueCounts() async {
        let waiter = Waiter<Int>()
        waiter.resume(returning: 1)
        waiter.resume(returning: 2)
        #expect(await waiter.wait(cancelled: -1) == 1)
        waiter.resume(returning: 3)
    }

    @Test func cancellationBeforeTheWaitEndsIt() async {
        let waiter = Waiter<Int>()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return await waiter.wait(cancelled: -1)
        }
        task.cancel()
        #expect(await task.value == -1)
    }

    @Test func cancellationDuringTheWaitEndsIt() async {
        for round in 0..<500 {
            let waiter = Waiter<Int>()
            let task = Task { await waiter.wait(cancelled: -1) }
            for _ in 0..<(round % 5) { await Task.yield() }
            task.cancel()
            #expect(await task.value == -1)
            waiter.resume(returning: 1)
        }
    }

    @Test func cancellationAfterTheValueKeepsIt() async {
        let waiter = Waiter<Int>()
        let task = Task {
            let value = await waiter.wait(cancelled: -1)
            while !Task.isCancelled { await Task.yield() }
            return value
        }
        waiter.resume(returning: 4)
        task.cancel()
        let value = await task.value
        #expect(value == 4 || value == -1)
        // The decision is final: a value that was there before the cancellation is returned.
        let early = Waiter<Int>()
        early.resume(returning: 5)
        let late = Task {
            while !Task.isCancelled { await Task.yield() }
            return await early.wait(cancelled: -1)
        }
        late.cancel()
        #expect(await late.value == 5)
    }

    @Test func simultaneousCancellationAndValueResumeOnce() async {
        for _ in 0..<2_000 {
            let waiter = Waiter<Int>()
            let task = Task { await waiter.wait(cancelled: -1) }
            async let resumed: Void = Self.run { waiter.resume(returning: 1) }
            async let cancelled: Void = Self.run { task.cancel() }
            let value = await task.value
            #expect(value == 1 || value == -1)
            _ = await (resumed, cancelled)
        }
    }

    @concurrent
    private static func run(_ body: @Sendable () -> Void) async { body() }
}
