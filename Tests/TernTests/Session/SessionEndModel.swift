import TernConcurrency

@testable import Tern

/// A session with tasks on threads of their own, and callers that wait for its drain and its end. `explore` takes their
/// steps in every order.
///
/// The decisions are those of Tern: `LiveTasks` and `SessionLife`. The model replaces the threads around them. A step is
/// the use of one lock, or the part of an actor's turn between two of them; the mailbox keeps the order of messages.
struct SessionEndModel {
    /// A wrong order of two steps, which the model has to find.
    enum Fault: CaseIterable {
        /// A drain reads the tasks before it watches their ends.
        case readsBeforeWatching
        /// The session closes after it has watched the last ends.
        case watchesBeforeClosing
        /// A task asks for the watcher before it leaves.
        case asksBeforeLeaving
        /// The events end at once, and not by a message behind those of the last tasks.
        case endsEventsAtOnce
        /// The registry of a released session looks whether there is a task before it watches the ends.
        case looksBeforeWatching
    }

    struct Scenario {
        /// The number of tasks that start at once, and of those that wait for `resume` or the end of their handle.
        var calls = 0
        var handles = 0
        /// The number of drains, of those that can be cancelled, and of callers that finish the session.
        var drains = 0
        var cancelledDrains = 0
        var ends = 0
        var fault: Fault?
    }

    private final class Item: Sendable {}

    private final class Watcher: ExecutorMessage {
        func perform(_ operation: UInt64) {}
    }

    private enum TaskStep: Hashable {
        case joins
        case waits
        case runs
        /// Has published its end.
        case isPublished
        /// Has asked for the watcher and is about to leave; only with a fault.
        case leaves(notifies: Receiver?)
        case notifies(Receiver)
        case ended
    }

    private enum Receiver: Hashable { case session, registry }

    private enum CallerStep: Hashable { case begins, isQueued, waits, isResumed, isLeaving, done }

    private enum Message: Hashable {
        case begin(caller: Int)
        case stopWaiting(caller: Int)
        case taskEnded(UInt64, Receiver)
        case publication(of: Int)
        /// The end of the events, which these tasks precede.
        case lastPublication(after: Set<Int>)
    }

    /// The rest of a turn of the executor.
    private enum Rest: Hashable {
        case watchLast(caller: Int)
        case closeLate(caller: Int, isIdle: Bool)
        case watchLate(caller: Int, Set<UInt64>)
        case stopWatching
        /// The registry has found no task: it stops watching, and ends the events.
        case endEvents
        case watchEnds
    }

    /// All that later steps depend on.
    private struct Key: Hashable {
        let isOpen: Bool
        let watcher: Receiver?
        let phase: SessionLife.Phase
        let tasks: [TaskStep]
        let callers: [CallerStep]
        let remaining: [Set<UInt64>]
        let mailbox: [Message]
        let rest: Rest?
        let isReleased: Bool
        let departed: Set<Int>
        let published: Set<Int>
        let haveEventsEnded: Bool
    }

    private static let session = Watcher()
    private static let registry = Watcher()

    private let scenario: Scenario
    private let items: [Item]
    private let waiters: [Waiter<Void>]
    private var live = LiveTasks<Item>()
    private var life = SessionLife()
    private var tasks: [TaskStep]
    private var callers: [CallerStep]
    /// The tasks that each drain began with, and those whose ends its session does not know yet.
    private var known: [Set<UInt64>]
    private var remaining: [Set<UInt64>]
    private var mailbox: [Message] = []
    private var rest: Rest?
    private var isReleased = false
    private var invalidations = 0
    /// The tasks that have published their end and left.
    private var departed: Set<Int> = []
    /// The tasks whose end the streams of events know.
    private var published: Set<Int> = []
    private var haveEventsEnded = false
    private var violation: String?

    init(_ scenario: Scenario) {
        self.scenario = scenario
        let callers = scenario.drains + scenario.cancelledDrains + scenario.ends
        items = (0..<scenario.calls + scenario.handles).map { _ in Item() }
        tasks = items.map { _ in .joins }
        waiters = (0..<callers).map { _ in Waiter() }
        self.callers = waiters.map { _ in .begins }
        known = waiters.map { _ in [] }
        remaining = known
    }

