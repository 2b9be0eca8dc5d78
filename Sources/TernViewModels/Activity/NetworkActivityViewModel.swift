public import Tern

/// An indicator of network activity: shown once something has run for a second, hidden once nothing has for a moment.
///
/// ```swift
/// let activity = NetworkActivity()                // held by the program: with it the indicator ends
/// await activity.follow(client.session.tasks)
/// await activity.setEnabled(true)
/// indicator.bindNetworkActivity(activity)
/// ```
///
/// Any number of indicators may be bound to one activity, before or after it is enabled and follows sessions.
@MainActor
public protocol NetworkActivityViewModel: BindableView {
    /// Shows the indicator, or hides it. Called within the call that binds, and then with each change.
    func showNetworkActivity(_ isVisible: Bool)
}

extension NetworkActivityViewModel {
    /// Shows the indicator when the activity says so. Binding anew replaces; nil unbinds, and leaves the indicator as it is.
    ///
    /// The binding does not hold the activity: when that is released, the indicator hides, and unbinds.
    @discardableResult
    public func bindNetworkActivity(_ activity: NetworkActivity?) -> ViewBinding? {
        guard let activity else {
            unbindNetworkActivity()
            return nil
        }
        let binding = ViewBinding(of: self, to: nil)
        binding.entered(bindings.set(binding, for: .networkActivity))
        // The stream first: what changes after it was made is an element of it.
        let stream = activity.visibility
        let shown = Shown(activity.isVisible)
        if binding.isActive { showNetworkActivity(shown.isVisible) }
        binding.follow(stream, for: self) { view, isVisible in
            guard shown.isVisible != isVisible else { return }
            shown.isVisible = isVisible
            view.showNetworkActivity(isVisible)
        } ended: { [weak binding] _ in
            binding?.end(.finished)
        }
        return binding
    }

    /// The binding; nil without one.
    public var networkActivityBinding: ViewBinding? { bindings[.networkActivity] }

    /// Stops following.
    ///
    /// - Parameter hiding: Whether the indicator is hidden. False by default: it is left as it is.
    public func unbindNetworkActivity(hiding: Bool = false) {
        bindings.cancel(.networkActivity)
        if hiding { showNetworkActivity(false) }
    }
}

extension BindingKey<ViewBinding> {
    static var networkActivity: Self { Self("network activity") }
}

/// What one binding has shown.
@MainActor
private final class Shown {
    var isVisible: Bool

    init(_ isVisible: Bool) { self.isVisible = isVisible }
}
