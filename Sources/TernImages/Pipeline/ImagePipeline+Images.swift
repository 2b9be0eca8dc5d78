import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// A picture, read from top to bottom: memory → another size in memory → processed on the disk → from the picture before the
// last processor, or decoded from the bytes → stored.

extension ImagePipeline {
    func run(_ load: Int, _ flight: ImageFlight, _ request: ImageRequest, _ stale: StoredImage?) async {
        var stale = stale
        while true {
            var result: Result<LoadedImage, ImageError>
            if let known = stale.take() {
                result = .success(LoadedImage(stored: known, source: .memory, trace: ImageTrace()))
            } else {
                do throws(ImageError) {
                    result = .success(try await image(flight, request, load))
                } catch {
                    result = .failure(error)
                }
            }
            guard running[load] != nil else { return }
            // Who makes a variant of it has what it needs, and sees to the freshness itself.
            let sinks = images.targets(of: load)
            if case .success(let loaded) = result, mustRevalidate(loaded, flight), sinks.contains(where: \.isTask) {
                for sink in sinks where sink.hasNothing { finish(sink, result, isLast: false) }
                let changed = await revalidated(loaded, flight, request, load)
                guard running[load] != nil else { return }
                running[load] = nil
                for sink in images.finish(load) { finish(sink, changed: changed, else: loaded) }
                return
            }
            if case .failure(let error) = result {
                fail(error, flight)
                switch images.fail(load, isFinal: error.isFinal) {
                case .again(let leader):
                    finish(leader, result)
                    continue
                case .ends(let sinks):
                    running[load] = nil
                    for sink in sinks { finish(sink, result) }
                    return
                }
            }
            running[load] = nil
            for sink in images.finish(load) { finish(sink, result) }
            return
        }
    }

    private func image(
        _ flight: ImageFlight, _ request: ImageRequest, _ load: Int
    ) async throws(ImageError) -> LoadedImage {
        var trace = ImageTrace()
        if let found = fromMemory(flight, &trace) { return found }
        if let made = try await fromAncestor(flight, load, &trace) { return made }
        if let found = try await fromDisk(flight, load, &trace) { return found }
        var loaded =
            if let parent = flight.parent { try await processed(flight, parent, request, load) } else {
                try await decoded(flight, request, load)
            }
        loaded.trace.prepend(trace)
        await store(&loaded, flight, request)
        return loaded
    }

    // MARK: Found

    private func fromMemory(_ flight: ImageFlight, _ trace: inout ImageTrace) -> LoadedImage? {
        guard flight.caching.memory.contains(.read) else {
            trace.add(.memory, .skipped)
            return nil
        }
        guard let stored = memory.value(for: flight.key), !flight.options.includesData || stored.data != nil else {
            trace.add(.memory, .miss)
            return nil
        }
        trace.add(.memory, .hit)
        return LoadedImage(stored: stored, source: .memory, trace: trace)
    }

    private func fromAncestor(
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
        if flight.caching.memory.contains(.write) { remember(stored, for: flight.key) }
        return LoadedImage(stored: stored, source: .memory, trace: trace)
    }

