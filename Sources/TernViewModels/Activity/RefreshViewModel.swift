public import Tern

/// A control that the user pulls to refresh, and that shows that the refresh goes on.
///
/// ```swift
/// extension PullDown: RefreshViewModel {
///     var isRefreshing: Bool { isOpen }
///     func beginRefreshing() { open() }
///     func endRefreshing() { close() }
/// }
///
/// pullDown.bindRefresh(to: task)
/// ```
///
/// It refreshes while one of the tasks that it is bound to runs. One that the user has pulled is not begun a second time.
/// A pause and a resume within one turn of the main actor are not seen.
@MainActor
public protocol RefreshViewModel: BindableView {
    /// Whether the control shows a refresh at this moment, also when the user began it.
    var isRefreshing: Bool { get }
    /// Shows a refresh. Called only while none is shown.
    func beginRefreshing()
    /// Shows none any more. Called only while one is shown.
    func endRefreshing()
}

extension RefreshViewModel {
    /// Follows a task, whatever it is doing: not started, running, paused or ended. Binding anew replaces; nil unbinds, and
    /// leaves the control as it is.
    ///
    /// A running task begins the control, and any other ends it, before this returns. It unbinds after the task's end.
    @discardableResult
    public func bindRefresh(to task: (any TaskHandle)?) -> ViewBinding? {
        bindRefresh(to: task.map { [$0] } ?? [])
    }

    /// Follows several tasks, counted: a refresh is shown while one of them runs.
    ///
    /// - Parameter adding: Whether those that are followed already are followed on. False by default: they are replaced.
    @discardableResult
    public func bindRefresh(to tasks: [any TaskHandle], adding: Bool = false) -> ViewBinding? {
        let control = ActivityControl(
            isShown: { [weak self] in self?.isRefreshing ?? false },
            begin: { [weak self] in self?.beginRefreshing() },
            end: { [weak self] in self?.endRefreshing() })
        return bind(tasks, adding: adding, to: .refresh, control)
    }

    /// The binding; nil without one.
    public var refreshBinding: ViewBinding? { bindings[.refresh]?.binding }

    /// Stops following.
    ///
    /// - Parameter ending: Whether the control is ended, if it shows a refresh. False by default: it is left as it is.
    public func unbindRefresh(ending: Bool = false) {
        bindings.cancel(.refresh)
        if ending, isRefreshing { endRefreshing() }
    }
}