    /// Takes the steps in every order. Returns the number of states, and the first fault.
    static func explore(_ scenario: Scenario) -> (states: Int, violation: String?) {
        let start = SessionEndModel(scenario)
        var seen: Set<Key> = [start.key]
        var open = [start]
        while let state = open.popLast() {
            let next = state.successors
            if let violation = state.violation ?? (next.isEmpty ? state.loss : nil) { return (seen.count, violation) }
            for state in next where seen.insert(state.key).inserted { open.append(state) }
        }
        return (seen.count, nil)
    }

    private var watcher: Receiver? {
        live.watcher.map { $0 === Self.session ? .session : .registry }
    }

    private var key: Key {
        Key(
            isOpen: live.isOpen, watcher: watcher, phase: life.phase, tasks: tasks, callers: callers,
            remaining: remaining, mailbox: mailbox, rest: rest, isReleased: isReleased, departed: departed,
            published: published,
            haveEventsEnded: haveEventsEnded)
    }

    /// The text of what is lost in a state without a next step; nil if nothing is.
    private var loss: String? {
        if callers.contains(where: { $0 != .done }) { return "a caller waits forever: \(callers), \(tasks)" }
        if !live.isEmpty { return "a task has not left" }
        if live.watcher != nil { return "the watcher is kept" }
        if invalidations != min(1, scenario.ends) { return "the session was invalidated \(invalidations) times" }
        return haveEventsEnded ? nil : "the events do not end"
    }

    // MARK: The steps

    private var successors: [Self] {
        var next: [Self] = []
        for index in tasks.indices { next += taskSteps(index) }
        for index in callers.indices { next += callerStep(index).map { [$0] } ?? [] }
        if rest != nil || !mailbox.isEmpty { next.append(after { $0.takeTurn() }) }
        if canRelease {
            next.append(
                after {
                    $0.isReleased = true
                    $0.mailbox.append(.taskEnded(0, .registry))
                })
        }
        return next
    }

    private func after(_ step: (inout Self) -> Void) -> Self {
        var next = self
        step(&next)
        return next
    }

    private func taskSteps(_ index: Int) -> [Self] {
        let number = UInt64(index)
        switch tasks[index] {
        case .joins:
            let isStarted = index < scenario.calls
            return [
                after {
                    let isTaken = $0.live.join($0.items[index], number: number, isStarted: isStarted)
                    $0.tasks[index] = isTaken ? (isStarted ? .runs : .waits) : .ended
                }
            ]
        case .waits:
            let started = after {
                $0.live.start($0.items[index], number: number)
                $0.tasks[index] = .runs
            }
            return [started, after { $0.leave(index) }]
        case .runs:
            return [
                after {
                    $0.mailbox.append(.publication(of: index))
                    $0.tasks[index] = .isPublished
                }
            ]
        case .isPublished where scenario.fault == .asksBeforeLeaving:
            return [after { $0.tasks[index] = .leaves(notifies: $0.watcher) }]
        case .isPublished:
            return [after { $0.leave(index) }]
        case .leaves(let receiver):
            return [
                after {
                    _ = $0.live.leave(number)
                    $0.tasks[index] = receiver.map { .notifies($0) } ?? .ended
                }
            ]
        case .notifies(let receiver):
            return [
                after {
                    $0.mailbox.append(.taskEnded(number, receiver))
                    $0.tasks[index] = .ended
                }
            ]
        case .ended:
            return []
        }
    }

    private mutating func leave(_ index: Int) {
        if tasks[index] == .isPublished { departed.insert(index) }
        _ = live.leave(UInt64(index))
        tasks[index] = watcher.map { .notifies($0) } ?? .ended
    }

    private func isEnd(_ caller: Int) -> Bool { caller >= scenario.drains + scenario.cancelledDrains }

    private func callerStep(_ index: Int) -> Self? {
        switch callers[index] {
        case .begins:
            after {
                $0.mailbox.append(.begin(caller: index))
                $0.callers[index] = .isQueued
            }
        case .waits where index >= scenario.drains && !isEnd(index):
            // Cancelled.
            after { $0.callers[index] = .isResumed }
        case .isResumed:
            after {
                $0.mailbox.append(.stopWaiting(caller: index))
                $0.callers[index] = .isLeaving
            }
        case .waits, .isQueued, .isLeaving, .done: nil
        }
    }

