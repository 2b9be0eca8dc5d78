/// Which previews of a picture that is still coming are made.
///
/// Each preview costs about as much as writing the final picture: at the target's size 10 to 15% of the decoding.
public struct ProgressivePolicy: Sendable, Hashable {
    /// Of how many scans or passes one gives a preview: 1 each, 2 every second; 0 none.
    public var every: Int
    /// The least time from one preview to the next; zero, the default, for no such limit.
    public var minimumInterval: Duration
    /// How many previews there are at most.
    public var maxPreviews: Int
    /// Whether a picture that does not come in scans or passes shows the rows that are there. False by default.
    public var showsRows: Bool
    /// Whether no preview is made while more bytes wait already: what comes next will be better. False by default.
    public var skipsWhenBehind: Bool

    /// A policy; by default a preview of each scan or pass.
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
    /// At most 3 previews, 150 ms apart and more, none when the bytes come faster than they are decoded: for lists.
    public static let paced = ProgressivePolicy(
        minimumInterval: .milliseconds(150), maxPreviews: 3, skipsWhenBehind: true)
}
