import Tern
import Testing

@testable import TernInspector

@Suite("Inspector: state") struct InspectorStateTests {
    private typealias Key = InspectedTask.Key

    private func key(_ number: UInt64, session: UInt64 = 1) -> Key { Key(session: session, task: number) }

    private func task(_ key: Key, _ number: UInt64, start: UInt64 = 0) -> InspectedTask {
        InspectedTask(
            key: key, number: number, label: nil, method: "GET", url: "https://a.example/\(key.task)", priority: 2,
            start: start)
    }

    private func attempt(_ cause: InspectedAttempt.Cause = .first, start: UInt64 = 0) -> InspectedAttempt {
        InspectedAttempt(cause: cause, method: "GET", url: "https://a.example/", headers: [:], start: start)
    }

    /// A state in which tasks with the numbers from 1 have started and ended.
    private func state(ended count: UInt64, limit: Int) -> InspectorState {
        var state = InspectorState(limit: limit)
        for number in 1...count {
            state.start(key(number)) { task(key(number), $0) }
            state.end(key(number), as: .init(time: number)) { task(key(number), $0) }
        }
        return state
    }

    @Test func theRingKeepsTheLastEnds() {
        let state = state(ended: 25, limit: 10)
        #expect(state.endedCount == 10 && state.runningCount == 0)
        #expect(state.endedTasks.map(\.number) == Array(16...25))
        let changes = state.changes(since: 0, limit: 100)
        #expect(changes.tasks.map(\.number) == Array(16...25))
        #expect(changes.firstEnd == 16 && changes.omitted == 0)
        #expect(changes.totals.started == 25 && changes.totals.ended == 25)
        #expect(state.task(16)?.endNumber == 16 && state.task(15) == nil)
    }

    @Test func changesBeginBehindTheRevision() {
        var state = state(ended: 5, limit: 10)
        let seen = state.changes(since: 0, limit: 100).revision
        #expect(state.changes(since: seen, limit: 100).tasks.isEmpty)
        state.start(key(6)) { task(key(6), $0) }
        #expect(state.changes(since: seen, limit: 100).tasks.map(\.number) == [6])
        state.change(key(6)) { $0.add(attempt()) }
        let next = state.changes(since: seen, limit: 100)
        #expect(next.tasks.map(\.attempts.count) == [1])
        state.end(key(6), as: .init(time: 9)) { task(key(6), $0) }
        let last = state.changes(since: next.revision, limit: 100)
        #expect(last.tasks.map(\.number) == [6] && last.tasks.first?.end?.time == 9)
        #expect(last.tasks.first?.attempts.first?.end == 9)
    }

    @Test func aViewerThatIsLateSkipsTheOldestChanges() {
        let changes = state(ended: 100, limit: 50).changes(since: 0, limit: 20)
        #expect(changes.tasks.map(\.number) == Array(81...100) && changes.omitted == 30)
        #expect(changes.firstEnd == 51)
    }

    @Test func tasksBeyondTheLimitAreKeptAtTheirEnd() {
        var state = InspectorState(limit: 2)
        for number in 1...5 as ClosedRange<UInt64> { state.start(key(number)) { task(key(number), $0) } }
        #expect(state.runningCount == 2 && state.totals.unseen == 3 && state.totals.started == 5)
        // A change of a task that is not kept is none.
        let revision = state.revision
        state.change(key(5)) { $0.add(attempt()) }
        #expect(state.revision == revision)
        state.end(key(5), as: .init(time: 7)) { task(key(5), $0, start: 3) }
        #expect(state.endedTasks.map(\.url) == ["https://a.example/5"])
        #expect(Set(state.changes(since: 0, limit: 9).tasks.map(\.number)) == [1, 2, 3])
    }

    @Test func tasksOfSessionsAreApart() {
        var state = InspectorState(limit: 10)
        for session in 1...2 as ClosedRange<UInt64> {
            state.start(key(1, session: session)) { task(key(1, session: session), $0) }
        }
        state.end(key(1, session: 2), as: .init(time: 1)) { task(key(1, session: 2), $0) }
        #expect(state.runningCount == 1 && state.endedTasks.map(\.key.session) == [2])
    }

    @Test func aTaskThatIsResumedAgainStartsOnce() {
        var state = InspectorState(limit: 10)
        for _ in 0..<3 { state.start(key(1)) { task(key(1), $0) } }
        #expect(state.totals.started == 1 && state.runningCount == 1)
    }

    @Test func theFirstAndTheLastRequestsOfATaskAreKept() {
        var task = task(key(1), 1)
        for number in 0..<50 as Range<UInt64> { task.add(attempt(.retry, start: number)) }
        let starts = task.attempts.map(\.start)
        #expect(starts.count == InspectedTask.attemptLimit && task.omittedAttempts == 38)
        #expect(starts.prefix(6) == [0, 1, 2, 3, 4, 5] && starts.suffix(6) == [44, 45, 46, 47, 48, 49])
    }

    @Test func theEndOfARequestIsKeptOnce() {
        var task = task(key(1), 1)
        task.endAttempt(at: 1)
        #expect(task.attempts.isEmpty)
        task.add(attempt())
        task.endAttempt(at: 2, failure: InspectedFailure(kind: "tls", reason: "a"))
        task.endAttempt(at: 3, failure: InspectedFailure(kind: "dns", reason: "b"))
        #expect(task.attempts[0].end == 2 && task.attempts[0].failure?.kind == "tls")
    }

    @Test func failuresAndBytesAreCounted() {
        var state = InspectorState(limit: 10)
        state.end(key(1), as: .init(time: 1, failure: InspectedFailure(kind: "tls", reason: ""))) { task(key(1), $0) }
        state.end(key(2), as: .init(time: 1)) { task(key(2), $0) }
        #expect(state.totals.failed == 1 && state.totals.ended == 2)
    }

    @Test func longURLsAreCut() {
        #expect(InspectedTask.kept("https://a.example/") == "https://a.example/")
        let long = "https://a.example/" + String(repeating: "x", count: 100_000)
        #expect(InspectedTask.kept(long).count == InspectedTask.urlLimit + 1)
    }
}
