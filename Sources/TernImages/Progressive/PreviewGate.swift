/// Decides when the decoder of an arriving image works, and which boundaries become previews.
///
/// While the decoder works, new bytes only set a flag, and the decoder checks it when it is done.
struct PreviewGate {
    /// The action for bytes that arrived.
    enum Intake: Equatable {
        /// Start the decoder, which is idle.
        case work
        /// Do nothing. The decoder works and will take the bytes.
        case leave
    }

    /// The action at a boundary.
    enum Boundary: Equatable {
        case render
        case pass
    }

    /// The action when the decoder has used its bytes.
    enum Outcome: Equatable {
        /// Take the bytes that arrived in the meantime.
        case work
        /// All bytes are used: make the final image.
        case finish
        /// Stop until bytes arrive.
        case rest
    }

    let policy: ProgressivePolicy
    private(set) var isWorking = false
    private(set) var isDirty = false
    private(set) var previews = 0
    /// A Boolean value that indicates whether the final image is being made, or the image is no longer needed.
    private(set) var isOver = false
    /// A Boolean value that indicates whether the image is no longer needed, or its decoder failed.
    private(set) var isStopped = false
    private var isEnded = false
    private var boundaries = 0
    private var lastPreview: Duration?

    /// A Boolean value that indicates whether further bytes are ignored.
    var isClosed: Bool { isEnded || isOver }

    init(policy: ProgressivePolicy) { self.policy = policy }

    mutating func received() -> Intake {
        guard !isEnded, !isOver else { return .leave }
        return wake()
    }

    /// Records that all bytes have arrived.
    mutating func ended() -> Intake {
        guard !isEnded, !isOver else { return .leave }
        isEnded = true
        return wake()
    }

    /// - Parameter now: The time on any monotonic clock.
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

    /// Ends all work, because the decoder failed or the image is no longer needed.
    mutating func stop() {
        isOver = true
        isStopped = true
    }

    private mutating func wake() -> Intake {
        guard !isWorking else {
            isDirty = true
            return .leave
        }
        isWorking = true
        return .work
    }
}

/// The previews to make of an arriving image.
///
/// Each preview costs about as much as writing the final image: at the target's size 10 to 15% of the decoding.
public struct ProgressivePolicy: Sendable, Hashable {
    /// The number of scans or passes for each preview: 1 for every one, 2 for every second; 0 for no previews.
    public var every: Int
    /// The minimum time between two previews; zero, the default, for no limit.
    public var minimumInterval: Duration
    /// The maximum number of previews.
    public var maxPreviews: Int
    /// A Boolean value that indicates whether an image without scans or passes shows the rows that have arrived. False
    /// by default.
    public var showsRows: Bool
    /// A Boolean value that indicates whether no preview is made while more bytes are waiting, because the next one
    /// will be better. False by default.
    public var skipsWhenBehind: Bool

    /// Creates a policy. By default, each scan or pass gives a preview.
    public init(
        every: Int = 1, minimumInterval: Duration = .zero, maxPreviews: Int = .max, showsRows: Bool = false,
        skipsWhenBehind: Bool = false
    ) {
        self.every = every
        self.minimumInterval = minimumInterval
        self.maxPreviews = maxPreviews
        self.showsRows = showsRows
        self.skipsWhenBehind = skipsWhenBehind
    }

    /// No previews.
    public static let none = ProgressivePolicy(every: 0)
    /// A preview of each scan of a JPEG, and of each pass of an interlaced PNG or GIF.
    public static let scans = ProgressivePolicy()
    /// At most 3 previews, at least 150 ms apart, and none while bytes arrive faster than they are decoded. Suitable
    /// for lists.
    public static let paced = ProgressivePolicy(
        minimumInterval: .milliseconds(150), maxPreviews: 3, skipsWhenBehind: true)
}
