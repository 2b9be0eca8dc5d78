#if os(Linux)
import TernTesting
import Testing

@testable import TernImages

@Suite(.timeLimit(.minutes(1))) struct AnimatedFileTests {
    /// Plays a GIF file on a manual clock: 50 ms for each frame, as the file says, and once.
    @Test func aGIFPlaysAsItsFileSays() async throws {
        let photo = try #require(InterlacedFixtures.photo(40, 30))
        let file = InterlacedFixtures.gif(photo, interlaced: true, frames: 4)
        let frames = try #require(try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions()))
        let budget = FrameBudget(limit: 1 << 20)
        let image = AnimatedImage(frames, executor: AnimationExecutor(), budget: budget)
        #expect(image.count == 4)
        #expect(image.size == photo.size)
        let clock = ManualClock()
        var stream = AnimationPlayer(image, clock: clock).frames.makeAsyncIterator()
        let first = try #require(await stream.next())
        #expect(first.duration == .milliseconds(50))
        let whole = try CodecImageDecoder().image(from: file, options: ImageDecodingOptions())
        #expect(first.image.pixels.bytes == whole.pixels.bytes)
        for _ in 1..<4 {
            // A late reader gets the frame that is due at once, without a sleep.
            clock.advance(by: .milliseconds(50))
            #expect(await stream.next()?.duration == .milliseconds(50))
        }
        clock.advance(by: .milliseconds(50))
        #expect(await stream.next() == nil)
        #expect(budget.used == 4 * 40 * 30 * 4)
    }

    @Test func theFramesLeaveTheBudgetWithTheirImage() async throws {
        let file = InterlacedFixtures.gif(try #require(InterlacedFixtures.photo(20, 20)), interlaced: false, frames: 2)
        let frames = try #require(try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions()))
        let budget = FrameBudget(limit: 1 << 20)
        let executor = AnimationExecutor()
        do {
            let image = AnimatedImage(frames, executor: executor, budget: budget)
            _ = try await image.frame(at: 1)
            #expect(budget.used == 1_600)
        }
        // The worker may hold the image for a moment; it runs on the serial executor.
        await Task(executorPreference: executor) {}.value
        #expect(budget.used == 0)
    }
}
#endif
