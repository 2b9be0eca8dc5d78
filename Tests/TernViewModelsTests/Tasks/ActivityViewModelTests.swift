import Tern
import TernTesting
import TernViewModels
import Testing

@MainActor
@Suite("Binding activity", .timeLimit(.minutes(1)))
struct ActivityViewModelTests {
    private let slow = Slow()
    private let spinner = Spinner()

    @Test func theFirstBeginIsSynchronous() throws {
        let task = try slow.task()
        task.resume()
        spinner.bindActivity(to: task)
        #expect(spinner.log.events == [.begin])
        task.cancel()
    }

    @Test func oneBeginPerRunningPeriodAndOneEndAfterEach() async throws {
        let task = try slow.task()
        let binding = spinner.bindActivity(to: task)
        #expect(spinner.log.events.isEmpty && binding?.isActive == true)
        task.resume()
        await spinner.log.wait(for: 1)
        task.pause()
        await spinner.log.wait(for: 2)
        task.resume()
        await spinner.log.wait(for: 3)
        try await slow.steps(3)
        await spinner.log.wait(for: 4)
        await eventually { binding?.isActive == false }
        #expect(spinner.log.events == [.begin, .end, .begin, .end] && binding?.outcome == .finished)
        #expect(spinner.activityBinding == nil)
    }

    @Test func bindingToATaskThatHasEndedStopsASpinningView() async throws {
        let task = try slow.task()
        task.cancel()
        await eventually { task.state.isTerminal }
        spinner.spin()
        let binding = spinner.bindActivity(to: task)
        #expect(spinner.log.events == [.end] && binding?.outcome == .finished)
    }

    @Test func rebindingReplacesWithoutFlicker() async throws {
        let (first, second) = (try slow.task(), try Slow().task())
        first.resume()
        second.resume()
        let old = spinner.bindActivity(to: first)
        spinner.bindActivity(to: second)
        #expect(spinner.log.events == [.begin] && old?.outcome == .replaced)
        first.cancel()
        await eventually { first.state.isTerminal }
        await settle()
        #expect(spinner.log.events == [.begin], "a replaced task has ended the spinner")
        second.cancel()
        await spinner.log.wait(for: 2)
        #expect(spinner.log.events == [.begin, .end])
    }

    @Test func nilStopsFollowingAndLeavesTheControl() async throws {
        let task = try slow.task()
        task.resume()
        let binding = spinner.bindActivity(to: task)
        spinner.bindActivity(to: nil)
        task.cancel()
        await eventually { task.state.isTerminal }
        await settle()
        #expect(binding?.outcome == .unbound && spinner.log.events == [.begin] && spinner.isActivityShown)
        spinner.unbindActivity(ending: true)
        spinner.unbindActivity(ending: true)
        #expect(spinner.log.events == [.begin, .end])
    }

    @Test func severalTasksAreCounted() async throws {
        let tasks = [try slow.task(), try slow.task(), try slow.task()]
        tasks[0].resume()
        let binding = spinner.bindActivity(to: [tasks[0], tasks[1]])
        #expect(spinner.bindActivity(to: [tasks[2]], adding: true) === binding)
        tasks[1].resume()
        tasks[2].resume()
        tasks[0].cancel()
        tasks[1].cancel()
        await eventually { tasks[0].state.isTerminal && tasks[1].state.isTerminal }
        await settle()
        #expect(spinner.log.events == [.begin] && binding?.isActive == true)
        tasks[2].cancel()
        await spinner.log.wait(for: 2)
        await eventually { binding?.isActive == false }
        #expect(spinner.log.events == [.begin, .end])
    }

    @Test func addingToNothingBinds() throws {
        let task = try slow.task()
        task.resume()
        #expect(spinner.bindActivity(to: [task], adding: true) != nil && spinner.isActivityShown)
        #expect(spinner.bindActivity(to: [], adding: true) != nil, "adding nothing changes nothing")
        #expect(spinner.bindActivity(to: []) == nil && spinner.activityBinding == nil)
        task.cancel()
    }

    @Test func aRefreshOfARunningTaskBeginsWithinTheCallAndFollowsItAlone() async throws {
        let (first, second) = (try slow.task(), try Slow().task())
        first.resume()
        second.resume()
        let old = spinner.bindRefresh(to: first)
        #expect(spinner.log.events == [.begin] && spinner.isRefreshing)
        let new = spinner.bindRefresh(to: second)
        first.cancel()
        await eventually { first.state.isTerminal }
        await settle()
        #expect(spinner.log.events == [.begin] && old?.outcome == .replaced, "a replaced task has ended the refresh")
        #expect(spinner.bindRefresh(to: nil) == nil && new?.outcome == .unbound)
        second.cancel()
        await eventually { second.state.isTerminal }
        await settle()
        #expect(spinner.log.events == [.begin] && spinner.isRefreshing, "unbinding leaves the control as it is")
        spinner.bindRefresh(to: second)
        #expect(spinner.log.events == [.begin, .end], "one that has ended ends it")
    }

    @Test func aPulledControlIsNotBegunTwice() async throws {
        let task = try slow.task()
        task.resume()
        spinner.pull()
        spinner.bindRefresh(to: task)
        #expect(spinner.log.events.isEmpty)
        task.cancel()
        await spinner.log.wait(for: 1)
        #expect(spinner.log.events == [.end] && !spinner.isRefreshing)
    }

    @Test func aRefreshBoundToASuspendedTaskBeginsLater() async throws {
        let task = try slow.task()
        spinner.pull()
        let binding = spinner.bindRefresh(to: task)
        #expect(spinner.log.events == [.end], "not running: ended")
        task.resume()
        await spinner.log.wait(for: 2)
        try await slow.steps(3)
        await spinner.log.wait(for: 3)
        #expect(spinner.log.events == [.end, .begin, .end])
        await eventually { binding?.isActive == false }
        #expect(spinner.refreshBinding == nil)
        spinner.unbindRefresh(ending: true)
        #expect(spinner.log.events.count == 3)
    }

    @Test func aFailureEnds() async throws {
        let task = try slow.task("/fail")
        task.resume()
        spinner.bindActivity(to: task)
        try await slow.step()
        await spinner.log.wait(for: 2)
        #expect(spinner.log.events == [.begin, .end] && task.state == .failed)
    }
}
