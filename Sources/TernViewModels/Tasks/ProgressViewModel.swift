public import Tern

/// A view that shows progress, such as a bar, a ring or a line of text.
///
/// ```swift
/// extension Bar: ProgressViewModel {
///     func showProgress(_ progress: ProgressUpdate) {
///         if let fraction = progress.fraction { setFraction(fraction) } else { pulse() }
///     }
/// }
///
/// let binding = bar.bindDownloadProgress(of: task, animated: true)
/// ```
///
/// Upload and download are separate bindings, and a view may have both. Each binding shows the current progress in the
/// call that binds, then each change, and marks the last update with ``ProgressUpdate/isFinished``. Then it ends.
@MainActor
public protocol ProgressViewModel: BindableView {
    /// Shows the progress. Called on the main actor, first within the call that binds, and never after the end of the
    /// binding.
    func showProgress(_ progress: ProgressUpdate)
}

extension ProgressViewModel {
    /// Follows the body of a task's response. Binding again replaces the binding; nil unbinds, and leaves the view
    /// unchanged.
    ///
    /// - Parameter animated: The value of `isAnimated` in each update of this binding.
    @discardableResult
    public func bindDownloadProgress(of task: (any TaskHandle)?, animated: Bool = false) -> ViewBinding? {
        bind(task, as: .download, animated: animated, now: { $0.progressNow }, stream: { $0.progress })
    }

    /// Follows the body of a task's request. Binding again replaces the binding; nil unbinds, and leaves the view
    /// unchanged.
    ///
    /// - Parameter animated: The value of `isAnimated` in each update of this binding.
    @discardableResult
    public func bindUploadProgress(of task: (any TaskHandle)?, animated: Bool = false) -> ViewBinding? {
        bind(
            task, as: .upload, animated: animated, now: { $0.uploadProgressNow }, stream: { $0.uploadProgress })
    }

    /// Follows any stream of progress. Replaces the binding of the same direction.
    ///
    /// The first element is shown when it arrives. Unbinding cancels the iteration of the stream.
    @discardableResult
    public func bindProgress(
        _ stream: AsyncStream<Session.Progress>, as direction: ProgressUpdate.Direction = .download,
        animated: Bool = false
    ) -> ViewBinding {
        bind(ViewBinding(of: self, to: nil), as: direction, animated: animated, now: nil, stream: stream)
    }

    /// Returns the binding of one direction; nil if there is none.
    public func progressBinding(_ direction: ProgressUpdate.Direction = .download) -> ViewBinding? {
        bindings[.progress(direction)]
    }

    /// Stops following in one direction, or by default in both, and leaves the view unchanged.
    public func unbindProgress(_ direction: ProgressUpdate.Direction? = nil) {
        for direction in direction.map({ [$0] }) ?? ProgressUpdate.Direction.allCases {
            bindings.cancel(.progress(direction))
        }
    }

    private func bind(
        _ task: (any TaskHandle)?, as direction: ProgressUpdate.Direction, animated: Bool,
        now: (AnySessionTask) -> Session.Progress, stream: (AnySessionTask) -> AsyncStream<Session.Progress>
    ) -> ViewBinding? {
        guard let task = task?.erased else {
            unbindProgress(direction)
            return nil
        }
        // Create the stream first: a change after that is an element of it.
        let stream = stream(task)
        return bind(
            ViewBinding(of: self, to: task), as: direction, animated: animated, now: now(task), stream: stream)
    }

    private func bind(
        _ binding: ViewBinding, as direction: ProgressUpdate.Direction, animated: Bool, now: Session.Progress?,
        stream: AsyncStream<Session.Progress>
    ) -> ViewBinding {
        binding.register(bindings.set(binding, for: .progress(direction)))
        let follower = ProgressFollower(binding, ProgressState(direction, isAnimated: animated))
        if let now { follower.receive(now, for: self) }
        binding.follow(stream, for: self) { view, progress in
            follower.receive(progress, for: view)
        } ended: { view in
            follower.end(for: view)
        }
        return binding
    }
}

