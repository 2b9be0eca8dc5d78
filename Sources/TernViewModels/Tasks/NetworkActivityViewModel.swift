public import Tern

/// An indicator of network activity. It appears after one second of activity, and disappears shortly after the activity
/// ends.
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
    /// Shows or hides the indicator. Called within the call that binds, and then for each change.
    func showNetworkActivity(_ isVisible: Bool)
}

extension NetworkActivityViewModel {
    /// Binds the indicator to an activity. Binding again replaces the binding; nil unbinds, and leaves the indicator
    /// unchanged.
    ///
    /// The binding does not hold the activity: when the activity is released, the indicator hides and the binding ends.
    @discardableResult
    public func bindNetworkActivity(_ activity: NetworkActivity?) -> ViewBinding? {
        guard let activity else {
            unbindNetworkActivity()
            return nil
        }
        let binding = ViewBinding(of: self, to: nil)
        binding.register(bindings.set(binding, for: .networkActivity))
        // Create the stream first: a change after that is an element of it.
        let stream = activity.visibility
        let last = LastVisibility(activity.isVisible)
        if binding.isActive { showNetworkActivity(last.isVisible) }
        binding.follow(stream, for: self) { view, isVisible in
            guard last.isVisible != isVisible else { return }
            last.isVisible = isVisible
            view.showNetworkActivity(isVisible)
        } ended: { [weak binding] _ in
            binding?.end(.finished)
        }
        return binding
    }

    /// The current binding; nil if there is none.
    public var networkActivityBinding: ViewBinding? { bindings[.networkActivity] }

    /// Stops following the activity.
    ///
    /// - Parameter hiding: A Boolean value that indicates whether to hide the indicator. False by default: the
    ///   indicator stays as it is.
    public func unbindNetworkActivity(hiding: Bool = false) {
        bindings.cancel(.networkActivity)
        if hiding { showNetworkActivity(false) }
    }
}

extension BindingKey<ViewBinding> {
    static var networkActivity: Self { Self("network activity") }
}

/// The visibility that one binding has shown last.
@MainActor
private final class LastVisibility {
    var isVisible: Bool

    init(_ isVisible: Bool) { self.isVisible = isVisible }
}
