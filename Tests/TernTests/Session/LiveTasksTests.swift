import Testing

@testable import Tern

@Suite("LiveTasks")
struct LiveTasksTests {
    private final class Item {
        let number: UInt64
        init(_ number: UInt64) { self.number = number }
    }

    private typealias Tasks = LiveTasks<Item>

    // MARK: Rules

    @Test func aTaskThatWasNeverResumedIsHeldWeakly() {
        var tasks = Tasks()
        var fresh: Item? = Item(1)
        let running = Item(2)
        if let fresh { tasks.addFresh(fresh, number: 1) }
        tasks.addRunning(running, number: 2)
        #expect(Set(tasks.records.map(\.number)) == [1, 2])
        weak let remembered = fresh
        fresh = nil
        #expect(remembered == nil)
        #expect(tasks.records.map(\.number) == [2])
        #expect(tasks.record(1) == nil)
        // It still counts until its last handle has reported its end.
        #expect(tasks.close(isIdle: false) == Tasks.Outcome())
        #expect(tasks.delivered(2, isLast: false) == Tasks.Outcome())
        #expect(tasks.forget(1, isLast: true) == Tasks.Outcome(isInvalidated: true))
    }

    @Test func aRunningTaskIsHeldUntilItsEnd() {
        var tasks = Tasks()
        var item: Item? = Item(1)
        weak let remembered = item
        if let item { tasks.addRunning(item, number: 1) }
        item = nil
        #expect(remembered != nil)
        _ = tasks.delivered(1, isLast: true)
        #expect(remembered == nil)
    }

    @Test func everyWaitEndsWithTheDelivery() {
        var tasks = Tasks()
        let item = Item(1)
        tasks.addRunning(item, number: 1)
        let wait = tasks.wait()
        let other = tasks.wait()
        #expect(other != nil)
        let outcome = tasks.delivered(1, isLast: true)
        #expect(outcome.endedWaits == [wait, other].compactMap { $0 })
        let last = tasks.wait()
        #expect(last == nil)
    }

    @Test func aTaskThatArrivesAfterTheCloseStillCounts() {
        var tasks = Tasks()
        let item = Item(1)
        #expect(tasks.close(isIdle: false) == Tasks.Outcome())
        tasks.addRunning(item, number: 1)
        #expect(tasks.phase == .finishing && !tasks.isOver)
        #expect(tasks.delivered(1, isLast: true) == Tasks.Outcome(isInvalidated: true))
        #expect(tasks.phase == .invalidated && tasks.isOver)
    }

    @Test func aTaskThatFailedBeforeItWasAddedCanBeTheLast() {
        var tasks = Tasks()
        #expect(tasks.close(isIdle: false) == Tasks.Outcome())
        #expect(tasks.delivered(7, isLast: true) == Tasks.Outcome(isInvalidated: true))
    }

    @Test func theEventsOfAReleasedSessionEndWithItsLastTask() {
        var tasks = Tasks()
        let item = Item(1)
        tasks.addRunning(item, number: 1)
        #expect(tasks.sessionIsGone(isIdle: false) == Tasks.Outcome())
        #expect(!tasks.isOver)
        #expect(tasks.delivered(1, isLast: true) == Tasks.Outcome(endsEvents: true))
        #expect(tasks.isOver)
    }

    // MARK: A plain model

    /// The same rules, with one state for each task.
    private struct Model {
        enum State { case fresh, running }

        var states: [UInt64: State] = [:]
        var waits: [(id: Tasks.WaitID, remaining: Set<UInt64>)] = []
        var phase = Tasks.Phase.open
        var isSessionGone = false
        /// The tasks that were taken and not added yet.
        var arriving: Set<UInt64> = []
        var isOver = false

        var isIdle: Bool { states.isEmpty && arriving.isEmpty }

        mutating func end(_ number: UInt64) -> Tasks.Outcome {
            states[number] = nil
            var outcome = Tasks.Outcome()
            for index in waits.indices where waits[index].remaining.contains(number) {
                waits[index].remaining.remove(number)
                if waits[index].remaining.isEmpty { outcome.endedWaits.append(waits[index].id) }
            }
            waits.removeAll { $0.remaining.isEmpty }
            return endIfIdle(outcome)
        }

