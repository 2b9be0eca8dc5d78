import Tern
import TernConcurrency

// The tasks and jobs that wait for a job: they join it, change its priority, and leave it.

extension ImagePipeline {
    /// Subscribes a task to the load of its image, and starts the load if there is none.
    /// - Parameter stale: The image in memory that a new load revalidates; nil to load the image.
    func subscribe(_ task: ImageTask, stale: StoredImage? = nil) {
        guard let key = task.loadKey, !task.isFinished else { return }
        let job = imageJobs[key] ?? LoadImageJob(key, task.sentRequest, stale: stale)
        let waitsForScrolling = task.request.options.waitsForScrolling
        add(.task(task), task.priorityInQueue, to: job, waitsForScrolling: waitsForScrolling)
        if job.isRunning { job.update(task, in: self) } else { start(job) }
    }

    func start(_ job: LoadJob) {
        job.register(in: self)
        job.start(in: self)
    }

    /// Adds a subscriber to a job, which takes over the highest priority and need not wait for scrolling longer than
    /// it.
    func add(_ subscriber: LoadSubscriber, _ priority: LoadPriority, to job: LoadJob, waitsForScrolling: Bool) {
        if job.subscribers.add(subscriber, priority) != nil { priorityChanged(of: job) }
        if !waitsForScrolling { stopWaitingForScrolling(job) }
    }

    /// Removes a task from its load.
    func unsubscribe(_ task: ImageTask) {
        if let job = job(of: task) { remove(ObjectIdentifier(task), from: job) }
    }

    /// Removes a subscriber from a job. The last one cancels it.
    func remove(_ subscriber: ObjectIdentifier, from job: LoadJob) {
        switch job.subscribers.remove(subscriber) {
        case .stays(nil), .unknown: break
        case .stays: priorityChanged(of: job)
        case .ends: job.cancel(in: self)
        }
    }

    func changePriority(of task: ImageTask) {
        guard let job = job(of: task) else { return }
        if job.subscribers.update(ObjectIdentifier(task), task.priorityInQueue) != nil { priorityChanged(of: job) }
    }

    /// Returns the load of a task's image. The task is one of its subscribers, or has no load any more.
    private func job(of task: ImageTask) -> LoadImageJob? { task.loadKey.flatMap { imageJobs[$0] } }

    /// Moves a job in its queue, and updates the priority of the job that it waits for.
    private func priorityChanged(of job: LoadJob) {
        if let place = job.place { queues[place.stage.rawValue].move(place, to: job.priority) }
        if let dependency = job.dependency,
            dependency.subscribers.update(ObjectIdentifier(job), job.priority) != nil
        {
            priorityChanged(of: dependency)
        }
    }
}
