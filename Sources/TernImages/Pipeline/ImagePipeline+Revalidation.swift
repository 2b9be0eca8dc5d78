import Tern
import TernCache
import TernConcurrency

// A picture that was delivered from a cache is asked for again: at most one more delivery, and only if it has changed.

extension ImagePipeline {
    func mustRevalidate(_ loaded: LoadedImage, _ flight: ImageFlight) -> Bool {
        guard flight.caching.network, loaded.source != .network, loaded.source != .revalidated else { return false }
        switch flight.options.revalidation {
        case .never: return false
        case .always: return true
        case .whenStale: return !loaded.stored.freshness.isFresh(at: configuration.now())
        }
    }

    /// Delivers what was found, asks for it again, and ends the load. Who joins meanwhile is given what was found at once.
    func revalidate(_ found: LoadedImage, _ flight: ImageFlight, _ request: ImageRequest, _ load: Int) async {
        running[load]?.found = found
        for sink in images.targets(of: load) where sink.hasNothing { finish(sink, .success(found), isLast: false) }
        // It ends here if nobody has a use for it.
        guard running[load] != nil else { return }
        let changed = await changed(found, flight, request, load)
        guard running[load] != nil else { return }
        running[load] = nil
        for sink in images.finish(load) {
            if changed == nil, case .task(let task) = sink, task.current != nil {
                loadOf[task.id] = nil
                task.end(.success(nil))
            } else {
                finish(sink, .success(changed ?? found))
            }
        }
    }

    /// The picture if it has changed; nil if it has not, or could not be asked for: what was delivered stays what it is.
    private func changed(
        _ found: LoadedImage, _ flight: ImageFlight, _ request: ImageRequest, _ load: Int
    ) async -> LoadedImage? {
        do throws(ImageError) {
            let original = try await original(
                flight, request, for: load, rank(of: load), revalidating: found.stored.freshness)
            if original.isUnchanged {
                await renew(found.stored, original.freshness, flight)
                return nil
            }
            var fresh = try await decode(original, flight, load)
            let processesFrames = flight.key.animation == .processedFrames
            for processor in request.steps {
                let (stored, tools) = (fresh.stored, tools)
                fresh.stored = try await inTurn(.process, load, rank(of: load)) { () async throws(ImageError) in
                    try await tools.executor.run { () throws(ImageError) in
                        try stored.processed(by: processor, frames: processesFrames, tools)
                    }
                }
            }
            // A transfer that broke off gives less than there was.
            if fresh.stored.image.metadata.isPartial { return nil }
            // A server without validators sends the same again.
            if await Self.areEqual(fresh.stored, found.stored) {
                await renew(found.stored, original.freshness, flight)
                return nil
            }
            await store(&fresh, flight)
            return fresh
        } catch {
            return nil
        }
    }

    /// The picture is right, and fresh again: in memory, and where it stands on the disk as it is.
    private func renew(_ stored: StoredImage, _ freshness: Freshness, _ flight: ImageFlight) async {
        var renewed = stored
        renewed.freshness = freshness
        if flight.caching.memory.contains(.write) { remember(renewed, for: flight.key) }
        guard flight.storesProcessed(configuration.diskContent), flight.caching.disk.contains(.write) else { return }
        await renew(flight.key.text, of: stored.freshness.validators, freshness)
    }

    /// Whether two stills have the same pixels; of animations nobody looks at all frames.
    @concurrent
    private static func areEqual(_ one: StoredImage, _ other: StoredImage) async -> Bool {
        one.animation == nil && other.animation == nil && one.image.size == other.image.size
            && one.image.pixels.bytes == other.image.pixels.bytes
    }
}

extension ImageSink {
    var isTask: Bool {
        if case .task = self { true } else { false }
    }

    /// Whether it was given nothing yet.
    var hasNothing: Bool {
        switch self {
        case .task(let task): task.current == nil
        case .variant: true
        }
    }
}
