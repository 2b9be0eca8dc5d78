import TernTesting
import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The state machine of AFNetworking's indicator, line by line.
@Suite("Network activity state")
struct NetworkActivityStateTests {
    private typealias State = NetworkActivityState

    private static let session = Session().id
    private var state = State(activationDelay: .seconds(1), completionDelay: .milliseconds(170))

    private func task(_ number: UInt64) -> State.Running { .init(session: Self.session, task: TaskID(number)) }

    private mutating func enabled() { _ = state.setEnabled(true) }

    @Test mutating func activityIsDisabledAtFirst() {
        let nothing = state.started(task(1))
        #expect(nothing.isEmpty && !state.isEnabled && state.phase == .notActive)
    }

    @Test func delaysCanBeSet() {
        var state = State(activationDelay: .seconds(2), completionDelay: .seconds(3))
        _ = state.setEnabled(true)
        let began = state.started(task(1))
        _ = state.timerFired(1)
        let ended = state.stopped(task(1))
        #expect(began == [.startTimer(.seconds(2), 1)] && ended == [.startTimer(.seconds(3), 2)])
    }

    @Test mutating func longActivityIsShown() {
        enabled()
        let began = state.started(task(1))
        #expect(began == [.startTimer(.seconds(1), 1)] && state.phase == .delayingStart)
        let shown = state.timerFired(1)
        #expect(shown == [.show] && state.phase == .active)
    }

    @Test mutating func shortActivityIsNeverShown() {
        enabled()
        _ = state.started(task(1))
        let ended = state.stopped(task(1))
        // The state stays the same until the timer fires.
        #expect(ended.isEmpty && state.phase == .delayingStart)
        let again = state.started(task(2))
        #expect(again.isEmpty && state.phase == .delayingStart)
        _ = state.stopped(task(2))
        let fired = state.timerFired(1)
        #expect(fired.isEmpty && state.phase == .notActive)
    }

    @Test mutating func activityHidesAfterTheCompletionDelay() {
        enabled()
        _ = state.started(task(1))
        _ = state.timerFired(1)
        let ended = state.stopped(task(1))
        #expect(ended == [.startTimer(.milliseconds(170), 2)] && state.phase == .delayingEnd)
        let hidden = state.timerFired(2)
        #expect(hidden == [.hide] && state.phase == .notActive)
    }

    @Test mutating func requestWithinTheDelayKeepsTheActivityVisible() {
        enabled()
        _ = state.started(task(1))
        _ = state.timerFired(1)
        _ = state.stopped(task(1))
        let again = state.started(task(2))
        #expect(again == [.stopTimer] && state.phase == .active)
        let stale = state.timerFired(2)
        #expect(stale.isEmpty && state.phase == .active)
    }

    @Test mutating func overlappingRequestsShowAndHideOnce() {
        enabled()
        var actions: [State.Action] = []
        actions += state.started(task(1))
        actions += state.started(task(2))
        actions += state.timerFired(1)
        actions += state.stopped(task(1))
        actions += state.started(task(3))
        actions += state.stopped(task(2))
        actions += state.stopped(task(3))
        actions += state.timerFired(2)
        #expect(actions.filter { $0 == .show }.count == 1 && actions.filter { $0 == .hide }.count == 1)
    }

    /// Runs the whole table: in each phase a task starts, all tasks end, and the timer fires in both cases.
    @Test func everyTransitionMatchesAFNetworking() {
        let (busy, idle): (Set<TaskID>, Set<TaskID>) = ([TaskID(1), TaskID(2)], [])
        func now(_ tasks: Set<TaskID>, _ state: inout State) -> [State.Action] {
            state.running(tasks, of: Self.session)
        }
        var notActive = state
        _ = notActive.setEnabled(true)
        var delayingStart = notActive
        _ = delayingStart.started(task(1))
        var active = delayingStart
        _ = active.timerFired(1)
        var delayingEnd = active
        _ = delayingEnd.stopped(task(1))
        let rows: [(State, Set<TaskID>, State.Phase, [State.Action])] = [
            (notActive, busy, .delayingStart, [.startTimer(.seconds(1), 1)]), (notActive, idle, .notActive, []),
            (delayingStart, busy, .delayingStart, []), (delayingStart, idle, .delayingStart, []),
            (active, busy, .active, []), (active, idle, .delayingEnd, [.startTimer(.milliseconds(170), 2)]),
            (delayingEnd, busy, .active, [.stopTimer]), (delayingEnd, idle, .delayingEnd, []),
        ]
        for (before, tasks, phase, expected) in rows {
            var state = before
            let actions = now(tasks, &state)
            #expect(state.phase == phase && actions == expected, "\(before.phase), \(tasks.count) running")
        }
        let timers: [(State, Set<TaskID>, UInt64, State.Phase, [State.Action])] = [
            (delayingStart, busy, 1, .active, [.show]), (delayingStart, idle, 1, .notActive, []),
            (delayingEnd, idle, 2, .notActive, [.hide]),
        ]
        for (before, tasks, timer, phase, expected) in timers {
            var state = before
            _ = now(tasks, &state)
            let actions = state.timerFired(timer)
            #expect(state.phase == phase && actions == expected, "the timer in \(before.phase), \(tasks.count) running")
        }
    }

