import Tern

/// What one binding shows of a stream of progress: it never goes backwards, whatever comes, and has one last element.
/// Pure.
struct ProgressState {
    enum Action: Hashable {
        case none
        case show(ShownProgress)
        /// The last one: the binding is over.
        case finish(ShownProgress)
    }

    private let direction: ShownProgress.Direction
    private let isAnimated: Bool
    private var shown: ShownProgress?

    init(_ direction: ShownProgress.Direction, isAnimated: Bool) {
        self.direction = direction
        self.isAnimated = isAnimated
    }

    /// The next element of the stream.
    mutating func next(_ progress: Session.Progress) -> Action {
        guard shown?.isFinished != true else { return .none }
        let next = element(progress, isFinished: progress.isFinished)
        defer { shown = next }
        if next.isFinished { return .finish(next) }
        return next == shown ? .none : .show(next)
    }

    /// The stream has ended. A last element is made of what was shown, if the stream gave none.
    mutating func ended() -> Action {
        guard shown?.isFinished != true else { return .none }
        let last = element(shown?.progress ?? Session.Progress(), isFinished: true)
        shown = last
        return .finish(last)
    }

    private func element(_ progress: Session.Progress, isFinished: Bool) -> ShownProgress {
        // A total that is lost or grows would take back what was shown.
        let fraction: Double? =
            switch (shown?.fraction, progress.fractionCompleted) {
            case (let old?, let new?): max(old, new)
            case (let old, let new): new ?? old
            }
        return ShownProgress(
            fraction: fraction, direction: direction, isAnimated: isAnimated, isFinished: isFinished,
            progress: progress)
    }
}
