import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The bytes as they were fetched, on the disk.

extension ImagePipeline {
    func storedBytes(_ flight: OriginalFlight, _ trace: inout ImageTrace) async -> Original? {
        guard flight.caching.contains(.read) else {
            trace.add(.originals, .skipped)
            return nil
        }
        guard let disk = await disk.cache else {
            trace.add(.originals, .skipped, self.disk.reason ?? "")
            return nil
        }
        let key = Self.originalKey(flight.key)
        do {
            guard disk.contains(key), let entry = try await disk.entry(for: key) else {
                trace.add(.originals, .miss)
                return nil
            }
            let freshness = Freshness(entry.metadata) ?? .always
            trace.add(.originals, freshness.isFresh(at: configuration.now()) ? .hit : .stale)
            return Original(data: entry.value, freshness: freshness, source: .original, trace: trace)
        } catch {
            trace.add(.originals, .failed, "\(error)")
            return nil
        }
    }

    func store(
        _ data: Data, _ freshness: Freshness, _ flight: OriginalFlight, _ request: ImageRequest,
        _ trace: inout ImageTrace
    ) async {
        guard flight.caching.contains(.write), configuration.diskContent.holdsOriginal(of: request) else {
            trace.add(.originals, .skipped)
            return
        }
        guard request.source.request != nil else { return }
        if freshness.isUnstorable {
            trace.add(.originals, .notStored, "no-store")
            return
        }
        guard let disk = await disk.cache else {
            trace.add(.originals, .notStored, self.disk.reason ?? "")
            return
        }
        var stored: Data? = data
        if let serialize = configuration.hooks.serialize { stored = await serialize(data, request) }
        guard let stored else {
            trace.add(.originals, .notStored, "the serializer gave nothing")
            return
        }
        let key = Self.originalKey(flight.key)
        do {
            if !disk.hasStaged(stored, for: key, metadata: freshness.encoded) {
                try await disk.insert(stored, for: key, metadata: freshness.encoded)
            }
            trace.add(.originals, .stored)
        } catch {
            trace.add(.originals, .notStored, "\(error)")
        }
    }

    /// After a 304 the same bytes are fresh again.
    func renew(_ freshness: Freshness, _ flight: OriginalFlight) async {
        guard flight.caching.contains(.write), !freshness.isUnstorable else { return }
        await renew(Self.originalKey(flight.key), of: flight.known, freshness)
    }

    /// Has what is stored under a key fresh again, if it is of the version that was asked for.
    func renew(_ key: String, of version: Freshness.Validators?, _ freshness: Freshness) async {
        guard let disk = await disk.cache, disk.contains(key) else { return }
        // Where it cannot be read or staged, the bytes are asked for once more than they need be.
        let entry = try? await disk.entry(for: key)
        guard let entry, Freshness(entry.metadata)?.validators == version else { return }
        // For the same reason.
        try? disk.stage(entry.value, for: key, metadata: freshness.encoded)
    }
}

extension DiskCache {
    /// Whether the value could be staged; false if too much waits already.
    fileprivate nonisolated func hasStaged(_ value: Data, for key: String, metadata: Data) -> Bool {
        do throws(DiskCacheError) {
            try stage(value, for: key, metadata: metadata)
            return true
        } catch {
            return false
        }
    }
}
