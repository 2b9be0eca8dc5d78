import TernConcurrency

/// Plays an animation, for any number of streams in step.
///
/// ```swift
/// let player = AnimationPlayer(image)
/// for await frame in player.frames { show(frame.image) }
/// ```
/// A player has no task and no timer: a stream without a reader costs nothing, and a late reader continues with the
/// frame that is due. Time starts with the first frame. All calls return at once, from any thread.
public final class AnimationPlayer: Sendable {
    private struct Shared {
        var state: PlaybackState
        var isStopped = false
        var failure: ImageError?
        var waiters = WaiterList()
    }

    /// The next step of a stream.
    enum Step {
        case show(Int, ahead: FrameDecodingQueue.Window)
        /// `isDue` indicates that it is also time to show the frame.
        case needsDuration(Int, isDue: Bool)
        case wait(Waiter<Void>, until: Duration?)
        case end
    }

    /// The animation.
    public let image: AnimatedImage
    let clock: RelativeClock
    private let framesAhead: Int
    private let shared: Lock<Shared>

    /// Creates a player that starts with its first reader.
    /// - Parameter clock: The clock for the times of frames.
    public init(
        _ image: AnimatedImage, options: PlaybackOptions = PlaybackOptions(),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.image = image
        self.clock = RelativeClock(clock)
        framesAhead = max(0, options.framesAhead)
        shared = Lock(
            Shared(state: PlaybackState(count: image.count, loopCount: image.loopCount, options: options)))
    }

    /// The frames at their times: first the frame that is due, then each next one. Frames whose time has passed are
    /// skipped.
    ///
    /// Each access returns a separate stream, for one reader. The stream ends with the last loop, with `stop()`, when
    /// its reader is cancelled, and when a frame cannot be decoded (`failure`).
    public var frames: AsyncStream<ImageFrame> {
        let reader = FrameReader(self)
        return AsyncStream { await reader.next() }
    }

    /// The error that ended the streams, if a frame could not be decoded.
    public var failure: ImageError? { shared.withLock { $0.failure } }

    /// The index of the current frame, as of the last time that a stream looked.
    public var currentIndex: Int { shared.withLock { $0.state.index } }

    /// A Boolean value that indicates whether the player is paused.
    public var isPaused: Bool { shared.withLock { $0.state.isPaused } }

    /// Holds the current frame until `resume()`.
    public func pause() { change { $0.pause(at: $1) } }

    /// Continues after `pause()`, with the rest of the current frame's time.
    public func resume() { change { $0.resume(at: $1) } }

    /// Moves to the beginning of a frame, also while paused. An index outside the range is clamped.
    public func seek(toFrame index: Int) { change { $0.seek(toFrame: index, at: $1) } }

    /// Moves to a time from the beginning; a time past the end moves to the last frame. Decodes frames whose durations
    /// are not known yet.
    public func seek(to time: Duration) { change { $0.seek(to: time, at: $1) } }

    /// Sets the rate, within `PlaybackOptions.rates`.
    public func setRate(_ rate: Double) { change { $0.setRate(rate, at: $1) } }

    /// Sets the order of the frames.
    public func setDirection(_ direction: PlaybackOptions.Direction) { change { $0.setDirection(direction, at: $1) } }

    /// Ends all streams for good. Frames that are being decoded for this player only are cancelled.
    public func stop() {
        let waiters = shared.withLock { shared in
            shared.isStopped = true
            return shared.waiters.removeAll()
        }
        for waiter in waiters { waiter.resume() }
    }

    private func change(_ body: (inout PlaybackState, Duration) -> Void) {
        let waiters = shared.withLock { shared in
            let now = clock.now()
            // First accounts for the time until now, then applies the change.
            _ = shared.state.advance(to: now)
            body(&shared.state, now)
            return shared.waiters.removeAll()
        }
        for waiter in waiters { waiter.resume() }
    }
}

extension AnimationPlayer {
    /// Returns the next step of a stream that shows the frame.
    func step(shown: Int?) -> Step {
        let share = image.store.budget.share(ofFrames: image.store.frameBytes)
        return shared.withLock { shared in
            while !shared.isStopped, shared.failure == nil {
                switch shared.state.advance(to: clock.now()) {
                case .needsDuration(let index):
                    if let duration = image.store.duration(of: index) {
                        shared.state.setDuration(duration, of: index)
                    } else {
                        return .needsDuration(index, isDue: index != shown && !shared.state.isSeeking)
                    }
                case .show(let index, let until):
                    if index != shown { return .show(index, ahead: upcomingWindow(shared.state, share: share)) }
                    return .wait(shared.waiters.add(), until: until)
                case .end(let index):
                    return index == shown ? .end : .show(index, ahead: FrameDecodingQueue.Window(indices: []))
                }
            }
            return .end
        }
    }

    /// Records the duration of a decoded frame. Starts the time if it is the first frame.
    func setDuration(of frame: ImageFrame, at index: Int) {
        shared.withLock { shared in
            shared.state.setDuration(frame.duration, of: index)
            if index == shared.state.index { shared.state.start(at: clock.now()) }
        }
    }

