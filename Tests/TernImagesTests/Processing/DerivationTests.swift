import Testing

@testable import TernImages

@Suite struct DerivationTests {
    private typealias Wanted = Derivation.Wanted
    private typealias Mode = ImageDecodingOptions.ContentMode
    private let original = PixelSize(width: 4_000, height: 3_000)
    private let circle = ImageProcessors.Circle().identifier
    private let tint = ImageProcessors.Tint(.black).identifier

    private func size(_ width: Int, _ height: Int) -> PixelSize { PixelSize(width: width, height: height) }

    /// A variant as our decoders make it.
    private func variant(
        _ target: PixelSize?, _ mode: Mode = .fit, _ processors: [ProcessorIdentity] = [], scale: Double = 1
    ) -> Derivation.Variant {
        let plan = DecodingPlan(size: original, target: target, mode: mode)
        return Derivation.Variant(
            made: Wanted(target: target, mode: mode, scale: scale, processors: processors), size: plan.cropped,
            originalSize: original)
    }

    private func answer(
        _ target: PixelSize?, _ mode: Mode = .fit, _ processors: [ProcessorIdentity] = [],
        from variant: Derivation.Variant
    ) -> Derivation.Answer {
        Derivation(wanted: Wanted(target: target, mode: mode, processors: processors)).canDerive(from: variant)
    }

    @Test func aLargerPictureServesEverySmallerSize() {
        let (large, small) = (size(800, 600), size(400, 300))
        for cached in [variant(nil), variant(large), variant(large, .atLeast), variant(size(9_999, 9_999))] {
            #expect(
                answer(small, from: cached) == .derive(scaled: small, cropped: small, firstProcessor: 0))
            #expect(
                answer(size(100, 300), .fill, [circle], from: cached)
                    == .derive(scaled: small, cropped: size(100, 300), firstProcessor: 0))
            #expect(
                answer(size(100, 300), .atLeast, from: cached)
                    == .derive(scaled: small, cropped: small, firstProcessor: 0))
        }
    }

    @Test func nothingIsEnlarged() {
        let cached = variant(size(400, 300))
        #expect(answer(size(401, 301), from: cached) == .refuse(.smaller))
        #expect(answer(size(400, 400), .fill, from: cached) == .refuse(.smaller))
        #expect(answer(nil, from: cached) == .refuse(.smaller))
    }

    @Test func optionsThatComeToTheSamePictureAreTheSame() {
        // The whole original, asked for in four ways; and a fill that cuts nothing off.
        for target in [nil, size(4_000, 3_000), size(5_000, 5_000)] {
            #expect(
                answer(target, .atLeast, [tint], from: variant(nil, .fit, [tint]))
                    == .derive(scaled: original, cropped: original, firstProcessor: 1))
        }
        #expect(
            answer(size(400, 300), .fit, from: variant(size(400, 300), .fill))
                == .derive(scaled: size(400, 300), cropped: size(400, 300), firstProcessor: 0))
    }

    @Test func whatWasCutOffIsNotInvented() {
        let cached = variant(size(500, 500), .fill)
        #expect(answer(size(100, 100), from: cached) == .refuse(.cropped))
        #expect(answer(size(100, 100), .fill, from: cached) == .refuse(.cropped))
        #expect(
            answer(size(500, 500), .fill, [circle], from: cached)
                == .derive(scaled: size(500, 500), cropped: size(500, 500), firstProcessor: 0))
    }

    @Test func theFirstProcessorsOfTheListAreNotRunAgain() {
        let small = size(400, 300)
        let cached = variant(small, .fit, [circle])
        #expect(
            answer(small, .fit, [circle, tint], from: cached)
                == .derive(scaled: small, cropped: small, firstProcessor: 1))
        #expect(
            answer(small, .fit, [circle], from: cached)
                == .derive(scaled: small, cropped: small, firstProcessor: 1))
        #expect(answer(small, .fit, [tint, circle], from: cached) == .refuse(.otherProcessors))
        #expect(answer(small, from: cached) == .refuse(.otherProcessors))
        #expect(answer(size(200, 150), .fit, [circle], from: cached) == .refuse(.processedOtherwise))
        let doubled = variant(small, .fit, [circle], scale: 2)
        #expect(answer(small, .fit, [circle], from: doubled) == .refuse(.processedOtherwise))
    }

    @Test func aResultOfAnotherSizeThanItsPlanServesAsAPrefix() {
        // A circle changes the size: it is of the square, not of the plan.
        var cached = variant(size(400, 300), .fit, [circle])
        cached.size = size(300, 300)
        #expect(
            answer(size(400, 300), .fit, [circle, tint], from: cached)
                == .derive(scaled: size(300, 300), cropped: size(300, 300), firstProcessor: 1))
    }

    @Test func damagedAndStrangeVariantsAreRefused() {
        var cached = variant(nil)
        cached.isPartial = true
        #expect(answer(nil, from: cached) == .refuse(.partial))
        cached = variant(size(800, 600))
        cached.size = size(800, 500)
        #expect(answer(size(400, 300), from: cached) == .refuse(.unplanned))
        cached.originalSize = size(0, 0)
        #expect(answer(size(400, 300), from: cached) == .refuse(.unplanned))
    }

    @Test func theVariantOfLeastWorkIsTaken() {
        let small = size(400, 300)
        let wanted = Derivation(wanted: Wanted(target: small, processors: [circle, tint]))
        let variants = [
            variant(nil), variant(size(800, 600)), variant(size(100, 100)), variant(size(500, 500)),
            variant(small, .fit, [circle]), variant(small, .fit, [tint]),
        ]
        #expect(wanted.best(of: variants)?.index == 4)
        #expect(wanted.best(of: Array(variants.prefix(4)))?.index == 3)
        #expect(wanted.best(of: [variants[2]]) == nil)
        #expect(wanted.best(of: []) == nil)
    }
}
