import Tern
import TernConcurrency

// The state around a load: its subscribers, when it may begin, and what its subscribers get.

extension ImagePipeline {
    // MARK: Subscribing

    /// Subscribes a task to the load of its image, and starts the load if there is none.
    func subscribe(_ task: ImageTask, stale: StoredImage?) {
        guard let key = task.loadKey, !task.isFinished else { return }
        let running = imageJobs[key]
        let job = running ?? LoadImageJob(key, task.request)
        let waitsForScrolling = task.request.options.waitsForScrolling
        add(.task(task), task.priorityInQueue, to: job, waitsForScrolling: waitsForScrolling)
        guard running != nil else { return start(job, stale: stale) }
        if let progress = job.fetchProgress { task.report(progress) }
        if let preview = job.preview?.newest { task.preview(preview) }
        if let cached = job.cachedImage { deliver(cached: cached, of: job, to: [.task(task)]) }
    }

    private func start(_ job: LoadImageJob, stale: StoredImage? = nil) {
        imageJobs[job.key] = job
        guard stale == nil, needsBytes(job) else { return startTask(of: job, stale: stale) }
        join(EncodedLoadKey(job.key, revalidating: nil), for: job, revalidating: nil, waiter: nil)
    }

    func startTask(of job: LoadImageJob, stale: StoredImage? = nil) {
        job.task = Task { await self.run(job, stale: stale) }
    }

    /// Starts a load of encoded bytes: with a task, or in the queue if it only needs a slot.
    private func start(_ job: LoadDataJob) {
        guard needsSlot(job) else { return startTask(of: job) }
        enter(.fetch, job)
    }

    func startTask(of job: LoadDataJob) { job.task = Task { await self.runData(job) } }

    /// Returns the image before the last processor of a load, and starts the load of that image if there is none.
    func inputImage(_ key: ImageLoadKey, for job: LoadImageJob) async throws(ImageError) -> LoadedImage {
        // If the caller is already cancelled, start nothing, because nothing would cancel the new load.
        guard job.isRunning, !Task.isCancelled else { throw .cancelled }
        let running = imageJobs[key]
        // A load that is being revalidated goes on without those that have their input.
        if let cached = running?.cachedImage { return cached }
        let input = running ?? LoadImageJob(key, job.request.withoutLastProcessor)
        let waiter = Waiter<Result<LoadedImage, ImageError>>()
        job.input = .image(input, waiter)
        add(.job(job), job.priority, to: input, waitsForScrolling: job.waitsForScrolling)
        if running == nil { start(input) } else { reportProgress(to: job) }
        let result = await waiter.wait(cancelled: .failure(.cancelled))
        leaveInput(of: job)
        return try result.get()
    }

    /// Returns the encoded bytes for an image load, and starts their load if there is none.
    /// - Parameters:
    ///   - cachedFreshness: The freshness of the cached bytes to revalidate; nil to load the bytes.
    ///   - skipsStoredBytes: True to fetch the bytes although the disk has them.
    func encodedImage(
        for job: LoadImageJob, revalidating cachedFreshness: Freshness?, skipsStoredBytes: Bool = false
    ) async throws(ImageError) -> EncodedImage {
        // If the caller is already cancelled, start nothing, because nothing would cancel the new load.
        guard job.isRunning, !Task.isCancelled else { throw .cancelled }
        let key = EncodedLoadKey(job.key, revalidating: cachedFreshness, skipsStoredBytes: skipsStoredBytes)
        let waiter = Waiter<Result<EncodedImage, ImageError>>()
        let input = join(key, for: job, revalidating: cachedFreshness, waiter: waiter)
        if cachedFreshness == nil, let chunks = input.chunks,
            let preview = job.beginPreviews(from: chunks, configuration)
        {
            // Ends with the decoding, which the end of the load cancels.
            Task { await self.show(preview, of: job) }
            job.decodeNewChunks()
        }
        let result = await waiter.wait(cancelled: .failure(.cancelled))
        leaveInput(of: job)
        return try result.get()
    }

