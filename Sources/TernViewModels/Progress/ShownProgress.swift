public import Tern

/// How far something is, as a view shows it.
public struct ShownProgress: Sendable, Hashable {
    /// Which way the bytes go.
    public enum Direction: Sendable, Hashable, CaseIterable {
        /// The body of the response.
        case download
        /// The body of the request.
        case upload
    }

    /// From 0 to 1, never falling within one binding; nil while the total is not known: an indeterminate bar.
    public let fraction: Double?
    /// Which way the bytes go: a view may be bound to both.
    public let direction: Direction
    /// Whether the change is to be animated, as the binding was told.
    public let isAnimated: Bool
    /// Whether this is the last element, and the binding over: the transfer has ended, well or not.
    public let isFinished: Bool
    /// Bytes, throughput and time left.
    public let progress: Session.Progress

    /// An element by hand, for tests and previews of what shows progress.
    public init(
        fraction: Double?, direction: Direction = .download, isAnimated: Bool = false, isFinished: Bool = false,
        progress: Session.Progress = Session.Progress()
    ) {
        self.fraction = fraction
        self.direction = direction
        self.isAnimated = isAnimated
        self.isFinished = isFinished
        self.progress = progress
    }
}
