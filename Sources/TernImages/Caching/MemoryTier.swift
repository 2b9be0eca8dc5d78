import TernCache
import TernConcurrency

/// The decoded images that a pipeline keeps in memory, with an index of their variants.
struct MemoryTier: ~Copyable, Sendable {
    let cache: MemoryCache<ImageKey, StoredImage>
    private let variants = Lock(VariantIndex())

    init(_ configuration: ImagePipeline.Configuration) {
        var memory = MemoryCacheConfiguration(limits: MemoryCacheLimits(cost: configuration.memoryLimit))
        memory.pressure = configuration.pressure
        cache = MemoryCache(memory, weakReferences: StoredImage.weakReferences) { $0.cost }
    }

    /// Returns the image of a key. Synchronous, from any thread: a hit switches no thread.
    func image(for key: ImageKey) -> StoredImage? { cache.value(for: key) }

    /// Returns the image that a load may take from memory, and records the result in its trace.
    func image(for key: ImageLoadKey, trace: inout ImageTrace) -> StoredImage? {
        guard key.caching.memory.contains(.read) else {
            trace.add(.memory, .skipped, of: key.imageKey)
            return nil
        }
        guard let stored = image(for: key.imageKey), stored.satisfies(key.options, of: key.imageKey) else {
            trace.add(.memory, .miss, of: key.imageKey)
            return nil
        }
        trace.add(.memory, .hit, of: key.imageKey)
        return stored
    }

    /// Returns another size from which the image of a load can be made, and the plan; nil if none is suitable.
    func variant(for key: ImageLoadKey) -> (stored: StoredImage, plan: DecodingPlan)? {
        // A source of decoded images may have a larger one than those that it gave for smaller sizes.
        guard key.caching.memory.contains(.read), key.imageKey.processors.isEmpty, !key.options.includesData,
            !key.imageKey.isDecodedBySource
        else { return nil }
        return VariantCandidate.best(of: candidates(of: key.imageKey.source), for: key.imageKey)
    }

    /// Stores an image. Returns false if it is larger than the limit.
    @discardableResult
    func insert(_ image: StoredImage, for key: ImageKey) -> Bool {
        guard cache.insert(image, for: key) else { return false }
        if let left = variants.withLock({ $0.insert(key) }) { cache.remove(left) }
        return true
    }

    /// Stores an image if its request may write to memory, and records the outcome in the trace.
    func insert(_ image: StoredImage, for key: ImageLoadKey, trace: inout ImageTrace) {
        guard key.caching.memory.contains(.write) else { return }
        if insert(image, for: key.imageKey) {
            trace.add(.memory, .stored, of: key.imageKey)
        } else {
            trace.add(.memory, .notStored, detail: "\(image.cost) bytes exceed the limit of the memory cache")
        }
    }

    /// Stores the image of a load, and records the outcome in its trace. Returns false if the image is partial, and not
    /// to be stored anywhere.
    func store(_ response: inout ImageResponse, for key: ImageLoadKey) -> Bool {
        if response.stored.image.metadata.isPartial {
            response.trace.add(.memory, .notStored, detail: "a partial image")
            return false
        }
        if response.source == .network { removeVariants(otherThan: response.stored.freshness, of: key) }
        insert(response.stored, for: key, trace: &response.trace)
        return true
    }

    /// Removes an image and all other variants of its source.
    func remove(_ key: ImageKey) {
        for variant in variants.withLock({ $0.remove(key.source) }) { cache.remove(variant) }
        cache.remove(key)
    }

    func removeAll() {
        variants.withLock { $0 = VariantIndex() }
        cache.removeAll()
    }

    /// Returns the variants of a source that are in memory.
    func candidates(of source: SourceKey) -> [VariantCandidate] {
        var gone: [ImageKey] = []
        let found = keys(of: source).compactMap { key -> VariantCandidate? in
            if let stored = cache.value(for: key) { return VariantCandidate(key: key, stored: stored) }
            gone.append(key)
            return nil
        }
        if gone.isEmpty { return found }
        variants.withLock { variants in
            // One that was stored again meanwhile stays.
            variants.remove(gone.filter { cache.value(for: $0) == nil }, of: source)
        }
        return found
    }

