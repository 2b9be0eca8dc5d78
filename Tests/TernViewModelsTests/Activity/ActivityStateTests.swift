import Tern
import Testing

@testable import TernViewModels

@Suite("Activity state")
struct ActivityStateTests {
    private var state = ActivityState()

    @Test mutating func aRunningTaskBeginsAndAnyOtherEnds() {
        let table: [(Session.TaskState, isShown: Bool, ActivityState.Action)] = [
            (.running, false, .begin), (.running, true, .none), (.suspended, false, .none), (.suspended, true, .end),
            (.completed, true, .end), (.failed, true, .end), (.cancelled, true, .end), (.completed, false, .none),
        ]
        for (taskState, isShown, expected) in table {
            var state = ActivityState()
            _ = state.add(taskState)
            let action = state.settle(isShown: isShown)
            #expect(action == expected, "\(taskState), shown: \(isShown)")
            #expect(state.isOver == taskState.isTerminal)
        }
    }

    @Test mutating func beginAndEndAlternate() {
        let task = state.add(.suspended)
        var isShown = false
        var actions: [ActivityState.Action] = []
        let states: [Session.TaskState] = [
            .suspended, .running, .running, .suspended, .suspended, .running, .completed, .running,
        ]
        for next in states {
            state.change(task, to: next)
            let action = state.settle(isShown: isShown)
            if action == .begin { isShown = true }
            if action == .end { isShown = false }
            actions.append(action)
        }
        #expect(actions == [.none, .begin, .none, .end, .none, .begin, .end, .none])
    }

    @Test mutating func severalTasksAreCounted() {
        let (first, second) = (state.add(.running), state.add(.suspended))
        let begun = state.settle(isShown: false)
        state.change(second, to: .running)
        let same = state.settle(isShown: true)
        state.change(first, to: .completed)
        let still = state.settle(isShown: true)
        state.change(second, to: .failed)
        let ended = state.settle(isShown: true)
        #expect([begun, same, still, ended] == [.begin, .none, .none, .end] && state.isOver)
    }

    @Test mutating func whatTheUserDoesMeanwhileIsLeftAlone() {
        let (first, second) = (state.add(.suspended), state.add(.suspended))
        _ = state.settle(isShown: false)
        // Pulled by the user; one of the tasks ends without ever having run.
        state.change(first, to: .cancelled)
        let untouched = state.settle(isShown: true)
        state.change(second, to: .running)
        let pulled = state.settle(isShown: true)
        #expect(untouched == .none && pulled == .none)
    }
}
