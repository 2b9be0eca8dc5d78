/// Decides which frame is shown at which time. Pure: only differences between times matter.
///
/// The time within a frame is computed from one anchor and never summed up, so that it cannot drift. Frames whose time
/// has passed are skipped. The duration of a frame is known once it was decoded.
struct PlaybackState {
    enum Action: Equatable {
        /// Show the frame until the time; without a time, until the next change.
        case show(Int, until: Duration?)
        /// Decode this frame, and pass its duration to `setDuration`: it is needed to continue.
        case needsDuration(Int)
        /// The last loop has ended; the frame stays.
        case end(Int)
    }

    /// The rate is stored in units of 1/1024: exact for quarters, and fine enough for all other rates.
    static let rateUnit = 1_024

    let count: Int
    private(set) var index: Int
    private(set) var isPaused = false
    private(set) var hasEnded = false
    private(set) var loopsDone = 0
    private(set) var direction: PlaybackOptions.Direction
    /// Whether the next frame is the previous one in the file.
    private(set) var isBackwards: Bool
    private var durations: [Duration?]
    private var knownCount = 0
    private var knownSum = Duration.zero
    private let loops: Int
    private var rate: Int
    /// The time at which the frame had been shown for `offset`; nil while the player is paused.
    private var anchor: Duration?
    private var offset = Duration.zero
    private var requestedTime: Duration?

    /// Holds the first frame until `start`.
    /// - Parameter loopCount: The number of loops that the file states; 0 for endless.
    init(count: Int, loopCount: Int, options: PlaybackOptions = PlaybackOptions()) {
        self.count = max(1, count)
        direction = options.direction
        isBackwards = options.direction == .reverse
        index = isBackwards ? max(1, count) - 1 : 0
        loops = max(0, options.loopCount ?? loopCount)
        rate = Self.units(options.rate)
        durations = Array(repeating: nil, count: max(1, count))
    }

    /// Returns the action for a time. Times must not go back.
    mutating func advance(to now: Duration) -> Action {
        if let unknown = resolveRequestedTime(at: now) { return .needsDuration(unknown) }
        while !hasEnded {
            guard let duration = durations[index] else { return .needsDuration(index) }
            // A still image never changes.
            if count == 1 { break }
            skipLoops(at: now)
            if position(at: now) < duration { return .show(index, until: end(of: duration)) }
            if step() { offset -= duration }
        }
        hasEnded = true
        return .end(index)
    }

    /// Sets the duration of a frame at rate 1; at least a millisecond.
    mutating func setDuration(_ duration: Duration, of index: Int) {
        guard durations.indices.contains(index), durations[index] == nil else { return }
        let duration = max(duration, .milliseconds(1))
        durations[index] = duration
        knownCount += 1
        knownSum += duration
    }

    /// Whether the frame of a requested time is not found yet.
    var isSeeking: Bool { requestedTime != nil }

    /// Starts the time with the first frame. Later calls have no effect.
    mutating func start(at now: Duration) {
        if anchor == nil, !isPaused { anchor = now }
    }

    mutating func pause(at now: Duration) {
        rebase(at: now)
        anchor = nil
        isPaused = true
    }

    mutating func resume(at now: Duration) {
        guard isPaused else { return }
        isPaused = false
        anchor = now
    }

    mutating func setRate(_ rate: Double, at now: Duration) {
        rebase(at: now)
        self.rate = Self.units(rate)
    }

    /// Reverses from the current position: the elapsed part of the frame's time becomes the remaining part.
    mutating func setDirection(_ direction: PlaybackOptions.Direction, at now: Duration) {
        rebase(at: now)
        self.direction = direction
        restartLastLoop()
        let turns = direction != .bounce && isBackwards != (direction == .reverse)
        guard turns else { return }
        isBackwards.toggle()
        if let duration = durations[index] { offset = max(.zero, duration - offset) }
    }

    /// Moves to the beginning of a frame. An index outside the range is clamped.
    mutating func seek(toFrame frame: Int, at now: Duration) {
        requestedTime = nil
        restartLastLoop()
        index = min(max(0, frame), count - 1)
        offset = .zero
        if anchor != nil { anchor = now }
    }

    /// Moves to a time from the beginning, whatever the direction; a time past the end moves to the last frame.
    mutating func seek(to time: Duration, at now: Duration) {
        seek(toFrame: 0, at: now)
        requestedTime = max(.zero, time)
    }

