/// Which variants of a picture were put into memory, so that one can be made of another. Pure; what has left memory since is
/// found out by looking, and bounded here.
struct Ancestry: Sendable {
    private var variants: [SourceKey: [ImageKey]] = [:]
    private var count = 0
    private let limit: Int

    init(limit: Int = 20_000) { self.limit = limit }

    func keys(of source: SourceKey) -> [ImageKey] { variants[source] ?? [] }

    mutating func insert(_ key: ImageKey) {
        guard variants[key.source]?.contains(key) != true else { return }
        // It only helps to find: beginning anew loses nothing but a shortcut.
        if count >= limit { self = Ancestry(limit: limit) }
        variants[key.source, default: []].append(key)
        count += 1
    }

    mutating func remove(_ source: SourceKey) -> [ImageKey] {
        let removed = variants.removeValue(forKey: source) ?? []
        count -= removed.count
        return removed
    }
}

extension ImageKey {
    /// Whether a decoded picture of this key may be made of that of another: the same source, nothing done to it, cut
    /// nowhere, and not smaller than what is wanted.
    func canBeMade(of ancestor: ImageKey, _ image: RasterImage) -> DecodingPlan? {
        guard ancestor != self, ancestor.source == source, processors.isEmpty, ancestor.processors.isEmpty,
            !image.metadata.isPartial, ancestor.scale == scale
        else { return nil }
        let original = image.metadata.originalSize
        let wanted = DecodingPlan(size: original, decoding)
        let had = DecodingPlan(size: original, ancestor.decoding)
        guard had.scaled == had.cropped, had.scaled == image.size, wanted.scaled.width <= image.size.width,
            wanted.scaled.height <= image.size.height
        else { return nil }
        return wanted
    }
}
