// How GTK's own widgets show something: that is all they need to be Tern's view models.

public import GtkBridge
public import TernViewModels

extension ProgressBar: ProgressViewModel {
    /// A bar of unknown length pulses.
    public func showProgress(_ progress: ShownProgress) {
        if let fraction = progress.fraction { self.fraction = fraction } else { pulse() }
    }
}

extension Spinner: ActivityViewModel {
    /// Whether it turns.
    public var isActivityShown: Bool { isSpinning }
    /// Turns.
    public func beginActivity() { isSpinning = true }
    /// Stands.
    public func endActivity() { isSpinning = false }
}
