import Dispatch
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

/// Runs decoding on a queue of its own.
final class AnimationExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "tern.tests.animation")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = unsafe asUnownedTaskExecutor()
        queue.async { unsafe job.runSynchronously(on: executor) }
    }
}

/// Frames whose first byte is their index. Counts the decodings of each.
final class CountedFrames: ImageFrames {
    let durations: [Int]
    let loopCount: Int
    let size: PixelSize
    private let decoded = Lock<[Int]>([])
    private let gate: (index: Int, opens: DispatchSemaphore)?
    private let broken: Int?

    init(
        _ durations: [Int], loops: Int = 0, side: Int = 4, gate: (index: Int, opens: DispatchSemaphore)? = nil,
        broken: Int? = nil
    ) {
        self.durations = durations
        loopCount = loops
        size = PixelSize(width: side, height: side)
        self.gate = gate
        self.broken = broken
    }

    var count: Int { durations.count }
    var order: [Int] { decoded.withLock { $0 } }

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        decoded.withLock { $0.append(index) }
        if let gate, gate.index == index { gate.opens.wait() }
        if Task.isCancelled { throw ImageError(.cancelled, "cancelled") }
        var bytes = [UInt8](repeating: 0, count: size.pixelCount * 4)
        bytes[0] = UInt8(index)
        guard index != broken, let image = RasterImage(size: size, premultiplied: bytes) else {
            throw ImageError(.corrupt, "frame \(index)")
        }
        return ImageFrame(image: image, duration: .milliseconds(durations[index]))
    }
}

extension ImageFrame {
    var number: Int { Int(image.pixels.bytes[0]) }
}

/// Reads a stream in a task and records the frames with their times.
final class Audience: Sendable {
    private let seen = Lock<[(frame: Int, at: Duration)]>([])
    private let task: Lock<Task<Void, Never>?> = Lock(nil)

    init(_ player: AnimationPlayer, _ clock: ManualClock) {
        let frames = player.frames
        let task = Task {
            for await frame in frames {
                let now = clock.now.offset
                seen.withLock { $0.append((frame.number, now)) }
            }
        }
        self.task.withLock { $0 = task }
    }

    var frames: [Int] { seen.withLock { $0.map(\.frame) } }
    var times: [Duration] { seen.withLock { $0.map(\.at) } }
    func cancel() { task.withLock { $0 }?.cancel() }
    func end() async { await task.withLock { $0 }?.value }
}

