import Tern
import TernConcurrency

// The state around a load: its subscribers, when it may begin, and what its subscribers get.

extension ImagePipeline {
    // MARK: Subscribing

    /// Subscribes a task to the load of its image, and starts the load if there is none.
    func subscribe(_ task: ImageTask, stale: StoredImage?) {
        guard !task.isFinished else { return }
        let waitsForScrolling = task.request.options.waitsForScrolling
        let context = ImageLoadContext(
            load: nextNumber(), key: ImageLoadKey(task.key, task.request), request: task.request)
        let subscription = Subscription(id: Int(task.id), priority: task.priorityInQueue)
        switch imageLoads.join(context.key, as: context.load, with: subscription, subscriber: .task(task)) {
        case .begin:
            loadOf[task.id] = context.load
            start(context, stale: stale, waitsForScrolling: waitsForScrolling)
        case .joined(let load, let newPriority):
            loadOf[task.id] = load
            if let newPriority { priorityChanged(of: load, to: newPriority) }
            if !waitsForScrolling { stopWaitingForScrolling(load) }
            if let progress = progress(of: load) { task.report(progress) }
            #if os(Linux)
            if let preview = previews[load]?.newest { task.preview(preview) }
            #endif
            if let cached = jobs[load]?.cachedImage, task.current == nil {
                deliver(.success(cached), to: .task(task), isLast: false)
            }
        }
    }

    private func start(_ context: ImageLoadContext, stale: StoredImage?, waitsForScrolling: Bool) {
        jobs[context.load] = LoadJob(
            task: Task { await self.run(context, stale: stale) }, waitsForScrolling: waitsForScrolling)
    }

    /// Returns the image of another key for a load that processes it, and starts the load of that key if there is none.
    func image(
        _ key: ImageLoadKey, request: ImageRequest, for dependentLoad: Int
    ) async throws(ImageError) -> LoadedImage {
        // If the caller is already cancelled, start nothing, because nothing would cancel the new load.
        guard let waitsForScrolling = jobs[dependentLoad]?.waitsForScrolling, !Task.isCancelled else {
            throw .cancelled
        }
        let waiter = Waiter<Result<LoadedImage, ImageError>>()
        let context = ImageLoadContext(load: nextNumber(), key: key, request: request)
        let subscription = Subscription(
            id: nextNumber() + ImageTask.subscriptionOffset, priority: priority(of: dependentLoad))
        var load = context.load
        switch imageLoads.join(key, as: load, with: subscription, subscriber: .processing(waiter, load: dependentLoad))
        {
        case .begin:
            start(context, stale: nil, waitsForScrolling: waitsForScrolling)
        case .joined(let running, let newPriority):
            load = running
            if let newPriority { priorityChanged(of: load, to: newPriority) }
            if !waitsForScrolling { stopWaitingForScrolling(load) }
            if let progress = progress(of: load) { forEachTask(of: dependentLoad) { $0.report(progress) } }
            if let cached = jobs[load]?.cachedImage { waiter.resume(returning: .success(cached)) }
        }
        jobs[dependentLoad]?.requiredLoad = .image(load: load, subscription: subscription.id)
        let result = await waiter.wait(cancelled: .failure(.cancelled))
        jobs[dependentLoad]?.requiredLoad = nil
        // A load that is being revalidated goes on without the loads that have their input.
        leave(.image(load: load, subscription: subscription.id))
        return try result.get()
    }

    /// Returns the encoded bytes for an image load, and starts their load if there is none.
    /// - Parameters:
    ///   - priority: The priority of the subscription; by default that of the image load.
    ///   - cachedFreshness: The freshness of the cached bytes to revalidate; nil to load the bytes.
    func encodedImage(
        for image: ImageLoadContext, priority: LoadPriority? = nil, revalidating cachedFreshness: Freshness?
    ) async throws(ImageError) -> EncodedImage {
        let dependentLoad = image.load
        // If the caller is already cancelled, start nothing, because nothing would cancel the new load.
        guard let waitsForScrolling = jobs[dependentLoad]?.waitsForScrolling, !Task.isCancelled else {
            throw .cancelled
        }
        let context = EncodedLoadContext(
            load: nextNumber(), key: EncodedLoadKey(image.key, revalidating: cachedFreshness), request: image.request,
            cachedFreshness: cachedFreshness)
        let failure = failures.error(for: context.key.source, at: now)
        if image.request.options.ignores(failure) { failures.remove(context.key.source) }
        let waiter = Waiter<Result<EncodedImage, ImageError>>()
        let subscription = Subscription(id: nextNumber(), priority: priority ?? self.priority(of: dependentLoad))
        let subscriber = EncodedImageSubscriber(waiter: waiter, load: dependentLoad)
        var load = context.load
        switch encodedLoads.join(context.key, as: load, with: subscription, subscriber: subscriber) {
        case .begin:
            #if os(Linux)
            if cachedFreshness == nil, configuration.showsPreviews(image.key.options) {
                chunks[load] = ChunkBuffer { [weak self, load] in self?.send(.chunksArrived(load: load)) }
            }
            #endif
            jobs[load] = LoadJob(
                task: Task { await self.runEncoded(context) }, waitsForScrolling: waitsForScrolling)
        case .joined(let running, let newPriority):
            load = running
            if let newPriority { priorityChanged(of: load, to: newPriority) }
            if !waitsForScrolling { stopWaitingForScrolling(load) }
            if let progress = jobs[load]?.progress { forEachTask(of: dependentLoad) { $0.report(progress) } }
        }
        jobs[dependentLoad]?.requiredLoad = .encoded(load: load, subscription: subscription.id)
        #if os(Linux)
        if cachedFreshness == nil, let chunks = chunks[load] { beginPreviews(from: chunks, for: image) }
        #endif
        let result = await waiter.wait(cancelled: .failure(.cancelled))
        jobs[dependentLoad]?.requiredLoad = nil
        // Has an effect only after a cancellation.
        leave(.encoded(load: load, subscription: subscription.id))
        return try result.get()
    }

