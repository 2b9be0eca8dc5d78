import Tern
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
@Suite("Buttons' pictures", .timeLimit(.minutes(1)))
struct ButtonImageViewModelTests {
    private let photos = Photos()

    @MainActor
    private class Button: ButtonImageViewModel {
        struct Place: Hashable {
            var part: ButtonImagePart
            var state: ButtonState
        }

        let bindings = ViewBindings()
        private(set) var widths: [Place: Int] = [:]

        func showImage(_ update: ImageUpdate, as part: ButtonImagePart, for state: ButtonState) {
            widths[Place(part: part, state: state)] = update.image?.size.width ?? 0
        }
    }
    private final class RoundButton: Button {}

    private func button() -> Button {
        let button = Button()
        button.imagePipeline = photos.pipeline
        return button
    }

    @Test func everyStateAndPartHasASlotOfItsOwn() async throws {
        let button = button()
        var expected: [Button.Place: Int] = [:]
        var loads: [ImageLoad] = []
        // All sixteen combinations are different slots.
        for bits in 0..<16 {
            for part in ButtonImagePart.allCases {
                let width = 1 + bits * 2 + (part == .image ? 0 : 1)
                let state = ButtonState(rawValue: bits)
                expected[Button.Place(part: part, state: state)] = width
                loads.append(button.loadImage(from: photos.url("/\(width)"), as: part, for: state))
            }
        }
        for load in loads { _ = try await load.value }
        #expect(button.widths == expected)
        #expect(button.imageLoads.url(for: .button(.image, [.selected, .highlighted])) == photos.url("/11"))
    }

    @Test func withoutAStateItIsTheNormalOne() async throws {
        let button = button()
        let load = button.loadImage(from: photos.url("/slow/1"))
        #expect(button.imageLoads[.button(.image, .normal)] === load)
        button.loadImage(from: photos.url("/2"), for: .normal)
        #expect(!load.isActive)
        await eventually { button.widths == [Button.Place(part: .image, state: .normal): 2] }
        #expect(ImageSlot.button(.image, .highlighted) == .highlighted)
    }

    @Test func cancellingOneStateKeepsTheOthers() async throws {
        let button = button()
        let normal = button.loadImage(from: photos.url("/slow/1"), for: .normal)
        let both = ButtonImagePart.allCases.map { part in
            button.loadImage(from: photos.url("/slow/2"), as: part, for: [.disabled, .focused])
        }
        let disabled = button.loadImage(from: photos.url("/slow/3"), for: .disabled)
        button.cancelImageLoads(for: [.disabled, .focused])
        #expect(both.allSatisfy { !$0.isActive } && normal.isActive && disabled.isActive)
        button.cancelImageLoads(as: .background, for: .normal)
        #expect(normal.isActive)
        button.imageLoads.cancelAll()
        #expect(!normal.isActive && !disabled.isActive)
    }

    @Test func withoutAURLTheFailureIsDeliveredAndTheFallbackShown() async throws {
        let (button, recorder) = (button(), CompletionRecorder())
        let load = button.loadImage(
            from: nil, for: .highlighted, display: ImageDisplay(fallback: .image(try PhotoDecoder.image(9))),
            completion: recorder.record)
        #expect(recorder.failures == [.invalidURL])
        #expect(await load.failure() == .invalidURL)
        #expect(button.widths == [Button.Place(part: .image, state: .highlighted): 9])
    }

    @Test func thePipelineCanBeReplacedPerViewAndPerType() async throws {
        let (one, other) = (Photos().pipeline, Photos().pipeline)
        defer { Button.imagePipeline = nil }
        Button.imagePipeline = one
        let button = RoundButton()
        #expect(button.currentImagePipeline === one)
        button.imagePipeline = other
        #expect(button.currentImagePipeline === other)
        button.imagePipeline = nil
        #expect(button.currentImagePipeline === one)
    }

    @Test func aButtonSlotHoldsItsPartAndState() {
        #expect(ImageSlot.animation.button == nil && ImageSlot("button").button == nil)
        // A slot that only has the name of a button's slot is another slot.
        #expect(ImageSlot("button image 1").button == nil)
        #expect(ImageSlot("button") != .button(.background, .normal))
        for part in ButtonImagePart.allCases {
            for bits in 0..<16 {
                let button = ImageSlot.button(part, ButtonState(rawValue: bits)).button
                #expect(button?.part == part && button?.state.rawValue == bits)
            }
        }
    }
}