    /// Whether nothing refers to the session any more.
    private var canRelease: Bool {
        !isReleased && callers.allSatisfy { $0 == .done } && watcher != .session && rest == nil
            && !tasks.contains(.notifies(.session)) && !tasks.contains(.leaves(notifies: .session))
            && !mailbox.contains { if case .taskEnded(_, .session) = $0 { true } else { false } }
    }

    // MARK: The executor

    private mutating func takeTurn() {
        switch rest.take() {
        case .watchLast(let caller):
            finish(caller, isIdle: live.watch(Self.session).isEmpty)
        case .closeLate(let caller, let isIdle):
            live.close()
            finish(caller, isIdle: isIdle)
        case .watchLate(let caller, let numbers):
            _ = live.watch(Self.session)
            drain(caller, numbers)
        case .stopWatching:
            _ = live.stopWatching()
        case .endEvents:
            _ = live.stopWatching()
            endEvents()
        case .watchEnds:
            _ = live.watch(Self.registry)
        case nil:
            perform(mailbox.removeFirst())
        }
    }

    private mutating func perform(_ message: Message) {
        switch message {
        case .begin(let caller) where isEnd(caller) && scenario.fault == .watchesBeforeClosing:
            rest = .closeLate(caller: caller, isIdle: live.watch(Self.session).isEmpty)
        case .begin(let caller) where isEnd(caller):
            live.close()
            rest = .watchLast(caller: caller)
        case .begin(let caller) where scenario.fault == .readsBeforeWatching:
            let numbers = tasks.indices.filter { live.task(UInt64($0)) != nil }
            rest = .watchLate(caller: caller, Set(numbers.map { UInt64($0) }))
        case .begin(let caller):
            drain(caller, live.watch(Self.session))
        case .stopWaiting(let caller):
            life.remove(waiters[caller])
            remaining[caller] = []
            callers[caller] = .done
            if !life.needsEnds { _ = live.stopWatching() }
        case .taskEnded(let number, .session):
            let isIdle = live.isEmpty
            for caller in remaining.indices { remaining[caller].remove(number) }
            perform(life.taskEnded(number, isIdle: isIdle))
        case .taskEnded(_, .registry):
            let isIdle = scenario.fault == .looksBeforeWatching ? live.isEmpty : live.watch(Self.registry).isEmpty
            rest = isIdle ? .endEvents : scenario.fault == .looksBeforeWatching ? .watchEnds : nil
        case .publication(let task):
            if !haveEventsEnded { published.insert(task) }
        case .lastPublication(let tasks):
            if !haveEventsEnded, !tasks.isSubset(of: published) { violation = "an end came after the last event" }
            haveEventsEnded = true
        }
    }

    /// Ends the events after those of the tasks that have left.
    private mutating func endEvents() {
        let message = Message.lastPublication(after: departed)
        if scenario.fault == .endsEventsAtOnce { perform(message) } else { mailbox.append(message) }
    }

    private mutating func drain(_ caller: Int, _ numbers: Set<UInt64>) {
        callers[caller] = numbers.isEmpty ? .done : .waits
        if numbers.isEmpty { return }
        life.addDrain(waiters[caller], of: numbers)
        (known[caller], remaining[caller]) = (numbers, numbers)
    }

    private mutating func finish(_ caller: Int, isIdle: Bool) {
        perform(life.finish(isIdle: isIdle))
        callers[caller] = life.phase == .invalidated ? .done : .waits
        if life.phase != .invalidated { life.addEndWaiter(waiters[caller]) }
    }

    private mutating func perform(_ change: SessionLife.Change) {
        if change.isInvalidated {
            invalidations += 1
            endEvents()
            if live.isOpen || !live.isEmpty { violation = "the session was invalidated with a task" }
        }
        for waiter in change.waiters {
            guard let caller = waiters.firstIndex(where: { $0 === waiter }) else { continue }
            let isEarly = known[caller].contains { live.task($0) != nil }
            if isEarly { violation = "a drain has ended before its tasks" }
            if callers[caller] == .waits { callers[caller] = .isResumed }
        }
        if !life.needsEnds { rest = .stopWatching }
    }
}
