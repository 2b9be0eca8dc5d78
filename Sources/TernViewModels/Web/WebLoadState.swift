/// The life of a web view's load: who is told what, and that it ends once. Pure.
struct WebLoadState {
    enum Action: Hashable {
        case none
        /// The task starts, and the view is told.
        case start
        /// The content is shown, and then `shown` asked what is left to do.
        case show
        /// The view is told that it failed, and the caller.
        case fail
        /// The view is told that it finished, and the caller has the content.
        case finish
        /// The caller has an error of kind `.cancelled`, and the view is told that what it was told of has ended, if it was.
        case endCancelled(tellsView: Bool)
    }

    private enum Phase {
        case suspended
        case running
        case showing
        case ended
    }

    private var phase = Phase.suspended

    var hasEnded: Bool { phase == .ended }

    /// The first of them starts the load; afterwards a resume is the task's affair.
    mutating func resumed() -> Action {
        guard phase == .suspended else { return .none }
        phase = .running
        return .start
    }

    mutating func succeeded() -> Action {
        guard phase == .suspended || phase == .running else { return .none }
        phase = .showing
        return .show
    }

    mutating func failed() -> Action {
        guard phase == .suspended || phase == .running else { return .none }
        phase = .ended
        return .fail
    }

    /// The view has the content, unless it has started another load of its own while it was shown this one.
    mutating func shown() -> Action {
        guard phase == .showing else { return .none }
        phase = .ended
        return .finish
    }

    /// Cancelled, replaced, or without a view.
    mutating func lost() -> Action {
        guard phase != .ended else { return .none }
        defer { phase = .ended }
        return .endCancelled(tellsView: phase != .suspended)
    }
}
