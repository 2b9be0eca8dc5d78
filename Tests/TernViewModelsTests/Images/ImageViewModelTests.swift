import Tern
import TernImages
import TernTesting
import Testing

@testable import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests one load in one slot: the order of the calls, and the end.
@MainActor
@Suite("Image views", .timeLimit(.minutes(1)))
struct ImageViewModelTests {
    private let photos = Photos()
    private let grey = ImageDisplay(placeholder: .custom("grey"), failure: .custom("torn"), fallback: .custom("none"))

    @Test func aPictureFromTheNetworkComesAfterThePlaceholder() async throws {
        let (photo, recorder) = (Photo(photos.pipeline), CompletionRecorder())
        let load = photo.loadImage(from: photos.url("/slow/40"), display: grey, completion: recorder.record)
        #expect(photo.lines == ["grey placeholder", "begin"])
        #expect(photo.imageLoads[.image] === load)
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines == ["grey placeholder", "begin", "end", "40 network slowly", "ended"])
        #expect(recorder.widths == [40])
        #expect(photo.imagePhase() == .success(.network))
        // The end removed only the load's own entry.
        #expect(photo.imageLoads[.image] == nil)
        #expect(photo.imageLoads.url(for: .image) == photos.url("/slow/40"))
    }

    @Test func anImageInMemoryIsShownWithinTheCallWithoutATransition() async throws {
        try await photos.load("/40")
        let (photo, recorder) = (Photo(photos.pipeline), CompletionRecorder())
        let load = photo.loadImage(from: photos.url("/40"), display: grey, completion: recorder.record)
        #expect(photo.lines == ["40 memory", "ended"])
        #expect(recorder.widths == [40] && !load.isActive && photo.imageLoads[.image] == nil)
        await settle()
        #expect(photo.lines.count == 2)
    }

    @Test func withoutAPlaceholderAMissShowsNothing() async throws {
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/slow/40"))
        #expect(photo.lines == ["begin"])
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        photo.log.removeAll()
        photo.loadImage(from: photos.url("/slow/41"), display: ImageDisplay(current: .cleared))
        #expect(photo.lines == ["nothing idle", "begin"])
    }

    @Test func withoutAURLThePreviousLoadEndsAndTheFallbackIsShown() async throws {
        let (photo, recorder) = (Photo(photos.pipeline), CompletionRecorder())
        let previous = photo.loadImage(from: photos.url("/slow/40"))
        let load = photo.loadImage(from: nil, display: grey, completion: recorder.record)
        #expect(photo.lines == ["begin", "end", "none failure invalid-url", "failed invalid-url"])
        #expect(recorder.failures == [.invalidURL])
        #expect(await previous.failure() == .cancelled)
        #expect(await load.failure() == .invalidURL)
        await settle()
        #expect(photo.lines.count == 4 && recorder.results.count == 1)
        #expect(photo.imageLoads.url(for: .image) == nil)
    }

    @Test func withoutAURLThePlaceholderIsShownAlsoWhenThereIsNone() async throws {
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: nil, display: ImageDisplay(placeholder: .custom("grey")))
        photo.loadImage(from: nil)
        photo.loadImage(from: URL(string: "ftp://a.example/1"))
        let failed = "failed invalid-url"
        let lines = ["grey failure invalid-url", failed, "nothing failure invalid-url", failed]
        #expect(photo.lines == lines + lines.suffix(2))
        #expect(photos.stub.calls.isEmpty)
    }

    @Test func theSameLoadThatGoesOnIsNotBegunAgain() async throws {
        let (photo, first, second) = (Photo(photos.pipeline), CompletionRecorder(), CompletionRecorder())
        let load = photo.loadImage(from: photos.url("/slow/40"), display: grey, completion: first.record)
        let same = photo.loadImage(from: photos.url("/slow/40"), display: grey, completion: second.record)
        #expect(load === same && photo.lines == ["grey placeholder", "begin"])
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(first.widths == [40] && second.widths == [40] && photos.stub.calls.count == 1)
        // An ended load is.
        let again = photo.loadImage(from: photos.url("/slow/40"))
        #expect(again !== load)
    }

    @Test func anotherURLCancelsThePrevious() async throws {
        let (photo, recorder) = (Photo(photos.pipeline), CompletionRecorder())
        let first = photo.loadImage(from: photos.url("/slow/40"), completion: recorder.record)
        photo.loadImage(from: photos.url("/slow/41"), completion: recorder.record)
        #expect(!first.isActive && first.task?.isFinished == true)
        await photos.whileSlowOnesCome { await photo.log.wait { $0.last == "ended" } }
        #expect(photo.lines == ["begin", "end", "begin", "end", "41 network slowly", "ended"])
        #expect(recorder.widths == [41] && recorder.failures.isEmpty)
    }

    @Test func nothingIsShownAfterACancellation() async throws {
        let (photo, recorder) = (Photo(photos.pipeline), CompletionRecorder())
        let load = photo.loadImage(from: photos.url("/slow/40"), completion: recorder.record)
        try await photos.clock.waitForSleepers(1)
        photo.cancelImageLoad()
        photos.clock.advance(by: .seconds(1))
        #expect(await load.failure() == .cancelled)
        await settle()
        #expect(photo.lines == ["begin", "end"] && recorder.results.isEmpty)
    }

    @Test func aFailureShowsItsPicture() async throws {
        let (photo, recorder) = (Photo(photos.pipeline), CompletionRecorder())
        photo.loadImage(from: photos.url("/slow"), display: grey, completion: recorder.record)
        try await photos.advance()
        await photo.log.wait { $0.last == "failed network" }
        let lines = ["grey placeholder", "begin", "end", "torn failure network", "failed network"]
        #expect(photo.lines == lines)
        #expect(recorder.failures == [.network])
    }

    @Test func theDelayedPlaceholderIsShownOnFailureAlone() async throws {
        let photo = Photo(photos.pipeline)
        var display = ImageDisplay(placeholder: .custom("grey"))
        display.showsPlaceholderOnlyOnFailure = true
        photo.loadImage(from: photos.url("/slow"), display: display)
        try await photos.advance()
        await photo.log.wait { $0.last == "failed network" }
        #expect(photo.lines == ["begin", "end", "grey failure network", "failed network"])
    }

    @Test func aCallerWhoTakesThePictureSetsTheView() async throws {
        let (photo, taken, recorder) = (Photo(photos.pipeline), CompletionRecorder(), CompletionRecorder())
        photo.loadImage(from: photos.url("/slow/40"), display: grey, completion: recorder.record, receive: taken.take)
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines == ["grey placeholder", "begin", "end", "ended"])
        #expect(taken.widths == [40] && recorder.widths == [40])
        // In memory: within the call.
        photo.loadImage(from: photos.url("/slow/40"), receive: taken.take)
        #expect(taken.widths == [40, 40] && photo.lines.count == 5)
        var display = ImageDisplay()
        display.setsImage = false
        photo.loadImage(from: photos.url("/slow/40"), display: display, completion: recorder.record)
        #expect(recorder.widths == [40, 40] && photo.lines.count == 6)
    }

    @Test func transitionsAreAsTheDisplaySays() async throws {
        try await photos.load("/40")
        let photo = Photo(photos.pipeline)
        var display = ImageDisplay()
        display.transition = .always
        photo.loadImage(from: photos.url("/40"), display: display)
        #expect(photo.lines.first == "40 memory slowly")
        display.transition = .never
        photo.loadImage(from: photos.url("/41"), display: display)
        await photo.log.wait { $0.contains("41 network") }
    }

    private func loadSlowly() async throws {
        async let loaded: Void = photos.load("/slow/40")
        try await photos.advance()
        try await loaded
    }

    @Test func anotherSizeInMemoryIsThePlaceholder() async throws {
        try await loadSlowly()
        let photo = Photo(photos.pipeline)
        var request = photos.request("/slow/40")
        request.targetSize = PixelSize(width: 20, height: 20)
        // Prevents the use of another size in memory.
        request.caching.memory = .write
        var display = grey
        display.usesCachedVariant = true
        photo.loadImage(from: request, display: display)
        #expect(photo.lines == ["40 placeholder", "begin"])
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines.contains("20 network slowly"))
    }

    @Test func theLoadWaitsForTheViewsSize() async throws {
        let photo = Photo(photos.pipeline)
        var display = grey
        display.decodesToViewSize = true
        let load = photo.loadImage(from: photos.url("/40"), display: display)
        photo.imageSizesChanged()
        photo.size = PixelSize(width: 0, height: 10)
        photo.imageSizesChanged()
        await settle()
        #expect(photo.lines == ["grey placeholder"] && load.task == nil && photos.stub.calls.isEmpty)
        // The same load, because it still waits.
        #expect(photo.loadImage(from: photos.url("/40"), display: display) === load)
        photo.size = PixelSize(width: 10, height: 10)
        photo.imageSizesChanged()
        photo.imageSizesChanged()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines.contains { $0.hasPrefix("10 network") } && photos.stub.calls.count == 1)
        // A known size is used at once, and the image in memory is shown.
        photo.log.removeAll()
        photo.loadImage(from: photos.url("/40"), display: display)
        #expect(photo.lines == ["10 memory", "ended"])
    }

    @Test func aLoadThatWaitsForASizeIsCancelledToo() async throws {
        let photo = Photo(photos.pipeline)
        var display = ImageDisplay()
        display.decodesToViewSize = true
        let load = photo.loadImage(from: photos.url("/40"), display: display)
        photo.cancelImageLoad()
        photo.size = PixelSize(width: 10, height: 10)
        photo.imageSizesChanged()
        #expect(await load.failure() == .cancelled)
        await settle()
        #expect(photo.lines.isEmpty && photos.stub.calls.isEmpty)
    }

    @Test func theEndWaitsForTheTransition() async throws {
        let view = SlowPhoto(photos.pipeline)
        var display = ImageDisplay()
        display.waitsForTransition = true
        let recorder = CompletionRecorder()
        view.loadImage(from: photos.url("/40"), display: display, completion: recorder.record)
        await eventually { view.transition != nil }
        await settle()
        #expect(recorder.results.isEmpty && view.imageLoads[.image] != nil)
        view.transition?.end()
        await eventually { recorder.widths == [40] }
        #expect(view.imageLoads[.image] == nil)
        // A view that releases the transition delays nothing.
        let photo = Photo(photos.pipeline)
        photo.loadImage(from: photos.url("/41"), display: display)
        await photo.log.wait { $0.last == "ended" }
    }

    @MainActor
    private final class SlowPhoto: ImageViewModel {
        let bindings = ViewBindings()
        private(set) var transition: ImageTransition?

        init(_ pipeline: ImagePipeline) { imagePipeline = pipeline }

        func showImage(_ update: ImageUpdate, in slot: ImageSlot) { transition = update.transition }
    }

    @Test func aViewInTheTableIsFoundAgain() async throws {
        let view = TableView()
        view.imagePipeline = photos.pipeline
        let load = view.loadImage(from: photos.url("/slow/40"))
        #expect(view.imageLoads[.image] === load)
        #expect(view.imageLoads.url(for: .image) == photos.url("/slow/40"))
        view.imageLoads.cancelAll()
        #expect(await load.failure() == .cancelled)
    }

    @MainActor
    private final class TableView: ImageViewModel {
        func showImage(_ update: ImageUpdate, in slot: ImageSlot) {}
    }

    @Test func aViewMayComeBackWithAnotherLoadWhileItIsTold() async throws {
        try await photos.load("/40")
        try await photos.load("/41")
        let view = Restless(photos.pipeline)
        view.next = photos.url("/41")
        let recorder = CompletionRecorder()
        view.loadImage(from: photos.url("/40"), completion: recorder.record)
        // The first image was shown, and the second load then took the slot: the first load's completion is not called.
        #expect(view.widths == [40, 41] && recorder.results.isEmpty)
        #expect(view.imageLoads[.image] == nil && view.imageLoads.url(for: .image) == photos.url("/41"))
    }

    @MainActor
    private final class Restless: ImageViewModel {
        let bindings = ViewBindings()
        var next: URL?
        private(set) var widths: [Int] = []

        init(_ pipeline: ImagePipeline) { imagePipeline = pipeline }

        func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
            widths += update.image.map { [$0.size.width] } ?? []
            guard let url = next else { return }
            next = nil
            loadImage(from: url)
        }
    }
}
