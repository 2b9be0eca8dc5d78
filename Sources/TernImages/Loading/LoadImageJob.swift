import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The first stage of a load: an image in memory or on the disk. Another image is made by a `DecodeImageJob` or a
/// `ProcessImageJob`, and stored. A stale image is revalidated.
final class LoadImageJob: LoadJob {
    /// The image in memory that the load only revalidates.
    private var stale: StoredImage?
    /// The cached image that is being revalidated.
    private var cached: ImageResponse?
    /// The newest preview, for later subscribers.
    private var preview: RasterImage?
    /// The look-ups so far.
    private var trace = ImageTrace()

    /// - Parameter stale: An image in memory to revalidate; nil to load the image.
    init(_ key: ImageLoadKey, _ request: ImageRequest, stale: StoredImage? = nil) {
        self.stale = stale
        super.init(key, request)
    }

    /// The cached image that was delivered and is being revalidated.
    var deliveredImage: ImageResponse? { key.options.revalidation == .beforeDelivery ? nil : cached }

    override func register(in pipeline: isolated ImagePipeline) {
        super.register(in: pipeline)
        pipeline.imageJobs[key] = self
    }

    override func end(in pipeline: isolated ImagePipeline) -> SubscriberList<LoadSubscriber> {
        pipeline.imageJobs[key] = nil
        return super.end(in: pipeline)
    }

    // MARK: Memory → another size in memory → processed image on the disk → make

    override func start(in pipeline: isolated ImagePipeline) {
        if let stale = stale.take() { return succeed(ImageResponse(stale, source: .memory), in: pipeline) }
        (trace, preview) = (ImageTrace(), nil)
        if let stored = pipeline.memory.image(for: key, trace: &trace) {
            return succeed(ImageResponse(stored, source: .memory, trace: trace), in: pipeline)
        }
        if let (variant, plan) = pipeline.memory.variant(for: key) { return derive(plan, from: variant, in: pipeline) }
        readProcessedImage(in: pipeline)
    }

    private func derive(_ plan: DecodingPlan, from variant: StoredImage, in pipeline: isolated ImagePipeline) {
        trace.add(.variant, .hit, detail: "\(variant.image.size)")
        let (context, imageKey) = (pipeline.decodingContext, key.imageKey)
        enter(.process, in: pipeline) {
            self.run(in: pipeline, holding: .process, on: context.executor) {
                Result { () throws(ImageError) in try context.derive(plan, from: variant, for: imageKey) }
            } then: { result in
                switch result {
                case .success(let stored): self.found(stored, source: .memory, in: pipeline)
                case .failure(let error): self.fail(error, in: pipeline)
                }
            }
        }
    }

    private func readProcessedImage(in pipeline: isolated ImagePipeline) {
        if pipeline.disk.lacksProcessed(key, trace: &trace) { return makeImage(in: pipeline) }
        let (disk, key, trace) = (pipeline.disk, key, trace)
        run(in: pipeline) {
            var trace = trace
            let entry = await disk.processedEntry(for: key, trace: &trace)
            return (entry, trace)
        } then: { found in
            self.trace = found.1
            if let entry = found.0 { self.decode(entry, in: pipeline) } else { self.makeImage(in: pipeline) }
        }
    }

    private func decode(_ entry: DiskCache.Entry, in pipeline: isolated ImagePipeline) {
        let (context, imageKey) = (pipeline.decodingContext, key.imageKey)
        enter(.decode, in: pipeline) {
            self.run(in: pipeline, holding: .decode, on: context.executor) {
                Result { () throws(ImageError) in try context.decodeProcessed(entry, for: imageKey) }
            } then: { result in
                switch result {
                case .success(let stored):
                    self.trace.add(.processed, .hit)
                    self.found(stored, source: .processed, in: pipeline)
                case .failure(let error):
                    // The image is made again, and replaces the entry.
                    self.trace.add(.processed, .failed, detail: "\(error)")
                    self.makeImage(in: pipeline)
                }
            }
        }
    }

    /// Stores an image that was found near in memory.
    private func found(_ stored: StoredImage, source: ImageResponse.Source, in pipeline: isolated ImagePipeline) {
        pipeline.memory.insert(stored, for: key, trace: &trace)
        succeed(ImageResponse(stored, source: source, trace: trace), in: pipeline)
    }

