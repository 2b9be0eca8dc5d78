import Observation
import Tern
import TernConcurrency
import TernImages
import TernTesting
import TernViewModels
import Testing

@MainActor
@Suite("ButtonImageModel", .timeLimit(.minutes(1)))
struct ButtonImageModelTests {
    private let photos = Photos()

    private func model() -> ButtonImageModel {
        let model = ButtonImageModel()
        model.imagePipeline = photos.pipeline
        return model
    }

    @Test func eachStateHasItsImageOrThatOfTheNormalState() async throws {
        let model = model()
        _ = try await model.loadImage(from: photos.url("/10"), for: .normal).value
        _ = try await model.loadImage(from: photos.url("/20"), for: .highlighted).value
        _ = try await model.loadImage(from: photos.url("/30"), as: .background, for: .disabled).value
        #expect(model.image(for: .normal)?.size.width == 10 && model.image(for: .highlighted)?.size.width == 20)
        #expect(model.image(for: .disabled)?.size.width == 10)
        #expect(model.image(.background, for: .disabled)?.size.width == 30)
        #expect(model.image(.background, for: .normal) == nil && model.lastUpdate(for: .selected) == nil)
        #expect(!model.isLoading && model.error == nil)
    }

    @Test func theErrorStaysUntilTheNextLoad() async throws {
        let model = model()
        let failing = model.loadImage(from: photos.url("/slow"), for: .normal)
        #expect(model.isLoading)
        try await photos.advance()
        #expect(await failing.failure() == .network)
        #expect(model.error?.kind == .network && !model.isLoading)
        model.loadImage(from: photos.url("/slow/40"), for: .normal)
        #expect(model.error == nil && model.isLoading)
        model.cancelImageLoads(for: .normal)
        #expect(!model.isLoading)
    }

    @Test func aChangeOfAStateIsObserved() async throws {
        let model = model()
        let (changes, change) = AsyncStream<Void>.makeStream()
        withObservationTracking {
            _ = model.image(for: .selected)
        } onChange: {
            change.yield()
        }
        _ = try await model.loadImage(from: photos.url("/10"), for: .selected).value
        var iterator = changes.makeAsyncIterator()
        await iterator.next()
        #expect(model.image(for: .selected)?.size.width == 10)
    }
}
