import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Previews: the pieces of a response go to a decoder of their own while they come, and what it shows to all who wait.

#if os(Linux)
/// A picture that is decoded while its bytes come, for one load.
struct Previewer: Sendable {
    let decoding: ProgressiveDecoding
    let feed: ImageFeed
    var cursor = ImageFeed.Cursor()
    /// The newest preview, for who comes later.
    var shown: RasterImage?
    /// The whole picture, or why there is none.
    let last: Waiter<Result<RasterImage, ImageError>>
}

extension ImagePipeline {
    /// Whether a load of these options shows previews here: the bytes must be decoded as they come, by the system's decoder.
    nonisolated func showsPreviews(_ options: ImageRequest.Options) -> Bool {
        options.progressive.every > 0 && configuration.hooks.decrypt == nil && configuration.hooks.transform == nil
            && configuration.decoders.areSystem
    }

    /// Begins previews for a load, of what has come and what is to come.
    func showPreviews(of feed: ImageFeed, for load: Int, _ flight: ImageFlight) {
        guard previewers[load] == nil, showsPreviews(flight.options) else { return }
        let decoding = ProgressiveDecoding(
            options: flight.key.decoding, policy: flight.options.progressive, clock: configuration.clock,
            executor: configuration.executor, keepsBytes: false)
        let previewer = Previewer(decoding: decoding, feed: feed, last: Waiter())
        previewers[load] = previewer
        let (updates, scale) = (decoding.updates, flight.key.scale)
        Task { [weak self] in
            var result: Result<RasterImage, ImageError> = .failure(.cancelled)
            for await update in updates {
                switch update {
                case .preview(var image):
                    image.scale = scale
                    await self?.showFirst(image, of: load)
                case .image(let image): result = .success(image)
                case .failure(let error): result = .failure(error)
                }
            }
            previewer.last.resume(returning: result)
        }
        pump(load)
    }

    /// More of a response has come.
    func grown(_ original: Int) {
        for sink in originals.targets(of: original) { pump(sink.load) }
    }

    private func pump(_ load: Int) {
        guard var previewer = previewers[load] else { return }
        guard let pieces = previewer.feed.pieces(after: &previewer.cursor) else {
            endPreviews(of: load)
            return
        }
        previewers[load] = previewer
        for piece in pieces { previewer.decoding.receive(piece) }
    }

    func endPreviews(of load: Int) { previewers.removeValue(forKey: load)?.decoding.cancel() }

    /// The picture that the previews were of, once all bytes have come; nil if it is to be decoded from the bytes.
    ///
    /// Not of an animation, whose frames are more than the first.
    func previewed(_ original: Original, _ flight: ImageFlight, for load: Int) async throws(ImageError) -> RasterImage?
    {
        pump(load)
        guard let previewer = previewers[load] else { return nil }
        guard original.source == .network else {
            endPreviews(of: load)
            return nil
        }
        previewer.decoding.end()
        let result = await previewer.last.wait(cancelled: .failure(.cancelled))
        endPreviews(of: load)
        if Task.isCancelled { throw .cancelled }
        if previewer.decoding.isAnimation, flight.key.animation != .firstFrame { return nil }
        // On any error, the decoder of whole files decides: only that decoder makes partial pictures.
        guard case .success(let image) = result, !image.metadata.isPartial else { return nil }
        return image
    }

    private func showFirst(_ image: RasterImage, of load: Int) async {
        previewers[load]?.shown = image
        await show(image, of: load)
    }

    /// Shows a preview to all tasks that wait for the picture, and after their processors to those of its variants.
    private func show(_ image: RasterImage, of load: Int) async {
        for sink in images.targets(of: load) {
            switch sink {
            case .task(let task): task.preview(image)
            case .variant(_, let child):
                guard let processor = running[child]?.processor else { continue }
                let executor = configuration.executor
                // A preview that cannot be processed is not shown.
                if let processed = try? await executor.run({ () throws(ImageError) in try processor.process(image) }) {
                    await show(processed, of: child)
                }
            }
        }
    }
}
#endif
