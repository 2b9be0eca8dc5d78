import Tern
import TernConcurrency

/// The stage that applies a processor to the image before it. That image is a load of its own, so that equal first
/// steps are shared.
final class ProcessImageJob: LoadJob {
    /// The bytes of a revalidation, to whose image all processors are applied; nil to load the image before the last.
    private let bytes: EncodedImage?
    /// The processors that are still to be applied.
    private var processors: [any ImageProcessor]
    /// The processing of a preview under way.
    private var previewWork: Task<Void, Never>?
    /// The newest preview that arrived meanwhile.
    private var nextPreview: RasterImage?

    init(_ key: ImageLoadKey, _ request: ImageRequest, bytes: EncodedImage? = nil) {
        self.bytes = bytes
        processors = bytes == nil ? Array(request.steps.suffix(1)) : request.steps
        super.init(key, request)
    }

    override func end(in pipeline: isolated ImagePipeline) -> SubscriberList<LoadSubscriber> {
        previewWork?.cancel()
        return super.end(in: pipeline)
    }

    override func start(in pipeline: isolated ImagePipeline) {
        if let bytes { return wait(for: DecodeImageJob(key, request, bytes: bytes), in: pipeline) }
        guard let inputKey = key.inputKey else { return }
        let input = pipeline.imageJobs[inputKey] ?? LoadImageJob(inputKey, request.withoutLastProcessor)
        // A load that is being revalidated goes on without those that have their input.
        if let delivered = input.deliveredImage { return receive(image: .success(delivered), in: pipeline) }
        wait(for: input, in: pipeline)
    }

    override func receive(image result: Result<ImageResponse, ImageError>, in pipeline: isolated ImagePipeline) {
        guard case .success(let response) = result, !processors.isEmpty else {
            return finish(image: result, in: pipeline)
        }
        let (context, imageKey, processor) = (pipeline.decodingContext, key.imageKey, processors.removeFirst())
        enter(.process, in: pipeline) {
            self.run(in: pipeline, holding: .process, on: context.executor) {
                Result { () throws(ImageError) in
                    do throws(ImageError) {
                        return try context.process(response.stored, with: processor, for: imageKey)
                    } catch {
                        var failure = error
                        failure.isOfProcessor = true
                        throw failure
                    }
                }
            } then: { result in
                let next = result.map { response.processed($0, by: processor.identifier) }
                self.receive(image: next, in: pipeline)
            }
        }
    }

    // MARK: Previews

    /// Shows a preview after the processor. While one is processed, only the newest waits.
    override func show(preview: RasterImage, in pipeline: isolated ImagePipeline) {
        guard let processor = processors.last, previewWork == nil else {
            nextPreview = preview
            return
        }
        let number = number
        pipeline.workingJobs[number] = self
        previewWork = pipeline.decodingContext.executor.start {
            () throws(ImageError) in
            try processor.process(preview)
        } then: { result in
            switch result {
            case .success(let image): pipeline.send(.update(number, .preview(image)))
            case .failure(let error): pipeline.send(.update(number, .failure(error)))
            }
        }
    }

    override func receive(update: ProgressiveDecoding.Update, in pipeline: isolated ImagePipeline) {
        previewWork = nil
        // A preview that cannot be processed is not shown.
        if case .preview(let image) = update { forEachDependent { $0.show(preview: image, in: pipeline) } }
        if let next = nextPreview.take() { show(preview: next, in: pipeline) }
    }
}

extension ImageResponse {
    /// Returns the response with the image after a processor.
    fileprivate func processed(_ stored: StoredImage, by processor: ProcessorIdentity) -> ImageResponse {
        var trace = trace
        trace.add(.processing, .hit, detail: .processor(processor))
        return ImageResponse(stored, source: source, trace: trace)
    }
}
