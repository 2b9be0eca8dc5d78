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

    /// The picture if it has changed; nil if it has not, or could not be asked for: what was delivered stays what it is.
    func revalidated(
        _ loaded: LoadedImage, _ flight: ImageFlight, _ request: ImageRequest, _ load: Int
    ) async -> LoadedImage? {
        do throws(ImageError) {
            let original = try await original(
                flight, request, for: load, rank(of: load), revalidating: loaded.stored.freshness)
            if original.isUnchanged {
                var stored = loaded.stored
                stored.freshness = original.freshness
                if flight.caching.memory.contains(.write) { remember(stored, for: flight.key) }
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
            // Other sizes of what was there are of a picture that is no more.
            for variant in ancestry.withLock({ $0.remove(flight.key.source) }) { memory.remove(variant) }
            if flight.caching.memory.contains(.write) { remember(fresh.stored, for: flight.key) }
            if let disk = await disk.cache { try? await disk.remove(flight.key.text) }
            return fresh
        } catch {
            return nil
        }
    }

    /// Who was given the cached picture gets the changed one, or the end; who came since gets what there is.
    func finish(_ sink: ImageSink, changed: LoadedImage?, else loaded: LoadedImage) {
        if case .task(let task) = sink, !sink.hasNothing, changed == nil {
            loadOf[task.id] = nil
            task.end(.success(nil))
        } else {
            finish(sink, .success(changed ?? loaded))
        }
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
