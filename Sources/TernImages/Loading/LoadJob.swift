import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A stage with a limited number of loads at a time.
enum LoadStage: Int, Sendable, CaseIterable {
    case fetch, decode, process
}

/// A subscriber of a load: a task of the user, or another load that waits for the result.
enum LoadSubscriber: Identifiable {
    case task(ImageTask)
    /// A load of an image, which waits for encoded bytes or for the image before its last processor.
    case job(LoadImageJob)

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

/// A running load. It owns its subscribers, its place in a queue, and its Swift task.
///
/// Isolated to the pipeline's actor, which holds it in one of its two tables from its first subscriber to its end.
/// Subscribers and the loads that they wait for refer to each other: `input` and the list of subscribers are emptied at
/// the end.
class LoadJob {
    /// Those that wait for the result.
    var subscribers = SubscriberList<LoadSubscriber>()
    /// The task that runs the load or its present step; nil while a load that needs none waits for a slot or for its
    /// bytes. The pipeline cancels it when the last subscriber leaves.
    var task: Task<Void, Never>?
    /// Whether the load is in its table.
    var isRunning = true
    /// Whether the fetch waits until scrolling has settled. True only if all subscribers wait for it.
    var waitsForScrolling: Bool
    /// The place in the queue of a stage; nil while the load does not wait there.
    var place: QueuePlace?

    init(waitsForScrolling: Bool) { self.waitsForScrolling = waitsForScrolling }

    /// The highest priority among the subscribers.
    var priority: LoadPriority { subscribers.priority }
    /// The load that this one waits for.
    var upstream: LoadJob? { nil }
    /// The last reported progress of the fetch that the load waits for.
    var fetchProgress: Session.Progress? { upstream?.fetchProgress }

    /// Calls the closure for all tasks that wait for this load or for a result of it.
    final func forEachTask(_ body: (ImageTask) -> Void) {
        subscribers.visit { subscriber in
            switch subscriber {
            case .task(let task): body(task)
            case .job(let job): job.forEachTask(body)
            }
        }
    }
}

/// The load of an image: decoded, and processed by all of its processors.
final class LoadImageJob: LoadJob {
    /// Another load that this one waits for, with the waiter that its result resumes; nil for a load without a task.
    enum Input {
        case image(LoadImageJob, Waiter<Result<LoadedImage, ImageError>>)
        case data(LoadDataJob, Waiter<Result<EncodedImage, ImageError>>?)
    }

    let key: ImageLoadKey
    /// The request of the first subscriber.
    let request: ImageRequest
    /// The last processor; nil without processors.
    let processor: (any ImageProcessor)?
    /// The load that this one waits for.
    var input: Input?
    /// The cached image that was delivered and is being revalidated.
    var cachedImage: LoadedImage?
    /// The steps of a load that had no task yet: its look-ups, its bytes, and the image decoded from them. The task
    /// takes them in place of its own.
    var lookUps = ImageTrace()
    var bytes: Result<EncodedImage, ImageError>?
    var decoded: Result<StoredImage, ImageError>?
    /// The previews, while bytes arrive.
    var preview: PreviewDecoding?
    /// The priority without subscribers.
    private let ownPriority: LoadPriority

    /// - Parameter priority: The priority of a load without subscribers, whose result a caller awaits in its own task.
    init(
        _ key: ImageLoadKey, _ request: ImageRequest, waitsForScrolling: Bool = true, priority: LoadPriority = .lowest
    ) {
        self.key = key
        self.request = request
        processor = request.processors.isEmpty ? nil : request.steps.last
        ownPriority = priority
        super.init(waitsForScrolling: waitsForScrolling)
    }

    override var priority: LoadPriority { max(ownPriority, subscribers.priority) }

    override var upstream: LoadJob? {
        switch input {
        case .image(let job, _)?: job
        case .data(let job, _)?: job
        case nil: nil
        }
    }

    /// Passes a result to a load that applies a processor to the image.
    func resume(_ dependent: LoadImageJob, with result: Result<LoadedImage, ImageError>) {
        if case .image(let input, let waiter)? = dependent.input, input === self { waiter.resume(returning: result) }
    }
}

/// The load of the encoded bytes of an image, for all image loads that need them.
final class LoadDataJob: LoadJob, Equatable {
    let key: EncodedLoadKey
    /// The request of the first subscriber.
    let request: ImageRequest
    /// The freshness of the cached bytes that are revalidated; nil to load the bytes.
    let cachedFreshness: Freshness?
    /// The chunks of the response; nil if no subscriber shows previews.
    let chunks: ChunkBuffer?
    /// Resumed when scrolling has settled; nil while the load does not wait for it.
    var scrollWaiter: Waiter<Bool>?
    /// The steps of a load that had no task yet: its look-up and its fetch. The task takes them in place of its own.
    var lookUps = ImageTrace()
    var fetched: Result<ImageFetcher.Fetched, ImageError>?
    /// The user as whom the last request was sent.
    var user = ImageUser.unknown
    /// The last progress of the fetch, for later subscribers.
    private var progress: Session.Progress?

    init(_ key: EncodedLoadKey, _ request: ImageRequest, cachedFreshness: Freshness?, chunks: ChunkBuffer?) {
        self.key = key
        self.request = request
        self.cachedFreshness = cachedFreshness
        self.chunks = chunks
        super.init(waitsForScrolling: true)
    }

    override var fetchProgress: Session.Progress? { progress }

    /// Reports the progress of the fetch to all tasks that wait for it.
    func report(_ progress: Session.Progress) {
        self.progress = progress
        forEachTask { $0.report(progress) }
    }

    /// Reports the arrival of all bytes, for tasks that saw no earlier progress.
    func reportWhole(_ data: Data) {
        report(Session.Progress(completedBytes: Int64(data.count), totalBytes: Int64(data.count)))
    }

    /// Calls the closure for all image loads that wait for the bytes.
    func forEachDependent(_ body: (LoadImageJob) -> Void) {
        for case .job(let job) in subscribers.all { body(job) }
    }

    static func == (one: LoadDataJob, other: LoadDataJob) -> Bool { one === other }
}

/// The work and the results that the actor hands to other threads at the end of a turn, in which it handles many
/// messages: one wake-up of a thread then serves many loads.
struct Outbox {
    /// The loads whose fetch begins. Each holds a slot.
    var fetches: [LoadDataJob] = []
    /// The loads whose bytes are decoded. Each holds a slot.
    var decodes: [LoadImageJob] = []
    /// The callers that have a result.
    var callers: [Waiter<Bool>] = []

    /// The number of callers that are resumed together. More would wait for the last of them.
    static let callerLimit = 64
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
