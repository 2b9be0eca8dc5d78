/// Decides when the decoder of a coming picture works, and which boundaries become previews. Pure.
///
/// Back-pressure of one: while the decoder works, newer bytes only mark it dirty, and it looks again when it is through.
struct PreviewGate {
    /// What to do about bytes that came.
    enum Intake: Equatable {
        /// Let the decoder work: it is idle.
        case work
        /// Nothing: it works, and will look again.
        case leave
    }

    /// What to do at a boundary.
    enum Boundary: Equatable {
        case render
        case pass
    }

    /// What the decoder does when it has used up what it took.
    enum Outcome: Equatable {
        /// Take what has come meanwhile.
        case work
        /// All bytes are there and used up: make the final picture.
        case finish
        /// Stop until bytes come.
        case rest
    }

    let policy: ProgressivePolicy
    private(set) var isWorking = false
    private(set) var isDirty = false
    private(set) var previews = 0
    /// The final picture is being made, or nothing is wanted any more.
    private(set) var isOver = false
    private var isEnded = false
    private var boundaries = 0
    private var lastPreview: Duration?

    /// Whether bytes that come now are not the file's, or nobody's.
    var isClosed: Bool { isEnded || isOver }

    init(policy: ProgressivePolicy) { self.policy = policy }

    mutating func received() -> Intake {
        guard !isEnded, !isOver else { return .leave }
        return wake()
    }

    /// No more bytes come.
    mutating func ended() -> Intake {
        guard !isEnded, !isOver else { return .leave }
        isEnded = true
        return wake()
    }

    /// - Parameter now: the time on a clock of which only differences matter.
    mutating func boundary(at now: Duration) -> Boundary {
        boundaries += 1
        guard !isOver, policy.every > 0, boundaries.isMultiple(of: policy.every), previews < policy.maxPreviews,
            !(policy.skipsWhenBehind && (isDirty || isEnded))
        else { return .pass }
        if let lastPreview, now - lastPreview < policy.minimumInterval { return .pass }
        previews += 1
        lastPreview = now
        return .render
    }

    mutating func settled() -> Outcome {
        guard !isOver else { return .rest }
        if isDirty {
            isDirty = false
            return .work
        }
        if isEnded {
            isOver = true
            return .finish
        }
        isWorking = false
        return .rest
    }

    /// The decoder failed, or nobody wants the picture any more: nothing is done from now on.
    mutating func stop() { isOver = true }

    private mutating func wake() -> Intake {
        guard !isWorking else {
            isDirty = true
            return .leave
        }
        isWorking = true
        return .work
    }
}
