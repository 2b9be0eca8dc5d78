import Tern
import TernConcurrency

// When a job may take a step: it needs a slot of the stage, and a fetch also waits for the rate limit and for scrolling.

extension ImagePipeline {
    // MARK: Slots

    /// Gives a slot of a stage to a job, and returns true, if one is free and no job waits.
    func takeSlot(at stage: LoadStage) -> Bool {
        // The rate limit admits the first in the queue at that time, not the first to arrive.
        if stage == .fetch, rateLimiter != nil { return false }
        return queues[stage.rawValue].takeSlot()
    }

    /// Queues a job until it is admitted.
    func enqueue(_ job: LoadJob, at stage: LoadStage) -> QueuePlace {
        queues[stage.rawValue].append(job, job.priority)
    }

    func releaseSlot(at stage: LoadStage) {
        queues[stage.rawValue].leave()
        admitNext(at: stage)
    }

    /// Admits jobs while the stage has free slots and the rate limit allows it.
    func admitNext(at stage: LoadStage) {
        while stage != .fetch || rateAllowsFetch(), let job = queues[stage.rawValue].next() { job.admit() }
    }

    /// Adapts the number of images that are decoded at a time to the time that one took.
    func adaptDecodes(toNanoseconds nanoseconds: UInt64) {
        decodePace.record(nanoseconds: nanoseconds)
        queues[LoadStage.decode.rawValue].limit = decodePace.limit
        admitNext(at: .decode)
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
            self?.send(.rateDelayEnded)
        }
    }

    // MARK: Scrolling

    /// Lets a job and the job that it waits for begin: a subscriber has joined that does not wait for scrolling.
    func stopWaitingForScrolling(_ job: LoadJob) {
        guard job.waitsForScrolling else { return }
        job.waitsForScrolling = false
        if let job = job as? LoadDataJob, scrollDebouncer.remove(job) { job.enterFetch(in: self) }
        if let dependency = job.dependency { stopWaitingForScrolling(dependency) }
    }

    func perform(_ action: ScrollDebouncer<LoadDataJob>.Action) {
        switch action {
        case .none: break
        case .wait(let generation):
            let (clock, time) = (configuration.clock, configuration.settlingTime)
            Task { [weak self] in
                // The task needs no cancellation. If the sleep ends early, scrolling only settles early.
                try? await clock.sleepWithoutDescriptor(for: time)
                self?.send(.settlingTimeEnded(generation))
            }
        case .release(let jobs):
            for job in jobs { job.enterFetch(in: self) }
        }
    }
}
