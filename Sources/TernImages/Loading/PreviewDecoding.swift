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
        /// Whether the readers were notified since one of them last read.
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

extension LoadImageJob {
    /// Prepares the decoding of previews from the chunks that have arrived and those to come. The caller must show
    /// them. Returns nil if previews are decoded already, or if the load shows none.
    func beginPreviews(from chunks: ChunkBuffer, _ configuration: ImagePipeline.Configuration) -> PreviewDecoding? {
        guard preview == nil, configuration.showsPreviews(key.options) else { return nil }
        preview = PreviewDecoding(of: chunks, key: key, configuration: configuration)
        return preview
    }

    /// Decodes the chunks that have arrived since the last call.
    func decodeNewChunks() {
        if preview?.decodeNewChunks() == false { endPreviews() }
    }

    func endPreviews() { preview.take()?.decoding.cancel() }

    /// Shows previews until their decoding ends, which `endPreviews` causes.
    func show(_ preview: PreviewDecoding, processingOn executor: ImageExecutor) async {
        var result: Result<RasterImage, ImageError> = .failure(.cancelled)
        for await update in preview.decoding.updates {
            switch update {
            case .preview(var image):
                image.scale = key.imageKey.scale
                self.preview?.newest = image
                await show(image, processingOn: executor)
            case .image(let image): result = .success(image)
            case .failure(let error): result = .failure(error)
            }
        }
        preview.final.resume(returning: result)
    }

    /// Shows a preview to all tasks that wait for the image and, processed, to those that wait for a processed form of
    /// it.
    private func show(_ image: RasterImage, processingOn executor: ImageExecutor) async {
        for subscriber in subscribers.all {
            switch subscriber {
            case .task(let task): task.preview(image)
            case .job(let dependent):
                guard let processor = dependent.processor else { continue }
                // A preview that cannot be processed is not shown.
                if let processed = try? await executor.run({ () throws(ImageError) in try processor.process(image) }) {
                    await dependent.show(processed, processingOn: executor)
                }
            }
        }
    }

    /// Returns the image of the last preview if it is the whole image; nil if the bytes must be decoded.
    func lastPreview(of encoded: EncodedImage) async throws(ImageError) -> RasterImage? {
        decodeNewChunks()
        guard let preview else { return nil }
        guard encoded.source == .network else {
            endPreviews()
            return nil
        }
        preview.decoding.end()
        let result = await preview.final.wait(cancelled: .failure(.cancelled))
        endPreviews()
        if Task.isCancelled { throw .cancelled }
        // A preview has only the first frame of an animation.
        if preview.decoding.isAnimation, key.imageKey.animation != .firstFrame { return nil }
        // After an error, the decoder of whole files decides: only that decoder makes partial images.
        guard case .success(let image) = result, !image.metadata.isPartial else { return nil }
        return image
    }
}

extension ImagePipeline.Configuration {
    /// Returns a Boolean value that indicates whether a load with these options decodes previews: the bytes must be
    /// readable as they arrive, by the system's decoder.
    func showsPreviews(_ options: ImageRequest.Options) -> Bool {
        options.progressive.every > 0 && hooks.decrypt == nil && hooks.transform == nil && decoders.areSystem
    }
}
