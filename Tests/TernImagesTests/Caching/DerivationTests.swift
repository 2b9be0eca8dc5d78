import Testing

@testable import TernImages

@Suite struct DerivationTests {
    private typealias Mode = ImageDecodingOptions.ContentMode
    private let original = PixelSize(width: 4_000, height: 3_000)

    private func size(_ width: Int, _ height: Int) -> PixelSize { PixelSize(width: width, height: height) }

    /// Returns a variant as our decoders make it.
    private func variant(_ target: PixelSize?, _ mode: Mode = .fit) -> Derivation.Variant {
        let plan = DecodingPlan(size: original, target: target, mode: mode)
        return Derivation.Variant(target: target, mode: mode, size: plan.cropped, originalSize: original)
    }

    private func answer(
        _ target: PixelSize?, _ mode: Mode = .fit, from variant: Derivation.Variant
    ) -> Derivation.Decision {
        Derivation(target: target, mode: mode).canDerive(from: variant)
    }

    private func derive(_ scaled: PixelSize, keeping cropped: PixelSize? = nil) -> Derivation.Decision {
        .derive(DecodingPlan(scaled: scaled, cropped: cropped ?? scaled))
    }

    @Test func aLargerPictureServesEverySmallerSize() {
        let (large, small) = (size(800, 600), size(400, 300))
        for cached in [variant(nil), variant(large), variant(large, .atLeast), variant(size(9_999, 9_999))] {
            #expect(answer(small, from: cached) == derive(small))
            #expect(answer(size(100, 300), .fill, from: cached) == derive(small, keeping: size(100, 300)))
            #expect(answer(size(100, 300), .atLeast, from: cached) == derive(small))
        }
    }

    @Test func nothingIsEnlarged() {
        let cached = variant(size(400, 300))
        #expect(answer(size(401, 301), from: cached) == .reject(.smaller))
        #expect(answer(size(400, 400), .fill, from: cached) == .reject(.smaller))
        #expect(answer(nil, from: cached) == .reject(.smaller))
    }

    #if os(Linux)
    @Test func aDrawingIsMadeLargerThanItsOriginal() {
        func variant(_ target: PixelSize?, _ shown: PixelSize) -> Derivation.Variant {
            Derivation.Variant(target: target, size: shown, originalSize: size(24, 24), isDrawing: true)
        }
        let cached = variant(size(200, 300), size(200, 200))
        #expect(answer(size(100, 100), from: cached) == derive(size(100, 100)))
        #expect(answer(nil, from: cached) == derive(size(24, 24)))
        #expect(answer(size(100, 50), .fill, from: cached) == derive(size(100, 100), keeping: size(100, 50)))
        #expect(answer(size(400, 400), from: cached) == .reject(.smaller))
        #expect(answer(size(100, 100), from: variant(nil, size(24, 24))) == .reject(.smaller))
        // A decoder that does not enlarge.
        #expect(answer(size(20, 20), from: variant(size(200, 200), size(24, 24))) == .reject(.unexpectedSize))
    }
    #endif

    @Test func optionsThatComeToTheSamePictureAreTheSame() {
        // The whole original with four different targets, and a fill that crops nothing.
        for target in [nil, size(4_000, 3_000), size(5_000, 5_000)] {
            #expect(answer(target, .atLeast, from: variant(nil)) == derive(original))
        }
        #expect(answer(size(400, 300), .fit, from: variant(size(400, 300), .fill)) == derive(size(400, 300)))
    }

    @Test func croppedVariantsDoNotServeLargerAreas() {
        let cached = variant(size(500, 500), .fill)
        #expect(answer(size(100, 100), from: cached) == .reject(.cropped))
        #expect(answer(size(100, 100), .fill, from: cached) == .reject(.cropped))
        #expect(answer(size(500, 500), .fill, from: cached) == derive(size(500, 500)))
    }

    @Test func damagedAndStrangeVariantsAreRefused() {
        var cached = variant(nil)
        cached.isPartial = true
        #expect(answer(nil, from: cached) == .reject(.partial))
        cached = variant(size(800, 600))
        cached.size = size(800, 500)
        #expect(answer(size(400, 300), from: cached) == .reject(.unexpectedSize))
        cached.originalSize = size(0, 0)
        #expect(answer(size(400, 300), from: cached) == .reject(.unexpectedSize))
    }

    @Test func theVariantOfLeastWorkIsTaken() {
        let wanted = Derivation(target: size(400, 300))
        let variants = [variant(nil), variant(size(800, 600)), variant(size(100, 100)), variant(size(500, 500))]
        #expect(wanted.best(of: variants)?.index == 3)
        #expect(wanted.best(of: variants)?.plan == DecodingPlan(scaled: size(400, 300), cropped: size(400, 300)))
        #expect(wanted.best(of: [variants[2]]) == nil)
        #expect(wanted.best(of: []) == nil)
    }
}
