import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DiskCache {
    /// Whether a value is stored or staged under the key, and not expired: from memory, without a system call.
    ///
    /// Keys are told apart by 64 bits of a seeded hash here, and by all their bytes where a value is read: a false yes is
    /// as likely as drawing one of the stored keys' hashes by chance. It does not count as a use.
    public nonisolated func contains(_ key: String) -> Bool {
        let now = configuration.now().milliseconds
        if shared.contains(shared.hasher.hash(key), now: now) { return true }
        guard !configuration.readOnlyFolders.isEmpty else { return false }
        let catalogs = catalogEntries.withLock { $0 }
        return catalogs.contains { $0.index.find($0.hasher.hash(key), now: now) != nil }
    }

    /// The value of a key, verified; nil if there is none, if it has expired, or if it was damaged, in which case it is
    /// removed. Counts as a use.
    ///
    /// - Throws: `inputOutput` or `notPermitted` if it is there and cannot be read; `closed`.
    @concurrent
    public nonisolated func value(for key: String) async throws(DiskCacheError) -> Data? {
        try await entry(for: key)?.value
    }

    /// The value of a key with its metadata and times. Otherwise as `value(for:)`.
    @concurrent
    public nonisolated func entry(for key: String) async throws(DiskCacheError) -> Entry? {
        try await look(for: key, reading: .copying)
    }

    /// The value as bytes of the file itself, not copied into memory: for large values of which parts are read, or none
    /// at once. Verified like any other. It stays readable after the entry is gone; the space on the disk is free once
    /// the bytes are released. Small values are copied.
    @concurrent
    public nonisolated func mappedValue(for key: String) async throws(DiskCacheError) -> Data? {
        try await look(for: key, reading: .opening { file, path, location in file.map(path, location) })?.value
    }

    /// Looks a key up in memory, reads what is found with `reading`, and removes what turns out to be damaged.
    nonisolated func look(
        for text: String, reading: DiskValueReader
    ) async throws(DiskCacheError) -> Entry? {
        let now = configuration.now().milliseconds
        while true {
            let key = shared.hasher.key(text)
            let (place, mustFlush) = shared.use(key, now: now)
            if mustFlush, try shared.push(.flush, reply: { _ in }) { wake() }
            switch place {
            case nil:
                return try await lookElsewhere(for: text, now: now, reading: reading)
            case .staged(let item):
                guard case .bytes(let value) = item.content else { return nil }
                return Entry(
                    value: value, metadata: item.metadata, created: Date(milliseconds: item.created),
                    expires: item.expires == .max ? nil : Date(milliseconds: item.expires))
            case .stored(let location):
                switch await read(location, key, catalog: nil, folder, reading) {
                case .found(let entry): return entry
                case .otherKey: return try await lookElsewhere(for: text, now: now, reading: reading)
                case .failed(let error): throw error
                // Replaced or removed meanwhile: what is there now is the answer.
                case .gone where !shared.state.withLock({ $0.index.isHeld(key.hash, id: location.id) }): continue
                case .gone, .damaged:
                    try await discard(key, location)
                    return try await lookElsewhere(for: text, now: now, reading: reading)
                }
            }
        }
    }

    private nonisolated func discard(_ key: DiskKey, _ location: DiskIndex.Location) async throws(DiskCacheError) {
        hub.send(.damagedEntryRemoved)
        do throws(DiskCacheError) {
            try await send(.discard(hash: key.hash, id: location.id))
        } catch  where error.kind == .folderLost {
            // It went with all others, and a new folder is there.
        }
    }

    private nonisolated func read(
        _ location: DiskIndex.Location, _ key: DiskKey, catalog: Int?, _ folder: DiskFolder,
        _ reading: DiskValueReader
    ) async -> DiskReading {
        if location.isInline {
            return await withCheckedContinuation { continuation in
                let letter = DiskShared.Reading(catalog: catalog, location: location, key: key) {
                    continuation.resume(returning: $0)
                }
                switch shared.push(letter) {
                case true?: wake()
                case false?: break
                case nil: continuation.resume(returning: .failed(DiskShared.closed))
                }
            }
        }
        let files = seams.files
        let path = folder.value(location.id)
        if let result = reading.atOnce(path, location, key, files) { return result }
        return await readers.run(location.id) { reading.waiting(path, location, key, files) }
    }

    /// The read-only folders, in their order. Nothing is removed from them, damaged or not.
    private nonisolated func lookElsewhere(
        for text: String, now: Int64, reading: DiskValueReader
    ) async throws(DiskCacheError) -> Entry? {
        guard !configuration.readOnlyFolders.isEmpty else { return nil }
        for (number, catalog) in catalogEntries.withLock({ $0 }).enumerated() {
            let key = catalog.hasher.key(text)
            guard let location = catalog.index.find(key.hash, now: now) else { continue }
            switch await read(location, key, catalog: number, catalog.folder, reading) {
            case .found(let entry): return entry
            case .failed(let error): throw error
            case .gone, .damaged, .otherKey: continue
            }
        }
        return nil
    }
}
