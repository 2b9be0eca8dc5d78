import Tern
import TernConcurrency

/// A stage with a limited number of loads at a time.
enum LoadStage: Int, Sendable, CaseIterable {
    case fetch, decode, process
}

/// A subscriber of a job: a task of the user, or the job that waits for the result.
enum LoadSubscriber: Identifiable {
    case task(ImageTask)
    case job(LoadJob)

    var id: ObjectIdentifier {
        switch self {
        case .task(let task): ObjectIdentifier(task)
        case .job(let job): ObjectIdentifier(job)
        }
    }

    var isTask: Bool {
        if case .task = self { true } else { false }
    }
}

/// One stage of a load. Each job waits for at most one other:
///
/// ```
/// LoadImageJob (memory and disk) → DecodeImageJob → LoadDataJob (disk, second level, network)
///                                → ProcessImageJob → LoadImageJob of the image before the processor → …
/// ```
/// A job starts with its first subscriber, and ends with its result or when its last subscriber leaves. Its work runs
/// off the actor and ends with a message, after which the job takes its next step.
///
/// Isolated to the pipeline's actor, which each method takes. Subscribers and the jobs that they wait for refer to each
/// other until the end of either.
class LoadJob {
    /// Identifies the job in messages, which may come after its end.
    let number: UInt64
    /// The identity of the image load for which the job was made.
    let key: ImageLoadKey
    /// The request of the first subscriber.
    let request: ImageRequest
    /// Those that wait for the result.
    var subscribers = SubscriberList<LoadSubscriber>()
    /// The job that this one waits for; nil while it waits for none.
    private(set) var dependency: LoadJob?
    /// Whether the job has started and not ended.
    private(set) var isRunning = false
    /// Whether the fetch waits until scrolling has settled. True only if all subscribers wait for it.
    var waitsForScrolling = true
    /// The place in the queue of a stage; nil while the job does not wait there.
    private(set) var place: QueuePlace?
    /// The step for which the job waits for a slot.
    private var queuedStep: (() -> Void)?
    /// The step after the work under way.
    private var nextStep: (() -> Void)?
    private var work: Task<Void, Never>?

    static let numbers = SerialNumbers()

    init(_ key: ImageLoadKey, _ request: ImageRequest, number: UInt64 = LoadJob.numbers.next()) {
        self.number = number
        self.key = key
        self.request = request
    }

    /// The highest priority among the subscribers.
    var priority: LoadPriority { subscribers.priority }
    /// The last reported progress of the fetch that the job waits for.
    var progress: Session.Progress? { dependency?.progress }

    // MARK: Steps of each class

    /// Takes the first step, also of the second attempt after a failure.
    func start(in pipeline: isolated ImagePipeline) {}

    /// Takes the step after the bytes that the job has waited for.
    func receive(bytes: Result<EncodedImage, ImageError>, in pipeline: isolated ImagePipeline) {}

    /// Takes the step after the image that the job has waited for.
    func receive(image: Result<ImageResponse, ImageError>, in pipeline: isolated ImagePipeline) {}

    /// Decodes the bytes of a preview that have arrived.
    func chunksArrived(in pipeline: isolated ImagePipeline) {}

    /// Handles a preview, or the end of the previews, from work of this job.
    func receive(update: ProgressiveDecoding.Update, in pipeline: isolated ImagePipeline) {}

    /// Shows a preview of the image that the job waits for.
    func show(preview: RasterImage, in pipeline: isolated ImagePipeline) {}

    /// Adds the job to the tables of the pipeline.
    func register(in pipeline: isolated ImagePipeline) {
        isRunning = true
    }

    /// Removes the job from the tables of the pipeline. Returns its subscribers.
    @discardableResult
    func end(in pipeline: isolated ImagePipeline) -> SubscriberList<LoadSubscriber> {
        pipeline.workingJobs[number] = nil
        isRunning = false
        return subscribers.takeAll()
    }

    /// Ends the job without a result: it leaves its queue and the job that it waits for.
    func cancel(in pipeline: isolated ImagePipeline) {
        end(in: pipeline)
        if let place = place.take() { pipeline.queues[place.stage.rawValue].remove(place) }
        queuedStep = nil
        nextStep = nil
        work?.cancel()
        leaveDependency(in: pipeline)
    }
}

// MARK: Dependencies

extension LoadJob {
    /// Waits for the result of another job, which starts unless it runs already.
    final func wait(for job: LoadJob, in pipeline: isolated ImagePipeline) {
        dependency = job
        pipeline.add(.job(self), priority, to: job, waitsForScrolling: waitsForScrolling)
        guard job.isRunning else { return pipeline.start(job) }
        if let progress = job.progress { forEachTask { $0.report(progress) } }
    }

