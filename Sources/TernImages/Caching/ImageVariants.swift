/// Decides whether an image can be made from a cached variant of another size, and how. It touches no pixels.
///
/// The decision is computed, not looked up: any variant of the same original is suitable if the result shows no loss. A
/// larger variant is suitable if it is not cropped. No image is enlarged; a drawing can be made larger than its original.
struct Derivation: Equatable {
    /// A cached image without processors: the target it was made for, and its sizes.
    struct Variant: Equatable {
        var target: PixelSize?
        var mode = ImageDecodingOptions.ContentMode.fit
        /// The size of the variant, and the upright size of its original.
        var size: PixelSize
        var originalSize: PixelSize
        var isPartial = false
        /// Whether the original is a drawing, of which a variant can be larger.
        var isDrawing = false

        /// Returns the plan for a target from the original.
        func plan(_ target: PixelSize?, _ mode: ImageDecodingOptions.ContentMode) -> DecodingPlan {
            #if os(Linux)
            if isDrawing { return DecodingPlan(drawing: DrawingSize(originalSize), target: target, mode: mode) }
            #endif
            return DecodingPlan(size: originalSize, target: target, mode: mode)
        }
    }

    /// The decision for a variant.
    enum Decision: Equatable {
        /// Resize, then crop to the middle. A step without a change of size does nothing.
        case derive(DecodingPlan)
        /// The variant cannot be used.
        case reject(RejectionReason)
    }

    /// The reason why a variant cannot be used.
    enum RejectionReason: String, Equatable {
        /// Rows are missing.
        case partial
        /// It is cropped.
        case cropped
        /// Its size is not the one that its options call for, for example from a custom decoder.
        case unexpectedSize
        /// It is too small.
        case smaller
    }

    /// The target size and mode of the image to make.
    var target: PixelSize?
    var mode = ImageDecodingOptions.ContentMode.fit

    /// Returns whether and how the image can be made from a variant of the same original.
    func canDerive(from variant: Variant) -> Decision {
        if variant.isPartial { return .reject(.partial) }
        let original = variant.originalSize
        guard original.width > 0, original.height > 0 else { return .reject(.unexpectedSize) }
        let plan = variant.plan(target, mode)
        let cached = variant.plan(variant.target, variant.mode)
        guard variant.size == cached.cropped else { return .reject(.unexpectedSize) }
        if plan == cached { return .derive(DecodingPlan(scaled: variant.size, cropped: variant.size)) }
        guard cached.cropped == cached.scaled else { return .reject(.cropped) }
        guard plan.scaled.width <= variant.size.width, plan.scaled.height <= variant.size.height else {
            return .reject(.smaller)
        }
        return .derive(plan)
    }

    /// Returns the suitable variant with the least work: the smallest one.
    func best(of variants: [Variant]) -> (index: Int, plan: DecodingPlan)? {
        let usable = variants.indices.compactMap { index -> (index: Int, plan: DecodingPlan)? in
            guard case .derive(let plan) = canDerive(from: variants[index]) else { return nil }
            return (index, plan)
        }
        return usable.min { variants[$0.index].size.pixelCount < variants[$1.index].size.pixelCount }
    }
}

/// An image in memory from which another size of the same source may be made.
struct VariantCandidate {
    let key: ImageKey
    let stored: StoredImage

    /// Returns the candidate with the least work for a key, and the plan; nil if none is suitable.
    static func best(of candidates: [VariantCandidate], for key: ImageKey) -> (stored: StoredImage, plan: DecodingPlan)?
    {
        // A byte limit changes the size, and frames of animations are decoded to their own target.
        let usable = candidates.filter { candidate in
            candidate.key != key && candidate.stored.animation == nil && candidate.key.processors.isEmpty
                && candidate.key.decoding.byteLimit == nil && candidate.key.scale == key.scale
                && candidate.key.decoding.hasSamePixels(as: key.decoding)
                // A first frame that was requested alone does not tell whether other frames follow.
                && (candidate.key.animation != .firstFrame || key.animation == .firstFrame)
        }
        let derivation = Derivation(target: key.decoding.targetSize, mode: key.decoding.contentMode)
        guard key.decoding.byteLimit == nil, let (index, plan) = derivation.best(of: usable.map(\.variant)) else {
            return nil
        }
        return (usable[index].stored, plan)
    }

    private var variant: Derivation.Variant {
        Derivation.Variant(
            target: key.decoding.targetSize, mode: key.decoding.contentMode, size: stored.image.size,
            originalSize: stored.image.metadata.originalSize, isPartial: stored.image.metadata.isPartial,
            isDrawing: stored.image.format == .svg)
    }
}

extension ImageDecodingOptions {
    /// Whether images of both options differ only in size. An image that was not resized has no light of its own.
    fileprivate func hasSamePixels(as other: ImageDecodingOptions) -> Bool {
        color == other.color && gainMap == other.gainMap
            && (targetSize == nil || resizesInLinearLight == other.resizesInLinearLight)
    }
}
