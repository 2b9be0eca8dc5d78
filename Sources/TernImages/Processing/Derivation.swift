/// Whether a picture that is wanted can be made from one of another size that is cached, and how. Decides, touches no pixel.
///
/// Computed and not keyed: any variant of the same original will do from which the wanted one comes without loss that
/// shows. A larger one does if nothing was cut off it; none is ever enlarged.
struct Derivation: Equatable {
    /// A cached picture, not processed: what it was made for, and what it is.
    struct Variant: Equatable {
        var target: PixelSize?
        var mode = ImageDecodingOptions.ContentMode.fit
        /// Its size, and that of its original as shown.
        var size: PixelSize
        var originalSize: PixelSize
        var isPartial = false
    }

    /// What makes the wanted picture of a variant.
    enum Answer: Equatable {
        /// Resize, and keep the middle. Sizes that the variant has already mean nothing to do.
        case derive(DecodingPlan)
        /// The variant is of no use, and why.
        case refuse(Refusal)
    }

    /// Why a variant is of no use.
    enum Refusal: String, Equatable {
        /// It lacks rows.
        case partial
        /// Something was cut off it.
        case cropped
        /// It is not of the size that its options say, as from a decoder with a mind of its own.
        case unplanned
        /// It is too small.
        case smaller
    }

    /// What is wanted of the original.
    var target: PixelSize?
    var mode = ImageDecodingOptions.ContentMode.fit

    /// Whether and how the wanted picture comes of a variant of the same original.
    func canDerive(from variant: Variant) -> Answer {
        if variant.isPartial { return .refuse(.partial) }
        let original = variant.originalSize
        guard original.width > 0, original.height > 0 else { return .refuse(.unplanned) }
        let plan = DecodingPlan(size: original, target: target, mode: mode)
        let cached = DecodingPlan(size: original, target: variant.target, mode: variant.mode)
        guard variant.size == cached.cropped else { return .refuse(.unplanned) }
        if plan == cached { return .derive(DecodingPlan(scaled: variant.size, cropped: variant.size)) }
        guard cached.cropped == cached.scaled else { return .refuse(.cropped) }
        guard plan.scaled.width <= variant.size.width, plan.scaled.height <= variant.size.height else {
            return .refuse(.smaller)
        }
        return .derive(plan)
    }

    /// The variant that takes the least work: the smallest that will do.
    func best(of variants: [Variant]) -> (index: Int, plan: DecodingPlan)? {
        let usable = variants.indices.compactMap { index -> (index: Int, plan: DecodingPlan)? in
            guard case .derive(let plan) = canDerive(from: variants[index]) else { return nil }
            return (index, plan)
        }
        return usable.min { variants[$0.index].size.pixelCount < variants[$1.index].size.pixelCount }
    }
}
