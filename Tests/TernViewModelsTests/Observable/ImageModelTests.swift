import Observation
import Tern
import TernConcurrency
import TernImages
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@MainActor
@Suite("ImageModel", .timeLimit(.minutes(1)))
struct ImageModelTests {
    private let photos = Photos()

    private func model() -> ImageModel {
        let model = ImageModel()
        model.imagePipeline = photos.pipeline
        return model
    }

    @Test func theModelKeepsTheShownImage() async throws {
        let model = model()
        let load = model.loadImage(
            from: photos.url("/slow/40"), display: ImageDisplay(placeholder: .image(try PhotoDecoder.image(1))))
        #expect(model.isLoading && model.image?.size.width == 1 && model.lastUpdate?.phase == .placeholder)
        try await photos.advance()
        _ = try await load.value
        #expect(!model.isLoading && model.image?.size.width == 40 && model.error == nil)
        #expect(model.lastUpdate(in: .highlighted) == nil)
    }

    @Test func aHashIsAPlaceholder() async throws {
        let hash = "3OcRJYB4d3h/iIeHeEh3eIhw+j2w"
        let model = model()
        model.loadImage(from: photos.url("/slow/40"), display: ImageDisplay(placeholder: .thumbHash(hash)))
        #expect(model.image?.size == PixelSize(width: 32, height: 23) && model.phase == .placeholder)
        model.cancelImageLoad()
        let blur = ImageDisplay(placeholder: .blurHash("00CPCb", size: PixelSize(width: 4, height: 3)))
        #expect(blur.placeholder?.image?.size == PixelSize(width: 4, height: 3))
        #expect(ImageContent.thumbHash(nil)?.image == nil && ImageContent.thumbHash("none")?.image == nil)
        #expect(ImageContent.blurHash(nil)?.image == nil && ImageContent.blurHash("none")?.image == nil)
    }

    @Test func theModelKeepsTheErrorUntilTheNextLoad() async throws {
        let model = model()
        let failing = model.loadImage(from: photos.url("/slow"))
        try await photos.advance()
        #expect(await failing.failure() == .network)
        #expect(model.error?.kind == .network && !model.isLoading)
        model.loadImage(from: photos.url("/slow/40"))
        #expect(model.error == nil && model.isLoading)
        model.cancelImageLoad()
        #expect(!model.isLoading && model.error == nil)
        model.loadImage(from: nil)
        #expect(model.error?.kind == .invalidURL)
    }

    /// The observer must also see a failure that leaves the image unchanged.
    @Test func thePhaseIsObserved() async throws {
        let model = model()
        #expect(model.phase == .idle)
        let load = model.loadImage(from: photos.url("/slow/40"))
        try await photos.advance()
        _ = try await load.value
        #expect(model.phase == .success(.network))
        let failing = model.loadImage(from: photos.url("/slow"))
        #expect(model.phase == .placeholder && model.image?.size.width == 40)
        let hasChanged = Lock(false)
        withObservationTracking {
            _ = model.phase
        } onChange: {
            hasChanged.withLock { $0 = true }
        }
        try await photos.advance()
        #expect(await failing.failure() == .network)
        guard case .failure = model.phase else {
            Issue.record("the phase is \(model.phase)")
            return
        }
        #expect(hasChanged.withLock { $0 } && model.image?.size.width == 40)
    }

    @Test func loadsWaitForTheSizeOfTheModel() async throws {
        let model = model()
        var display = ImageDisplay()
        display.decodesToViewSize = true
        let load = model.loadImage(from: photos.url("/40"), display: display)
        #expect(load.task == nil)
        model.size = PixelSize(width: 10, height: 10)
        #expect(load.task != nil)
        #expect(try await load.value.image.size.width == 10)
    }

    @Test func transitionsDelayNothing() async throws {
        let model = model()
        var display = ImageDisplay()
        display.waitsForTransition = true
        #expect(try await model.loadImage(from: photos.url("/40"), display: display).value.image.size.width == 40)
        #expect(model.lastUpdate?.transition != nil)
    }

    @Test func theModelIsReleased() async throws {
        var model: ImageModel? = model()
        let load = model?.loadImage(from: photos.url("/slow/40"))
        weak let weakly = model
        model = nil
        #expect(weakly == nil)
        #expect(await load?.failure() == .cancelled)
    }
}
