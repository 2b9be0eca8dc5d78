import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The stage that loads the encoded bytes of an image, for all jobs that need them: from the disk, the second level or
/// the network.
final class LoadDataJob: LoadJob, Equatable {
    let dataKey: EncodedLoadKey
    /// The freshness of the cached bytes that are revalidated; nil to load the bytes.
    let cachedFreshness: ImageFreshness?
    /// The chunks of the response; nil if no subscriber shows previews.
    let chunks: ChunkBuffer?
    /// The look-ups so far.
    private var trace = ImageTrace()
    /// The fetch for which other processes wait.
    private var reservation: FetchReservation?
    /// The user as whom the last request was sent.
    private var user = ImageUser.unknown
    /// The last progress of the fetch, for later subscribers.
    private var fetchProgress: Session.Progress?

    /// - Parameter job: The first job that needs the bytes.
    init(
        _ dataKey: EncodedLoadKey, for job: LoadJob, revalidating cachedFreshness: ImageFreshness?,
        _ pipeline: ImagePipeline
    ) {
        self.dataKey = dataKey
        self.cachedFreshness = cachedFreshness
        let showsPreviews = cachedFreshness == nil && pipeline.configuration.showsPreviews(job.key.options)
        let number = Self.numbers.next()
        chunks = showsPreviews ? ChunkBuffer { [weak pipeline] in pipeline?.send(.chunksArrived(number)) } : nil
        super.init(job.key, job.request, number: number)
    }

    static func == (one: LoadDataJob, other: LoadDataJob) -> Bool { one === other }

    override var progress: Session.Progress? { fetchProgress }

    override func register(in pipeline: isolated ImagePipeline) {
        super.register(in: pipeline)
        pipeline.dataJobs[dataKey] = self
    }

    override func end(in pipeline: isolated ImagePipeline) -> SubscriberList<LoadSubscriber> {
        pipeline.dataJobs[dataKey] = nil
        reservation = nil
        return super.end(in: pipeline)
    }

    override func cancel(in pipeline: isolated ImagePipeline) {
        super.cancel(in: pipeline)
        pipeline.scrollDebouncer.remove(self)
    }

    // MARK: Disk → remembered failure → second level → scrolling, rate limit and slot → network → store

    override func start(in pipeline: isolated ImagePipeline) {
        trace = ImageTrace()
        if cachedFreshness != nil || pipeline.disk.lacksBytes(for: dataKey, trace: &trace) {
            return leaveDisk(in: pipeline)
        }
        let (disk, dataKey, trace) = (pipeline.disk, dataKey, trace)
        run(in: pipeline) {
            var trace = trace
            let bytes = await disk.encodedImage(for: dataKey, trace: &trace)
            return (bytes, trace)
        } then: { found in
            if let bytes = found.0 { return self.finish(bytes: .success(bytes), in: pipeline) }
            self.trace = found.1
            self.leaveDisk(in: pipeline)
        }
    }

    /// Goes on without bytes from the disk.
    private func leaveDisk(in pipeline: isolated ImagePipeline) {
        guard dataKey.allowsNetwork else {
            let reason = "the image is not cached, and the request does not allow network access"
            return fail(ImageError(.notCached, reason), in: pipeline)
        }
        if let error = pipeline.rememberedFailure(of: request) {
            let reason = "the load failed recently: \(error.message)"
            return fail(ImageError(.failedBefore, reason, underlying: error), in: pipeline)
        }
        guard cachedFreshness == nil, pipeline.secondLevel.reads(dataKey, request: request) else {
            return waitForScrolling(in: pipeline)
        }
        readSecondLevel(in: pipeline)
    }

    private func readSecondLevel(in pipeline: isolated ImagePipeline) {
        let (secondLevel, dataKey, request, trace) = (pipeline.secondLevel, dataKey, request, trace)
        run(in: pipeline) {
            var trace = trace
            let found = await secondLevel.lookUp(dataKey, request: request, trace: &trace)
            return (found, trace)
        } then: { found in
            self.trace = found.1
            switch found.0 {
            case .found(let bytes): self.store(bytes, in: pipeline)
            case .missing(let reservation):
                self.reservation = reservation
                self.waitForScrolling(in: pipeline)
            }
        }
    }

    private func waitForScrolling(in pipeline: isolated ImagePipeline) {
        if !waitsForScrolling || pipeline.scrollDebouncer.enter(self) { enterFetch(in: pipeline) }
    }

    /// Fetches the bytes when the job gets a slot.
    func enterFetch(in pipeline: isolated ImagePipeline) {
        enter(.fetch, in: pipeline) { self.fetch(in: pipeline) }
    }

    private func fetch(in pipeline: isolated ImagePipeline) {
        // Before it is sent: the cookies can change while it is on its way.
        user = pipeline.user(of: request)
        let (fetcher, number) = (pipeline.fetcher, number)
        // The priority of this moment: it may have changed in the queue.
        let fetch = ImageFetch(
            request: request, key: dataKey.source, cachedFreshness: cachedFreshness, priority: priority.requested,
            keepsPartialData: dataKey.caching.contains(.write), decoding: key.imageKey.decoding, chunks: chunks
        ) { pipeline.send(.progress(number, $0)) }
        run(in: pipeline, holding: .fetch) {
            await fetcher.result(of: fetch)
        } then: { result in
            self.fetched(result, in: pipeline)
        }
    }

