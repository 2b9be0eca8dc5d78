public import Tern

/// A control that shows activity, such as a spinner.
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
/// The control begins when one of its tasks runs, and ends when none does: at a pause and at the end. Begin and end
/// alternate. A pause that is followed by a resume within one turn of the main actor is not seen.
@MainActor
public protocol ActivityViewModel: BindableView {
    /// A Boolean value that indicates whether the control shows activity. It must be true from begin to end, and also
    /// for activity that others began.
    var isActivityShown: Bool { get }
    /// Shows activity. Called only while none is shown.
    func beginActivity()
    /// Hides the activity. Called only while it is shown.
    func endActivity()
}

extension ActivityViewModel {
    /// Follows a task in any state: not started, running, paused or ended. Binding again replaces the binding; nil
    /// unbinds, and leaves the control unchanged.
    ///
    /// Before it returns, a running task begins the activity, and any other ends it. The binding ends after the task.
    @discardableResult
    public func bindActivity(to task: (any TaskHandle)?) -> ViewBinding? {
        bindActivity(to: task.map { [$0] } ?? [])
    }

    /// Follows several tasks: the control shows activity while at least one of them runs.
    ///
    /// - Parameter adding: A Boolean value that indicates whether to keep following the tasks of the current binding.
    ///   False by default: the tasks are replaced.
    @discardableResult
    public func bindActivity(to tasks: [any TaskHandle], adding: Bool = false) -> ViewBinding? {
        let control = ActivityControl(
            isShown: { [weak self] in self?.isActivityShown ?? false },
            begin: { [weak self] in self?.beginActivity() },
            end: { [weak self] in self?.endActivity() })
        return bind(tasks, adding: adding, for: .activity, control: control)
    }

    /// The current binding; nil if there is none.
    public var activityBinding: ViewBinding? { bindings[.activity]?.binding }

    /// Stops following the tasks.
    ///
    /// - Parameter ending: A Boolean value that indicates whether to end activity that the control shows. False by
    ///   default: the control stays as it is.
    public func unbindActivity(ending: Bool = false) {
        bindings.cancel(.activity)
        if ending, isActivityShown { endActivity() }
    }
}

/// A control that the user pulls to refresh, and that shows the refresh until it ends.
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
/// The control refreshes while one of its tasks runs. A refresh that the user began is not begun again. A pause that is
/// followed by a resume within one turn of the main actor is not seen.
@MainActor
public protocol RefreshViewModel: BindableView {
    /// A Boolean value that indicates whether the control shows a refresh, including one that the user began.
    var isRefreshing: Bool { get }
    /// Shows a refresh. Called only while none is shown.
    func beginRefreshing()
    /// Ends the refresh. Called only while one is shown.
    func endRefreshing()
}

extension RefreshViewModel {
    /// Follows a task in any state: not started, running, paused or ended. Binding again replaces the binding; nil
    /// unbinds, and leaves the control unchanged.
    ///
    /// Before it returns, a running task begins the refresh, and any other ends it. The binding ends after the task.
    @discardableResult
    public func bindRefresh(to task: (any TaskHandle)?) -> ViewBinding? {
        bindRefresh(to: task.map { [$0] } ?? [])
    }

    /// Follows several tasks: the control shows a refresh while at least one of them runs.
    ///
    /// - Parameter adding: A Boolean value that indicates whether to keep following the tasks of the current binding.
    ///   False by default: the tasks are replaced.
    @discardableResult
    public func bindRefresh(to tasks: [any TaskHandle], adding: Bool = false) -> ViewBinding? {
        let control = ActivityControl(
            isShown: { [weak self] in self?.isRefreshing ?? false },
            begin: { [weak self] in self?.beginRefreshing() },
            end: { [weak self] in self?.endRefreshing() })
        return bind(tasks, adding: adding, for: .refresh, control: control)
    }

    /// The current binding; nil if there is none.
    public var refreshBinding: ViewBinding? { bindings[.refresh]?.binding }

    /// Stops following the tasks.
    ///
    /// - Parameter ending: A Boolean value that indicates whether to end a refresh that the control shows. False by
    ///   default: the control stays as it is.
    public func unbindRefresh(ending: Bool = false) {
        bindings.cancel(.refresh)
        if ending, isRefreshing { endRefreshing() }
    }
}
