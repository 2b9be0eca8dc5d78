public import Tern
import TernConcurrency

/// A load under way, or over: what it is, how far it is, and its picture.
///
/// Made by `ImagePipeline.task(for:)`, it runs at once, and goes on until it ends or `cancel()` is called: dropping it
/// cancels nothing. A picture that was in memory has arrived before `task(for:)` returns (`current`).
public final class ImageTask: Sendable, Identifiable {
    /// The number of the task, unique in the process.
    public let id: UInt64
    /// What was asked for.
    public let request: ImageRequest
    let key: ImageKey
    /// Told of what the caller does. A pipeline goes with its last task.
    private let pipeline: ImagePipeline
    private let state: Lock<State>
    private let activity: BackgroundActivity?

    private struct State {
        var rank: LoadRank
        var newest = Snapshot()
        var waiters: [Waiter<Result<ImageResponse, ImageError>>] = []
        /// What streams read; nil until there is one: most tasks have none.
        var latest: Latest<Snapshot>?
    }

    static let numbers = SerialNumbers()
    /// Tickets of loads that wait for loads begin here: never the number of a task.
    static let ticketOffset = 1 << 62

    init(_ request: ImageRequest, _ key: ImageKey, _ pipeline: ImagePipeline) {
        id = Self.numbers.next()
        self.request = request
        self.key = key
        self.pipeline = pipeline
        state = Lock(State(rank: LoadRank(request.priority, isVisible: request.isVisible)))
        activity = request.options.continuesInBackground ? BackgroundActivity.begin() : nil
    }

    // MARK: What comes of it

    /// The picture and its origin, as soon as it is there; awaited by any number of callers.
    ///
    /// Of a picture that is revalidated this is the cached one; `responses` gives the changed one too. Cancelling the caller
    /// ends its wait alone, with an error of kind `.cancelled`; `cancel()` ends the task.
    public var response: ImageResponse {
        get async throws(ImageError) { try await response { $0.resume(returning: .failure(.cancelled)) } }
    }

    /// - Parameter cancel: Called if the caller is cancelled while it waits: it resumes, or ends the task, which does.
    func response(
        onCancel cancel: @Sendable (Waiter<Result<ImageResponse, ImageError>>) -> Void
    ) async throws(ImageError) -> ImageResponse {
        let waiter = Waiter<Result<ImageResponse, ImageError>>()
        let known = state.withLock { state -> Result<ImageResponse, ImageError>? in
            if let response = state.newest.result { return response }
            state.waiters.append(waiter)
            return nil
        }
        if let known { return try known.get() }
        let result = await waiter.wait(onCancel: { cancel(waiter) })
        // Who gave up is not told, and not kept.
        if Task.isCancelled { state.withLock { $0.waiters.removeAll { $0 === waiter } } }
        return try result.get()
    }

    /// How many callers wait for `response`.
    var callerCount: Int { state.withLock { $0.waiters.count } }

    /// The picture, as soon as it is there. Otherwise as `response`.
    public var image: RasterImage {
        get async throws(ImageError) { try await response.image }
    }

    /// What has come by now, at once: nil while nothing has.
    public var current: Result<ImageResponse, ImageError>? { state.withLock { $0.newest.result } }

    /// What the picture that has come is made of.
    var shownPixels: PixelBuffer? { state.withLock { $0.newest.response?.image.pixels } }

    /// Whether the task has ended, revalidation included.
    public var isFinished: Bool { state.withLock { $0.newest.end != nil } }

    // MARK: What the caller does

    /// The place among loads that wait; it takes effect on whatever still waits for this task alone or first.
    public var priority: Request.Priority {
        get { state.withLock { $0.rank.priority } }
        set { change { LoadRank(newValue, isVisible: $0.isVisible) } }
    }

    /// Whether the picture is on the screen now.
    public var isVisible: Bool {
        get { state.withLock { $0.rank.isVisible } }
        set { change { LoadRank($0.priority, isVisible: newValue) } }
    }

    var rank: LoadRank { state.withLock { $0.rank } }

    private func change(_ change: (LoadRank) -> LoadRank) {
        let isLive = state.withLock { state in
            let rank = change(state.rank)
            defer { state.rank = rank }
            return state.newest.end == nil && rank != state.rank
        }
        if isLive { pipeline.post(.move(self)) }
    }

    /// Ends the task with an error of kind `.cancelled`, unless it has ended. What nobody else waits for is stopped.
    public func cancel() {
        if end(.failure(.cancelled)) { pipeline.post(.cancel(self)) }
    }

    // MARK: What the pipeline tells

    func report(_ progress: Session.Progress) {
        tell { newest in
            guard !newest.hasProgress || progress.completedBytes >= newest.progress.completedBytes else { return false }
            newest.progress = progress
            newest.hasProgress = true
            return true
        }
    }

    func preview(_ image: RasterImage) {
        tell { newest in
            guard newest.responseCount == 0 else { return false }
            newest.preview = image
            newest.previewCount += 1
            return true
        }
    }

    /// A picture after which the task may go on.
    func deliver(_ response: ImageResponse) {
        tell { newest in
            newest.add(response)
            return true
        }
    }

    /// The end, with the last picture, or with none if one was delivered before.
    @discardableResult
    func end(_ result: Result<ImageResponse?, ImageError>) -> Bool {
        let isFirst = tell { newest in
            newest.end(result)
            return true
        }
        if isFirst { activity?.end() }
        return isFirst
    }

    /// Changes the newest state unless the task has ended, and has those who wait and the streams hear of it.
    ///
    /// What comes before the end is told by one thread at a time; the end by any, and what streams are told after it by
    /// another has no effect.
    @discardableResult
    private func tell(_ change: (inout Snapshot) -> Bool) -> Bool {
        let told = state.withLock { state -> Told? in
            guard state.newest.end == nil, change(&state.newest) else { return nil }
            var told = Told(latest: state.latest, newest: state.latest == nil ? nil : state.newest)
            if !state.waiters.isEmpty, let result = state.newest.result {
                told.result = result
                swap(&told.waiters, &state.waiters)
            }
            return told
        }
        guard let told else { return false }
        if let latest = told.latest, let newest = told.newest {
            if newest.end == nil { latest.update { _ in newest } } else { latest.finish { _ in newest } }
        }
        if let result = told.result { for waiter in told.waiters { waiter.resume(returning: result) } }
        return true
    }

    private struct Told {
        let latest: Latest<Snapshot>?
        let newest: Snapshot?
        var result: Result<ImageResponse, ImageError>?
        var waiters: [Waiter<Result<ImageResponse, ImageError>>] = []
    }

    /// What streams read, from the first one on.
    var latest: Latest<Snapshot> {
        state.withLock { state in
            if let latest = state.latest { return latest }
            let latest = Latest(state.newest)
            if state.newest.end != nil { latest.finish { $0 } }
            state.latest = latest
            return latest
        }
    }
}

extension ImageTask: CustomReflectable {
    /// The number and the request, without secrets. Without this mirror, `dump` would show the key and, with it, the
    /// whole URL.
    public var customMirror: Mirror { Mirror(self, children: ["id": id, "request": request]) }
}
