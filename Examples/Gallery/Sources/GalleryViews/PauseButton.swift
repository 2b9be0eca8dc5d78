public import GtkBridge
public import Tern
public import TernViewModels

extension Button: BindableView {}

extension Button {
    /// Pauses and resumes the task of a binding, and says which of the two it would do.
    public func bindPause(to task: any TaskHandle) {
        bind(task.states, of: task, for: .pause) { button, state in
            button.text = state == .suspended ? "Resume" : "Pause"
            button.isEnabled = !state.isTerminal
        }
    }

    /// Acts at each click on the task that is bound at that time.
    public func pausesAtClick() {
        onClick { [weak self] in
            guard let binding = self?.bindings[.pause] else { return }
            if binding.canPause { binding.pause() } else { binding.resume() }
        }
    }
}

extension BindingKey<ViewBinding> {
    fileprivate static var pause: Self { Self("pause") }
}