    /// Returns the frames from now on in the order of play: the current one and up to `limit` in all, each once.
    func upcoming(_ limit: Int) -> [Int] {
        var copy = self
        var indices = [index]
        while indices.count < min(limit, count), !copy.hasEnded, copy.step(), copy.index != index {
            // After a bounce, frames that were just shown repeat.
            if indices.contains(copy.index) { break }
            indices.append(copy.index)
        }
        return indices
    }
}

extension PlaybackState {
    private static func units(_ rate: Double) -> Int {
        let range = PlaybackOptions.rates
        // NaN counts as 1.
        guard rate == rate else { return rateUnit }
        return Int((min(max(rate, range.lowerBound), range.upperBound) * Double(rateUnit)).rounded())
    }

    private func position(at now: Duration) -> Duration {
        guard let anchor else { return offset }
        return offset + max(.zero, now - anchor) * rate / Self.rateUnit
    }

    /// Returns the first time at which the frame has been shown for its whole duration.
    private func end(of duration: Duration) -> Duration? {
        guard let anchor else { return nil }
        let left = (duration - offset).attoseconds
        let units = Int128(Self.rateUnit)
        return anchor + Duration(attoseconds: (left * units + Int128(rate) - 1) / Int128(rate))
    }

    /// Whole loops are skipped by one subtraction.
    private mutating func skipLoops(at now: Duration) {
        guard knownCount == count else { return }
        var length = knownSum
        if direction == .bounce, let first = durations[0], let last = durations[count - 1] {
            length = knownSum + knownSum - first - last
        }
        var whole = Int(clamping: position(at: now).attoseconds / length.attoseconds)
        if loops > 0 { whole = min(whole, loops - loopsDone - 1) }
        guard whole > 0 else { return }
        loopsDone += whole
        offset -= length * whole
    }

    /// Moves to the next frame. Returns false, without a change, if there is none.
    private mutating func step() -> Bool {
        let next = isBackwards ? index - 1 : index + 1
        if direction == .bounce {
            if !isBackwards, next >= count {
                isBackwards = true
                return step()
            }
            if next < 0 {
                // A seek to the first frame while playing backwards: the direction changes there.
                isBackwards = false
                return endLoop() && step()
            }
            index = next
            guard isBackwards, index == 0 else { return true }
            isBackwards = false
            return endLoop()
        }
        guard !(0..<count).contains(next) else {
            index = next
            return true
        }
        guard endLoop() else { return false }
        index = isBackwards ? count - 1 : 0
        return true
    }

    private mutating func endLoop() -> Bool {
        loopsDone += 1
        hasEnded = loops > 0 && loopsDone >= loops
        return !hasEnded
    }

    /// Moves the anchor to now, before a change of the rate or direction.
    private mutating func rebase(at now: Duration) {
        guard anchor != nil else { return }
        offset = position(at: now)
        anchor = now
    }

    /// After the end, a seek plays the last loop again.
    private mutating func restartLastLoop() {
        guard hasEnded else { return }
        hasEnded = false
        loopsDone = max(0, loops - 1)
    }

    /// Finds the frame of the requested time. Returns the frame whose duration is missing; nil if none is.
    private mutating func resolveRequestedTime(at now: Duration) -> Int? {
        guard let time = requestedTime else { return nil }
        var left = time
        for frame in 0..<count {
            guard let duration = durations[frame] else { return frame }
            let isLast = frame == count - 1
            if left >= duration, !isLast {
                left -= duration
                continue
            }
            index = frame
            let shown = min(left, duration)
            offset = isBackwards ? duration - shown : shown
            if anchor != nil { anchor = now }
            break
        }
        requestedTime = nil
        return nil
    }
}

/// Options for playing an animation.
public struct PlaybackOptions: Sendable, Hashable {
    /// The order of the frames.
    public enum Direction: Sendable, Hashable, CaseIterable {
        /// From the first frame to the last.
        case forward
        /// From the last frame to the first.
        case reverse
        /// To the last frame and back to the first. Both are shown once each time; forth and back is one loop.
        case bounce
    }

    /// The allowed rates.
    public static let rates = 0.25...4.0

    /// The order of the frames, forward by default.
    public var direction: Direction
    /// The rate, 1 by default. A value outside `rates` is clamped.
    public var rate: Double
    /// The number of loops, 0 for endless; nil, the default, for the number in the file.
    public var loopCount: Int?
    /// The number of frames that are decoded in advance, 3 by default; fewer when the frame budget is short.
    public var framesAhead: Int

    /// Creates options; by default forward, at rate 1, with the loops of the file.
    public init(direction: Direction = .forward, rate: Double = 1, loopCount: Int? = nil, framesAhead: Int = 3) {
        self.direction = direction
        self.rate = rate
        self.loopCount = loopCount
        self.framesAhead = framesAhead
    }
}
