import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Encoded bytes as they were fetched.

extension DiskTier {
    /// Returns the key of the encoded bytes of a source.
    static func encodedKey(_ source: SourceKey) -> String { "bytes \(source.text)" }

    /// Returns true, and adds the reason to the trace, if it is known without a wait that there are no encoded bytes to
    /// read.
    func lacksBytes(for key: EncodedLoadKey, trace: inout ImageTrace) -> Bool {
        if !key.caching.contains(.read) {
            trace.add(.originals, .skipped)
        } else if let reason {
            trace.add(.originals, .skipped, detail: reason)
        } else if let openCache, !openCache.contains(Self.encodedKey(key.source)) {
            trace.add(.originals, .miss)
        } else {
            return false
        }
        return true
    }

    /// Returns the encoded bytes on the disk, or nil; the trace says why.
    func encodedImage(for key: EncodedLoadKey, trace: inout ImageTrace) async -> EncodedImage? {
        guard let cache = await cache else {
            trace.add(.originals, .skipped, detail: reason ?? "")
            return nil
        }
        let diskKey = Self.encodedKey(key.source)
        do {
            guard cache.contains(diskKey), let entry = try await cache.entry(for: diskKey) else {
                trace.add(.originals, .miss)
                return nil
            }
            let freshness = ImageFreshness(entry.metadata) ?? .always
            trace.add(.originals, freshness.isFresh(at: configuration.now()) ? .hit : .stale)
            return EncodedImage(data: entry.value, freshness: freshness, source: .original, trace: trace)
        } catch {
            trace.add(.originals, .failed, detail: "\(error)")
            return nil
        }
    }

    /// Returns true, and adds the reason to their trace, if encoded bytes are not to be stored.
    func skipsStoring(_ image: inout EncodedImage, for key: EncodedLoadKey, request: ImageRequest) -> Bool {
        if !key.caching.contains(.write) || !configuration.diskContent.holdsEncodedBytes(of: request) {
            image.trace.add(.originals, .skipped)
        } else if request.source.request == nil {
            return true
        } else if image.freshness.forbidsStorage {
            image.trace.add(.originals, .notStored, detail: "no-store")
        } else if let reason {
            image.trace.add(.originals, .notStored, detail: reason)
        } else {
            return false
        }
        return true
    }

    /// Stores encoded bytes. Returns them with the outcome in their trace.
    func store(_ image: EncodedImage, for key: EncodedLoadKey, request: ImageRequest) async -> EncodedImage {
        var image = image
        guard let cache = await cache else {
            image.trace.add(.originals, .notStored, detail: reason ?? "")
            return image
        }
        var stored: Data? = image.data
        if let serialize = configuration.hooks.serialize { stored = await serialize(image.data, request) }
        guard let stored else {
            image.trace.add(.originals, .notStored, detail: "the hook `serialize` returned nil")
            return image
        }
        let (diskKey, metadata) = (Self.encodedKey(key.source), image.freshness.encoded)
        do {
            if !cache.enqueueIfPossible(stored, for: diskKey, metadata: metadata) {
                try await cache.insert(stored, for: diskKey, metadata: metadata)
            }
            image.trace.add(.originals, .stored)
        } catch {
            image.trace.add(.originals, .notStored, detail: "\(error)")
        }
        return image
    }

    /// Removes bytes that cannot be decoded. If they stay, the new ones replace them.
    func discardBytes(of source: SourceKey) async {
        try? await cache?.remove(Self.encodedKey(source))
    }

    /// Updates the freshness of the encoded bytes on the disk after a 304 response.
    func updateFreshness(ofBytesFor key: EncodedLoadKey, to freshness: ImageFreshness) async {
        guard key.caching.contains(.write), !freshness.forbidsStorage else { return }
        let diskKey = Self.encodedKey(key.source)
        await updateFreshness(ofEntry: diskKey, tags: [], matching: key.validators, to: freshness)
    }

    /// Updates the freshness of an entry if it is the version with these validators.
    private func updateFreshness(
        ofEntry diskKey: String, tags: [String], matching validators: ImageFreshness.Validators?,
        to freshness: ImageFreshness
    ) async {
        guard let cache = await cache, cache.contains(diskKey) else { return }
        // An error costs one unnecessary request later.
        let entry = try? await cache.entry(for: diskKey)
        guard let entry, ImageFreshness(entry.metadata)?.validators == validators else { return }
        // The same applies here.
        let metadata = freshness.encoded(originalSize: ImageFreshness.originalSize(in: entry.metadata))
        try? cache.enqueue(entry.value, for: diskKey, metadata: metadata, tags: tags)
    }
}

// Maintenance.

extension DiskTier {
    /// Returns a Boolean value that indicates whether the processed image or the encoded bytes are stored.
    func contains(_ key: ImageKey) async -> Bool {
        guard let cache = await cache else { return false }
        return cache.contains(key.text) || cache.contains(Self.encodedKey(key.source))
    }

