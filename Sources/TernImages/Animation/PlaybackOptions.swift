/// How an animation plays.
public struct PlaybackOptions: Sendable, Hashable {
    /// The order of the frames.
    public enum Direction: Sendable, Hashable, CaseIterable {
        /// From the first to the last.
        case forward
        /// From the last to the first.
        case reverse
        /// To the last and back to the first: both are shown once each time, and there and back is one loop.
        case bounce
    }

    /// The least and the greatest rate.
    public static let rates = 0.25...4.0

    /// The order of the frames, forward by default.
    public var direction: Direction
    /// How fast it plays, 1 by default; what lies outside `rates` is moved to their nearer end.
    public var rate: Double
    /// How often it plays, 0 for ever; nil, the default, for as often as the file says.
    public var loopCount: Int?
    /// How many frames are decoded before they are needed, 3 by default; fewer when the frame budget is short.
    public var framesAhead: Int

    /// Options; by default forward, as fast and as often as the file says.
    public init(direction: Direction = .forward, rate: Double = 1, loopCount: Int? = nil, framesAhead: Int = 3) {
        self.direction = direction
        self.rate = rate
        self.loopCount = loopCount
        self.framesAhead = framesAhead
    }
}
