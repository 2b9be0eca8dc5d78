public import Observation

/// Whether the indicator of network activity is to be shown, to be observed.
@MainActor
@Observable
public final class ObservableNetworkActivity: NetworkActivityViewModel {
    /// Whether it is to be shown. False before the first binding.
    public private(set) var isVisible = false
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// An indicator that is hidden.
    public init() {}

    /// Keeps the answer.
    public func showNetworkActivity(_ isVisible: Bool) { self.isVisible = isVisible }
}