    // MARK: Leaving

    /// Removes a task from its load.
    func unsubscribe(_ task: ImageTask) {
        guard let load = loadOf.removeValue(forKey: task.id) else { return }
        subscriberLeft(load, imageLoads.leave(load, subscription: Int(task.id)))
    }

    private func leave(_ requiredLoad: LoadJob.RequiredLoad?) {
        switch requiredLoad {
        case .image(let load, let subscription)?:
            subscriberLeft(load, imageLoads.leave(load, subscription: subscription))
        case .encoded(let load, let subscription)?:
            subscriberLeft(load, encodedLoads.leave(load, subscription: subscription))
        case nil: break
        }
    }

    private func subscriberLeft(_ load: Int, _ result: LeaveResult) {
        switch result {
        case .stays(let priority?): priorityChanged(of: load, to: priority)
        case .stays(nil), .unknown: break
        case .ends: cancel(load)
        }
    }

    /// Cancels a load without subscribers: it leaves its queue and the load that it waits for.
    private func cancel(_ load: Int) {
        guard let job = jobs.removeValue(forKey: load) else { return }
        if let slot = job.pendingSlot { queues[slot.stage.rawValue].remove(load) }
        scrollDebouncer.remove(load)
        scrollWaiters[load] = nil
        chunks[load] = nil
        #if os(Linux)
        endPreviews(of: load)
        #endif
        job.task?.cancel()
        leave(job.requiredLoad)
    }

    /// Returns a Boolean value that indicates whether the load has not ended. Does not copy the job.
    func isRunning(_ load: Int) -> Bool { jobs.index(forKey: load) != nil }

    // MARK: Priority

    func changePriority(of task: ImageTask) {
        guard let load = loadOf[task.id] else { return }
        let subscription = Subscription(id: Int(task.id), priority: task.priorityInQueue)
        if let priority = imageLoads.update(load, subscription) { priorityChanged(of: load, to: priority) }
    }

    /// Returns the highest priority among the subscribers of a load.
    func priority(of load: Int) -> LoadPriority { max(imageLoads.priority(of: load), encodedLoads.priority(of: load)) }

    /// Moves a load in its queue, and updates the priority of the load that it waits for.
    private func priorityChanged(of load: Int, to priority: LoadPriority) {
        guard let job = jobs[load] else { return }
        if let slot = job.pendingSlot { queues[slot.stage.rawValue].move(load, to: priority) }
        switch job.requiredLoad {
        case .image(let requiredLoad, let id)?:
            if let priority = imageLoads.update(requiredLoad, Subscription(id: id, priority: priority)) {
                priorityChanged(of: requiredLoad, to: priority)
            }
        case .encoded(let requiredLoad, let id)?:
            if let priority = encodedLoads.update(requiredLoad, Subscription(id: id, priority: priority)) {
                priorityChanged(of: requiredLoad, to: priority)
            }
        case nil: break
        }
    }

    // MARK: Delivering

    /// Delivers a result to a subscriber.
    /// - Parameter isLast: False for a cached image that is being revalidated.
    func deliver(
        _ result: Result<LoadedImage, ImageError>, to subscriber: ImageSubscriber, isLast: Bool = true
    ) {
        switch subscriber {
        case .processing(let waiter, _):
            waiter.resume(returning: result)
        case .task(let task):
            if isLast { loadOf[task.id] = nil }
            // A task that rejects the image leaves the load, even if others stay.
            let isAccepted = task.deliver(result, isLast: isLast, at: configuration.now())
            if !isAccepted { unsubscribe(task) }
        }
    }

    /// Reports the progress of a load of encoded bytes to all tasks that wait for it.
    func report(_ progress: Session.Progress, of load: Int) {
        jobs[load]?.progress = progress
        for subscriber in encodedLoads.subscribers(of: load) {
            forEachTask(of: subscriber.load) { $0.report(progress) }
        }
    }

