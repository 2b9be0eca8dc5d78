import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// A picture that is made: of the one before its last processor, or of the bytes.

extension ImagePipeline {
    func processed(
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
        loaded.trace.add(.processing, .hit, .processor(processor.identifier))
        return loaded
    }

    /// The picture of another key, made once for all who want it.
    private func variant(
        _ flight: ImageFlight, _ request: ImageRequest, for child: Int
    ) async throws(ImageError) -> LoadedImage {
        // Who was cancelled on the way here waits for nothing, and nothing would end what was begun for him.
        guard let waitsForScrolling = running[child]?.waitsForScrolling, !Task.isCancelled else { throw .cancelled }
        let waiter = Waiter<Result<LoadedImage, ImageError>>()
        var load = nextNumber()
        let ticket = nextNumber() + ImageTask.ticketOffset
        switch images.join(flight, as: load, ticket: ticket, rank: rank(of: child), .variant(waiter, load: child)) {
        case .begin:
            start(load, flight, request, nil, waitsForScrolling: waitsForScrolling)
        case .joined(let other, let rank):
            load = other
            if let rank { moved(load, to: rank) }
            if !waitsForScrolling { hurry(load) }
            if let progress = progress(of: load) { tell(child) { $0.report(progress) } }
            if let found = running[load]?.found { waiter.resume(returning: .success(found)) }
        }
        running[child]?.upstream = .image(load: load, ticket: ticket)
        let result = await waiter.wait(cancelled: .failure(.cancelled))
        running[child]?.upstream = nil
        // One that is being asked for again goes on without those who have what they need.
        leave(.image(load: load, ticket: ticket))
        return try result.get()
    }

    func decoded(
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
            var second = try await self.original(
                flight.passingOriginals, request, for: load, rank(of: load), revalidating: nil)
            var trace = original.trace
            trace.add(.originals, .failed, "\(error)")
            second.trace.prepend(trace)
            return try await decode(second, flight, load)
        }
    }

    func decode(_ original: Original, _ flight: ImageFlight, _ load: Int) async throws(ImageError) -> LoadedImage {
        let (tools, hooks) = (tools, configuration.hooks)
        let data = original.data
        let stored = try await inTurn(.decode, load, rank(of: load)) { () async throws(ImageError) in
            // A switch of threads there and back, only where there is something to do.
            let bytes = hooks.decrypt == nil ? data : try await Self.decrypted(data, hooks)
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
            throw ImageError(.hook, "the hook `decrypt` threw \(ImageError.words(error))", underlying: error)
        }
    }
}
