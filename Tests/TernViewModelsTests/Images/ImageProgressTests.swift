import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages
@testable import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the progress of one load together with all other calls to its view, in one order.
@MainActor
@Suite("Image views: progress", .timeLimit(.minutes(1)))
struct ImageProgressTests {
    private let photos = Photos()
    private let grey = ImageDisplay(placeholder: .custom("grey"), failure: .custom("torn"))
    private let waiting = ["grey placeholder", "nothing yet", "begin"]

    /// A view whose log also has its progress: zero, the whole, and each element between them.
    @MainActor
    private final class Meter: ImageViewModel {
        let bindings = ViewBindings()
        let log = Log<String>()
        private(set) var progress: [Session.Progress] = []
        /// Called once, while the whole progress is shown.
        var atWhole: (@MainActor () -> Void)?

        init(_ pipeline: ImagePipeline) { imagePipeline = pipeline }

        /// The calls without the progress between zero and the whole, of which there can be any amount.
        var lines: [String] { log.events.filter { $0 != "some" } }

        func showImage(_ update: ImageUpdate, in slot: ImageSlot) { log.append(Photo.line(update, slot)) }
        func beginImageActivity(in slot: ImageSlot) { log.append("begin") }
        func endImageActivity(in slot: ImageSlot) { log.append("end") }

        func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot) {
            self.progress.append(progress)
            if progress == Session.Progress() { return log.append("nothing yet") }
            guard progress.isFinished else { return log.append("some") }
            log.append(progress.fractionCompleted == 1 ? "whole" : "finished at \(progress)")
            let work = atWhole
            atWhole = nil
            work?()
        }