    /// Waits for the image before the last processor, or without processors for the decoded image.
    private func makeImage(in pipeline: isolated ImagePipeline) {
        let job = key.imageKey.processors.isEmpty ? DecodeImageJob(key, request) : ProcessImageJob(key, request)
        wait(for: job, in: pipeline)
    }

    override func receive(image result: Result<ImageResponse, ImageError>, in pipeline: isolated ImagePipeline) {
        if let cached { return compare(result, with: cached, in: pipeline) }
        switch result {
        case .success(var response):
            response.trace.prepend(trace)
            store(response, in: pipeline)
        case .failure(let error): fail(error, in: pipeline)
        }
    }

    private func store(_ response: ImageResponse, in pipeline: isolated ImagePipeline) {
        var response = response
        guard pipeline.memory.store(&response, for: key), !pipeline.disk.skipsStoring(&response, for: key) else {
            return succeed(response, in: pipeline)
        }
        let (disk, key, made) = (pipeline.disk, key, response)
        run(in: pipeline) {
            await disk.store(made, for: key)
        } then: { stored in
            self.succeed(stored, in: pipeline)
        }
    }

    // MARK: Revalidation

    /// Ends the load, unless the image comes from a cache and must be revalidated.
    private func succeed(_ response: ImageResponse, in pipeline: isolated ImagePipeline) {
        // A job that processes the image has its input, and handles the freshness itself.
        guard response.mustBeRevalidated(for: key, at: pipeline.date()), subscribers.all.contains(where: \.isTask)
        else { return finish(.success(response), isUnchanged: false, in: pipeline) }
        revalidate(response, in: pipeline)
    }

    /// Delivers the cached image, and asks the server for a newer one. Subscribers that join meanwhile get the cached
    /// image at once, except with `Revalidation.beforeDelivery`. A second response follows only if the image has
    /// changed.
    private func revalidate(_ response: ImageResponse, in pipeline: isolated ImagePipeline) {
        cached = response
        if let deliveredImage {
            for subscriber in subscribers.all { deliver(cached: deliveredImage, to: subscriber, in: pipeline) }
            // The load ends here if no subscriber accepts the image.
            guard isRunning else { return }
        }
        loadBytes(revalidating: response.stored.freshness, in: pipeline)
    }

    override func receive(bytes result: Result<EncodedImage, ImageError>, in pipeline: isolated ImagePipeline) {
        guard let cached else { return }
        switch result {
        case .failure(let error): keep(cached, after: error, in: pipeline)
        case .success(let bytes) where bytes.isUnchanged: confirm(cached, bytes.freshness, in: pipeline)
        case .success(let bytes):
            let job =
                key.imageKey.processors.isEmpty
                ? DecodeImageJob(key, request, bytes: bytes) : ProcessImageJob(key, request, bytes: bytes)
            wait(for: job, in: pipeline)
        }
    }

    /// Delivers the image of new bytes. A server without validators sends the same bytes again.
    private func compare(
        _ result: Result<ImageResponse, ImageError>, with cached: ImageResponse, in pipeline: isolated ImagePipeline
    ) {
        guard case .success(let newer) = result, !newer.stored.image.metadata.isPartial else {
            // An interrupted transfer gives less than the cached image.
            var error = ImageError(.truncated, "the response was incomplete")
            if case .failure(let failure) = result { error = failure }
            return keep(cached, after: error, in: pipeline)
        }
        run(in: pipeline) {
            newer.stored.hasSamePixels(as: cached.stored)
        } then: { isSame in
            if isSame {
                self.confirm(cached, newer.stored.freshness, in: pipeline)
            } else {
                self.store(newer, in: pipeline)
            }
        }
    }

    /// Ends the load with the cached image, which the server has confirmed.
    private func confirm(_ cached: ImageResponse, _ freshness: ImageFreshness, in pipeline: isolated ImagePipeline) {
        var response = ImageResponse(cached.stored.with(freshness), source: .revalidated, trace: cached.trace)
        response.trace.add(.network, .hit, detail: "not modified")
        if key.caching.memory.contains(.write) { pipeline.memory.insert(response.stored, for: key.imageKey) }
        let (disk, key, confirmed) = (pipeline.disk, key, response)
        run(in: pipeline) {
            await disk.updateFreshness(ofProcessed: cached.stored, for: key, to: freshness)
        } then: { _ in
            self.finish(.success(confirmed), isUnchanged: true, in: pipeline)
        }
    }