    private func fromDisk(
        _ flight: ImageFlight, _ load: Int, _ trace: inout ImageTrace
    ) async throws(ImageError) -> LoadedImage? {
        guard flight.storesProcessed(configuration.diskContent), flight.caching.disk.contains(.read) else { return nil }
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
            if flight.caching.memory.contains(.write) { remember(stored, for: flight.key) }
            return LoadedImage(stored: stored, source: .disk, trace: trace)
        } catch let error as ImageError where error.kind == .cancelled {
            throw error
        } catch {
            // It is made anew, and stored in its place.
            trace.add(.disk, .failed, "\(error)")
            return nil
        }
    }

    // MARK: Made

    private func processed(
        _ flight: ImageFlight, _ parent: ImageFlight, _ request: ImageRequest, _ load: Int
    ) async throws(ImageError) -> LoadedImage {
        let processor = request.steps.last
        running[load]?.processor = processor
        var loaded = try await variant(parent, request.withoutLastProcessor, for: load)
        guard let processor else { return loaded }
        let (stored, tools) = (loaded.stored, tools)
        let processesFrames = flight.key.animation == .processedFrames
        loaded.stored = try await inTurn(.process, load, rank(of: load)) { () async throws(ImageError) in
            try await tools.executor.run { () throws(ImageError) in
                try stored.processed(by: processor, frames: processesFrames, tools)
            }
        }
        loaded.trace.add(.processing, .hit, "\(processor.identifier)")
        return loaded
    }

    /// The picture of another key, made once for all who want it.
    private func variant(
        _ flight: ImageFlight, _ request: ImageRequest, for child: Int
    ) async throws(ImageError) -> LoadedImage {
        let waiter = Waiter<Result<LoadedImage, ImageError>>()
        let (number, ticket) = (nextNumber(), nextNumber() + ImageTask.ticketOffset)
        switch images.join(flight, as: number, ticket: ticket, rank: rank(of: child), .variant(waiter, load: child)) {
        case .begin:
            running[child]?.upstream = .image(load: number, ticket: ticket)
            start(number, flight, request, nil)
        case .joined(let load, let rank):
            running[child]?.upstream = .image(load: load, ticket: ticket)
            if let rank { moved(load, to: rank) }
        }
        let result = await waiter.wait(cancelled: .failure(.cancelled))
        let upstream = running[child]?.upstream
        running[child]?.upstream = nil
        if Task.isCancelled { leave(upstream) }
        return try result.get()
    }

    private func decoded(
        _ flight: ImageFlight, _ request: ImageRequest, _ load: Int
    ) async throws(ImageError) -> LoadedImage {
        let original = try await original(flight, request, for: load, rank(of: load), revalidating: nil)
        do throws(ImageError) {
            #if os(Linux)
            if let image = try await previewed(original, flight, for: load) {
                return original.loaded(StoredImage(image, flight), flight)
            }
            #endif
            return try await decode(original, flight, load)
        } catch {
            // Bytes on the disk that do not decode are fetched anew, once.
            guard original.source == .original, error.isRemembered, flight.caching.network else { throw error }
            if let disk = await disk.cache { try? await disk.remove(Self.originalKey(flight.key.source)) }
            var anew = flight
            anew.caching.originals.remove(.read)
            var second = try await self.original(anew, request, for: load, rank(of: load), revalidating: nil)
            second.trace.add(.originals, .failed, "\(error)")
            return try await decode(second, flight, load)
        }
    }

    func decode(_ original: Original, _ flight: ImageFlight, _ load: Int) async throws(ImageError) -> LoadedImage {
        let (tools, hooks) = (tools, configuration.hooks)
        let data = original.data
        let stored = try await inTurn(.decode, load, rank(of: load)) { () async throws(ImageError) in
            let bytes = try await Self.decrypted(data, hooks)
            return try await tools.executor.run { () throws(ImageError) in
                try StoredImage(decoding: bytes, flight, tools)
            }
        }
        return original.loaded(stored, flight)
    }

    @concurrent
    private static func decrypted(_ data: Data, _ hooks: Hooks) async throws(ImageError) -> Data {
        guard let decrypt = hooks.decrypt else { return data }
        do {
            return try await decrypt(data)
        } catch {
            throw ImageError(.hook, "the bytes could not be decrypted: \(error)", underlying: error)
        }
    }

    // MARK: Stored

    private func store(_ loaded: inout LoadedImage, _ flight: ImageFlight, _ request: ImageRequest) async {
        if loaded.stored.image.metadata.isPartial {
            loaded.trace.add(.memory, .notStored, "a part of the picture")
            return
        }
        if flight.caching.memory.contains(.write) {
            remember(loaded.stored, for: flight.key)
            loaded.trace.add(.memory, .stored)
        }
        guard flight.storesProcessed(configuration.diskContent), flight.caching.disk.contains(.write),
            loaded.stored.animation == nil, !loaded.stored.freshness.isUnstorable, let disk = await disk.cache
        else { return }
        let (image, key, metadata) = (loaded.stored.image, flight.key, loaded.stored.freshness.encoded)
        let (executor, encoding) = (configuration.executor, configuration.diskEncoding)
        let number = nextNumber()
        let store = Task { [weak self] in
            do {
                let data = try await executor.run { () throws(ImageError) in
                    try image.encoded(as: encoding ?? image.diskEncoding)
                }
                try await disk.insert(data, for: key.text, metadata: metadata, tags: [])
            } catch {
                // The picture can be made again; the disk's own events tell of its failures.
            }
            await self?.stored(number)
        }
        stores[number] = store
        if flight.options.waitsForStore {
            await store.value
            loaded.trace.add(.disk, .stored)
        }
    }

    private func stored(_ number: Int) { stores[number] = nil }

    private func fail(_ error: ImageError, _ flight: ImageFlight) {
        guard error.isRemembered else { return }
        failures.record(error, for: flight.key.source, at: now)
        watchNetwork()
    }
}
