public import Tern

/// A view that shows how far something is: a bar, a ring, a line of text.
///
/// ```swift
/// extension Bar: ProgressViewModel {
///     func showProgress(_ progress: ShownProgress) {
///         if let fraction = progress.fraction { setFraction(fraction) } else { pulse() }
///     }
/// }
///
/// let binding = bar.bindDownloadProgress(of: task, animated: true)
/// ```
///
/// Upload and download are two bindings, and a view may have both. Each shows what is known in the call that binds, then
/// each change, the last one marked ``ShownProgress/isFinished``, and then unbinds itself.
@MainActor
public protocol ProgressViewModel: BindableView {
    /// Shows how far it is. Called on the main actor, first within the call that binds, and never after the binding's end.
    func showProgress(_ progress: ShownProgress)
}

extension ProgressViewModel {
    /// Follows the body of a task's response. Binding anew replaces; nil unbinds, and leaves the view as it is.
    ///
    /// - Parameter animated: Handed to the view with each element, until the next binding.
    @discardableResult
    public func bindDownloadProgress(of task: (any TaskHandle)?, animated: Bool = false) -> ViewBinding? {
        bind(task, .download, animated, now: { $0.progressNow }, stream: { $0.progress })
    }

    /// Follows the body of a task's request. Binding anew replaces; nil unbinds, and leaves the view as it is.
    ///
    /// - Parameter animated: Handed to the view with each element, until the next binding.
    @discardableResult
    public func bindUploadProgress(of task: (any TaskHandle)?, animated: Bool = false) -> ViewBinding? {
        bind(task, .upload, animated, now: { $0.uploadProgressNow }, stream: { $0.uploadProgress })
    }

    /// Follows any stream of progress. Replaces what is bound in this direction.
    ///
    /// The first element is shown when it comes. Unbinding cancels the stream's reader.
    @discardableResult
    public func bindProgress(
        _ stream: AsyncStream<Session.Progress>, as direction: ShownProgress.Direction = .download,
        animated: Bool = false
    ) -> ViewBinding {
        bind(ViewBinding(of: self, to: nil), direction, animated, now: nil, stream: stream)
    }

    /// The binding of one direction; nil without one.
    public func progressBinding(_ direction: ShownProgress.Direction = .download) -> ViewBinding? {
        bindings[.progress(direction)]
    }

    /// Stops following in one direction, or, by default, in both, and leaves the view as it is.
    public func unbindProgress(_ direction: ShownProgress.Direction? = nil) {
        for direction in direction.map({ [$0] }) ?? ShownProgress.Direction.allCases {
            bindings.cancel(.progress(direction))
        }
    }

    private func bind(
        _ task: (any TaskHandle)?, _ direction: ShownProgress.Direction, _ animated: Bool,
        now: (AnySessionTask) -> Session.Progress, stream: (AnySessionTask) -> AsyncStream<Session.Progress>
    ) -> ViewBinding? {
        guard let task = task?.erased else {
            unbindProgress(direction)
            return nil
        }
        // The stream first: what changes after it was made is an element of it.
        let stream = stream(task)
        return bind(ViewBinding(of: self, to: task), direction, animated, now: now(task), stream: stream)
    }

    private func bind(
        _ binding: ViewBinding, _ direction: ShownProgress.Direction, _ animated: Bool, now: Session.Progress?,
        stream: AsyncStream<Session.Progress>
    ) -> ViewBinding {
        binding.entered(bindings.set(binding, for: .progress(direction)))
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
    static func progress(_ direction: ShownProgress.Direction) -> Self {
        switch direction {
        case .download: Self("download progress")
        case .upload: Self("upload progress")
        }
    }
}

/// Performs what the state of one binding decides.
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

    func end(for view: any ProgressViewModel) { perform(state.ended(), for: view) }

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