        func imageLoadEnded(_ load: ImageLoad) {
            switch load.result {
            case .success?: log.append("ended")
            case .failure(let error)?: log.append("failed \(error.kind)")
            case nil: log.append("not ended")
            }
        }
    }

    @Test func aFetchedImageHasTheWholeProgressBeforeIt() async throws {
        let view = Meter(photos.pipeline)
        view.loadImage(from: photos.url("/slow/40"), display: grey)
        #expect(view.lines == waiting)
        try await photos.advance()
        await view.log.wait { $0.last == "ended" }
        #expect(view.lines == waiting + ["whole", "end", "40 network slowly", "ended"])
        #expect(view.progress.last?.totalBytes == Int64(PhotoDecoder.file(40).count))
        let bytes = view.progress.map(\.completedBytes)
        #expect(bytes == bytes.sorted())
    }

    @Test func twoViewsOfOneFetchHaveTheWholeProgressEach() async throws {
        let views = [Meter(photos.pipeline), Meter(photos.pipeline)]
        for view in views { view.loadImage(from: photos.url("/slow/40"), display: grey) }
        try await photos.advance()
        for view in views {
            await view.log.wait { $0.last == "ended" }
            #expect(view.lines == waiting + ["whole", "end", "40 network slowly", "ended"])
        }
        #expect(photos.stub.calls.count == 1)
    }

    /// The reader of the events gets only the last of all states, in which there is an image.
    @Test(arguments: [false, true])
    func aSlowReaderOfTheEventsHasTheWholeProgressToo(isFetched: Bool) async throws {
        try await photos.load("/40")
        let response = try await photos.pipeline.response(for: photos.request("/40"))
        let view = Meter(photos.pipeline)
        let task = photos.pipeline.task(for: photos.request("/slow/41"))
        view.showImage(of: task, display: grey)
        if isFetched { task.report(Session.Progress(completedBytes: 5, totalBytes: 10)) }
        var callers: [Waiter<Bool>] = []
        task.finish(.success(response), callers: &callers)
        await view.log.wait { $0.last == "ended" }
        #expect(view.lines == waiting + ["whole", "end", "40 memory", "ended"])
        let count: Int64 = isFetched ? 10 : 0
        let whole = Session.Progress(completedBytes: count, totalBytes: count, isFinished: true)
        #expect(view.progress == [Session.Progress(), whole])
    }

    @Test func anImageInMemoryHasNoProgress() async throws {
        try await photos.load("/40")
        let view = Meter(photos.pipeline)
        view.loadImage(from: photos.url("/40"), display: grey)
        #expect(view.lines == ["40 memory", "ended"] && view.progress.isEmpty)
    }

    @Test func anImageFromTheDiskHasTheWholeProgressBeforeIt() async throws {
        let name = "tern-views-\(UInt64.random(in: 0 ... .max))"
        let folder = FileManager.default.temporaryDirectory.appending(path: name)
        // `try?`: nothing depends on the removal of the folder.
        defer { try? FileManager.default.removeItem(at: folder) }
        let photos = Photos { $0.disk = .folder(folder) }
        try await photos.load("/40")
        try await photos.pipeline.flush()
        var request = photos.request("/40")
        request.caching.memory = .write
        let view = Meter(photos.pipeline)
        view.loadImage(from: request, display: grey)
        await view.log.wait { $0.last == "ended" }
        #expect(view.lines == waiting + ["whole", "end", "40 original slowly", "ended"])
        #expect(photos.stub.calls.count == 1)
    }

    @Test func aFailureAndACancellationHaveNone() async throws {
        let view = Meter(photos.pipeline)
        view.loadImage(from: photos.url("/slow"), display: grey)
        try await photos.advance()
        await view.log.wait { $0.last == "failed network" }
        #expect(view.lines == waiting + ["end", "torn failure network", "failed network"])

        let cancelled = Meter(photos.pipeline)
        let load = cancelled.loadImage(from: photos.url("/slow/40"), display: grey)
        try await photos.clock.waitForSleepers(1)
        load.cancel()
        photos.clock.advance(by: .seconds(1))
        await settle()
        #expect(cancelled.lines == waiting + ["end"])
    }

    /// The fetch is whole, and its bytes are no image.
    @Test func aFailureAfterTheLastByteHasNone() async throws {
        let view = Meter(photos.pipeline)
        view.loadImage(from: photos.url("/slow/0"), display: grey)
        try await photos.advance()
        await view.log.wait { $0.last?.hasPrefix("failed") ?? false }
        #expect(view.lines == waiting + ["end", "torn failure corrupt", "failed corrupt"])
    }

    @Test func aReplacedLoadHasNoneAndTheNextHasItsOwn() async throws {
        let view = Meter(photos.pipeline)
        view.loadImage(from: photos.url("/slow/40"), display: grey)
        view.loadImage(from: photos.url("/slow/41"), display: grey)
        await photos.whileSlowOnesCome { await view.log.wait { $0.last == "ended" } }
        #expect(view.lines == waiting + ["end"] + waiting + ["whole", "end", "41 network slowly", "ended"])
    }

    /// The first activity ends before the second begins, and the first image is not shown.
    @Test func aViewMayLoadAnotherImageWhileItShowsTheWholeProgress() async throws {
        try await photos.load("/41")
        let view = Meter(photos.pipeline)
        view.atWhole = { [photos] in view.loadImage(from: photos.url("/41")) }
        let load = view.loadImage(from: photos.url("/slow/40"), display: grey)
        try await photos.advance()
        await view.log.wait { $0.last == "ended" }
        #expect(view.lines == waiting + ["whole", "end", "41 memory", "ended"])
        #expect(await load.failure() == .cancelled)
    }

    /// An equal load begins no other, and the image is not lost.
    @Test func aViewMayLoadTheSameImageWhileItShowsTheWholeProgress() async throws {
        let view = Meter(photos.pipeline)
        view.atWhole = { [photos, grey] in view.loadImage(from: photos.url("/slow/40"), display: grey) }
        view.loadImage(from: photos.url("/slow/40"), display: grey)
        try await photos.advance()
        await view.log.wait { $0.last == "ended" }
        #expect(view.lines == waiting + ["whole", "end", "40 network slowly", "ended"])
    }
}
