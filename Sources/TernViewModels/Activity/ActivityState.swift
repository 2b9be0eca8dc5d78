import Tern

/// Whether a control that shows activity begins or ends, by the states of the tasks that it is bound to. Pure.
///
/// It acts where the number of running tasks leaves zero or comes back to it, and at the first look, and never against
/// what the control shows already: what the user began is not begun twice.
struct ActivityState {
    enum Action: Hashable {
        case none
        case begin
        case end
    }

    /// Those that have not ended, by number.
    private var states: [Int: Session.TaskState] = [:]
    private var lastNumber = 0
    private var wasRunning: Bool?

    private var isRunning: Bool { states.values.contains(.running) }

    /// Whether all tasks have ended: nothing more will come.
    var isOver: Bool { states.isEmpty }

    /// Another task. Its number.
    mutating func add(_ state: Session.TaskState) -> Int {
        lastNumber += 1
        if !state.isTerminal { states[lastNumber] = state }
        return lastNumber
    }

    /// A task has changed. An ended one stays ended.
    mutating func change(_ task: Int, to state: Session.TaskState) {
        guard states[task] != nil else { return }
        states[task] = state.isTerminal ? nil : state
    }

    /// What is to be done, given what the control shows at this moment.
    mutating func settle(isShown: Bool) -> Action {
        let isRunning = isRunning
        guard isRunning != wasRunning else { return .none }
        wasRunning = isRunning
        if isRunning { return isShown ? .none : .begin }
        return isShown ? .end : .none
    }
}
