import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes a body into a file of its own. The body is committed before the head that names it, so that a kill in between
/// leaves a body that nothing names.
final class DiskBodyWriter: BodyWriter {
    private let store: DiskEntryStore
    private let entry: CacheEntry
    /// The writer of the file, from the first bytes on.
    private let writer = Lock<DiskCache.Writer?>(nil)

    init(_ store: DiskEntryStore, _ entry: CacheEntry) {
        self.store = store
        self.entry = entry
    }

    func write(_ bytes: Data) async -> CacheReason? {
        do throws(DiskCacheError) {
            try await opened().write(bytes)
            return nil
        } catch {
            return error.kind == .tooLarge ? .bodyTooLarge : .storeFailed
        }
    }

    private func opened() async throws(DiskCacheError) -> DiskCache.Writer {
        if let writer = writer.withLock({ $0 }) { return writer }
        let new = try await store.fileWriter(for: entry)
        writer.withLock { $0 = new }
        return new
    }

    func commit(_ entry: CacheEntry, replacing: [CacheEntry], generation: UInt64) async -> Bool {
        do throws(DiskCacheError) {
            try await opened().commit()
        } catch {
            await store.remove(replacing)
            return false
        }
        return await store.insertHead(entry, .separate, replacing: replacing, generation: generation)
    }

    func abandon() async { await writer.withLock { $0.take() }?.abandon() }
}
