import TernConcurrency

// A picture, read from top to bottom: memory → another size in memory → processed on the disk → from the picture before the
// last processor, or decoded from the bytes → stored.

extension ImagePipeline {
    /// The life of a load, from its first step to all who wait having been told.
    func run(_ load: Int, _ flight: ImageFlight, _ request: ImageRequest, _ stale: StoredImage?) async {
        var stale = stale
        while true {
            let result = await result(load, flight, request, stale.take())
            #if os(Linux)
            endPreviews(of: load)
            #endif
            guard isRunning(load) else { return }
            switch result {
            case .success(let loaded):
                // Who makes a variant of it has what it needs, and sees to the freshness itself.
                if mustRevalidate(loaded, flight), images.targets(of: load).contains(where: \.isTask) {
                    await revalidate(loaded, flight, request, load)
                    return
                }
                running[load] = nil
                for sink in images.finish(load) { finish(sink, result) }
                return
            case .failure(let error):
                // The load of the picture before has told of its own failure.
                if flight.key.processors.isEmpty { recordFailure(error, of: flight.key.source, request) }
                switch images.fail(load, isFinal: error.isFinal) {
                case .again(let leader):
                    finish(leader, result)
                case .ends(let sinks):
                    running[load] = nil
                    for sink in sinks { finish(sink, result) }
                    return
                }
            }
        }
    }

    private func result(
        _ load: Int, _ flight: ImageFlight, _ request: ImageRequest, _ stale: StoredImage?
    ) async -> Result<LoadedImage, ImageError> {
        if let stale { return .success(LoadedImage(stored: stale, source: .memory, trace: ImageTrace())) }
        do throws(ImageError) {
            return .success(try await image(flight, request, load))
        } catch {
            return .failure(error)
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
        await store(&loaded, flight)
        return loaded
    }

    /// Keeps a failure that would only repeat itself from being met again at once. A file or a closure costs no network, and
    /// may be mended by the program itself.
    func recordFailure(_ error: ImageError, of source: SourceKey, _ request: ImageRequest) {
        guard error.isRemembered, request.source.request != nil else { return }
        failures.record(error, for: source, at: now)
        watchNetwork()
    }
}
