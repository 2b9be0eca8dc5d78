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

/// One load in one slot: what is shown, in which order, and what ends it.
@MainActor
@Suite("Image views", .timeLimit(.minutes(1)))
struct ImageViewModelTests {
    private let photos = Photos()
    private let grey = ImageDisplay(placeholder: .custom("grey"), failure: .custom("torn"), fallback: .custom("none"))

    @Test func aPictureFromTheNetworkComesAfterThePlaceholder() async throws {
        let (photo, told) = (Photo(photos.pipeline), Told())
        let load = photo.loadImage(from: photos.url("/slow/40"), display: grey, completion: told.tell)
        #expect(photo.lines == ["grey placeholder", "begin"])
        #expect(photo.imageLoads[.image] === load)
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines == ["grey placeholder", "begin", "end", "40 network slowly", "ended"])
        #expect(told.widths == [40])
        #expect(photo.imagePhase() == .success(.network))
        // The end took its own entry.
        #expect(photo.imageLoads[.image] == nil)
        #expect(photo.imageLoads.url(for: .image) == photos.url("/slow/40"))
    }

    @Test func whatIsInMemoryIsShownWithinTheCallAndAtOnce() async throws {
        try await photos.load("/40")
        let (photo, told) = (Photo(photos.pipeline), Told())
        let load = photo.loadImage(from: photos.url("/40"), display: grey, completion: told.tell)
        #expect(photo.lines == ["40 memory", "ended"])
        #expect(told.widths == [40] && !load.isActive && photo.imageLoads[.image] == nil)
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
        let (photo, told) = (Photo(photos.pipeline), Told())
        let previous = photo.loadImage(from: photos.url("/slow/40"))
        let load = photo.loadImage(from: nil, display: grey, completion: told.tell)
        #expect(photo.lines == ["begin", "end", "none failure invalid-url", "failed invalid-url"])
        #expect(told.failures == [.invalidURL])
        #expect(await previous.failure() == .cancelled)
        #expect(await load.failure() == .invalidURL)
        await settle()
        #expect(photo.lines.count == 4 && told.results.count == 1)
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
        let (photo, first, second) = (Photo(photos.pipeline), Told(), Told())
        let load = photo.loadImage(from: photos.url("/slow/40"), display: grey, completion: first.tell)
        let same = photo.loadImage(from: photos.url("/slow/40"), display: grey, completion: second.tell)
        #expect(load === same && photo.lines == ["grey placeholder", "begin"])
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(first.widths == [40] && second.widths == [40] && photos.stub.calls.count == 1)
        // One that has ended is.
        let again = photo.loadImage(from: photos.url("/slow/40"))
        #expect(again !== load)
    }

    @Test func anotherURLCancelsThePrevious() async throws {
        let (photo, told) = (Photo(photos.pipeline), Told())
        let first = photo.loadImage(from: photos.url("/slow/40"), completion: told.tell)
        photo.loadImage(from: photos.url("/slow/41"), completion: told.tell)
        #expect(!first.isActive && first.task?.isFinished == true)
        await photos.whileSlowOnesCome { await photo.log.wait { $0.last == "ended" } }
        #expect(photo.lines == ["begin", "end", "begin", "end", "41 network slowly", "ended"])
        #expect(told.widths == [41] && told.failures.isEmpty)
    }

    @Test func thePipelinesOwnSessionAsksForImages() {
        let accept = ImagePipeline.Configuration().session.configuration.headers["Accept"]
        #expect(accept?.hasPrefix("image/*") == true)
    }

    @Test func nothingIsShownAfterACancellation() async throws {
        let (photo, told) = (Photo(photos.pipeline), Told())
        let load = photo.loadImage(from: photos.url("/slow/40"), completion: told.tell)
        try await photos.clock.waitForSleepers(1)
        photo.cancelImageLoad()
        photos.clock.advance(by: .seconds(1))
        #expect(await load.failure() == .cancelled)
        await settle()
        #expect(photo.lines == ["begin", "end"] && told.results.isEmpty)
    }

    @Test func aFailureShowsItsPicture() async throws {
        let (photo, told) = (Photo(photos.pipeline), Told())
        photo.loadImage(from: photos.url("/slow"), display: grey, completion: told.tell)
        try await photos.advance()
        await photo.log.wait { $0.last == "failed network" }
        let lines = ["grey placeholder", "begin", "end", "torn failure network", "failed network"]
        #expect(photo.lines == lines)
        #expect(told.failures == [.network])
    }

    @Test func theDelayedPlaceholderIsShownOnFailureAlone() async throws {
        let photo = Photo(photos.pipeline)
        var request = photos.request("/slow")
        request.options.presentation.delaysPlaceholder = true
        photo.loadImage(request, display: ImageDisplay(placeholder: .custom("grey")))
        try await photos.advance()
        await photo.log.wait { $0.last == "failed network" }
        #expect(photo.lines == ["begin", "end", "grey failure network", "failed network"])
    }

    @Test func aCallerWhoTakesThePictureSetsTheView() async throws {
        let (photo, taken, told) = (Photo(photos.pipeline), Told(), Told())
        photo.loadImage(from: photos.url("/slow/40"), display: grey, completion: told.tell, receive: taken.take)
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines == ["grey placeholder", "begin", "end", "ended"])
        #expect(taken.widths == [40] && told.widths == [40])
        // In memory: within the call.
        photo.loadImage(from: photos.url("/slow/40"), receive: taken.take)
        #expect(taken.widths == [40, 40] && photo.lines.count == 5)
        var request = photos.request("/slow/40")
        request.options.presentation.setsAutomatically = false
        photo.loadImage(request, completion: told.tell)
        #expect(told.widths == [40, 40] && photo.lines.count == 6)
    }

    @Test func transitionsAreAsTheRequestSays() async throws {
        try await photos.load("/40")
        let photo = Photo(photos.pipeline)
        var request = photos.request("/40")
        request.options.presentation.transition = .always
        photo.loadImage(request)
        #expect(photo.lines.first == "40 memory slowly")
        request = photos.request("/41")
        request.options.presentation.transition = .never
        photo.loadImage(request)
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
        // Another size would do; what is asked for here cannot be made of it.
        request.caching.memory = .write
        var display = grey
        display.usesCachedVariant = true
        photo.loadImage(request, display: display)
        #expect(photo.lines == ["40 placeholder", "begin"])
        try await photos.advance()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines.contains("20 network slowly"))
    }

    @Test func theLoadWaitsForTheViewsSize() async throws {
        let photo = Photo(photos.pipeline)
        var display = grey
        display.fitsView = true
        let load = photo.loadImage(from: photos.url("/40"), display: display)
        photo.imageSizesChanged()
        photo.size = PixelSize(width: 0, height: 10)
        photo.imageSizesChanged()
        await settle()
        #expect(photo.lines == ["grey placeholder"] && load.task == nil && photos.stub.calls.isEmpty)
        // The same load: it waits.
        #expect(photo.loadImage(from: photos.url("/40"), display: display) === load)
        photo.size = PixelSize(width: 10, height: 10)
        photo.imageSizesChanged()
        photo.imageSizesChanged()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines.contains { $0.hasPrefix("10 network") } && photos.stub.calls.count == 1)
        // A size that is known is asked for at once, and what is in memory shown.
        photo.log.removeAll()
        photo.loadImage(from: photos.url("/40"), display: display)
        #expect(photo.lines == ["10 memory", "ended"])
    }

    @Test func aLoadThatWaitsForASizeIsCancelledToo() async throws {
        let photo = Photo(photos.pipeline)
        var display = ImageDisplay()
        display.fitsView = true
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
        var request = photos.request("/40")
        request.options.presentation.waitsForTransition = true
        let told = Told()
        view.loadImage(request, completion: told.tell)
        await eventually { view.transition != nil }
        await settle()
        #expect(told.results.isEmpty && view.imageLoads[.image] != nil)
        view.transition?.end()
        await eventually { told.widths == [40] }
        #expect(view.imageLoads[.image] == nil)
        // A view that lets go of it holds nothing up.
        let photo = Photo(photos.pipeline)
        request = photos.request("/41")
        request.options.presentation.waitsForTransition = true
        photo.loadImage(request)
        await photo.log.wait { $0.last == "ended" }
    }

    @MainActor
    private final class SlowPhoto: ImageViewModel {
        let bindings = ViewBindings()
        private(set) var transition: ImageTransition?

        init(_ pipeline: ImagePipeline) { imagePipeline = pipeline }

        func showImage(_ shown: ShownImage, in slot: ImageSlot) { transition = shown.transition }
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
        func showImage(_ shown: ShownImage, in slot: ImageSlot) {}
    }

    @Test func aViewMayComeBackWithAnotherLoadWhileItIsTold() async throws {
        try await photos.load("/40")
        try await photos.load("/41")
        let view = Restless(photos.pipeline)
        view.next = photos.url("/41")
        let told = Told()
        view.loadImage(from: photos.url("/40"), completion: told.tell)
        // The first picture was shown, and the slot then given to the second: the first load is told of no more.
        #expect(view.widths == [40, 41] && told.results.isEmpty)
        #expect(view.imageLoads[.image] == nil && view.imageLoads.url(for: .image) == photos.url("/41"))
    }

    @MainActor
    private final class Restless: ImageViewModel {
        let bindings = ViewBindings()
        var next: URL?
        private(set) var widths: [Int] = []

        init(_ pipeline: ImagePipeline) { imagePipeline = pipeline }

        func showImage(_ shown: ShownImage, in slot: ImageSlot) {
            widths += shown.image.map { [$0.size.width] } ?? []
            guard let url = next else { return }
            next = nil
            loadImage(from: url)
        }
    }

    @Test func progressBeginsAtNothingAndEnds() async throws {
        let view = Meter(photos.pipeline)
        view.loadImage(from: photos.url("/slow/40"))
        #expect(view.progress.first == Session.Progress())
        try await photos.advance()
        await eventually { view.imagePhase() == .success(.network) }
        let bytes = view.progress.map(\.completedBytes)
        #expect(bytes == bytes.sorted())
    }

    @MainActor
    private final class Meter: ImageViewModel {
        let bindings = ViewBindings()
        private(set) var progress: [Session.Progress] = []

        init(_ pipeline: ImagePipeline) { imagePipeline = pipeline }

        func showImage(_ shown: ShownImage, in slot: ImageSlot) {}
        func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot) { self.progress.append(progress) }
    }
}
