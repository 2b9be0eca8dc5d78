import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// A picture that need not be made: memory → another size in memory → processed on the disk.

extension ImagePipeline {
    func fromMemory(_ flight: ImageFlight, _ trace: inout ImageTrace) -> LoadedImage? {
        guard flight.caching.memory.contains(.read) else {
            trace.add(.memory, .skipped)
            return nil
        }
        guard let stored = memory.value(for: flight.key), stored.suits(flight.options) else {
            trace.add(.memory, .miss)
            return nil
        }
        trace.add(.memory, .hit)
        return LoadedImage(stored: stored, source: .memory, trace: trace)
    }

    func fromAncestor(
        _ flight: ImageFlight, _ load: Int, _ trace: inout ImageTrace
    ) async throws(ImageError) -> LoadedImage? {
        guard flight.caching.memory.contains(.read), flight.key.processors.isEmpty, !flight.options.includesData
        else { return nil }
        let ancestors = ancestry.withLock { $0.keys(of: flight.key.source) }.compactMap { key in
            memory.value(for: key).map { Ancestor(key: key, stored: $0) }
        }
        guard let (ancestor, plan) = Ancestor.best(ancestors, for: flight.key) else { return nil }
        trace.add(.ancestor, .hit, "\(ancestor.image.size)")
        let executor = configuration.executor
        let image = try await inTurn(.process, load, rank(of: load)) { () async throws(ImageError) in
            try await executor.run { () throws(ImageError) in
                try ancestor.image.resized(to: plan.scaled).cropped(to: plan.cropped)
            }
        }
        let stored = StoredImage(image: image, animation: nil, data: nil, freshness: ancestor.freshness)
        remember(stored, flight, &trace)
        return LoadedImage(stored: stored, source: .memory, trace: trace)
    }

    func fromDisk(
        _ flight: ImageFlight, _ load: Int, _ trace: inout ImageTrace
    ) async throws(ImageError) -> LoadedImage? {
        // The bytes as they were fetched are not kept beside it.
        guard flight.storesProcessed(configuration.diskContent), flight.caching.disk.contains(.read),
            !flight.options.includesData
        else { return nil }
        guard let disk = await disk.cache else {
            trace.add(.disk, .skipped, self.disk.reason ?? "")
            return nil
        }
        do {
            guard disk.contains(flight.key.text), let entry = try await disk.entry(for: flight.key.text) else {
                trace.add(.disk, .miss)
                return nil
            }
            let scale = flight.key.scale
            let decoders = configuration.decoders
            let executor = configuration.executor
            var image = try await inTurn(.decode, load, rank(of: load)) { () async throws(ImageError) in
                try await executor.run { () throws(ImageError) in
                    try decoders.decoder(for: entry.value).image(from: entry.value, options: ImageDecodingOptions())
                }
            }
            image.scale = scale
            trace.add(.disk, .hit)
            let freshness = Freshness(entry.metadata) ?? .always
            let stored = StoredImage(image: image, animation: nil, data: nil, freshness: freshness)
            remember(stored, flight, &trace)
            return LoadedImage(stored: stored, source: .disk, trace: trace)
        } catch {
            if Task.isCancelled { throw .cancelled }
            // It is made anew, and stored in its place.
            trace.add(.disk, .failed, "\(error)")
            return nil
        }
    }
}