    func fail(_ error: ImageError) {
        let waiters = shared.withLock { shared in
            shared.failure = shared.failure ?? error
            return shared.waiters.removeAll()
        }
        for waiter in waiters { waiter.resume() }
    }

    func removeWaiter(_ waiter: Waiter<Void>) {
        shared.withLock { $0.waiters.remove(waiter) }
    }

    /// Returns the frames to decode while the current one is shown.
    func upcomingWindow() -> FrameDecodingQueue.Window {
        let share = image.store.budget.share(ofFrames: image.store.frameBytes)
        return shared.withLock { upcomingWindow($0.state, share: share) }
    }

    private func upcomingWindow(_ state: PlaybackState, share: Int) -> FrameDecodingQueue.Window {
        // Backwards, frames are decoded in batches, because each batch begins at the first frame.
        let wanted = state.isBackwards ? max(framesAhead, 7) : framesAhead
        let upcoming = state.upcoming(min(share, wanted + 1))
        return FrameDecodingQueue.Window(indices: Array(upcoming.dropFirst()), isBackwards: state.isBackwards)
    }
}

/// The position of one stream in an animation. Only its stream calls it, one call at a time.
final class FrameReader: Sendable {
    private struct Position {
        var shown: Int?
        /// A frame that was decoded for its duration, and may be shown next.
        var decodedEarly: (index: Int, frame: ImageFrame)?
        var hasLeft = false
    }

    private let player: AnimationPlayer
    private let reader: Int
    private let position = Lock(Position())

    init(_ player: AnimationPlayer) {
        self.player = player
        reader = player.image.store.join()
    }

    deinit { leave() }

    func next() async -> ImageFrame? {
        while !Task.isCancelled {
            do throws(ImageError) {
                switch player.step(shown: position.withLock { $0.shown }) {
                case .needsDuration(let index, let isDue):
                    let begin = player.clock.now()
                    let frame = try await player.image.store.frame(
                        for: FrameDecodingQueue.Window(indices: [index]), of: reader)
                    player.setDuration(of: frame, at: index)
                    // A late reader skips frames. But a decoder that takes much of a frame's time would never be in
                    // time: its frame is shown, even if late.
                    let isSlow = player.clock.now() - begin >= frame.duration / 4
                    guard isDue, isSlow else {
                        position.withLock { $0.decodedEarly = (index, frame) }
                        continue
                    }
                    player.image.store.prepare(player.upcomingWindow(), of: reader)
                    position.withLock { $0.shown = index }
                    return frame
                case .show(let index, let ahead):
                    let frame = try await frame(at: index, ahead: ahead)
                    position.withLock { $0.shown = index }
                    player.setDuration(of: frame, at: index)
                    return frame
                case .wait(let waiter, let until):
                    await wait(waiter, until)
                case .end:
                    leave()
                    return nil
                }
            } catch {
                if error.kind != .cancelled { player.fail(error) }
            }
        }
        leave()
        return nil
    }

    /// Returns the frame, and asks the store to prepare the frames after it.
    private func frame(at index: Int, ahead: FrameDecodingQueue.Window) async throws(ImageError) -> ImageFrame {
        let decodedEarly = position.withLock { position in
            defer { position.decodedEarly = nil }
            return position.decodedEarly.flatMap { $0.index == index ? $0.frame : nil }
        }
        let store = player.image.store
        guard let decodedEarly else {
            var window = ahead
            window.indices.insert(index, at: 0)
            return try await store.frame(for: window, of: reader)
        }
        store.prepare(ahead, of: reader)
        return decodedEarly
    }

    private func wait(_ waiter: Waiter<Void>, _ until: Duration?) async {
        if let until {
            let clock = player.clock
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await clock.sleep(until) }
                group.addTask { await waiter.wait() }
                await group.next()
                group.cancelAll()
            }
        } else {
            await waiter.wait()
        }
        player.removeWaiter(waiter)
    }

    private func leave() {
        let isFirst = position.withLock { position in
            defer { position.hasLeft = true }
            return !position.hasLeft
        }
        if isFirst { player.image.store.leave(reader) }
    }
}

/// A clock of any type, reduced to two closures: the time since this value was created, and a sleep until such a time.
///
/// `CacheClock` of TernCache counts whole nanoseconds instead, because each read of a memory cache compares its time,
/// and its sleep tells a cancellation from the deadline.
struct RelativeClock: Sendable {
    let now: @Sendable () -> Duration
    /// Returns at that time, or earlier when the task is cancelled.
    let sleep: @Sendable (_ until: Duration) async -> Void

    init(_ clock: any Clock<Duration>) { self = Self.reading(clock) }

    private init(now: @escaping @Sendable () -> Duration, sleep: @escaping @Sendable (Duration) async -> Void) {
        self.now = now
        self.sleep = sleep
    }

    private static func reading<C: Clock>(_ clock: C) -> RelativeClock where C.Duration == Duration {
        let start = clock.now
        return RelativeClock(
            now: { start.duration(to: clock.now) },
            sleep: { until in
                // A sleep throws only when the task is cancelled, which the caller checks itself.
                try? await clock.sleepWithoutDescriptor(until: start.advanced(by: until))
            })
    }
}
