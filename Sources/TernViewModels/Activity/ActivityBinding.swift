import Tern

/// How one control begins and ends. Holds the control weakly.
@MainActor
struct ActivityControl {
    /// False when the control is gone.
    let isShown: @MainActor () -> Bool
    let begin: @MainActor () -> Void
    let end: @MainActor () -> Void
}

/// What an activity's slot holds: the binding, and the states of its tasks.
@MainActor
final class ActivityBinding: BindingContent {
    let binding: ViewBinding
    private let control: ActivityControl
    /// Those that have not ended, by their number in the state.
    private var tasks: [Int: AnySessionTask] = [:]
    private var state = ActivityState()

    init(_ binding: ViewBinding, _ control: ActivityControl) {
        self.binding = binding
        self.control = control
    }

    func slotWasLost(_ cause: SlotLoss) { binding.slotWasLost(cause) }

    nonisolated func viewIsGone() { binding.viewIsGone() }

    /// Counts these tasks too. The first look at them is taken before this returns.
    func follow(_ tasks: [AnySessionTask], for view: some BindableView) {
        // The streams first: what changes after they were made is an element of them.
        let streams = tasks.map(\.states)
        let numbers = tasks.map { state.add($0.state) }
        self.tasks.merge(zip(numbers, tasks)) { _, new in new }
        settle()
        for (number, stream) in zip(numbers, streams) {
            binding.follow(stream, for: view) { [weak self] _, state in self?.receive(state, of: number) }
        }
    }

    private func receive(_ taskState: Session.TaskState, of task: Int) {
        // The streams of several tasks arrive in any order: that one has begun may not be heard after another's end.
        for (number, other) in tasks {
            let now = number == task ? taskState : other.state
            state.change(number, to: now)
            if now.isTerminal { tasks[number] = nil }
        }
        settle()
    }

    private func settle() {
        guard binding.isActive else { return }
        let isOver = state.isOver
        switch state.settle(isShown: control.isShown()) {
        case .none: break
        case .begin: control.begin()
        case .end: control.end()
        }
        if isOver { binding.end(.finished) }
    }
}

extension BindingKey<ActivityBinding> {
    static var activity: Self { Self("activity") }
    static var refresh: Self { Self("refresh") }
}

extension BindableView {
    /// Binds tasks to a control of this view; without any, unbinds.
    func bind(
        _ tasks: [any TaskHandle], adding: Bool, to key: BindingKey<ActivityBinding>, _ control: ActivityControl
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
        binding.entered(bindings.set(bound, for: key))
        bound.follow(tasks, for: self)
        return binding
    }
}
