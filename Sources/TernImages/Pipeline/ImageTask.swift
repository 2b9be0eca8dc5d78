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
    let latest: Latest<Snapshot>
    private let activity: BackgroundActivity?

    private struct State {
        var rank: LoadRank
        var response: Result<ImageResponse, ImageError>?
        var isFinished = false
        var waiters: [Waiter<Result<ImageResponse, ImageError>>] = []
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
        latest = Latest(Snapshot())
        activity = request.options.continuesInBackground ? BackgroundActivity.begin() : nil
    }

    // MARK: What comes of it

    /// The picture and its origin, as soon as it is there; awaited by any number of callers.
    ///
    /// Of a picture that is revalidated this is the cached one; `responses` gives the changed one too. Cancelling the caller
    /// ends its wait alone, with an error of kind `.cancelled`; `cancel()` ends the task.
    public var response: ImageResponse {
        get async throws(ImageError) {
            let waiter = Waiter<Result<ImageResponse, ImageError>>()
            let known = state.withLock { state -> Result<ImageResponse, ImageError>? in
                if let response = state.response { return response }
                state.waiters.append(waiter)
                return nil
            }
            if let known { return try known.get() }
            let result = await waiter.wait(cancelled: .failure(.cancelled))
            // Who gave up is not told, and not kept.
            if Task.isCancelled { state.withLock { $0.waiters.removeAll { $0 === waiter } } }
            return try result.get()
        }
    }

    /// How many callers wait for `response`.
    var callerCount: Int { state.withLock { $0.waiters.count } }

    /// The picture, as soon as it is there. Otherwise as `response`.
    public var image: RasterImage {
        get async throws(ImageError) { try await response.image }
    }

    /// What has come by now, at once: nil while nothing has.
    public var current: Result<ImageResponse, ImageError>? { state.withLock { $0.response } }

    /// Whether the task has ended, revalidation included.
    public var isFinished: Bool { state.withLock { $0.isFinished } }

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
            return !state.isFinished && rank != state.rank
        }
        if isLive { pipeline.post(.move(self)) }
    }

    /// Ends the task with an error of kind `.cancelled`, unless it has ended. What nobody else waits for is stopped.
    public func cancel() {
        if end(.failure(.cancelled)) { pipeline.post(.cancel(self)) }
    }

    // MARK: What the pipeline tells

    func report(_ progress: Session.Progress) {
        latest.update { snapshot in
            guard !snapshot.hasProgress || progress.completedBytes >= snapshot.progress.completedBytes else {
                return nil
            }
            var next = snapshot
            next.progress = progress
            next.hasProgress = true
            return next
        }
    }

    func preview(_ image: RasterImage) {
        latest.update { snapshot in
            guard snapshot.responseCount == 0 else { return nil }
            var next = snapshot
            next.preview = image
            next.previewCount += 1
            return next
        }
    }

    /// A picture after which the task may go on.
    func deliver(_ response: ImageResponse) {
        let waiters = take(.success(response), ends: false)
        guard let waiters else { return }
        latest.update { Self.adding(response, to: $0) }
        for waiter in waiters { waiter.resume(returning: .success(response)) }
    }

    /// The end, with the last picture, or with none if one was delivered before.
    @discardableResult
    func end(_ result: Result<ImageResponse?, ImageError>) -> Bool {
        let response: Result<ImageResponse, ImageError>? =
            switch result {
            case .success(let response): response.map { .success($0) }
            case .failure(let error): .failure(error)
            }
        guard let waiters = take(response, ends: true) else { return false }
        activity?.end()
        latest.finish { snapshot in
            var next = snapshot
            if case .success(let response?) = result { next = Self.adding(response, to: next) }
            next.end = result.map { _ in }
            // The last piece is not told of by itself.
            let (done, total) = (next.progress.completedBytes, next.progress.totalBytes)
            let isWhole = if case .success = result { true } else { false }
            next.progress = Session.Progress(
                completedBytes: isWhole ? total ?? done : done, totalBytes: total, isFinished: true)
            return next
        }
        if let response { for waiter in waiters { waiter.resume(returning: response) } }
        return true
    }

    /// Those who wait and are to be told; nil if the task has ended before.
    private func take(
        _ response: Result<ImageResponse, ImageError>?, ends: Bool
    ) -> [Waiter<Result<ImageResponse, ImageError>>]? {
        state.withLock { state in
            guard !state.isFinished else { return nil }
            state.isFinished = ends
            // A failure after a picture was delivered leaves the picture what it is.
            if let response {
                if case .success = response {
                    state.response = response
                } else {
                    state.response = state.response ?? response
                }
            }
            defer { state.waiters = [] }
            return state.waiters
        }
    }

    private static func adding(_ response: ImageResponse, to snapshot: Snapshot) -> Snapshot {
        var next = snapshot
        next.response = response
        next.responseCount += 1
        next.preview = nil
        return next
    }
}
