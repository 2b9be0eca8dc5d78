public import Observation

/// Progress to be observed: for SwiftUI's bars, and for tests.
///
/// ```swift
/// @State private var progress = ObservableProgress()
/// // …
/// ProgressView(value: progress.fraction)
///     .task { progress.bindDownloadProgress(of: task) }
/// ```
@MainActor
@Observable
public final class ObservableProgress: ProgressViewModel {
    /// The last element; nil before the first binding.
    public private(set) var shown: ShownProgress?
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// Progress of nothing yet.
    public init() {}

    /// From 0 to 1; nil while the total is not known.
    public var fraction: Double? { shown?.fraction }

    /// Whether the transfer goes on without a known total.
    public var isIndeterminate: Bool { shown.map { $0.fraction == nil && !$0.isFinished } ?? false }

    /// Whether what is bound has ended.
    public var isFinished: Bool { shown?.isFinished ?? false }

    /// Keeps the element.
    public func showProgress(_ progress: ShownProgress) { shown = progress }
}