    /// AFNetworking counts a pause and an end twice for one start.
    @Test mutating func aTaskThatIsPausedAndThenEndsCountsOnce() {
        enabled()
        _ = state.started(task(1))
        _ = state.started(task(2))
        _ = state.timerFired(1)
        _ = state.stopped(task(1))
        let ended = state.stopped(task(1))
        #expect(ended.isEmpty && state.phase == .active)
    }

    @Test mutating func disablingHidesAtOnceAndEnablingReadsRunningTasks() {
        enabled()
        _ = state.started(task(1))
        _ = state.timerFired(1)
        let off = state.setEnabled(false)
        #expect(off == [.stopTimer, .hide] && state.phase == .notActive)
        let on = state.setEnabled(true)
        #expect(on == [.startTimer(.seconds(1), 3)] && state.phase == .delayingStart)
        let same = state.setEnabled(true)
        #expect(same.isEmpty)
    }
}

@Suite("Network activity", .timeLimit(.minutes(1)))
struct NetworkActivityTests {
    @Test func activityFollowsTheTasksOfSessions() async throws {
        let clock = ManualClock()
        let gate = LoopbackServer.Gate()
        let stub = StubTransport { _ in
            try await gate.wait()
            return .text("done")
        }
        let client = try Client(baseURL: "http://h", session: Session(stub: stub))
        // One task runs before the first observation.
        let early = client.task(.get, "early")
        try await stub.waitForCalls(1)
        let activity = NetworkActivity(clock: clock)
        await activity.follow(client.session.tasks)
        await activity.setEnabled(true)
        var visibility = activity.visibility.makeAsyncIterator()
        #expect(await visibility.next() == false)
        try await clock.waitForSleepers(1)
        let late = client.task(.get, "late")
        clock.advance(by: .seconds(1))
        #expect(await visibility.next() == true)
        gate.open()
        _ = try await (early.value, late.value)
        try await clock.waitForSleepers(1)
        #expect(activity.isVisible)
        clock.advance(by: .milliseconds(170))
        #expect(await visibility.next() == false)
    }

    @Test func activityFollowsSeveralSessions() async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .chunks([Data(count: 1), Data(count: 1)], interval: .seconds(600)) }
        let clients = try (0..<2).map { _ in try Client(baseURL: "http://h", session: Session(stub: stub)) }
        let activity = NetworkActivity(clock: clock)
        await activity.setEnabled(true)
        for client in clients { await activity.follow(client.session.tasks) }
        var visibility = activity.visibility.makeAsyncIterator()
        #expect(await visibility.next() == false)
        for client in clients {
            let task = client.task(.get, "a")
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(1))
            #expect(await visibility.next() == true)
            task.cancel()
            try await clock.waitForSleepers(1)
            clock.advance(by: .milliseconds(170))
            #expect(await visibility.next() == false)
        }
    }

    @Test func pausedTaskIsNotActive() async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .chunks([Data(count: 1), Data(count: 1)], interval: .seconds(600)) }
        let client = try Client(baseURL: "http://h", session: Session(stub: stub))
        let activity = NetworkActivity(clock: clock)
        await activity.setEnabled(true)
        await activity.follow(client.session.tasks)
        let task = client.task(.get, "a")
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        var visibility = activity.visibility.makeAsyncIterator()
        while await visibility.next() == false {}
        task.pause()
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(170))
        #expect(await visibility.next() == false)
        task.cancel()
    }
}
