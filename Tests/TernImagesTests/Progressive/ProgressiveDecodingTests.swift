#if os(Linux)
import Dispatch
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An executor that runs jobs in order on a queue, and pauses while it is held.
final class QueueTaskExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "tern.tests.decoding")

    init(isHeld: Bool = false) { if isHeld { queue.suspend() } }

    func release() { queue.resume() }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = unsafe asUnownedTaskExecutor()
        queue.async { unsafe job.runSynchronously(on: executor) }
    }
}

@Suite(.timeLimit(.minutes(1))) struct ProgressiveDecodingTests {
    private func chunks(_ file: Data, _ size: Int) -> [Data] {
        stride(from: 0, to: file.count, by: size).map { file[$0..<min(file.count, $0 + size)] }
    }

    @Test func previewsComeBeforeThePictureAndThePictureIsTheLast() async throws {
        let file = try Coming.progressiveJPEG.file(#require(InterlacedFixtures.photo(120, 90)))
        let decoding = ProgressiveDecoding(executor: QueueTaskExecutor())
        var updates = decoding.updates.makeAsyncIterator()
        for chunk in chunks(file.prefix(file.count / 2), 400) { decoding.receive(chunk) }
        guard case .preview(let preview)? = await updates.next() else {
            Issue.record("half of the bytes hold a scan")
            return
        }
        #expect(preview.metadata.isPartial)
        decoding.receive(file.suffix(file.count - file.count / 2))
        decoding.end()
        var last: RasterImage?
        while let update = await updates.next() {
            #expect(last == nil)
            if case .image(let image) = update { last = image }
        }
        let whole = try CodecImageDecoder().image(from: file, options: ImageDecodingOptions())
        #expect(last?.pixels.bytes == whole.pixels.bytes)
        // A late reader gets the picture at once.
        var late: [ProgressiveDecoding.Update] = []
        for await update in decoding.updates { late.append(update) }
        #expect(late.count == 1)
    }

    @Test func aSlowDecoderTakesAllThatHasComeAtOnce() async throws {
        let file = try Coming.progressiveJPEG.file(#require(InterlacedFixtures.photo(80, 60)))
        let executor = QueueTaskExecutor(isHeld: true)
        let decoding = ProgressiveDecoding(policy: .paced, executor: executor)
        for chunk in chunks(file, 50) { decoding.receive(chunk) }
        decoding.end()
        executor.release()
        var updates: [ProgressiveDecoding.Update] = []
        for await update in decoding.updates { updates.append(update) }
        // The bytes arrived faster than they were decoded, so there is no preview.
        #expect(updates.count == 1)
        guard case .image(let image)? = updates.first else {
            Issue.record("no image")
            return
        }
        #expect(!image.metadata.isPartial)
    }

    @Test(arguments: [Coming.gif, .interlacedGIF, .png, .webp]) func anAnimationIsTold(kind: Coming) async throws {
        let file = try kind.file(#require(InterlacedFixtures.photo(30, 20)))
        let decoding = ProgressiveDecoding(policy: .none, executor: QueueTaskExecutor())
        for chunk in chunks(file, 64) { decoding.receive(chunk) }
        decoding.end()
        for await update in decoding.updates { if case .image = update {} else { Issue.record("no image") } }
        #expect(decoding.isAnimation == (kind == .gif || kind == .interlacedGIF))
    }

    @Test func aFailureIsTheLastUpdate() async throws {
        let file = try Coming.interlacedPNG.file(#require(InterlacedFixtures.photo(80, 60)))
        // Often, because the worker can reach the end before the call that started it returns.
        for _ in 0..<300 {
            let decoding = ProgressiveDecoding(policy: .none, executor: QueueTaskExecutor())
            decoding.receive(file.prefix(file.count / 2))
            decoding.end()
            decoding.receive(file.suffix(9))
            var kinds: [ImageError.Kind] = []
            for await update in decoding.updates { if case .failure(let error) = update { kinds.append(error.kind) } }
            #expect(kinds == [.truncated])
        }
    }

    @Test func cancelledItEndsItsStreamsAndDecodesNothingMore() async throws {
        let file = try Coming.progressiveJPEG.file(#require(InterlacedFixtures.photo(80, 60)))
        let executor = QueueTaskExecutor(isHeld: true)
        let decoding = ProgressiveDecoding(executor: executor)
        decoding.receive(file)
        decoding.cancel()
        executor.release()
        decoding.receive(file)
        decoding.end()
        for await _ in decoding.updates { Issue.record("an update after cancel") }
    }
}
#endif