    /// Subscribes an image load to the load of its encoded bytes, and starts that load if there is none.
    /// - Parameter waiter: Resumed with the bytes; nil for a load without a task, which starts to decode when they are
    ///   there.
    @discardableResult
    private func join(
        _ key: EncodedLoadKey, for job: LoadImageJob, revalidating cachedFreshness: Freshness?,
        waiter: Waiter<Result<EncodedImage, ImageError>>?
    ) -> LoadDataJob {
        if !failures.isEmpty, job.request.options.ignores(rememberedFailure(of: job.request)) {
            failures.remove(sentKey(of: job.request))
        }
        let running = dataJobs[key]
        let input = running ?? makeDataJob(key, for: job, revalidating: cachedFreshness)
        job.input = .data(input, waiter)
        add(.job(job), job.priority, to: input, waitsForScrolling: job.waitsForScrolling)
        if running == nil {
            dataJobs[key] = input
            start(input)
        } else {
            reportProgress(to: job)
        }
        return input
    }

    private func makeDataJob(
        _ key: EncodedLoadKey, for job: LoadImageJob, revalidating cachedFreshness: Freshness?
    ) -> LoadDataJob {
        var chunks: ChunkBuffer?
        if cachedFreshness == nil, configuration.showsPreviews(job.key.options) {
            chunks = ChunkBuffer { [weak self] in self?.send(.chunksArrived(key)) }
        }
        return LoadDataJob(key, job.request, cachedFreshness: cachedFreshness, chunks: chunks)
    }

    private func show(_ preview: PreviewDecoding, of job: LoadImageJob) async {
        await job.show(preview, processingOn: configuration.executor)
    }

    /// Adds a subscriber to a load, which takes over the highest priority and need not wait for scrolling longer than
    /// it.
    private func add(
        _ subscriber: LoadSubscriber, _ priority: LoadPriority, to job: LoadJob, waitsForScrolling: Bool
    ) {
        if job.subscribers.add(subscriber, priority) != nil { priorityChanged(of: job) }
        if !waitsForScrolling { stopWaitingForScrolling(job) }
    }

    /// Reports the progress of the load that a load has joined.
    private func reportProgress(to job: LoadImageJob) {
        if let progress = job.fetchProgress { job.forEachTask { $0.report(progress) } }
    }

    // MARK: Leaving

    /// Removes a task from its load.
    func unsubscribe(_ task: ImageTask) {
        if let job = job(of: task) { remove(ObjectIdentifier(task), from: job) }
    }

    /// Returns the load of a task's image. The task is one of its subscribers, or has no load any more.
    private func job(of task: ImageTask) -> LoadImageJob? { task.loadKey.flatMap { imageJobs[$0] } }

    /// Removes a load from the load that it waits for.
    private func leaveInput(of job: LoadImageJob) {
        guard let upstream = job.upstream else { return }
        job.input = nil
        remove(ObjectIdentifier(job), from: upstream)
    }

    private func remove(_ subscriber: ObjectIdentifier, from job: LoadJob) {
        switch job.subscribers.remove(subscriber) {
        case .stays(nil), .unknown: break
        case .stays: priorityChanged(of: job)
        case .ends: cancel(job)
        }
    }

    /// Cancels a load without subscribers: it leaves its queue and the load that it waits for.
    private func cancel(_ job: LoadJob) {
        switch job {
        case let job as LoadImageJob:
            end(job)
            job.endPreviews()
            leaveInput(of: job)
        case let job as LoadDataJob:
            end(job)
            scrollDebouncer.remove(job)
        default: break
        }
        if let place = job.place.take() { queues[place.stage.rawValue].remove(place) }
        job.task?.cancel()
    }

    /// Removes a load from its table. Returns its subscribers.
    @discardableResult
    func end(_ job: LoadImageJob) -> SubscriberList<LoadSubscriber> {
        imageJobs[job.key] = nil
        job.isRunning = false
        return job.subscribers.takeAll()
    }

    /// Removes a load of encoded bytes from its table. Returns its subscribers.
    @discardableResult
    func end(_ job: LoadDataJob) -> SubscriberList<LoadSubscriber> {
        dataJobs[job.key] = nil
        job.isRunning = false
        return job.subscribers.takeAll()
    }

    // MARK: Priority

    func changePriority(of task: ImageTask) {
        guard let job = job(of: task) else { return }
        if job.subscribers.update(ObjectIdentifier(task), task.priorityInQueue) != nil { priorityChanged(of: job) }
    }

    /// Moves a load in its queue, and updates the priority of the load that it waits for.
    private func priorityChanged(of job: LoadJob) {
        if let place = job.place { queues[place.stage.rawValue].move(place, to: job.priority) }
        if let upstream = job.upstream, upstream.subscribers.update(ObjectIdentifier(job), job.priority) != nil {
            priorityChanged(of: upstream)
        }
    }

