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
        case .whenStale, .beforeDelivery: return !loaded.stored.freshness.isFresh(at: configuration.now())
        }
    }

    /// What came of asking again.
    private enum Answer {
        case changed(LoadedImage)
        /// It is still right, and fresh from now on.
        case unchanged(Freshness)
        /// The server could not be asked, or did not give a picture.
        case none(ImageError)
    }

    /// Delivers what was found, asks for it again, and ends the load. Who joins meanwhile is given what was found at once,
    /// unless it is to be asked first.
    func revalidate(_ found: LoadedImage, _ flight: ImageFlight, _ request: ImageRequest, _ load: Int) async {
        if flight.options.revalidation != .beforeDelivery {
            running[load]?.found = found
            for sink in images.targets(of: load) where sink.hasNothing { finish(sink, .success(found), isLast: false) }
            // It ends here if nobody has a use for it.
            guard running[load] != nil else { return }
        }
        let answer = await answer(found, flight, request, load)
        guard running[load] != nil else { return }
        running[load] = nil
        var last = found
        var isChanged = false
        switch answer {
        case .changed(let fresh):
            last = fresh
            isChanged = true
        case .unchanged(let freshness):
            last.source = .revalidated
            last.stored.freshness = freshness
            last.trace.add(.network, .hit, "not modified")
        case .none(let error):
            last.trace.add(.network, .failed, "\(error.message)")
        }
        for sink in images.finish(load) {
            if !isChanged, case .task(let task) = sink, task.current != nil {
                loadOf[task.id] = nil
                task.end(.success(nil))
            } else {
                finish(sink, .success(last))
            }
        }
    }

    /// Asks whether the picture has changed. Without an answer what was found stays what it is.
    private func answer(
        _ found: LoadedImage, _ flight: ImageFlight, _ request: ImageRequest, _ load: Int
    ) async -> Answer {
        do throws(ImageError) {
            let original = try await original(
                flight, request, for: load, rank(of: load), revalidating: found.stored.freshness)
            if original.isUnchanged {
                await renew(found.stored, original.freshness, flight)
                return .unchanged(original.freshness)
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
            if fresh.stored.image.metadata.isPartial { return .none(ImageError(.truncated, "a part of it came")) }
            // A server without validators sends the same again.
            if await Self.areEqual(fresh.stored, found.stored) {
                await renew(found.stored, original.freshness, flight)
                return .unchanged(original.freshness)
            }
            await store(&fresh, flight)
            return .changed(fresh)
        } catch {
            return .none(error)
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
