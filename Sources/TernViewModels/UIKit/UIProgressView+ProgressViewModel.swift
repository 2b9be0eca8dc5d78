#if canImport(UIKit) && !os(watchOS)
public import UIKit

/// Shows the fraction. A bar has no way to say that the total is not known: it stands at the beginning then.
extension UIProgressView: ProgressViewModel {
    /// Sets the progress.
    public func showProgress(_ progress: ShownProgress) {
        setProgress(Float(progress.fraction ?? 0), animated: progress.isAnimated)
    }
}
#endif