    // MARK: Delivering

    /// Ends a load, and delivers its result to all subscribers.
    /// - Parameter isUnchanged: True if the image is the one that was delivered before its revalidation.
    func finish(
        _ job: LoadImageJob, with result: Result<LoadedImage, ImageError>, isUnchanged: Bool = false
    ) {
        let delivered = delivered(result, of: job)
        var others: [ImageTask] = []
        end(job).visit { subscriber in
            switch subscriber {
            case .job(let dependent): job.resume(dependent, with: result)
            case .task(let task) where !answers(result, of: job.request, task.request): others.append(task)
            case .task(let task) where isUnchanged && task.current != nil: task.end(.success(nil))
            case .task(let task): task.end(delivered, callers: &outbox.callers)
            }
            if outbox.callers.count >= Outbox.callerLimit { resumeCallers() }
        }
        if !isInTurn { resumeCallers() }
        // The first of them starts a load with its own request.
        for task in others { subscribe(task, stale: nil) }
    }

    /// Returns whether a result of a load is one for another request that has joined it. A definite failure is one of
    /// the request that was sent.
    private func answers<Value>(
        _ result: Result<Value, ImageError>, of sent: ImageRequest, _ request: ImageRequest
    ) -> Bool {
        guard case .failure(let error) = result else { return true }
        return isFailure(error, of: sent, alsoOf: request)
    }

    /// Ends a load of encoded bytes, and passes its result to all subscribers.
    func finish(_ job: LoadDataJob, with result: Result<EncodedImage, ImageError>) {
        end(job).visit { subscriber in
            if case .job(let dependent) = subscriber, case .data(let input, let waiter)? = dependent.input,
                input === job,
                !answers(result, of: job.request, dependent.request)
            {
                // The first of them starts a load with its own request.
                join(job.key, for: dependent, revalidating: job.cachedFreshness, waiter: waiter)
            } else {
                resume(subscriber, of: job, with: result)
            }
        }
    }

    /// Passes a result to an image load that waits for the bytes.
    func resume(
        _ subscriber: LoadSubscriber, of job: LoadDataJob, with result: Result<EncodedImage, ImageError>
    ) {
        guard case .job(let dependent) = subscriber, case .data(let input, let waiter)? = dependent.input, input === job
        else { return }
        if let waiter {
            waiter.resume(returning: result)
        } else {
            // It has left the list of subscribers.
            dependent.input = nil
            bytesArrived(for: dependent, result)
        }
    }

    /// Delivers a failure to a subscriber that has left its load.
    func deliver(_ error: ImageError, of job: LoadImageJob, to subscriber: LoadSubscriber) {
        switch subscriber {
        case .job(let dependent): job.resume(dependent, with: .failure(error))
        case .task(let task):
            task.end(.failure(error), callers: &outbox.callers)
            if !isInTurn { resumeCallers() }
        }
    }

    /// Delivers a cached image that is being revalidated to the subscribers that have no response yet.
    func deliver(cached: LoadedImage, of job: LoadImageJob, to subscribers: [LoadSubscriber]) {
        let delivered = response(of: cached, job)
        for subscriber in subscribers {
            switch subscriber {
            case .job(let dependent):
                job.resume(dependent, with: .success(cached))
                // The load has its input: the revalidation goes on without it.
                leaveInput(of: dependent)
            case .task(let task) where task.current == nil:
                // A task that rejects the image leaves the load, even if others stay.
                if !task.deliver(delivered) { unsubscribe(task) }
            case .task: break
            }
        }
    }

    /// Returns a result as the tasks of a load get it.
    private func delivered(
        _ result: Result<LoadedImage, ImageError>, of job: LoadImageJob
    ) -> Result<DeliveredResponse, ImageError> {
        result.map { response(of: $0, job) }
    }

    private func response(of loaded: LoadedImage, _ job: LoadImageJob) -> DeliveredResponse {
        DeliveredResponse(loaded, options: job.key.options, at: date())
    }
}

// MARK: Slots

