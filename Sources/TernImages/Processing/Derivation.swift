/// Whether a picture that is wanted can be made from one that is cached, and how. Decides, touches no pixel.
///
/// Computed and not keyed: any variant of the same original will do from which the wanted one comes without loss that
/// shows. A larger one does if nothing was cut off it; none is ever enlarged.
struct Derivation: Equatable {
    /// What is wanted of an original.
    struct Wanted: Equatable {
        var target: PixelSize?
        var mode = ImageDecodingOptions.ContentMode.fit
        /// Pixels per point, which processors that measure in points depend on.
        var scale = 1.0
        /// The processors that follow the decoding, one for each step of their composition.
        var processors: [ProcessorIdentity] = []
    }

    /// A cached picture: what it was made for, and what it is.
    struct Variant: Equatable {
        var made: Wanted
        /// Its size, and that of its original as shown.
        var size: PixelSize
        var originalSize: PixelSize
        var isPartial = false
    }

    /// What makes the wanted picture of a variant.
    enum Answer: Equatable {
        /// Resize to the size, keep the middle of it, then run the processors from an index on. Sizes that the variant
        /// has already mean nothing to do.
        case derive(scaled: PixelSize, cropped: PixelSize, firstProcessor: Int)
        /// The variant is of no use, and why.
        case refuse(Refusal)
    }

    /// Why a variant is of no use.
    enum Refusal: String, Equatable {
        /// It lacks rows.
        case partial
        /// Its processors are not the first of those that are wanted.
        case otherProcessors
        /// It was processed at another size or scale.
        case processedOtherwise
        /// Something was cut off it.
        case cropped
        /// It is not of the size that its options say, as from a decoder with a mind of its own.
        case unplanned
        /// It is too small.
        case smaller
    }

    let wanted: Wanted

    /// Whether and how the wanted picture comes of a variant of the same original.
    func canDerive(from variant: Variant) -> Answer {
        if variant.isPartial { return .refuse(.partial) }
        let done = variant.made.processors
        guard wanted.processors.starts(with: done) else { return .refuse(.otherProcessors) }
        let original = variant.originalSize
        guard original.width > 0, original.height > 0 else { return .refuse(.unplanned) }
        let plan = DecodingPlan(size: original, target: wanted.target, mode: wanted.mode)
        let cached = DecodingPlan(size: original, target: variant.made.target, mode: variant.made.mode)
        if !done.isEmpty {
            guard plan == cached, wanted.scale == variant.made.scale else { return .refuse(.processedOtherwise) }
            return .derive(scaled: variant.size, cropped: variant.size, firstProcessor: done.count)
        }
        guard variant.size == cached.cropped else { return .refuse(.unplanned) }
        if plan == cached { return .derive(scaled: variant.size, cropped: variant.size, firstProcessor: 0) }
        guard cached.cropped == cached.scaled else { return .refuse(.cropped) }
        guard plan.scaled.width <= variant.size.width, plan.scaled.height <= variant.size.height else {
            return .refuse(.smaller)
        }
        return .derive(scaled: plan.scaled, cropped: plan.cropped, firstProcessor: 0)
    }

    /// The variant that takes the least work: the one with the most processors done, among these the smallest.
    func best(of variants: [Variant]) -> (index: Int, answer: Answer)? {
        var best: (index: Int, answer: Answer, done: Int)?
        for (index, variant) in variants.enumerated() {
            let answer = canDerive(from: variant)
            guard case .derive(_, _, let done) = answer else { continue }
            if let best {
                let smaller = variant.size.pixelCount < variants[best.index].size.pixelCount
                guard done > best.done || done == best.done && smaller else { continue }
            }
            best = (index, answer, done)
        }
        return best.map { ($0.index, $0.answer) }
    }
}
