public import Observation

/// Whether tasks run, to be observed: for spinners and for refreshing, and for tests.
@MainActor
@Observable
public final class ObservableActivity: ActivityViewModel, RefreshViewModel {
    /// Whether one of the tasks of `bindActivity` runs. May be set by hand.
    public var isActivityShown = false
    /// Whether one of the tasks of `bindRefresh` runs, or the user has pulled. May be set by hand.
    public var isRefreshing = false
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// No activity.
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
