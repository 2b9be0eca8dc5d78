#if canImport(UIKit) && !os(watchOS)
public import UIKit

/// Animates while a task runs.
extension UIActivityIndicatorView: ActivityViewModel {
    /// `isAnimating`.
    public var isActivityShown: Bool { isAnimating }
    /// Starts the animation.
    public func beginActivity() { startAnimating() }
    /// Stops the animation.
    public func endActivity() { stopAnimating() }
}
#endif
