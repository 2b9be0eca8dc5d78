/// A picture in memory that another size of the same source may be made of.
struct Ancestor {
    let key: ImageKey
    let stored: StoredImage

    /// The one that takes the least work to make the picture of a key, and the sizes on the way; nil if none will do.
    static func best(_ ancestors: [Ancestor], for key: ImageKey) -> (stored: StoredImage, plan: DecodingPlan)? {
        // A limit of bytes has sizes of its own, and frames are decoded to theirs.
        let usable = ancestors.filter { ancestor in
            ancestor.key != key && ancestor.stored.animation == nil && ancestor.key.processors.isEmpty
                && ancestor.key.decoding.byteLimit == nil && ancestor.key.scale == key.scale
                // Of a first frame that was asked for alone nobody knows whether others follow.
                && (ancestor.key.animation != .firstFrame || key.animation == .firstFrame)
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
            originalSize: stored.image.metadata.originalSize, isPartial: stored.image.metadata.isPartial)
    }
}
