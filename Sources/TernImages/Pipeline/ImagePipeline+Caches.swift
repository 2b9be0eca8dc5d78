import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ImagePipeline {
    nonisolated func key(of request: ImageRequest) -> ImageKey {
        let partition = request.options.handlesCookies ? cookiePartition : partition
        guard let named = configuration.hooks.cacheKey?(request) else { return ImageKey(request, in: partition) }
        return ImageKey(request, source: SourceKey(named: named, request.source.request), in: partition)
    }

    /// The picture of exactly this request in memory; nil if it is not there. Synchronous, from any thread: a look-up, no
    /// file and no wait.
    public nonisolated func cachedImage(for request: ImageRequest) -> RasterImage? {
        memory.value(for: key(of: request))?.image
    }

    /// The largest size of the request's picture in memory, processed like it, else not processed at all: a placeholder
    /// until the right one is there. Nil if there is none. Synchronous, from any thread.
    public nonisolated func cachedVariant(of request: ImageRequest) -> RasterImage? {
        let key = key(of: request)
        let keys = ancestry.withLock { $0.keys(of: key.source) }
        for processors in [key.processors, []] {
            let images = keys.lazy.filter { $0.processors == processors }.compactMap {
                self.memory.value(for: $0)?.image
            }
            if let largest = images.max(by: { $0.byteCount < $1.byteCount }) { return largest }
        }
        return nil
    }

    /// Puts a picture into memory under a request's key, as if it had been loaded. Synchronous, from any thread.
    public nonisolated func cache(_ image: RasterImage, for request: ImageRequest) {
        remember(StoredImage(image: image, animation: nil, data: nil, freshness: .always), for: key(of: request))
    }

    /// Whether the disk has the request's bytes or its processed picture, and neither has expired: from memory, without a
    /// system call, once the disk is open.
    public nonisolated func isOnDisk(_ request: ImageRequest) async -> Bool {
        guard let disk = await disk.cache else { return false }
        let key = key(of: request)
        return disk.contains(key.text) || disk.contains(Self.originalKey(key.source))
    }

    /// Removes a request's picture, its bytes, and what was kept of them, from memory and disk. Other sizes in memory go too.
    public func remove(_ request: ImageRequest) async throws(ImageError) {
        let key = key(of: request)
        for variant in ancestry.withLock({ $0.remove(key.source) }) { memory.remove(variant) }
        memory.remove(key)
        failures.remove(key.source)
        // What is on its way to the disk would be there again.
        await storesEnd()
        guard let disk = await disk.cache else { return }
        do {
            try await disk.remove(key.text)
            try await disk.remove(Self.originalKey(key.source))
            try await disk.remove(PartialImage.key(key.source))
        } catch {
            throw ImageError(.source, "the disk could not remove it: \(error)", underlying: error)
        }
    }

    /// Empties memory and disk, and forgets failures. What is being loaded goes on.
    public func removeAll() async throws(ImageError) {
        ancestry.withLock { $0 = Ancestry() }
        memory.removeAll()
        failures.removeAll()
        await storesEnd()
        guard let disk = await disk.cache else { return }
        do {
            try await disk.removeAll()
        } catch {
            throw ImageError(.source, "the disk could not be emptied: \(error)", underlying: error)
        }
    }

    /// Returns once everything that was loaded before is on the disk.
    public func flush() async throws(ImageError) {
        await storesEnd()
        guard let disk = await disk.cache else { return }
        do {
            try await disk.flush()
        } catch {
            throw ImageError(.source, "the disk could not be written: \(error)", underlying: error)
        }
    }

    /// Returns false if it is more than memory takes.
    @discardableResult
    nonisolated func remember(_ stored: StoredImage, for key: ImageKey) -> Bool {
        guard memory.insert(stored, for: key) else { return false }
        ancestry.withLock { $0.insert(key) }
        return true
    }

    static func originalKey(_ source: SourceKey) -> String { "bytes \(source.text)" }
}
