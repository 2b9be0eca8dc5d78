#if os(Linux)
import TernEngine
import Testing

struct LoopTaskExecutorTests {
    private let loop = EventLoop.shared
    private let executor = EventLoop.shared.taskExecutor

    @Test func tasksThatPreferItRunOnTheLoop() async {
        let isOnLoop = await withTaskExecutorPreference(executor) { await runsOnLoop() }
        #expect(isOnLoop)
        #expect(!loop.isCurrent)
    }

    @Test func childTasksRunOnTheLoop() async {
        let count = await withTaskExecutorPreference(executor) {
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<100 { group.addTask { await runsOnLoop() } }
                return await group.reduce(into: 0) { count, isOnLoop in count += isOnLoop ? 1 : 0 }
            }
        }
        #expect(count == 100)
    }

    @Test func aTaskThatWaitedForAnotherThreadContinuesOnTheLoop() async {
        let isOnLoop = await withTaskExecutorPreference(executor) {
            await Task.detached {}.value
            return await runsOnLoop()
        }
        #expect(isOnLoop)
    }

    @Test(.timeLimit(.minutes(1))) func tasksThatYieldForEverDelayNoOther() async {
        let busy = Task(executorPreference: executor) {
            while !Task.isCancelled { await Task.yield() }
        }
        await Task(executorPreference: executor) {}.value
        busy.cancel()
        await busy.value
    }

    @concurrent private func runsOnLoop() async -> Bool { loop.isCurrent }
}
#endif
