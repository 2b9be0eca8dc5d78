import TernConcurrency

/// Plays an animation: which frame shows when, for any number of streams that show it in step.
///
/// ```swift
/// let player = AnimationPlayer(image)
/// for await frame in player.frames { show(frame.image) }
/// ```
/// It has no task and no timer of its own: a stream that nobody reads costs nothing, and one that is read late goes on
/// with the frame that is due. Time begins when the first frame is there. All calls return at once, from any thread.
public final class AnimationPlayer: Sendable {
    private struct Shared {
        var state: PlaybackState
        var isStopped = false
        var failure: ImageError?
        var waiters: [Waiter<Void>] = []

        mutating func takeWaiters() -> [Waiter<Void>] {
            defer { waiters = [] }
            return waiters
        }
    }

    /// What a stream does next.
    enum Step {
        case show(Int, ahead: FrameDemands.Window)
        /// `isDue`: it is that frame's turn, too.
        case learn(Int, isDue: Bool)
        case wait(Waiter<Void>, until: Duration?)
        case end
    }

    /// The animation that is played.
    public let image: AnimatedImage
    let clock: ClockReading
    private let framesAhead: Int
    private let shared: Lock<Shared>

    /// A player that begins with its first reader.
    /// - Parameter clock: the clock of the frames' times.
    public init(
        _ image: AnimatedImage, options: PlaybackOptions = PlaybackOptions(),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.image = image
        self.clock = ClockReading(clock)
        framesAhead = max(0, options.framesAhead)
        shared = Lock(
            Shared(state: PlaybackState(count: image.count, loopCount: image.loopCount, options: options)))
    }

    /// The frames as their times come: the one that is due first, then each next one; those whose time has passed are
    /// skipped.
    ///
    /// Each access gives a stream of its own, for one reader. It ends with the last loop, with `stop()`, when its reader
    /// is cancelled, and when a frame cannot be decoded: `failure` says why.
    public var frames: AsyncStream<ImageFrame> {
        let reader = FrameReader(self)
        return AsyncStream { await reader.next() }
    }

    /// Why the streams ended, if a frame could not be decoded.
    public var failure: ImageError? { shared.withLock { $0.failure } }

    /// The frame that shows, as of the last time that a stream looked.
    public var currentIndex: Int { shared.withLock { $0.state.index } }

    /// Whether it stands by `pause()`.
    public var isPaused: Bool { shared.withLock { $0.state.isPaused } }

    /// Lets the frame on show stand until `resume()`.
    public func pause() { change { $0.pause(at: $1) } }

    /// Goes on where it was paused: what was left of the frame's time is left still.
    public func resume() { change { $0.resume(at: $1) } }

    /// Goes to the beginning of a frame; what lies outside is moved to the first or last. Also while paused.
    public func seek(toFrame index: Int) { change { $0.seek(toFrame: index, at: $1) } }

    /// Goes to a time from the beginning, past the end to the last frame. Frames whose durations nobody knows yet are
    /// decoded for it.
    public func seek(to time: Duration) { change { $0.seek(to: time, at: $1) } }

    /// How fast it plays from now on, within `PlaybackOptions.rates`.
    public func setRate(_ rate: Double) { change { $0.setRate(rate, at: $1) } }

    /// In which order it plays from now on.
    public func setDirection(_ direction: PlaybackOptions.Direction) { change { $0.setDirection(direction, at: $1) } }

    /// Ends all streams, now and for good; frames that are being decoded for this player alone are given up.
    public func stop() {
        let waiters = shared.withLock { shared in
            shared.isStopped = true
            return shared.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    private func change(_ body: (inout PlaybackState, Duration) -> Void) {
        let waiters = shared.withLock { shared in
            let now = clock.now()
            // First what has shown until now, then the change.
            _ = shared.state.advance(to: now)
            body(&shared.state, now)
            return shared.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }
}

extension AnimationPlayer {
    /// What a stream that shows the frame does next.
    func step(shown: Int?) -> Step {
        let share = image.store.budget.share(ofFrames: image.store.frameBytes)
        return shared.withLock { shared in
            while !shared.isStopped, shared.failure == nil {
                switch shared.state.advance(to: clock.now()) {
                case .learn(let index):
                    if let duration = image.store.duration(of: index) {
                        shared.state.learn(duration, of: index)
                    } else {
                        return .learn(index, isDue: index != shown && !shared.state.isSeeking)
                    }
                case .show(let index, let until):
                    if index != shown { return .show(index, ahead: ahead(shared.state, share)) }
                    let waiter = Waiter<Void>()
                    shared.waiters.append(waiter)
                    return .wait(waiter, until: until)
                case .end(let index):
                    return index == shown ? .end : .show(index, ahead: FrameDemands.Window(indices: []))
                }
            }
            return .end
        }
    }

    /// A frame is there: its duration counts, and if it is the first, time begins.
    func learn(_ frame: ImageFrame, at index: Int) {
        shared.withLock { shared in
            shared.state.learn(frame.duration, of: index)
            if index == shared.state.index { shared.state.start(at: clock.now()) }
        }
    }

    func fail(_ error: ImageError) {
        let waiters = shared.withLock { shared in
            shared.failure = shared.failure ?? error
            return shared.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    func forget(_ waiter: Waiter<Void>) {
        shared.withLock { shared in shared.waiters.removeAll { $0 === waiter } }
    }

    /// The frames to decode while the one that is due shows.
    func ahead() -> FrameDemands.Window {
        let share = image.store.budget.share(ofFrames: image.store.frameBytes)
        return shared.withLock { ahead($0.state, share) }
    }

    private func ahead(_ state: PlaybackState, _ share: Int) -> FrameDemands.Window {
        // Backwards frames are decoded in one go of many: each go begins at the first frame.
        let wanted = state.isBackwards ? max(framesAhead, 7) : framesAhead
        let upcoming = state.upcoming(min(share, wanted + 1))
        return FrameDemands.Window(indices: Array(upcoming.dropFirst()), isBackwards: state.isBackwards)
    }
}