    /// Waits for encoded bytes, whose load starts unless there is one.
    /// - Parameters:
    ///   - cachedFreshness: The freshness of the cached bytes to revalidate; nil to load the bytes.
    ///   - skipsStoredBytes: True to fetch the bytes although the disk has them.
    final func loadBytes(
        revalidating cachedFreshness: ImageFreshness? = nil, skipsStoredBytes: Bool = false,
        in pipeline: isolated ImagePipeline
    ) {
        let dataKey = EncodedLoadKey(key, revalidating: cachedFreshness, skipsStoredBytes: skipsStoredBytes)
        loadBytes(dataKey, revalidating: cachedFreshness, in: pipeline)
    }

    /// Waits for the encoded bytes of a key.
    final func loadBytes(
        _ dataKey: EncodedLoadKey, revalidating cachedFreshness: ImageFreshness?, in pipeline: isolated ImagePipeline
    ) {
        pipeline.forgetFailure(ifIgnoredBy: request)
        let running = pipeline.dataJobs[dataKey]
        wait(for: running ?? LoadDataJob(dataKey, for: self, revalidating: cachedFreshness, pipeline), in: pipeline)
    }

    /// Removes the job from the subscribers of the job that it waits for.
    final func leaveDependency(in pipeline: isolated ImagePipeline) {
        if let job = dependency.take() { pipeline.remove(ObjectIdentifier(self), from: job) }
    }

    /// Stops waiting for a job that has removed this one from its subscribers. Returns false if it waits for another.
    final func stopWaiting(for job: LoadJob) -> Bool {
        guard dependency === job else { return false }
        dependency = nil
        return true
    }

    /// Ends the job, and passes the image to the jobs that wait for it.
    final func finish(image result: Result<ImageResponse, ImageError>, in pipeline: isolated ImagePipeline) {
        end(in: pipeline).visit { pass(image: result, to: $0, in: pipeline) }
    }

    /// Passes an image or an error to a job that has left the list of subscribers.
    final func pass(
        image result: Result<ImageResponse, ImageError>, to subscriber: LoadSubscriber,
        in pipeline: isolated ImagePipeline
    ) {
        guard case .job(let job) = subscriber, job.stopWaiting(for: self) else { return }
        job.receive(image: result, in: pipeline)
    }

    /// Calls the closure for all tasks that wait for this job or for a result of it.
    final func forEachTask(_ body: (ImageTask) -> Void) {
        subscribers.visit { subscriber in
            switch subscriber {
            case .task(let task): body(task)
            case .job(let job): job.forEachTask(body)
            }
        }
    }

    /// Calls the closure for the jobs that wait for this one.
    final func forEachDependent(_ body: (LoadJob) -> Void) {
        subscribers.visit { if case .job(let job) = $0 { body(job) } }
    }
}

// MARK: Work

extension LoadJob {
    /// Runs work off the actor, and passes its result to the next step, unless the job has ended by then.
    /// - Parameters:
    ///   - stage: The stage whose slot the job holds until the end of the work; nil for none.
    ///   - executor: The threads of the work; nil for those of all tasks.
    final func run<Value: Sendable>(
        in pipeline: isolated ImagePipeline, holding stage: LoadStage? = nil, on executor: ImageExecutor? = nil,
        _ work: @escaping @Sendable () async -> Value, then next: @escaping (Value) -> Void
    ) {
        let result = WorkResult<Value>()
        nextStep = { if let value = result.take() { next(value) } }
        pipeline.workingJobs[number] = self
        pipeline.startsOfWork.append {
            guard self.isRunning else {
                // It was cancelled in this turn: its slot goes to the next one.
                if let stage { pipeline.releaseSlot(at: stage) }
                return
            }
            let number = self.number
            // Ends with the work. `cancel(in:)` cancels it.
            self.work = Task(executorPreference: executor) { @concurrent in
                // It may have been cancelled in the queue of the executor.
                if !Task.isCancelled { result.set(await work()) }
                pipeline.send(.workEnded(number, stage))
            }
        }
    }

    /// Takes the step after the work.
    final func workEnded() {
        work = nil
        nextStep.take()?()
    }

    /// Waits for a slot of a stage. The step must start work that holds the slot.
    final func enter(_ stage: LoadStage, in pipeline: isolated ImagePipeline, then step: @escaping () -> Void) {
        if pipeline.takeSlot(at: stage) { return step() }
        queuedStep = step
        place = pipeline.enqueue(self, at: stage)
        // With a rate limit, there may be a slot for this job or for another one.
        if pipeline.rateLimiter != nil { pipeline.admitNext(at: stage) }
    }

    /// Takes the step for which the job has waited in a queue, with a slot.
    final func admit() {
        place = nil
        queuedStep.take()?()
    }
}

/// The result of work that a message announces, set on one thread and taken on the actor.
private final class WorkResult<Value: Sendable>: Sendable {
    private let value = Lock<Value?>(nil)

    func set(_ new: Value) { value.withLock { $0 = new } }

    func take() -> Value? { value.withLock { $0.take() } }
}
