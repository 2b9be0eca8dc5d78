public import Observation

/// Progress as observable state, for SwiftUI views and tests.
///
/// ```swift
/// @State private var progress = ObservableProgress()
/// // …
/// ProgressView(value: progress.fraction)
///     .task { progress.bindDownloadProgress(of: task) }
/// ```
@MainActor
@Observable
public final class ObservableProgress: ProgressViewModel {
    /// The last update; nil before the first binding.
    public private(set) var lastUpdate: ProgressUpdate?
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// Creates a model without progress.
    public init() {}

    /// The completed fraction, from 0 to 1; nil while the total is unknown.
    public var fraction: Double? { lastUpdate?.fraction }

    /// A Boolean value that indicates whether a transfer is running with an unknown total.
    public var isIndeterminate: Bool { lastUpdate.map { $0.fraction == nil && !$0.isFinished } ?? false }

    /// A Boolean value that indicates whether the transfer has ended.
    public var isFinished: Bool { lastUpdate?.isFinished ?? false }

    /// Stores the update.
    public func showProgress(_ progress: ProgressUpdate) { lastUpdate = progress }
}

/// The activity of tasks as observable state, for spinners, refresh controls and tests.
@MainActor
@Observable
public final class ObservableActivity: ActivityViewModel, RefreshViewModel {
    /// A Boolean value that indicates whether a task of `bindActivity` runs. You may also set it yourself.
    public var isActivityShown = false
    /// A Boolean value that indicates whether a task of `bindRefresh` runs, or the user has pulled to refresh. You may
    /// also set it yourself.
    public var isRefreshing = false
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// Creates a model without activity.
    public init() {}

    /// Sets `isActivityShown`.
    public func beginActivity() { isActivityShown = true }
    /// Clears `isActivityShown`.
    public func endActivity() { isActivityShown = false }
    /// Sets `isRefreshing`.
    public func beginRefreshing() { isRefreshing = true }
    /// Clears `isRefreshing`.
    public func endRefreshing() { isRefreshing = false }
}

/// The visibility of a network indicator as observable state.
@MainActor
@Observable
public final class ObservableNetworkActivity: NetworkActivityViewModel {
    /// A Boolean value that indicates whether to show the indicator. False before the first binding.
    public private(set) var isVisible = false
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// Creates a hidden indicator.
    public init() {}

    /// Stores the visibility.
    public func showNetworkActivity(_ isVisible: Bool) { self.isVisible = isVisible }
}

/// The alerts of failed tasks as observable state, one at a time.
///
/// ```swift
/// .alert(alerts.current?.title ?? "", isPresented: $alerts.isPresented) {
/// } message: {
///     Text(alerts.current?.message ?? "")
/// }
/// ```
@MainActor
@Observable
public final class ObservableAlert: AlertViewModel {
    private var waiting: [TaskAlert] = []
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// Creates a model without alerts.
    public init() {}

    /// The alert to present, oldest first; nil for none.
    public var current: TaskAlert? { waiting.first }

    /// A Boolean value that indicates whether there is an alert to present. Setting it to false dismisses the current
    /// alert, and the next one takes its place; setting it to true has no effect.
    public var isPresented: Bool {
        get { !waiting.isEmpty }
        set { if !newValue { dismiss() } }
    }

    /// Dismisses the current alert.
    public func dismiss() { if !waiting.isEmpty { waiting.removeFirst() } }

    /// Appends the alert to the alerts that wait.
    public func showAlert(_ alert: TaskAlert) { waiting.append(alert) }
}
