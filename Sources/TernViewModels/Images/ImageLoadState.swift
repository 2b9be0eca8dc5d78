/// The life of one load of a view: its beginning, what its view's indicator is told, and its one end. Pure.
struct ImageLoadState: Sendable, Hashable {
    enum Action: Sendable, Hashable {
        case none
        /// There is nothing to load.
        case refuse
        /// The placeholder is shown, and the view asked for its size again when it has one.
        case awaitSize
        case load
        case beginActivity
        case endActivity
        /// The end is told once the transition is over.
        case awaitTransition
        case end(endsActivity: Bool)
    }

    private enum Stage: Sendable, Hashable {
        case new, sizing, loading, arrived, finishing, ended
    }

    private var stage = Stage.new
    private var isActive = false

    mutating func begin(isValid: Bool, hasSize: Bool) -> Action {
        guard stage == .new else { return .none }
        guard isValid else { return .refuse }
        stage = hasSize ? .loading : .sizing
        return hasSize ? .load : .awaitSize
    }

    /// The view knows its size.
    mutating func sized() -> Action {
        guard stage == .sizing else { return .none }
        stage = .loading
        return .load
    }

    /// Nothing was there at once.
    mutating func waits() -> Action {
        guard stage == .loading, !isActive else { return .none }
        isActive = true
        return .beginActivity
    }

    /// A whole picture has come, or the failure: the indicator stops before the view is set.
    mutating func arrived() -> Action {
        guard stage == .loading else { return .none }
        stage = .arrived
        defer { isActive = false }
        return isActive ? .endActivity : .none
    }

    /// The view waits for it no more.
    mutating func removed() -> Action {
        defer { isActive = false }
        return isActive ? .endActivity : .none
    }

    /// No more will come.
    mutating func finished(awaitsTransition: Bool) -> Action {
        guard stage != .ended, stage != .finishing else { return .none }
        guard !awaitsTransition else {
            stage = .finishing
            return .awaitTransition
        }
        return end()
    }

    mutating func transitionEnded() -> Action { stage == .finishing ? end() : .none }

    /// The load has failed, was cancelled, or its slot is another's.
    mutating func lost() -> Action { end() }

    private mutating func end() -> Action {
        guard stage != .ended else { return .none }
        stage = .ended
        defer { isActive = false }
        return .end(endsActivity: isActive)
    }
}