        mutating func endIfIdle(_ outcome: Tasks.Outcome = Tasks.Outcome()) -> Tasks.Outcome {
            var outcome = outcome
            guard isIdle else { return outcome }
            if phase == .finishing {
                phase = .invalidated
                outcome.isInvalidated = true
            }
            outcome.endsEvents = isSessionGone
            isOver = isOver || outcome.isInvalidated || outcome.endsEvents
            return outcome
        }
    }

    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// One session, from its first task until nothing can follow. Returns the number of steps.
    private func compare(_ random: inout Generator) -> Int {
        var (tasks, model) = (Tasks(), Model())
        var handles: [UInt64: Item] = [:]
        var (last, steps): (UInt64, Int) = (0, 0)
        // Few tasks at a time, so that the session is idle now and then.
        let maximum = Int.random(in: 1...12, using: &random)
        while steps < 2_000 {
            steps += 1
            let any = model.states.keys.sorted().randomElement(using: &random) ?? last + 1
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<20 where model.states.count + model.arriving.count < maximum:
                guard model.phase == .open, !model.isSessionGone else { continue }
                last += 1
                model.arriving.insert(last)
            case 95..<98:
                // A task that fails before it is added.
                guard let failed = model.arriving.min() else { continue }
                model.arriving.remove(failed)
                let expected = model.end(failed)
                #expect(tasks.delivered(failed, isLast: model.isIdle) == expected)
            case 20..<40:
                if let arrived = model.arriving.randomElement(using: &random) {
                    model.arriving.remove(arrived)
                    let item = Item(arrived)
                    let isFresh = Bool.random(using: &random)
                    if isFresh {
                        tasks.addFresh(item, number: arrived)
                    } else {
                        tasks.addRunning(item, number: arrived)
                    }
                    model.states[arrived] = isFresh ? .fresh : .running
                    if isFresh { handles[arrived] = item }
                    break
                }
                guard model.states[any] == .fresh, let item = handles.removeValue(forKey: any) else { continue }
                tasks.addRunning(item, number: any)
                model.states[any] = .running
            case 40..<75:
                guard model.states[any] != nil else { continue }
                handles[any] = nil
                let expected = model.end(any)
                #expect(tasks.delivered(any, isLast: model.isIdle) == expected)
            case 75..<85:
                guard model.states[any] == .fresh else { continue }
                handles[any] = nil
                let expected = model.end(any)
                #expect(tasks.forget(any, isLast: model.isIdle) == expected)
            case 85..<92:
                let wait = tasks.wait()
                #expect((wait != nil) == !model.states.isEmpty)
                if let wait { model.waits.append((wait, Set(model.states.keys))) }
            case 92..<95:
                guard let wait = model.waits.randomElement(using: &random) else { continue }
                tasks.cancel(wait.id)
                model.waits.removeAll { $0.id == wait.id }
            case 98 where steps > 200:
                let isOpen = model.phase == .open
                if isOpen { model.phase = .finishing }
                let isIdle = model.isIdle
                let expected = isOpen ? model.endIfIdle() : Tasks.Outcome()
                #expect(tasks.close(isIdle: isIdle) == expected)
            case 99 where steps > 200:
                model.isSessionGone = true
                let expected = model.endIfIdle()
                #expect(tasks.sessionIsGone(isIdle: model.isIdle) == expected)
            default: break
            }
            #expect(tasks.records.map(\.number).sorted() == model.states.keys.sorted())
            #expect(tasks.phase == model.phase)
            #expect(tasks.isOver == model.isOver)
            if tasks.isOver { break }
        }
        return steps
    }

    @Test(arguments: 1...4) func randomCallsAgreeWithAPlainModel(seed: UInt64) {
        var random = Generator(state: seed)
        var steps = 0
        while steps < 25_000 { steps += compare(&random) }
    }
}
