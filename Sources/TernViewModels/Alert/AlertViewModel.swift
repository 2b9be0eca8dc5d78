public import Tern

/// Who presents an alert when a task fails.
///
/// ```swift
/// extension Window: AlertViewModel {
///     func showAlert(_ alert: TaskAlert) { present(alert.title, alert.message) }
/// }
///
/// window.bindAlert(to: task)
/// ```
///
/// Any number of tasks may be bound; each shows at most one alert, and unbinds itself at its end.
@MainActor
public protocol AlertViewModel: BindableView {
    /// Presents an alert. Called on the main actor, after the task has failed.
    func showAlert(_ alert: TaskAlert)

    /// The words for an error; nil presents nothing. By default English ones, and nil for a cancellation.
    func alert(for error: NetworkError) -> TaskAlert?
}

extension AlertViewModel {
    /// The English alert of an error; nil for a cancellation.
    public func alert(for error: NetworkError) -> TaskAlert? { TaskAlert(error) }

    /// Presents an alert if the task fails, or has failed. Binding the same task again replaces its binding; other tasks
    /// stay bound.
    @discardableResult
    public func bindAlert<Value: Sendable>(to task: SessionTask<Value>) -> ViewBinding {
        for binding in bindings.contents(of: .alert) where binding.task.map({ $0.isSame(as: task) }) ?? false {
            binding.end(.replaced)
        }
        let binding = ViewBinding(of: self, to: task)
        binding.entered(bindings.add(binding, for: .alert))
        binding.drive { [weak self, weak binding] in
            var failure: NetworkError?
            do throws(NetworkError) {
                _ = try await task.value
            } catch {
                failure = error
            }
            // The wait's own cancellation comes with the binding's end.
            guard let binding, binding.isActive else { return }
            binding.end(.finished)
            guard let self, let failure, let alert = self.alert(for: failure) else { return }
            self.showAlert(alert)
        }
        return binding
    }

    /// The bindings of the tasks that have not ended, in the order in which they were bound.
    public var alertBindings: [ViewBinding] { bindings.contents(of: .alert) }

    /// Presents nothing of the tasks that are bound.
    public func unbindAlerts() { bindings.cancel(.alert) }
}

extension BindingKey<ViewBinding> {
    static var alert: Self { Self("alert") }
}

extension AnySessionTask {
    fileprivate func isSame(as other: some TaskHandle) -> Bool {
        id == other.id && sessionID == other.sessionID
    }
}
