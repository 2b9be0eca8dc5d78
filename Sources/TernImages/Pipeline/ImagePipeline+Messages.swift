import Tern
import TernConcurrency

extension ImagePipeline {
    /// A message to the actor from another thread. Jobs are named by their numbers: one that has ended ignores it.
    enum Message: Sendable {
        /// Begins a task, with the stale image from memory that it revalidates; nil to load the image. With
        /// `.beforeDelivery`, the task has not received the stale image yet.
        case begin(ImageTask, stale: StoredImage?)
        case cancel(ImageTask)
        case changePriority(ImageTask)
        /// The work of a job has ended, and the slot of the stage is free, if it held one.
        case workEnded(UInt64, LoadStage?)
        case progress(UInt64, Session.Progress)
        case chunksArrived(UInt64)
        /// A preview of a job, or the end of its previews.
        indirect case update(UInt64, ProgressiveDecoding.Update)
        case scrolling(Bool)
        /// The settling time of this generation has ended.
        case settlingTimeEnded(Int)
        /// The rate may allow the next fetch.
        case rateDelayEnded
        case barrier(Waiter<Void>)
    }

    /// Sends a message. Messages are handled in order; one task handles all that have arrived by then.
    nonisolated func send(_ message: Message) {
        if inbox.append(message) { Task { await self.handleMessages() } }
    }

    /// Waits until all earlier messages have been handled.
    nonisolated func waitForMessages() async {
        let waiter = Waiter<Void>()
        send(.barrier(waiter))
        await waiter.wait()
    }

    /// Handles all messages, in turns.
    private func handleMessages() async {
        var messages: [Message] = []
        var count = 0
        while inbox.takeAll(&messages) {
            for (index, message) in messages.enumerated() {
                handle(message)
                // A turn of many messages would keep other threads without work.
                if index % 64 == 63 { endTurn() }
            }
            endTurn()
            count += messages.count
            // Lets other calls in, even if messages come without a pause.
            if count >= 1_024 {
                count = 0
                await Task.yield()
            }
        }
    }

    /// Starts the work of the turn, and resumes the callers: one wake-up of a thread then serves many loads. Without,
    /// a load takes a third more of the processors.
    func endTurn() {
        var index = 0
        // A job that was cancelled meanwhile gives its slot to the next one, whose work is added at the end.
        while index < startsOfWork.count {
            startsOfWork[index]()
            index += 1
        }
        startsOfWork.removeAll(keepingCapacity: true)
        resumeCallers()
    }

    /// Ends a task with the last result of its load, or goes on to its next source. Its callers are resumed at the end of
    /// the turn.
    func finish(_ task: ImageTask, with result: Result<ImageResponse, ImageError>) {
        // A message: loads of many sources that fail at once would otherwise nest.
        guard let result = task.outcome(of: result) else { return send(.begin(task, stale: nil)) }
        task.finish(result, callers: &callers)
        // More would wait for the last of them.
        if callers.count >= 64 { resumeCallers() }
    }

    private func resumeCallers() {
        for caller in callers { caller.resume(returning: true) }
        callers.removeAll(keepingCapacity: true)
    }

    private func handle(_ message: Message) {
        switch message {
        case .begin(let task, let stale): subscribe(task, stale: stale)
        case .cancel(let task): unsubscribe(task)
        case .changePriority(let task): changePriority(of: task)
        case .workEnded(let number, let stage):
            if let stage { releaseSlot(at: stage) }
            workingJobs.removeValue(forKey: number)?.workEnded()
        case .progress(let number, let progress): (workingJobs[number] as? LoadDataJob)?.report(progress)
        case .chunksArrived(let number): workingJobs[number]?.forEachDependent { $0.chunksArrived(in: self) }
        case .update(let number, let update): workingJobs[number]?.receive(update: update, in: self)
        case .scrolling(let isScrolling): perform(scrollDebouncer.report(isScrolling: isScrolling))
        case .settlingTimeEnded(let generation):
            perform(scrollDebouncer.settlingTimeEnded(generation: generation))
        case .rateDelayEnded:
            isAwaitingRate = false
            admitNext(at: .fetch)
        case .barrier(let waiter): waiter.resume()
        }
    }
}

/// Messages to an actor from any thread, in order. One task handles all messages that have arrived by then.
final class Mailbox<Message: Sendable>: Sendable {
    private struct State {
        var messages: [Message] = []
        var hasRunningTask = false
    }

    private let state = Lock(State())

    /// Adds a message. Returns true if the caller must start a task that takes the messages, because none is running.
    func append(_ message: Message) -> Bool {
        state.withLock { state in
            state.messages.append(message)
            defer { state.hasRunningTask = true }
            return !state.hasRunningTask
        }
    }

    /// Replaces the array by the messages that have arrived. Returns false if there are none: the calling task must end
    /// then.
    func takeAll(_ messages: inout [Message]) -> Bool {
        messages.removeAll(keepingCapacity: true)
        state.withLock { state in
            // The two arrays are swapped, so that neither is allocated again.
            swap(&state.messages, &messages)
            guard messages.isEmpty else { return }
            state.hasRunningTask = false
            // Releases the memory of a burst.
            if state.messages.capacity > 1_024 { state.messages = [] }
        }
        return !messages.isEmpty
    }
}
