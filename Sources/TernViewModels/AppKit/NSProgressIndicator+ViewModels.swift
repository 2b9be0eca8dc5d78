#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit

/// Shows the fraction between its least and its greatest value, and while the total is not known, that something goes on.
extension NSProgressIndicator: ProgressViewModel {
    /// Sets the value, or animates.
    public func showProgress(_ progress: ShownProgress) {
        isIndeterminate = progress.fraction == nil
        if let fraction = progress.fraction { doubleValue = minValue + fraction * (maxValue - minValue) }
        // Without effect on a bar that is not indeterminate.
        if progress.fraction == nil, !progress.isFinished { startAnimation(nil) } else { stopAnimation(nil) }
    }
}

/// Animates while a task runs. AppKit does not tell whether an indicator animates: what others have started is not seen.
extension NSProgressIndicator: ActivityViewModel {
    /// Whether a binding has started the animation.
    public var isActivityShown: Bool { bindings[value: .isAnimating] ?? false }

    /// Starts the animation.
    public func beginActivity() {
        bindings[value: .isAnimating] = true
        startAnimation(nil)
    }

    /// Stops the animation.
    public func endActivity() {
        bindings[value: .isAnimating] = nil
        stopAnimation(nil)
    }
}

extension BindingKey<Bool> {
    fileprivate static var isAnimating: Self { Self("is animating") }
}
#endif
