/// Decides the course of one load of a view: its beginning, the state of the view's activity indicator, and its one
/// end. Pure.
struct ImageLoadState: Sendable, Hashable {
    enum Action: Sendable, Hashable {
        case none
        /// The load has no URL.
        case failWithoutURL
        /// Show the placeholder, and ask the view again when it has a size.
        case awaitSize
        case load
        case beginActivity
        case endActivity
        /// The load ends after the transition.
        case awaitTransition
        case end(endsActivity: Bool)
    }

    private enum Stage: Sendable, Hashable {
        case new, waitingForSize, loading, arrived, finishing, ended
    }

    private var stage = Stage.new
    /// Whether the activity has begun and not ended: the load waits for its first image.
    private(set) var isActive = false

    mutating func begin(isValid: Bool, hasSize: Bool) -> Action {
        guard stage == .new else { return .none }
        guard isValid else { return .failWithoutURL }
        stage = hasSize ? .loading : .waitingForSize
        return hasSize ? .load : .awaitSize
    }

    /// The size of the view became known.
    mutating func receiveSize() -> Action {
        guard stage == .waitingForSize else { return .none }
        stage = .loading
        return .load
    }

    /// The image was not available at once.
    mutating func startWaiting() -> Action {
        guard stage == .loading, !isActive else { return .none }
        isActive = true
        return .beginActivity
    }

    /// A final image or the failure arrived. The indicator stops before the view shows it.
    mutating func receiveImage() -> Action {
        guard stage == .loading else { return .none }
        stage = .arrived
        defer { isActive = false }
        return isActive ? .endActivity : .none
    }

    /// The load was removed from its slot and continues without the view.
    mutating func removeFromSlot() -> Action {
        defer { isActive = false }
        return isActive ? .endActivity : .none
    }

    /// No more images will arrive.
    mutating func finish(awaitsTransition: Bool) -> Action {
        guard stage != .ended, stage != .finishing else { return .none }
        guard !awaitsTransition else {
            stage = .finishing
            return .awaitTransition
        }
        return end()
    }

    mutating func endTransition() -> Action { stage == .finishing ? end() : .none }

    /// The load failed, was cancelled, or lost its slot.
    mutating func cancel() -> Action { end() }

    private mutating func end() -> Action {
        guard stage != .ended else { return .none }
        stage = .ended
        defer { isActive = false }
        return .end(endsActivity: isActive)
    }
}
