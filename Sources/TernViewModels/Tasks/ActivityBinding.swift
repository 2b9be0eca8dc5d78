import Tern

/// Reads and changes the state of one control. Holds the control weakly.
@MainActor
struct ActivityControl {
    /// Returns a Boolean value that indicates whether the control shows activity; false if the control was released.
    let isShown: @MainActor () -> Bool
    let begin: @MainActor () -> Void
    let end: @MainActor () -> Void
}

/// The content of an activity slot: the binding, and the states of its tasks.
@MainActor
final class ActivityBinding: BindingContent {
    let binding: ViewBinding
    private let control: ActivityControl
    /// The tasks that have not ended, by their number in the state.
    private var tasks: [Int: AnySessionTask] = [:]
    private var state = ActivityState()

    init(_ binding: ViewBinding, _ control: ActivityControl) {
        self.binding = binding
        self.control = control
    }

    func didLeaveSlot(_ reason: SlotRemovalReason) { binding.didLeaveSlot(reason) }

    nonisolated func viewWasReleased() { binding.viewWasReleased() }

    /// Counts these tasks too. Updates the control once before it returns.
    func follow(_ tasks: [AnySessionTask], for view: some BindableView) {
        // Create the streams first: a change after that is an element of them.
        let streams = tasks.map(\.states)
        let numbers = tasks.map { state.add($0.state) }
        self.tasks.merge(zip(numbers, tasks)) { _, new in new }
        updateControl()
        for (number, stream) in zip(numbers, streams) {
            binding.follow(stream, for: view) { [weak self] _, state in self?.receive(state, of: number) }
        }
    }

    private func receive(_ taskState: Session.TaskState, of task: Int) {
        // The streams of several tasks arrive in any order: the start of one task may arrive after the end of another.
        // Read all states again.
        for (number, other) in tasks {
            let now = number == task ? taskState : other.state
            state.change(number, to: now)
            if now.isTerminal { tasks[number] = nil }
        }
        updateControl()
    }

    private func updateControl() {
        guard binding.isActive else { return }
        let isFinished = state.isFinished
        switch state.update(isShown: control.isShown()) {
        case .none: break
        case .begin: control.begin()
        case .end: control.end()
        }
        if isFinished { binding.end(.finished) }
    }
}

extension BindingKey<ActivityBinding> {
    static var activity: Self { Self("activity") }
    static var refresh: Self { Self("refresh") }
}

extension BindableView {
    /// Binds tasks to a control of this view; without tasks, unbinds.
    func bind(
        _ tasks: [any TaskHandle], adding: Bool, for key: BindingKey<ActivityBinding>, control: ActivityControl
    ) -> ViewBinding? {
        guard !tasks.isEmpty else {
            if !adding { bindings.cancel(key) }
            return bindings[key]?.binding
        }
        let tasks = tasks.map(\.erased)
        if adding, let bound = bindings[key] {
            bound.follow(tasks, for: self)
            return bound.binding
        }
        let binding = ViewBinding(of: self, to: tasks.count == 1 ? tasks[0] : nil)
        let bound = ActivityBinding(binding, control)
        binding.register(bindings.set(bound, for: key))
        bound.follow(tasks, for: self)
        return binding
    }
}

/// Decides when a control begins and ends to show activity, from the states of its tasks. Pure.
///
/// The control changes when the number of running tasks leaves zero or returns to it, and at the first update. It never
/// changes against its own state: activity that the user began is not begun again.
struct ActivityState {
    enum Action: Hashable {
        case none
        case begin
        case end
    }

    /// The states of the tasks that have not ended, by number.
    private var states: [Int: Session.TaskState] = [:]
    private var lastNumber = 0
    private var wasRunning: Bool?

    private var isRunning: Bool { states.values.contains(.running) }

    /// Whether all tasks have ended.
    var isFinished: Bool { states.isEmpty }

    /// Adds a task and returns its number.
    mutating func add(_ state: Session.TaskState) -> Int {
        lastNumber += 1
        if !state.isTerminal { states[lastNumber] = state }
        return lastNumber
    }

    /// Records a new state of a task. An ended task stays ended.
    mutating func change(_ task: Int, to state: Session.TaskState) {
        guard states[task] != nil else { return }
        states[task] = state.isTerminal ? nil : state
    }

    /// Returns the change to make, given the current state of the control.
    mutating func update(isShown: Bool) -> Action {
        let isRunning = isRunning
        guard isRunning != wasRunning else { return .none }
        wasRunning = isRunning
        if isRunning { return isShown ? .none : .begin }
        return isShown ? .end : .none
    }
}
