import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The stage that decodes an image from its bytes, and previews while they arrive. Bytes from the disk that cannot be
/// decoded are fetched again, once.
final class DecodeImageJob: LoadJob {
    /// The bytes; nil before they are there.
    private var bytes: EncodedImage?
    /// The previews, while bytes arrive.
    private(set) var preview: PreviewDecoding?
    /// The steps of the bytes that could not be decoded.
    private var failedTrace = ImageTrace()

    /// - Parameter bytes: The bytes of the image; nil to load them.
    init(_ key: ImageLoadKey, _ request: ImageRequest, bytes: EncodedImage? = nil) {
        self.bytes = bytes
        super.init(key, request)
    }

    override func end(in pipeline: isolated ImagePipeline) -> SubscriberList<LoadSubscriber> {
        endPreviews()
        return super.end(in: pipeline)
    }

    // MARK: Bytes → decode → once more from the network

    override func start(in pipeline: isolated ImagePipeline) {
        if let bytes { decode(bytes, in: pipeline) } else { waitForBytes(in: pipeline) }
    }

    private func waitForBytes(skippingStored skipsStoredBytes: Bool = false, in pipeline: isolated ImagePipeline) {
        loadBytes(skipsStoredBytes: skipsStoredBytes, in: pipeline)
        if let chunks = (dependency as? LoadDataJob)?.chunks { beginPreviews(from: chunks, in: pipeline) }
    }

    override func receive(bytes result: Result<EncodedImage, ImageError>, in pipeline: isolated ImagePipeline) {
        switch result {
        case .failure(let error): finish(image: .failure(error), in: pipeline)
        case .success(var bytes):
            bytes.trace.prepend(failedTrace)
            self.bytes = bytes
            if bytes.source != .network { endPreviews() }
            chunksArrived(in: pipeline)
            // The last preview may be the whole image.
            if let preview { preview.decoding.end() } else { decode(bytes, in: pipeline) }
        }
    }

    private func decode(_ bytes: EncodedImage, in pipeline: isolated ImagePipeline) {
        let (context, key) = (pipeline.decodingContext, key)
        enter(.decode, in: pipeline) {
            self.run(in: pipeline, holding: .decode, on: context.executor) {
                await context.decode(bytes, for: key)
            } then: { decoded in
                if let time = decoded.nanoseconds { pipeline.adaptDecodes(toNanoseconds: time) }
                self.decoded(decoded.result, from: bytes, in: pipeline)
            }
        }
    }

    private func decoded(
        _ result: Result<StoredImage, ImageError>, from bytes: EncodedImage, in pipeline: isolated ImagePipeline
    ) {
        switch result {
        case .success(let stored): finish(image: .success(bytes.response(with: stored, for: key)), in: pipeline)
        case .failure(let error) where bytes.source == .original && error.isRemembered && key.caching.network:
            failedTrace = bytes.trace
            failedTrace.add(.originals, .failed, detail: "\(error)")
            reload(in: pipeline)
        case .failure(let error): finish(image: .failure(error.received(as: bytes.contentType)), in: pipeline)
        }
    }

    /// Removes the stored bytes, and fetches them.
    private func reload(in pipeline: isolated ImagePipeline) {
        bytes = nil
        let (disk, secondLevel, source, request) = (pipeline.disk, pipeline.secondLevel, key.imageKey.source, request)
        run(in: pipeline) {
            await disk.discardBytes(of: source)
            await secondLevel.discard(source, for: request)
        } then: { _ in
            self.waitForBytes(skippingStored: true, in: pipeline)
        }
    }

    // MARK: Previews

    private func beginPreviews(from chunks: ChunkBuffer, in pipeline: isolated ImagePipeline) {
        guard pipeline.configuration.showsPreviews(key.options) else { return }
        let preview = PreviewDecoding(of: chunks, key: key, configuration: pipeline.configuration)
        self.preview = preview
        pipeline.workingJobs[number] = self
        let number = number
        // Ends with the decoding, which `endPreviews` cancels.
        Task { @concurrent in
            for await update in preview.decoding.updates { pipeline.send(.update(number, update)) }
        }
        chunksArrived(in: pipeline)
    }

    private func endPreviews() { preview.take()?.decoding.cancel() }

    override func chunksArrived(in pipeline: isolated ImagePipeline) {
        // The previews end if the response has started again.
        if preview?.decodeNewChunks() == false { endPreviews() }
    }

    override func receive(update: ProgressiveDecoding.Update, in pipeline: isolated ImagePipeline) {
        guard let preview else { return }
        switch update {
        case .preview(var image):
            image.scale = key.imageKey.scale
            forEachDependent { $0.show(preview: image, in: pipeline) }
        case .image(let image):
            // A preview has only the first frame of an animation.
            let isWhole = !preview.decoding.isAnimation || key.imageKey.animation == .firstFrame
            previewsEnded(with: isWhole && !image.metadata.isPartial ? image : nil, in: pipeline)
        case .failure:
            // The decoder of whole files decides: only that decoder makes partial images.
            previewsEnded(with: nil, in: pipeline)
        }
    }

    /// Ends the load with the image of the last preview; nil if the bytes must be decoded.
    private func previewsEnded(with image: RasterImage?, in pipeline: isolated ImagePipeline) {
        endPreviews()
        // After damage, the rest of the bytes may still arrive.
        guard let bytes else { return }
        guard let image else { return decode(bytes, in: pipeline) }
        let stored = StoredImage(image: image, animation: nil, data: nil, freshness: .always)
        finish(image: .success(bytes.response(with: stored, for: key)), in: pipeline)
    }
}
