import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// What becomes of a picture that was made: memory, and the disk meanwhile.

extension ImagePipeline {
    func store(_ loaded: inout LoadedImage, _ flight: ImageFlight) async {
        if loaded.stored.image.metadata.isPartial {
            loaded.trace.add(.memory, .notStored, "a part of the picture")
            return
        }
        if loaded.source == .network { forgetOtherVersions(than: loaded.stored.freshness, flight) }
        remember(loaded.stored, flight, &loaded.trace)
        await storeProcessed(&loaded, flight)
        guard flight.options.waitsForStore, loaded.source == .network, let disk = await disk.cache else { return }
        do {
            try await disk.flush()
        } catch {
            loaded.trace.add(.originals, .notStored, "\(error)")
        }
    }

    private func storeProcessed(_ loaded: inout LoadedImage, _ flight: ImageFlight) async {
        guard flight.storesProcessed(configuration.diskContent), flight.caching.disk.contains(.write) else { return }
        if loaded.stored.animation != nil {
            loaded.trace.add(.disk, .notStored, "an animation")
            return
        }
        if loaded.stored.freshness.isUnstorable {
            loaded.trace.add(.disk, .notStored, "no-store")
            return
        }
        guard let disk = await disk.cache else {
            loaded.trace.add(.disk, .notStored, self.disk.reason ?? "")
            return
        }
        let store = beginStore(loaded.stored, flight.key, disk)
        guard flight.options.waitsForStore else { return }
        let failure = await store.value
        loaded.trace.add(.disk, failure == nil ? .stored : .notStored, failure ?? "")
    }

    /// Encodes and stores a picture after those before it: one at a time, so that a list of new pictures does not keep the
    /// threads from what is to be shown. Nobody cancels it: what was made is worth keeping.
    private func beginStore(_ stored: StoredImage, _ key: ImageKey, _ disk: DiskCache) -> Task<String?, Never> {
        let (image, metadata) = (stored.image, stored.freshness.encoded)
        let (executor, encoding) = (configuration.executor, configuration.diskEncoding)
        let (number, previous) = (nextNumber(), lastStore)
        let store = Task<String?, Never> { [weak self] in
            _ = await previous?.value
            var failure: String?
            do {
                let data = try await executor.run { () throws(ImageError) in
                    try image.encoded(as: encoding ?? image.diskEncoding)
                }
                try await disk.insert(data, for: key.text, metadata: metadata)
            } catch {
                // The picture can be made again.
                failure = "\(error)"
            }
            await self?.stored(number)
            return failure
        }
        stores[number] = store
        lastStore = store
        return store
    }

    private func stored(_ number: Int) {
        stores[number] = nil
        if stores.isEmpty { lastStore = nil }
    }

    /// Returns once all that is being stored now is.
    func storesEnd() async {
        for store in stores.values { _ = await store.value }
    }

    // MARK: Memory

    func remember(_ stored: StoredImage, _ flight: ImageFlight, _ trace: inout ImageTrace) {
        guard flight.caching.memory.contains(.write) else { return }
        if remember(stored, for: flight.key) {
            trace.add(.memory, .stored)
        } else {
            trace.add(.memory, .notStored, "\(stored.cost) bytes are more than it takes")
        }
    }

    /// Other sizes in memory that are of another version of the bytes stand for nothing any more.
    func forgetOtherVersions(than freshness: Freshness, _ flight: ImageFlight) {
        let isAnew = !flight.caching.originals.contains(.read)
        for key in ancestry.withLock({ $0.keys(of: flight.key.source) }) where key != flight.key {
            guard let other = memory.value(for: key)?.freshness, other != freshness else { continue }
            // Without a validator nobody knows: then the user's word counts.
            let isUnknown = other.validators.isEmpty && freshness.validators.isEmpty
            let isOther = isUnknown ? isAnew : other.validators != freshness.validators
            if isOther, other != .always { memory.remove(key) }
        }
    }
}