    /// Removes the processed images of a source and its encoded bytes, partial ones included.
    func remove(_ key: ImageKey) async throws(ImageError) {
        try await performAfterWrites("the disk cache could not remove the image") { cache throws(DiskCacheError) in
            try await cache.removeAll(tagged: key.source.tag)
            try await cache.remove(Self.encodedKey(key.source))
            try await cache.remove(PartialImage.key(key.source))
        }
    }

    func removeAll() async throws(ImageError) {
        try await performAfterWrites("the disk cache could not be emptied") { cache throws(DiskCacheError) in
            try await cache.removeAll()
        }
    }

    func flush() async throws(ImageError) {
        try await performAfterWrites("the disk cache could not be written") { cache throws(DiskCacheError) in
            try await cache.flush()
        }
    }

    /// Calls the operation after the writes under way, which would store again what it removes.
    private func performAfterWrites(
        _ failure: String, _ operation: (DiskCache) async throws(DiskCacheError) -> Void
    ) async throws(ImageError) {
        await finishWrites()
        guard let cache = await cache else { return }
        do {
            try await operation(cache)
        } catch {
            throw ImageError(.source, "\(failure): \(error)", underlying: error)
        }
    }
}

// Processed images, encoded for the disk.

extension DiskTier {
    /// Returns a Boolean value that indicates whether the processed image of a load may be read.
    func readsProcessed(_ key: ImageLoadKey) -> Bool {
        // A processed image is stored without its encoded bytes.
        key.storesProcessed(configuration.diskContent) && key.caching.processed.contains(.read)
            && !key.options.includesData && !key.imageKey.source.isFile
    }

    /// Returns true, and adds the reason to the trace, if it is known without a wait that there is no processed image
    /// to read.
    func lacksProcessed(_ key: ImageLoadKey, trace: inout ImageTrace) -> Bool {
        guard readsProcessed(key) else { return true }
        if let reason {
            trace.add(.processed, .skipped, detail: reason)
        } else if let openCache, !openCache.contains(key.imageKey.text) {
            trace.add(.processed, .miss)
        } else {
            return false
        }
        return true
    }

    /// Returns the stored processed image, or nil; the trace says why.
    func processedEntry(for key: ImageLoadKey, trace: inout ImageTrace) async -> DiskCache.Entry? {
        guard let cache = await cache else {
            trace.add(.processed, .skipped, detail: reason ?? "")
            return nil
        }
        let diskKey = key.imageKey.text
        do {
            if cache.contains(diskKey), let entry = try await cache.entry(for: diskKey) { return entry }
            trace.add(.processed, .miss)
        } catch {
            // The image is made again, and replaces the entry.
            trace.add(.processed, .failed, detail: "\(error)")
        }
        return nil
    }

    /// Returns true, and adds the reason to the trace, if there is nothing to store or to wait for.
    func skipsStoring(_ loaded: inout ImageResponse, for key: ImageLoadKey) -> Bool {
        if key.options.waitsForStore, loaded.source == .network, reason == nil { return false }
        return skipsStoringProcessed(&loaded, for: key)
    }

    /// Stores a processed image in the background if the configuration and the request say so. With `waitsForStore` it
    /// returns once the image and its encoded bytes are stored, with the outcome in the trace.
    func store(_ made: ImageResponse, for key: ImageLoadKey) async -> ImageResponse {
        var loaded = made
        await storeProcessed(&loaded, for: key)
        guard key.options.waitsForStore, loaded.source == .network, let cache = await cache else { return loaded }
        do {
            try await cache.flush()
        } catch {
            loaded.trace.add(.originals, .notStored, detail: "\(error)")
        }
        return loaded
    }

    private func skipsStoringProcessed(_ loaded: inout ImageResponse, for key: ImageLoadKey) -> Bool {
        guard key.storesProcessed(configuration.diskContent), key.caching.processed.contains(.write) else {
            return true
        }
        if key.imageKey.source.isFile {
            loaded.trace.add(.processed, .notStored, detail: "a file")
        } else if configuration.hooks.decrypt != nil {
            loaded.trace.add(.processed, .notStored, detail: "the hook `decrypt`")
        } else if loaded.stored.animation != nil {
            loaded.trace.add(.processed, .notStored, detail: "an animation")
        } else if let obstacle = loaded.stored.image.obstacleOnDisk(key.imageKey.decoding.color) {
            loaded.trace.add(.processed, .notStored, detail: obstacle)
        } else if loaded.stored.freshness.forbidsStorage {
            loaded.trace.add(.processed, .notStored, detail: "no-store")
        } else if let reason {
            loaded.trace.add(.processed, .notStored, detail: reason)
        } else {
            return false
        }
        return true
    }