    /// Returns the last reported progress of the fetch that a load waits for.
    private func progress(of load: Int) -> Session.Progress? {
        guard let job = jobs[load] else { return nil }
        switch job.requiredLoad {
        case .image(let requiredLoad, _)?, .encoded(let requiredLoad, _)?: return progress(of: requiredLoad)
        case nil: return job.progress
        }
    }

    /// Calls the closure for all tasks that wait for an image or for a processed form of it.
    private func forEachTask(of load: Int, _ body: (ImageTask) -> Void) {
        for subscriber in imageLoads.subscribers(of: load) {
            switch subscriber {
            case .task(let task): body(task)
            case .processing(_, let dependentLoad): forEachTask(of: dependentLoad, body)
            }
        }
    }
}

// MARK: Slots

extension ImagePipeline {
    /// Runs the operation while the load holds one of the slots of a stage.
    func withSlot<Value: Sendable>(
        at stage: LoadStage, for load: Int, _ operation: @Sendable () async throws(ImageError) -> Value
    ) async throws(ImageError) -> Value {
        try await acquireSlot(at: stage, for: load)
        defer { releaseSlot(at: stage) }
        // The load may have been cancelled after it was admitted.
        if Task.isCancelled { throw .cancelled }
        return try await operation()
    }

    private func acquireSlot(at stage: LoadStage, for load: Int) async throws(ImageError) {
        if Task.isCancelled { throw .cancelled }
        let waiter = Waiter<Bool>()
        let priority = priority(of: load)
        if stage == .fetch, rateLimiter != nil {
            // The rate limit admits the first in the queue at that time, not the first to arrive.
            queues[stage.rawValue].append(load, priority)
            jobs[load]?.pendingSlot = (stage, waiter)
            admitNext(at: stage)
        } else {
            if queues[stage.rawValue].enter(load, priority) { return }
            jobs[load]?.pendingSlot = (stage, waiter)
        }
        let isAdmitted = await waiter.wait(cancelled: false)
        jobs[load]?.pendingSlot = nil
        guard isAdmitted else {
            queues[stage.rawValue].remove(load)
            throw .cancelled
        }
    }

    private func releaseSlot(at stage: LoadStage) {
        queues[stage.rawValue].leave()
        admitNext(at: stage)
    }

    /// Admits loads while the stage has free slots and the rate limit allows it.
    private func admitNext(at stage: LoadStage) {
        while queues[stage.rawValue].hasNext {
            if stage == .fetch, let delay = rateLimiter?.take(at: now), delay > .zero {
                admitFetches(after: delay)
                return
            }
            guard let next = queues[stage.rawValue].next() else { return }
            if jobs[next]?.pendingSlot?.waiter.resume(returning: true) == true { continue }
            // The load was cancelled at this moment: its slot goes to the next one.
            queues[stage.rawValue].leave()
            if stage == .fetch { rateLimiter?.returnToken() }
        }
    }

    /// Waits for the rate limit, once for all loads. The task needs no cancellation: with an empty queue it does nothing.
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
    func waitForScrolling(_ load: Int) async throws(ImageError) {
        guard jobs[load]?.waitsForScrolling == true, !scrollDebouncer.enter(load) else { return }
        let waiter = Waiter<Bool>()
        scrollWaiters[load] = waiter
        guard await waiter.wait(cancelled: false) else {
            scrollDebouncer.remove(load)
            scrollWaiters[load] = nil
            throw .cancelled
        }
    }

    /// Lets a load and the load that it requires begin: a subscriber has joined that does not wait for scrolling.
    private func stopWaitingForScrolling(_ load: Int) {
        guard jobs[load]?.waitsForScrolling == true else { return }
        jobs[load]?.waitsForScrolling = false
        scrollDebouncer.remove(load)
        scrollWaiters.removeValue(forKey: load)?.resume(returning: true)
        switch jobs[load]?.requiredLoad {
        case .image(let requiredLoad, _)?, .encoded(let requiredLoad, _)?: stopWaitingForScrolling(requiredLoad)
        case nil: break
        }
    }

    func perform(_ action: ScrollDebouncer.Action) {
        switch action {
        case .none: break
        case .wait(let generation):
            let (clock, time) = (configuration.clock, configuration.settlingTime)
            Task { [weak self] in
                // The task needs no cancellation. If the sleep ends early, scrolling only settles early.
                try? await clock.sleepWithoutDescriptor(for: time)
                await self?.settlingTimeEnded(generation)
            }
        case .release(let loads):
            for load in loads { scrollWaiters.removeValue(forKey: load)?.resume(returning: true) }
        }
    }

    private func settlingTimeEnded(_ generation: Int) {
        perform(scrollDebouncer.settlingTimeEnded(generation: generation))
    }
}
