public import Tern

/// A control that shows that something goes on: a spinner.
///
/// ```swift
/// extension Spinner: ActivityViewModel {
///     var isActivityShown: Bool { isSpinning }
///     func beginActivity() { start() }
///     func endActivity() { stop() }
/// }
///
/// spinner.bindActivity(to: task)
/// ```
///
/// It begins when one of the tasks that it is bound to runs, and ends when none does: at a pause, and at the end. Begin and
/// end alternate. A pause and a resume within one turn of the main actor are not seen.
@MainActor
public protocol ActivityViewModel: BindableView {
    /// Whether the control shows activity at this moment. To be true from the begin to the end, and of what others began.
    var isActivityShown: Bool { get }
    /// Shows activity. Called only while it is not shown.
    func beginActivity()
    /// Shows none any more. Called only while it is shown.
    func endActivity()
}

extension ActivityViewModel {
    /// Follows a task, whatever it is doing: not started, running, paused or ended. Binding anew replaces; nil unbinds, and
    /// leaves the control as it is.
    ///
    /// A running task begins the control, and any other ends it, before this returns. It unbinds after the task's end.
    @discardableResult
    public func bindActivity(to task: (any TaskHandle)?) -> ViewBinding? {
        bindActivity(to: task.map { [$0] } ?? [])
    }

    /// Follows several tasks, counted: the control is shown while one of them runs.
    ///
    /// - Parameter adding: Whether those that are followed already are followed on. False by default: they are replaced.
    @discardableResult
    public func bindActivity(to tasks: [any TaskHandle], adding: Bool = false) -> ViewBinding? {
        let control = ActivityControl(
            isShown: { [weak self] in self?.isActivityShown ?? false },
            begin: { [weak self] in self?.beginActivity() },
            end: { [weak self] in self?.endActivity() })
        return bind(tasks, adding: adding, to: .activity, control)
    }

    /// The binding; nil without one.
    public var activityBinding: ViewBinding? { bindings[.activity]?.binding }

    /// Stops following.
    ///
    /// - Parameter ending: Whether the control is ended, if it shows activity. False by default: it is left as it is.
    public func unbindActivity(ending: Bool = false) {
        bindings.cancel(.activity)
        if ending, isActivityShown { endActivity() }
    }
}