    private func storeProcessed(_ loaded: inout ImageResponse, for key: ImageLoadKey) async {
        if skipsStoringProcessed(&loaded, for: key) { return }
        guard let cache = await cache else {
            loaded.trace.add(.processed, .notStored, detail: reason ?? "")
            return
        }
        let write = beginWrite(loaded.stored, for: key.imageKey, to: cache)
        guard key.options.waitsForStore else { return }
        let failure = await write.value
        loaded.trace.add(.processed, failure == nil ? .stored : .notStored, detail: failure ?? "")
    }

    /// Updates the freshness of a stored processed image.
    func updateFreshness(ofProcessed stored: StoredImage, for key: ImageLoadKey, to freshness: ImageFreshness) async {
        guard key.storesProcessed(configuration.diskContent), key.caching.processed.contains(.write) else { return }
        let image = key.imageKey
        await updateFreshness(
            ofEntry: image.text, tags: [image.source.tag], matching: stored.freshness.validators, to: freshness)
    }

    /// Encodes and stores an image after the earlier writes: one at a time, so that a list of new images does not keep
    /// the threads from the images to show. The task is never cancelled, because the image is worth keeping; its value
    /// is the reason of a failure.
    private func beginWrite(_ stored: StoredImage, for key: ImageKey, to cache: DiskCache) -> Task<String?, Never> {
        let image = stored.image
        let metadata = stored.freshness.encoded(originalSize: image.metadata.originalSize)
        let (executor, encoding) = (configuration.executor, configuration.diskEncoding)
        return writes.withLock { writes in
            writes.lastNumber += 1
            let (number, previous) = (writes.lastNumber, writes.last)
            let write = Task<String?, Never> { [weak self] in
                _ = await previous?.value
                var failure: String?
                do {
                    let data = try await executor.run { () throws(ImageError) in
                        try image.encoded(as: image.diskEncoding(encoding))
                    }
                    try await cache.insert(data, for: key.text, metadata: metadata, tags: [key.source.tag])
                } catch {
                    // Not fatal: the image can be made again.
                    failure = "\(error)"
                }
                self?.writeEnded(number)
                return failure
            }
            writes.tasks[number] = write
            writes.last = write
            return write
        }
    }

    private func writeEnded(_ number: Int) {
        writes.withLock { writes in
            writes.tasks[number] = nil
            if writes.tasks.isEmpty { writes.last = nil }
        }
    }

    /// Returns once the current writes of processed images have ended.
    func finishWrites() async {
        for write in writes.withLock({ Array($0.tasks.values) }) { _ = await write.value }
    }
}

extension ImagePipeline.DiskContent {
    /// Returns a Boolean value that indicates whether the encoded bytes are stored.
    fileprivate func holdsEncodedBytes(of request: ImageRequest) -> Bool {
        switch self {
        case .original, .all: true
        case .automatic: request.processors.isEmpty && request.targetSize == nil
        case .processed: false
        }
    }
}

extension RasterImage {
    /// The property that the disk would not give back; nil for most images.
    fileprivate func obstacleOnDisk(_ color: ImageDecodingOptions.Color) -> String? {
        if component == .float16 { return "half floats" }
        // The disk gives images in the colors of the request.
        let isAsAsked =
            switch color {
            case .sRGB: colorSpace == .sRGB
            case .displayP3: colorSpace == .displayP3
            case .asStored: true
            }
        if !isAsAsked || component != color.component { return "other colors than those of the request" }
        guard case .numbers(let numbers) = colorSpace, numbers.peak != nil else { return nil }
        return "a stated peak of light"
    }

    /// Returns the encoding on the disk: the configured one, otherwise PNG with alpha, and JPEG without. An image that
    /// only PNG keeps as it is, of 16 bits or of PQ or HLG, is a PNG. Encodings that are in sRGB alone do not take images
    /// of other spaces, and JPEG takes none with alpha.
    fileprivate func diskEncoding(_ configured: ImageEncoding?) -> ImageEncoding {
        if case .numbers = colorSpace { return .png() }
        if component != .uint8 { return .png() }
        if case .jpeg = configured, !isOpaque { return .png() }
        let formats: [ImageFormat] = [.avif, .heic, .jpegXL]
        if colorSpace != .sRGB, let configured, formats.contains(configured.format) {
            return isOpaque ? .jpeg() : .png()
        }
        return configured ?? (isOpaque ? .jpeg() : .png())
    }
}

extension DiskCache {
    /// Stages a value. Returns false if too many values wait already.
    fileprivate nonisolated func enqueueIfPossible(_ value: Data, for key: String, metadata: Data) -> Bool {
        do throws(DiskCacheError) {
            try enqueue(value, for: key, metadata: metadata)
            return true
        } catch {
            return false
        }
    }
}