    /// Returns the largest variant in the colors of the key with the same processors, or else the largest one without
    /// processors.
    func largestVariant(of key: ImageKey) -> RasterImage? {
        let keys = keys(of: key.source).filter {
            $0.decoding.color == key.decoding.color && $0.decoding.gainMap == key.decoding.gainMap
        }
        for processors in [key.processors, []] {
            let images = keys.filter { $0.processors == processors }.compactMap { cache.value(for: $0)?.image }
            if let largest = images.max(by: { $0.size.pixelCount < $1.size.pixelCount }) { return largest }
        }
        return nil
    }

    /// Removes the other variants in memory that were made from another version of the bytes.
    private func removeVariants(otherThan freshness: ImageFreshness, of key: ImageLoadKey) {
        let isReload = !key.caching.originals.contains(.read)
        for variant in keys(of: key.imageKey.source) where variant != key.imageKey {
            guard let other = cache.value(for: variant)?.freshness, other != freshness else { continue }
            // Without validators the versions cannot be compared: a reload then replaces all variants.
            let isUnknown = other.validators.isEmpty && freshness.validators.isEmpty
            let isOther = isUnknown ? isReload : other.validators != freshness.validators
            if isOther, other != .always { cache.remove(variant) }
        }
    }

    private func keys(of source: SourceKey) -> [ImageKey] { variants.withLock { $0.keys(of: source) } }
}

/// The keys of the variants that were put into memory, by source, so that one variant can be made from another. Pure.
///
/// The index may name variants that memory has evicted since; a look-up tells. Its size is bounded.
struct VariantIndex: Sendable {
    /// Most sources have one variant, which needs no array.
    private struct Variants {
        var first: ImageKey
        var others: [ImageKey] = []

        var all: [ImageKey] { [first] + others }

        func contains(_ key: ImageKey) -> Bool { first == key || others.contains(key) }

        /// Adds a variant, unless it is the first. Returns the one that leaves for it, beyond the limit; nil for none.
        mutating func add(_ key: ImageKey) -> ImageKey? {
            guard key != first else { return nil }
            others.append(key)
            return others.count >= VariantIndex.variantLimit ? others.removeFirst() : nil
        }
    }

    /// The greatest number of variants of a source. A look-up examines all of them.
    private static let variantLimit = 32

    private var variants: [SourceKey: Variants] = [:]
    private var count = 0
    private let limit: Int

    init(limit: Int = 20_000) { self.limit = limit }

    func keys(of source: SourceKey) -> [ImageKey] { variants[source]?.all ?? [] }

    /// Adds a variant. Returns the one that leaves for it, which memory must not keep either; nil for none.
    @discardableResult
    mutating func insert(_ key: ImageKey) -> ImageKey? {
        guard variants[key.source]?.contains(key) != true else { return nil }
        // The index only saves work, so it may start empty again.
        if count >= limit { self = VariantIndex(limit: limit) }
        let left = variants[key.source, default: Variants(first: key)].add(key)
        if left == nil { count += 1 }
        return left
    }

    /// Removes variants that memory has evicted.
    mutating func remove(_ keys: [ImageKey], of source: SourceKey) {
        guard let known = variants[source]?.all else { return }
        let rest = known.filter { !keys.contains($0) }
        count -= known.count - rest.count
        guard let first = rest.first else {
            variants[source] = nil
            return
        }
        variants[source] = Variants(first: first, others: Array(rest.dropFirst()))
    }

    mutating func remove(_ source: SourceKey) -> [ImageKey] {
        let removed = variants.removeValue(forKey: source)?.all ?? []
        count -= removed.count
        return removed
    }
}
