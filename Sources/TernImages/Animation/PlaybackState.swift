/// Which frame shows at which time. Pure: times are those of a clock of which only differences matter.
///
/// The time within a frame is computed from one anchor, never summed up from frame to frame: it cannot drift. Frames
/// whose time has passed are skipped. The duration of a frame is known once somebody has decoded it.
struct PlaybackState {
    enum Action: Equatable {
        /// The frame shows, until the time; without one until something is changed.
        case show(Int, until: Duration?)
        /// What shows cannot be told before this frame's duration is known: say it with `learn`.
        case learn(Int)
        /// It has played as often as it should; the frame stays.
        case end(Int)
    }

    /// The rate in parts of this: exact for quarters and more than fine enough for the rest.
    static let rateUnit = 1_024

    let count: Int
    private(set) var index: Int
    private(set) var isPaused = false
    private(set) var hasEnded = false
    private(set) var loopsDone = 0
    private(set) var direction: PlaybackOptions.Direction
    /// Whether the next frame is the one before.
    private(set) var isBackwards: Bool
    private var durations: [Duration?]
    private var knownCount = 0
    private var knownSum = Duration.zero
    private let loops: Int
    private var rate: Int
    /// The time at which the frame had shown for `offset`; nil while it stands.
    private var anchor: Duration?
    private var offset = Duration.zero
    private var wantedTime: Duration?

    /// Stands on its first frame until `start`.
    /// - Parameter loopCount: how often the file says it plays, 0 for ever.
    init(count: Int, loopCount: Int, options: PlaybackOptions = PlaybackOptions()) {
        self.count = max(1, count)
        direction = options.direction
        isBackwards = options.direction == .reverse
        index = isBackwards ? max(1, count) - 1 : 0
        loops = max(0, options.loopCount ?? loopCount)
        rate = Self.units(options.rate)
        durations = Array(repeating: nil, count: max(1, count))
    }

    /// What shows at the time. Times must not go back.
    mutating func advance(to now: Duration) -> Action {
        if let unknown = resolveWantedTime(at: now) { return .learn(unknown) }
        while !hasEnded {
            guard let duration = durations[index] else { return .learn(index) }
            // A still picture: nothing will ever change.
            if count == 1 { break }
            skipLoops(at: now)
            if position(at: now) < duration { return .show(index, until: end(of: duration)) }
            if step() { offset -= duration }
        }
        hasEnded = true
        return .end(index)
    }

    /// Says how long a frame shows, before the rate; at least a millisecond.
    mutating func learn(_ duration: Duration, of index: Int) {
        guard durations.indices.contains(index), durations[index] == nil else { return }
        let duration = max(duration, .milliseconds(1))
        durations[index] = duration
        knownCount += 1
        knownSum += duration
    }

    /// Whether a time was asked for whose frame is not found yet.
    var isSeeking: Bool { wantedTime != nil }

    /// The first frame is there: its time begins. Later calls change nothing.
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

    /// Goes on the other way from where it is: what has shown of the frame is what is left of it.
    mutating func setDirection(_ direction: PlaybackOptions.Direction, at now: Duration) {
        rebase(at: now)
        self.direction = direction
        revive()
        let turns = direction != .bounce && isBackwards != (direction == .reverse)
        guard turns else { return }
        isBackwards.toggle()
        if let duration = durations[index] { offset = max(.zero, duration - offset) }
    }

    /// Goes to a frame's beginning; what lies outside is moved to the first or last.
    mutating func seek(toFrame frame: Int, at now: Duration) {
        wantedTime = nil
        revive()
        index = min(max(0, frame), count - 1)
        offset = .zero
        if anchor != nil { anchor = now }
    }

    /// Goes to a time from the animation's beginning, whatever the direction; past its length to the end.
    mutating func seek(to time: Duration, at now: Duration) {
        seek(toFrame: 0, at: now)
        wantedTime = max(.zero, time)
    }

    /// The frames that show from now on, in their order: the one now and up to `limit` in all, each once.
    func upcoming(_ limit: Int) -> [Int] {
        var copy = self
        var indices = [index]
        while indices.count < min(limit, count), !copy.hasEnded, copy.step(), copy.index != index {
            // Bouncing it comes by what it has just shown: further on nothing is new for a while.
            if indices.contains(copy.index) { break }
            indices.append(copy.index)
        }
        return indices
    }
}

extension PlaybackState {
    private static func units(_ rate: Double) -> Int {
        let range = PlaybackOptions.rates
        // A rate that is no number is none.
        guard rate == rate else { return rateUnit }
        return Int((min(max(rate, range.lowerBound), range.upperBound) * Double(rateUnit)).rounded())
    }

    private func position(at now: Duration) -> Duration {
        guard let anchor else { return offset }
        return offset + max(.zero, now - anchor) * rate / Self.rateUnit
    }

    /// The first time at which the frame has shown for all of its duration.
    private func end(of duration: Duration) -> Duration? {
        guard let anchor else { return nil }
        let left = (duration - offset).attoseconds
        let units = Int128(Self.rateUnit)
        return anchor + Duration(attoseconds: (left * units + Int128(rate) - 1) / Int128(rate))
    }

    /// A whole loop leads back to where it is: many of them are one subtraction.
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

    /// The next frame; false, and all stays, if there is none.
    private mutating func step() -> Bool {
        let next = isBackwards ? index - 1 : index + 1
        if direction == .bounce {
            if !isBackwards, next >= count {
                isBackwards = true
                return step()
            }
            if next < 0 {
                // Sent to the first frame on its way back: it turns there.
                isBackwards = false
                return loopDone() && step()
            }
            index = next
            guard isBackwards, index == 0 else { return true }
            isBackwards = false
            return loopDone()
        }
        guard !(0..<count).contains(next) else {
            index = next
            return true
        }
        guard loopDone() else { return false }
        index = isBackwards ? count - 1 : 0
        return true
    }

    private mutating func loopDone() -> Bool {
        loopsDone += 1
        hasEnded = loops > 0 && loopsDone >= loops
        return !hasEnded
    }

    /// Makes now the anchor: what follows is another rate, direction or none.
    private mutating func rebase(at now: Duration) {
        guard anchor != nil else { return }
        offset = position(at: now)
        anchor = now
    }

    /// What has ended plays its last loop again when it is sent somewhere.
    private mutating func revive() {
        guard hasEnded else { return }
        hasEnded = false
        loopsDone = max(0, loops - 1)
    }

    /// Finds the frame of a time that was asked for; the frame whose duration it lacks, nil if it lacks none.
    private mutating func resolveWantedTime(at now: Duration) -> Int? {
        guard let time = wantedTime else { return nil }
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
        wantedTime = nil
        return nil
    }
}