    private func fetched(_ result: Result<ImageFetcher.Fetched, ImageError>, in pipeline: isolated ImagePipeline) {
        switch result {
        case .success(.bytes(let data, let freshness, let offset, let contentType)):
            var bytes = EncodedImage(
                data: data, freshness: freshness, source: .network, trace: trace, contentType: contentType)
            bytes.trace.add(.network, .hit, detail: .bytes(data.count, before: offset))
            store(bytes, in: pipeline)
        case .success(.image(let image)):
            var bytes = EncodedImage(data: Data(), freshness: .always, source: .network, trace: trace, image: image)
            bytes.trace.add(.network, .hit, detail: .image(image.format, image.size))
            store(bytes, in: pipeline)
        case .success(.notModified(let freshness)): confirm(freshness, in: pipeline)
        case .failure(let error): fail(error, in: pipeline)
        }
    }

    /// Stores bytes on the disk, and those of the network in the second level.
    private func store(_ bytes: EncodedImage, in pipeline: isolated ImagePipeline) {
        // For tasks that saw no earlier progress.
        report(Session.Progress(completedBytes: Int64(bytes.data.count), totalBytes: Int64(bytes.data.count)))
        var bytes = bytes
        if pipeline.disk.skipsStoring(&bytes, for: dataKey, request: request) { return stored(bytes, in: pipeline) }
        let (disk, dataKey, request, loaded) = (pipeline.disk, dataKey, request, bytes)
        run(in: pipeline) {
            await disk.store(loaded, for: dataKey, request: request)
        } then: { bytes in
            self.stored(bytes, in: pipeline)
        }
    }

    private func stored(_ bytes: EncodedImage, in pipeline: isolated ImagePipeline) {
        var bytes = bytes
        if bytes.source == .network {
            pipeline.secondLevel.store(&bytes, for: dataKey, request: request, reservation: reservation)
        }
        finish(bytes: .success(bytes), in: pipeline)
    }

    /// Ends the load with the cached bytes, which the server has confirmed.
    private func confirm(_ freshness: ImageFreshness, in pipeline: isolated ImagePipeline) {
        trace.add(.network, .hit, detail: "304")
        let (disk, dataKey) = (pipeline.disk, dataKey)
        let bytes = EncodedImage(
            data: Data(), freshness: freshness, source: .revalidated, trace: trace, isUnchanged: true)
        run(in: pipeline) {
            await disk.updateFreshness(ofBytesFor: dataKey, to: freshness)
        } then: { _ in
            self.finish(bytes: .success(bytes), in: pipeline)
        }
    }

    // MARK: Progress and result

    /// Reports the progress of the fetch to all tasks that wait for it.
    func report(_ progress: Session.Progress) {
        fetchProgress = progress
        forEachTask { $0.report(progress) }
    }

    /// Ends the load with an error. One that may pass is that of the first job only, and the load runs once more for
    /// the others.
    private func fail(_ error: ImageError, in pipeline: isolated ImagePipeline) {
        reservation = nil
        pipeline.recordFailure(error, of: request, user: user)
        guard case .retry(let first) = subscribers.fail(isFinal: error.isFinal) else {
            return finish(bytes: .failure(error), in: pipeline)
        }
        chunks?.restart()
        pass(bytes: .failure(error), to: first, in: pipeline)
        start(in: pipeline)
    }

    private func finish(bytes result: Result<EncodedImage, ImageError>, in pipeline: isolated ImagePipeline) {
        end(in: pipeline).visit { pass(bytes: result, to: $0, in: pipeline) }
    }

    /// Passes bytes or an error to a job that has left the list of subscribers.
    private func pass(
        bytes result: Result<EncodedImage, ImageError>, to subscriber: LoadSubscriber,
        in pipeline: isolated ImagePipeline
    ) {
        guard case .job(let job) = subscriber, job.stopWaiting(for: self) else { return }
        if pipeline.answers(result, of: request, to: job.request) || isRunning {
            job.receive(bytes: result, in: pipeline)
        } else {
            // The first of them starts a load with its own request.
            job.loadBytes(dataKey, revalidating: cachedFreshness, in: pipeline)
        }
    }
}

/// A caller of `ImagePipeline.data(for:)`, which waits for the bytes like a job.
final class DataCallerJob: LoadJob {
    let waiter = Waiter<Result<EncodedImage, ImageError>>()

    init(_ key: ImageLoadKey, _ request: ImageRequest) {
        super.init(key, request)
        waitsForScrolling = request.options.waitsForScrolling
    }

    override var priority: LoadPriority { LoadPriority(request.priority, isVisible: request.isVisible) }

    override func receive(bytes: Result<EncodedImage, ImageError>, in pipeline: isolated ImagePipeline) {
        waiter.resume(returning: bytes)
    }
}