    /// Ends the load with the cached image, because the server could not be asked or sent no image.
    private func keep(_ cached: ImageResponse, after error: ImageError, in pipeline: isolated ImagePipeline) {
        var response = cached
        response.trace.add(.network, .failed, detail: "\(error.message)")
        finish(.success(response), isUnchanged: true, in: pipeline)
    }

    // MARK: Delivering

    /// Delivers what the load has for a task that joins it.
    func update(_ task: ImageTask, in pipeline: isolated ImagePipeline) {
        if let progress { task.report(progress) }
        if let preview { task.show(preview: preview) }
        if let deliveredImage { deliver(cached: deliveredImage, to: .task(task), in: pipeline) }
    }

    override func show(preview: RasterImage, in pipeline: isolated ImagePipeline) {
        self.preview = preview
        subscribers.visit { subscriber in
            switch subscriber {
            case .task(let task): task.show(preview: preview)
            case .job(let job): job.show(preview: preview, in: pipeline)
            }
        }
    }

    /// Delivers a cached image that is being revalidated to a subscriber, unless it has a response.
    private func deliver(
        cached: ImageResponse, to subscriber: LoadSubscriber, in pipeline: isolated ImagePipeline
    ) {
        switch subscriber {
        case .job(let job):
            // The job has its input: the revalidation goes on without it.
            job.leaveDependency(in: pipeline)
            job.receive(image: .success(cached), in: pipeline)
        case .task(let task) where task.current == nil:
            // A task that rejects the image leaves the load, even if others stay.
            let response = cached.delivered(for: key.options, at: pipeline.date())
            if !task.deliver(response) { pipeline.remove(subscriber.id, from: self) }
        case .task: break
        }
    }

    /// Ends the load with an error. One that may pass is that of the first subscriber only, and the load runs once more
    /// for the others.
    private func fail(_ error: ImageError, in pipeline: isolated ImagePipeline) {
        // The load of the input image has recorded its own failure, and that of the bytes a refusal.
        if key.imageKey.processors.isEmpty, !error.isRefusal {
            pipeline.recordFailure(error, of: request, user: .unknown)
        }
        guard case .retry(let first) = subscribers.fail(isFinal: error.isFinal) else {
            return finish(.failure(error), isUnchanged: false, in: pipeline)
        }
        pass(image: .failure(error), to: first, in: pipeline)
        if case .task(let task) = first { pipeline.finish(task, with: .failure(error)) }
        start(in: pipeline)
    }

    /// Ends the load, and delivers its result to all subscribers.
    /// - Parameter isUnchanged: True if the image is the one that was delivered before its revalidation.
    private func finish(
        _ result: Result<ImageResponse, ImageError>, isUnchanged: Bool, in pipeline: isolated ImagePipeline
    ) {
        let delivered = result.map { $0.delivered(for: key.options, at: pipeline.date()) }
        var others: [ImageTask] = []
        end(in: pipeline).visit { subscriber in
            switch subscriber {
            case .job: pass(image: result, to: subscriber, in: pipeline)
            case .task(let task) where !pipeline.answers(result, of: request, to: task.sentRequest): others.append(task)
            case .task(let task) where isUnchanged && task.current != nil: task.finish()
            case .task(let task): pipeline.finish(task, with: delivered)
            }
        }
        // The first of them starts a load with its own request.
        for task in others { pipeline.subscribe(task) }
    }
}

extension ImageResponse {
    /// Returns a Boolean value that indicates whether the image comes from a cache and must be revalidated.
    fileprivate func mustBeRevalidated(for key: ImageLoadKey, at date: Date) -> Bool {
        guard key.caching.network, source != .network, source != .revalidated else { return false }
        switch key.options.revalidation {
        case .never: return false
        case .always: return true
        case .whenStale, .beforeDelivery: return !stored.freshness.isFresh(at: date)
        }
    }
}
