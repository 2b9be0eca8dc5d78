import TernConcurrency

/// That a picture is to come gradually. How, and how long, is the view's affair.
///
/// A load whose request says `Options.presentation.waitsForTransition` ends once `end()` is called, or this object is let
/// go of: a view that knows nothing of it holds nothing up.
public final class ImageTransition: Sendable {
    let waiter = Waiter<Void>()

    /// A transition that has not ended.
    public init() {}

    deinit { waiter.resume() }

    /// Says that the picture stands. Later calls change nothing; from any thread.
    public func end() { waiter.resume() }
}
