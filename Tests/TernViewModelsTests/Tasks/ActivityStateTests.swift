import Tern
import TernTesting
import TernViewModels
import Testing

@testable import Tern
@testable import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
            let action = state.update(isShown: isShown)
            #expect(action == expected, "\(taskState), shown: \(isShown)")
            #expect(state.isFinished == taskState.isTerminal)
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
            let action = state.update(isShown: isShown)
            if action == .begin { isShown = true }
            if action == .end { isShown = false }
            actions.append(action)
        }
        #expect(actions == [.none, .begin, .none, .end, .none, .begin, .end, .none])
    }

    @Test mutating func severalTasksAreCounted() {
        let (first, second) = (state.add(.running), state.add(.suspended))
        let begun = state.update(isShown: false)
        state.change(second, to: .running)
        let same = state.update(isShown: true)
        state.change(first, to: .completed)
        let still = state.update(isShown: true)
        state.change(second, to: .failed)
        let ended = state.update(isShown: true)
        #expect([begun, same, still, ended] == [.begin, .none, .none, .end] && state.isFinished)
    }

    @Test mutating func changesByTheUserAreLeftAlone() {
        let (first, second) = (state.add(.suspended), state.add(.suspended))
        _ = state.update(isShown: false)
        // The user pulled to refresh, and a task ended without ever running.
        state.change(first, to: .cancelled)
        let untouched = state.update(isShown: true)
        state.change(second, to: .running)
        let pulled = state.update(isShown: true)
        #expect(untouched == .none && pulled == .none)
    }
}

/// Tests random orders of binding, adding and unbinding, and of tasks that run, pause and end: begin and end alternate,
/// and a bound control finally shows the state of its tasks.
@MainActor
@Suite("Activity in any order", .timeLimit(.minutes(1)))
struct ActivityPropertyTests {
    private final class Control: ActivityViewModel {
        let bindings = ViewBindings()
        private(set) var isActivityShown = false
        var faults: [String] = []
        var isBound = false

        func beginActivity() { change(to: true, "begin") }
        func endActivity() { change(to: false, "end") }

        private func change(to isShown: Bool, _ name: String) {
            if isActivityShown == isShown { faults.append("\(name) twice in a row") }
            if !isBound { faults.append("\(name) of what is not bound") }
            isActivityShown = isShown
        }
    }

    private func run(seed: Int) async throws {
        var random = SeededGenerator(seed: seed)
        let clock = ManualClock()
        let session = Session(stub: StubTransport(clock: clock) { _ in .status(204).delayed(by: .seconds(1)) })
        let request = try Request(.get, "https://a.example/")
        let tasks = (0..<4).map { _ in session.task(for: request) }
        let control = Control()
        var bound: [SessionTask<Response<Data>>] = []
        for _ in 0..<60 {
            let task = tasks[Int.random(in: 0..<tasks.count, using: &random)]
            switch Int.random(in: 0..<14, using: &random) {
            case 0, 1, 2: task.resume()
            case 3, 4: task.pause()
            case 5: if Int.random(in: 0..<3, using: &random) == 0 { task.cancel() }
            case 6, 7:
                bound = [task]
                control.isBound = true
                control.bindActivity(to: task)
            case 8, 9:
                // An ended binding cannot be added to.
                if control.activityBinding == nil { bound = [] }
                bound.append(task)
                control.isBound = true
                control.bindActivity(to: [task], adding: true)
            case 10:
                bound = []
                control.bindActivity(to: nil)
                control.isBound = false
            case 11: clock.advance(by: .milliseconds(300))
            default: for _ in 0..<Int.random(in: 1..<10, using: &random) { await Task.yield() }
            }
        }
        let isSettled = { @MainActor in
            control.activityBinding == nil || control.isActivityShown == bound.contains { $0.state == .running }
        }
        await eventually(isSettled)
        for task in tasks { task.cancel() }
        await eventually { control.activityBinding == nil }
        #expect(control.faults.isEmpty, "seed \(seed)")
        #expect(!control.isBound || bound.isEmpty || !control.isActivityShown, "seed \(seed): left begun")
    }

    @Test(arguments: 0..<10)
    func beginAndEndAlternate(block: Int) async throws {
        for seed in block * 20..<(block + 1) * 20 { try await run(seed: seed) }
    }
}

@MainActor
@Suite("What activity keeps", .timeLimit(.minutes(1)))
struct ActivityMemoryTests {
    private final class Weak {
        weak var task: (any TaskControl)?
        init(_ task: any TaskControl) { self.task = task }
    }

    @Test func aControlThatIsAddedToForeverKeepsNothingOfTheEnded() async throws {
        let slow = Slow()
        let spinner = Spinner()
        let running = try slow.task()
        running.resume()
        spinner.bindActivity(to: running)
        var records: [Weak] = []
        for _ in 0..<20 {
            let task = try slow.task()
            records.append(Weak(task.erased.control))
            spinner.bindActivity(to: [task], adding: true)
            task.cancel()
        }
        await eventually { records.allSatisfy { $0.task == nil } }
        #expect(spinner.log.events == [.begin] && spinner.activityBinding?.isActive == true)
        running.cancel()
        await spinner.log.wait(for: 2)
    }
}