extension BindingKey<ViewBinding> {
    static func progress(_ direction: ProgressUpdate.Direction) -> Self {
        switch direction {
        case .download: Self("download progress")
        case .upload: Self("upload progress")
        }
    }
}

/// Performs the decisions of a progress state for one binding.
@MainActor
private final class ProgressFollower {
    private weak var binding: ViewBinding?
    private var state: ProgressState

    init(_ binding: ViewBinding, _ state: ProgressState) {
        self.binding = binding
        self.state = state
    }

    func receive(_ progress: Session.Progress, for view: any ProgressViewModel) {
        perform(state.next(progress), for: view)
    }

    func end(for view: any ProgressViewModel) { perform(state.end(), for: view) }

    private func perform(_ action: ProgressState.Action, for view: any ProgressViewModel) {
        guard let binding, binding.isActive else { return }
        switch action {
        case .none: break
        case .show(let progress): view.showProgress(progress)
        case .finish(let progress):
            view.showProgress(progress)
            binding.end(.finished)
        }
    }
}

/// The progress of a transfer, for a view to show.
public struct ProgressUpdate: Sendable, Hashable {
    /// The direction of a transfer.
    public enum Direction: Sendable, Hashable, CaseIterable {
        /// The body of the response.
        case download
        /// The body of the request.
        case upload
    }

    /// The completed fraction, from 0 to 1; nil while the total is unknown. Never decreases within an attempt
    /// (``Tern/Session/Progress/attempt``), and is less than 1 before the last update.
    /// Show an indeterminate bar for nil.
    public let fraction: Double?
    /// The direction of the transfer; a view may be bound to both.
    public let direction: Direction
    /// A Boolean value that indicates whether to animate the change, as given to the binding.
    public let isAnimated: Bool
    /// A Boolean value that indicates whether this is the last update of the binding: the transfer has succeeded or
    /// failed.
    public let isFinished: Bool
    /// The bytes, the throughput and the remaining time.
    public let progress: Session.Progress

    /// Creates an update for a test or a preview.
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

/// Decides which updates a binding shows of a stream of progress. The fraction never decreases within an attempt, and
/// exactly one update is the last. Pure.
struct ProgressState {
    enum Action: Hashable {
        case none
        case show(ProgressUpdate)
        /// The last update; the binding ends.
        case finish(ProgressUpdate)
    }

    private let direction: ProgressUpdate.Direction
    private let isAnimated: Bool
    private var shown: ProgressUpdate?

    init(_ direction: ProgressUpdate.Direction, isAnimated: Bool) {
        self.direction = direction
        self.isAnimated = isAnimated
    }

    /// Handles the next element of the stream.
    mutating func next(_ progress: Session.Progress) -> Action {
        guard shown?.isFinished != true else { return .none }
        let next = element(progress)
        defer { shown = next }
        if next.isFinished { return .finish(next) }
        return next == shown ? .none : .show(next)
    }

    /// Handles the end of the stream. If the stream gave no last element, the last update repeats the progress shown
    /// before.
    mutating func end() -> Action {
        guard shown?.isFinished != true else { return .none }
        let progress = shown?.progress ?? Session.Progress()
        let ended = Session.Progress(
            completedBytes: progress.completedBytes, totalBytes: progress.totalBytes,
            bytesPerSecond: progress.bytesPerSecond, isFinished: true, attempt: progress.attempt)
        let last = element(ended)
        shown = last
        return .finish(last)
    }

    private func element(_ progress: Session.Progress) -> ProgressUpdate {
        // A total that becomes unknown or grows must not reduce the fraction. A new attempt starts over.
        let shownFraction = shown?.progress.attempt == progress.attempt ? shown?.fraction : nil
        let fraction: Double? =
            switch (shownFraction, progress.fractionCompleted) {
            case (let old?, let new?): max(old, new)
            case (let old, let new): new ?? old
            }
        return ProgressUpdate(
            fraction: fraction, direction: direction, isAnimated: isAnimated,
            isFinished: progress.isFinished, progress: progress)
    }
}