extension ImagePipeline {
    /// Runs the operation while the load holds one of the slots of a stage.
    func withSlot<Value: Sendable>(
        at stage: LoadStage, for job: LoadJob, _ operation: () async throws(ImageError) -> Value
    ) async throws(ImageError) -> Value {
        if Task.isCancelled { throw .cancelled }
        // The rate limit admits the first in the queue at that time, not the first to arrive.
        if stage == .fetch && rateLimiter != nil || !queues[stage.rawValue].takeSlot() {
            let waiter = Waiter<Bool>()
            let place = queues[stage.rawValue].append(.caller(waiter), job.priority)
            job.place = place
            // With a rate limit, there may be a slot for the load or for another one.
            admitNext(at: stage)
            let isAdmitted = await waiter.wait(cancelled: false)
            job.place = nil
            guard isAdmitted else {
                queues[stage.rawValue].remove(place)
                throw .cancelled
            }
        }
        defer { releaseSlot(at: stage) }
        // The load may have been cancelled after it was admitted.
        if Task.isCancelled { throw .cancelled }
        return try await operation()
    }

    /// Gives a slot to a load without a task, now or when its turn in the queue comes.
    func enter(_ stage: LoadStage, _ job: LoadJob) {
        if queues[stage.rawValue].takeSlot() { return begin(job) }
        job.place = queues[stage.rawValue].append(.job(job), job.priority)
    }

    func releaseSlot(at stage: LoadStage) {
        queues[stage.rawValue].leave()
        admitNext(at: stage)
    }

    /// Admits loads while the stage has free slots and the rate limit allows it.
    private func admitNext(at stage: LoadStage) {
        while stage != .fetch || rateAllowsFetch() {
            switch queues[stage.rawValue].next() {
            case nil: return
            case .job(let job)?:
                job.place = nil
                begin(job)
            case .caller(let waiter)?:
                if waiter.resume(returning: true) { continue }
                // The load was cancelled at this moment: its slot goes to the next one.
                queues[stage.rawValue].leave()
                if stage == .fetch { rateLimiter?.returnToken() }
            }
        }
    }

    /// Takes a token of the rate limit for the next fetch. Returns false if it must wait for one, or if there is no
    /// fetch to begin.
    private func rateAllowsFetch() -> Bool {
        guard rateLimiter != nil else { return true }
        guard queues[LoadStage.fetch.rawValue].hasNext else { return false }
        guard let delay = rateLimiter?.take(at: now), delay > .zero else { return true }
        admitFetches(after: delay)
        return false
    }

    /// Waits for the rate limit, once for all loads. The task needs no cancellation: with an empty queue it does
    /// nothing.
    private func admitFetches(after delay: Duration) {
        guard !isAwaitingRate else { return }
        isAwaitingRate = true
        let clock = configuration.clock
        Task { [weak self] in
            // If the sleep ends early, the rate is only checked early.
            try? await clock.sleepWithoutDescriptor(for: delay)
            await self?.rateDelayEnded()
        }
    }

    private func rateDelayEnded() {
        isAwaitingRate = false
        admitNext(at: .fetch)
    }
}

// MARK: Scrolling

extension ImagePipeline {
    /// Returns at once, or when scrolling has settled if the load waits for it.
    func waitForScrolling(_ job: LoadDataJob) async throws(ImageError) {
        guard job.waitsForScrolling, !scrollDebouncer.enter(job) else { return }
        let waiter = Waiter<Bool>()
        job.scrollWaiter = waiter
        guard await waiter.wait(cancelled: false) else {
            scrollDebouncer.remove(job)
            job.scrollWaiter = nil
            throw .cancelled
        }
    }

    /// Lets a load and the load that it waits for begin: a subscriber has joined that does not wait for scrolling.
    private func stopWaitingForScrolling(_ job: LoadJob) {
        guard job.waitsForScrolling else { return }
        job.waitsForScrolling = false
        if let job = job as? LoadDataJob {
            scrollDebouncer.remove(job)
            job.scrollWaiter.take()?.resume(returning: true)
        }
        if let upstream = job.upstream { stopWaitingForScrolling(upstream) }
    }

    func perform(_ action: ScrollDebouncer<LoadDataJob>.Action) {
        switch action {
        case .none: break
        case .wait(let generation):
            let (clock, time) = (configuration.clock, configuration.settlingTime)
            Task { [weak self] in
                // The task needs no cancellation. If the sleep ends early, scrolling only settles early.
                try? await clock.sleepWithoutDescriptor(for: time)
                await self?.settlingTimeEnded(generation)
            }
        case .release(let jobs):
            for job in jobs { job.scrollWaiter.take()?.resume(returning: true) }
        }
    }

    private func settlingTimeEnded(_ generation: Int) {
        perform(scrollDebouncer.settlingTimeEnded(generation: generation))
    }
}