@Suite(.timeLimit(.minutes(1))) struct AnimationPlayerTests {
    let clock = ManualClock()
    let executor = AnimationExecutor()

    private func player(
        _ frames: CountedFrames, _ options: PlaybackOptions = PlaybackOptions(), budget: FrameBudget? = nil
    ) -> AnimationPlayer {
        let image = AnimatedImage(frames, executor: executor, budget: budget ?? FrameBudget(limit: 1 << 20))
        return AnimationPlayer(image, options: options, clock: clock)
    }

    /// Moves the clock from the end of one frame to the end of the next.
    private func turn(_ times: Int, sleepers: Int = 1) async throws {
        for _ in 0..<times {
            try await clock.waitForSleepers(sleepers)
            clock.advance(to: try #require(clock.nextDeadline))
        }
    }

    @Test func tenLoopsKeepExactTimes() async throws {
        let durations = [100, 40, 70, 33]
        let frames = CountedFrames(durations, loops: 10)
        let audience = Audience(player(frames), clock)
        try await turn(40)
        await audience.end()
        #expect(audience.frames == (0..<40).map { $0 % 4 })
        var (expected, time): ([Duration], Duration) = ([], .zero)
        for index in 0..<40 {
            expected.append(time)
            time += .milliseconds(durations[index % 4])
        }
        #expect(audience.times == expected)
        #expect(frames.order.sorted() == [0, 1, 2, 3])
    }

    @Test func aLateReaderGetsTheFrameThatIsDue() async throws {
        let audience = Audience(player(CountedFrames([10, 10, 10, 10, 10, 10])), clock)
        try await turn(1)
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(35))
        try await turn(1)
        try await clock.waitForSleepers(1)
        audience.cancel()
        await audience.end()
        #expect(audience.frames == [0, 1, 4, 5])
        #expect(audience.times == [.zero, .milliseconds(10), .milliseconds(45), .milliseconds(50)])
    }

    @Test func aSlowDecoderSkipsFramesAndKeepsTheTime() async throws {
        let opens = DispatchSemaphore(value: 0)
        let frames = CountedFrames(Array(repeating: 10, count: 8), gate: (1, opens))
        let audience = Audience(player(frames, PlaybackOptions(framesAhead: 0)), clock)
        try await turn(1)
        while frames.order.count < 2 { await Task.yield() }
        // The second frame takes 35 ms to decode. It is shown, followed by the frame that is due.
        clock.advance(by: .milliseconds(35))
        opens.signal()
        try await turn(1)
        try await clock.waitForSleepers(1)
        audience.cancel()
        await audience.end()
        #expect(audience.frames == [0, 1, 4, 5])
        #expect(audience.times == [.zero, .milliseconds(45), .milliseconds(45), .milliseconds(50)])
    }

    @Test func framesAreDecodedAheadAlsoAfterASlowFirst() async throws {
        let opens = DispatchSemaphore(value: 0)
        let frames = CountedFrames([10, 10, 10, 10, 10, 10], gate: (0, opens))
        let audience = Audience(player(frames), clock)
        while frames.order.isEmpty { await Task.yield() }
        clock.advance(by: .seconds(1))
        opens.signal()
        try await clock.waitForSleepers(1)
        while frames.order.count < 4 { await Task.yield() }
        await Task(executorPreference: executor) {}.value
        #expect(frames.order == [0, 1, 2, 3])
        // Time began with the first frame.
        try await turn(1)
        try await clock.waitForSleepers(1)
        audience.cancel()
        await audience.end()
        #expect(audience.times == [.seconds(1), .seconds(1) + .milliseconds(10)])
    }

    @Test func twoPlayersOfOneImageDecodeEachFrameOnce() async throws {
        let frames = CountedFrames([10, 20, 30, 40, 50], loops: 3)
        let image = AnimatedImage(frames, executor: executor, budget: FrameBudget(limit: 1 << 20))
        let options = [PlaybackOptions(), PlaybackOptions(rate: 2)]
        let audiences = options.map { Audience(AnimationPlayer(image, options: $0, clock: clock), clock) }
        // The second frame is decoded after half of its time.
        for sleepers in [2, 1] {
            while clock.now.offset < .milliseconds(sleepers == 2 ? 225 : 450) {
                try await clock.waitForSleepers(sleepers)
                clock.advance(to: try #require(clock.nextDeadline))
            }
            if sleepers == 2 { await audiences[1].end() }
        }
        await audiences[0].end()
        for audience in audiences { #expect(audience.frames == (0..<15).map { $0 % 5 }) }
        #expect(frames.order.sorted() == [0, 1, 2, 3, 4])
    }

    @Test func twoStreamsOfOnePlayerAreInStep() async throws {
        let player = player(CountedFrames([10, 20, 30], loops: 2))
        let first = Audience(player, clock)
        try await turn(2)
        try await clock.waitForSleepers(1)
        // The later reader begins with the current frame.
        let second = Audience(player, clock)
        try await turn(4, sleepers: 2)
        await first.end()
        await second.end()
        #expect(first.frames == [0, 1, 2, 0, 1, 2])
        #expect(second.frames == [2, 0, 1, 2])
        #expect(second.times == Array(first.times.dropFirst(2)))
    }

    @Test func theBudgetHoldsWithTwentyPlayers() async throws {
        let budget = FrameBudget(limit: 30 * 64)
        let images = (0..<20).map { _ in
            AnimatedImage(CountedFrames([10, 10, 10, 10, 10, 10], loops: 4), executor: executor, budget: budget)
        }
        let audiences = images.map { Audience(AnimationPlayer($0, clock: clock), clock) }
        for _ in 0..<24 {
            try await turn(1, sleepers: 20)
            #expect(budget.used <= budget.limit)
        }
        for audience in audiences { await audience.end() }
        for audience in audiences { #expect(audience.frames == (0..<24).map { $0 % 6 }) }
        #expect(budget.peak <= 30 * 64)
        #expect(budget.peak > 20 * 64)
    }

    @Test func aFrameLargerThanTheBudgetIsShownAllTheSame() async throws {
        let frames = CountedFrames([10, 10, 10], loops: 2)
        let audience = Audience(player(frames, budget: FrameBudget(limit: 10)), clock)
        try await turn(6)
        await audience.end()
        #expect(audience.frames == [0, 1, 2, 0, 1, 2])
    }

    @Test func reverseAndBounceAndSeekShowTheirFrames() async throws {
        let reverse = CountedFrames([10, 10, 10, 10, 10, 10, 10, 10, 10, 10], loops: 1)
        let backwards = Audience(player(reverse, PlaybackOptions(direction: .reverse)), clock)
        try await turn(10)
        await backwards.end()
        #expect(backwards.frames == Array((0..<10).reversed()))
        let player = player(CountedFrames([10, 10, 10, 10], loops: 1), PlaybackOptions(direction: .bounce))
        let audience = Audience(player, clock)
        try await turn(1)
        try await clock.waitForSleepers(1)
        player.seek(toFrame: 3)
        // The reader must first reach its sleep for the frame before.
        while audience.frames.last != 3 { await Task.yield() }
        try await turn(3)
        await audience.end()
        #expect(audience.frames == [0, 1, 3, 2, 1, 0])
    }

    @Test func pausingHoldsTheFrameAndResumingContinues() async throws {
        let player = player(CountedFrames([10, 10, 10], loops: 1))
        let audience = Audience(player, clock)
        try await turn(1)
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(4))
        player.pause()
        clock.advance(by: .seconds(60))
        #expect(player.isPaused)
        player.resume()
        // The sleep for the old time is over: the next one ends 6 ms after the pause.
        try await turn(2)
        await audience.end()
        #expect(audience.frames == [0, 1, 2])
        #expect(audience.times.last == .seconds(60) + .milliseconds(20))
    }

    @Test func seekingToATimeDecodesTheFramesBefore() async throws {
        let frames = CountedFrames([10, 20, 30, 40], loops: 1)
        let player = player(frames)
        player.pause()
        player.seek(to: .milliseconds(45))
        var stream = player.frames.makeAsyncIterator()
        #expect(await stream.next()?.number == 2)
        #expect(player.currentIndex == 2)
        player.stop()
        #expect(await stream.next() == nil)
    }

    @Test func aFrameThatCannotBeDecodedEndsTheStream() async throws {
        let player = player(CountedFrames([10, 10, 10], broken: 2))
        let audience = Audience(player, clock)
        try await turn(2)
        await audience.end()
        #expect(audience.frames == [0, 1])
        #expect(player.failure?.kind == .corrupt)
    }

    @Test func cancellingTheReaderStopsDecoding() async throws {
        let opens = DispatchSemaphore(value: 0)
        let frames = CountedFrames(Array(repeating: 10, count: 50), gate: (2, opens))
        let audience = Audience(player(frames, PlaybackOptions(framesAhead: 20)), clock)
        try await clock.waitForSleepers(1)
        while frames.order.count < 3 { await Task.yield() }
        audience.cancel()
        await audience.end()
        opens.signal()
        // The executor is serial: this runs after all work of the decoder.
        await Task(executorPreference: executor) {}.value
        #expect(frames.order == [0, 1, 2])
        #expect(audience.frames == [0])
    }

    @Test func aStoppedPlayerEndsAllItsStreams() async throws {
        let player = player(CountedFrames([10, 10]))
        let audiences = [Audience(player, clock), Audience(player, clock)]
        try await clock.waitForSleepers(2)
        player.stop()
        for audience in audiences { await audience.end() }
        #expect(clock.sleeperCount == 0)
        var later = player.frames.makeAsyncIterator()
        #expect(await later.next() == nil)
    }

    @Test func oneFrameCanBeHadWithoutAPlayer() async throws {
        let frames = CountedFrames([10, 10, 10])
        let image = AnimatedImage(frames, executor: executor, budget: FrameBudget(limit: 1 << 20))
        #expect(try await image.frame(at: 2).number == 2)
        #expect(try await image.frame(at: 2).number == 2)
        #expect(frames.order == [2])
        let thrown = await #expect(throws: ImageError.self) { try await image.frame(at: 3) }
        #expect(thrown?.kind == .invalidArgument)
    }
}
