import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The chunks of a response, kept while it arrives, for the loads that decode previews from it. No chunk is copied.
final class ChunkBuffer: Sendable {
    /// The position of one reader.
    struct Cursor: Sendable {
        var readCount = 0
        var generation = 0
    }

    private struct State {
        var chunks: [Data] = []
        /// Counts the restarts of the response.
        var generation = 0
        /// A Boolean value that indicates whether the readers were notified since one of them last read.
        var isNotified = false
    }

    private let state = Lock(State())
    private let notify: @Sendable () -> Void

    /// - Parameter notify: Called when chunks arrive after everything was read.
    init(notify: @escaping @Sendable () -> Void) { self.notify = notify }

    func append(_ chunk: Data) {
        let notifies = state.withLock { state in
            state.chunks.append(chunk)
            defer { state.isNotified = true }
            return !state.isNotified
        }
        if notifies { notify() }
    }

    /// Discards all chunks, because the response starts again.
    func restart() {
        state.withLock { state in
            state.chunks = []
            state.generation += 1
        }
    }

    /// Returns the chunks since the reader's last call; nil if the response has started again since.
    func read(_ cursor: inout Cursor) -> [Data]? {
        state.withLock { state in
            state.isNotified = false
            guard state.generation == cursor.generation else { return nil }
            defer { cursor.readCount = state.chunks.count }
            return Array(state.chunks[cursor.readCount...])
        }
    }
}

#if os(Linux)
/// The decoding of previews for one load, while its bytes arrive.
struct PreviewDecoding: Sendable {
    let decoding: ProgressiveDecoding
    /// The newest preview, for later subscribers.
    var newest: RasterImage?
    /// Resumed with the whole image, or with the error.
    let final = Waiter<Result<RasterImage, ImageError>>()
    private let chunks: ChunkBuffer
    private var cursor = ChunkBuffer.Cursor()

    init(of chunks: ChunkBuffer, key: ImageLoadKey, configuration: ImagePipeline.Configuration) {
        self.chunks = chunks
        decoding = ProgressiveDecoding(
            options: key.imageKey.decoding, policy: key.options.progressive, clock: configuration.clock,
            executor: configuration.executor, keepsBytes: false)
    }

    /// Passes the new chunks to the decoder. Returns false if the response has started again: the previews end then.
    mutating func decodeNewChunks() -> Bool {
        guard let new = chunks.read(&cursor) else { return false }
        for chunk in new { decoding.receive(chunk) }
        return true
    }
}
extension ImagePipeline {
    /// Starts to decode previews for a load, from the chunks that have arrived and those to come.
    func beginPreviews(from chunks: ChunkBuffer, for context: ImageLoadContext) {
        let (load, scale) = (context.load, context.key.imageKey.scale)
        guard previews[load] == nil, configuration.showsPreviews(context.key.options) else { return }
        let preview = PreviewDecoding(of: chunks, key: context.key, configuration: configuration)
        previews[load] = preview
        let updates = preview.decoding.updates
        // Ends with the decoding, which `endPreviews` cancels.
        Task { [weak self] in
            var result: Result<RasterImage, ImageError> = .failure(.cancelled)
            for await update in updates {
                switch update {
                case .preview(var image):
                    image.scale = scale
                    await self?.show(newest: image, of: load)
                case .image(let image): result = .success(image)
                case .failure(let error): result = .failure(error)
                }
            }
            preview.final.resume(returning: result)
        }
        decodeNewChunks(for: load)
    }

    /// Decodes the new chunks of a load of encoded bytes, for all image loads that show previews.
    func decodePreviews(from encodedLoad: Int) {
        for subscriber in encodedLoads.subscribers(of: encodedLoad) { decodeNewChunks(for: subscriber.load) }
    }

    private func decodeNewChunks(for load: Int) {
        if previews[load]?.decodeNewChunks() == false { endPreviews(of: load) }
    }

    func endPreviews(of load: Int) { previews.removeValue(forKey: load)?.decoding.cancel() }

    /// Returns the image of the last preview if it is the whole image; nil if the bytes must be decoded.
    func lastPreview(
        of encoded: EncodedImage, for context: ImageLoadContext
    ) async throws(ImageError) -> RasterImage? {
        let load = context.load
        decodeNewChunks(for: load)
        guard let preview = previews[load] else { return nil }
        guard encoded.source == .network else {
            endPreviews(of: load)
            return nil
        }
        preview.decoding.end()
        let result = await preview.final.wait(cancelled: .failure(.cancelled))
        endPreviews(of: load)
        if Task.isCancelled { throw .cancelled }
        // A preview has only the first frame of an animation.
        if preview.decoding.isAnimation, context.key.imageKey.animation != .firstFrame { return nil }
        // After an error, the decoder of whole files decides: only that decoder makes partial images.
        guard case .success(let image) = result, !image.metadata.isPartial else { return nil }
        return image
    }

    private func show(newest image: RasterImage, of load: Int) async {
        previews[load]?.newest = image
        await show(image, of: load)
    }

    /// Shows a preview to all tasks that wait for the image and, processed, to those that wait for a processed form of it.
    private func show(_ image: RasterImage, of load: Int) async {
        for subscriber in imageLoads.subscribers(of: load) {
            switch subscriber {
            case .task(let task): task.preview(image)
            case .processing(_, let dependentLoad):
                guard let processor = jobs[dependentLoad]?.processor else { continue }
                let executor = configuration.executor
                // A preview that cannot be processed is not shown.
                if let processed = try? await executor.run({ () throws(ImageError) in try processor.process(image) }) {
                    await show(processed, of: dependentLoad)
                }
            }
        }
    }
}
#endif

extension ImagePipeline.Configuration {
    /// Returns a Boolean value that indicates whether a load with these options decodes previews: the bytes must be readable
    /// as they arrive, by the system's decoder.
    func showsPreviews(_ options: ImageRequest.Options) -> Bool {
        options.progressive.every > 0 && hooks.decrypt == nil && hooks.transform == nil && decoders.areSystem
    }
}
