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
    /// Told of what the caller does; nil once the task has begun ended.
    private let pipeline: ImagePipeline
    private let state: Lock<State>
    private let latest: Latest<Snapshot>

    private struct State {
        var rank: LoadRank
        var response: Result<ImageResponse, ImageError>?
        var isFinished = false
        var waiters: [Waiter<Result<ImageResponse, ImageError>>] = []
    }

    /// Everything that streams tell, in its newest form.
    struct Snapshot: Sendable {
        var progress = Session.Progress()
        var hasProgress = false
        var previewCount = 0
        var preview: RasterImage?
        var responseCount = 0
        var response: ImageResponse?
        var end: Result<Void, ImageError>?
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
            return try await waiter.wait(cancelled: .failure(.cancelled)).get()
        }
    }

    /// The picture, as soon as it is there. Otherwise as `response`.
    public var image: RasterImage {
        get async throws(ImageError) { try await response.image }
    }

    /// What has come by now, at once: nil while nothing has.
    public var current: Result<ImageResponse, ImageError>? { state.withLock { $0.response } }

    /// Whether the task has ended, revalidation included.
    public var isFinished: Bool { state.withLock { $0.isFinished } }

    /// How far the fetch is, the current element first, the last one in any case. A picture from a cache has none but the
    /// last. Each access gives a stream of its own.
    public var progress: AsyncStream<Session.Progress> {
        changes { old, new in
            if new.end != nil { return [new.progress] }
            return new.hasProgress && new.progress != old.progress ? [new.progress] : []
        }
    }

    /// The previews of a progressive load, each better than the one before; a slow reader gets the newest. Ends with the
    /// task. Each access gives a stream of its own.
    public var previews: AsyncStream<RasterImage> {
        changes { old, new in
            guard new.previewCount > old.previewCount, new.end == nil, let preview = new.preview else { return [] }
            return [preview]
        }
    }

    /// The pictures in the order in which they come: one, or for a stale one that has changed two. Ends with the task; a
    /// failure is told by `events` and `response`.
    public var responses: AsyncStream<ImageResponse> {
        changes { old, new in
            guard new.responseCount > old.responseCount, let response = new.response else { return [] }
            return [response]
        }
    }

    /// All that happens, the newest of each kind for a slow reader; `.finished` comes last, in any case and once. Each
    /// access gives a stream of its own, which begins with what there is.
    public var events: AsyncStream<Event> {
        changes { old, new in
            var events: [Event] = []
            if new.hasProgress, new.progress != old.progress, new.responseCount == 0 {
                events.append(.progress(new.progress))
            }
            if new.previewCount > old.previewCount, new.responseCount == 0, let preview = new.preview {
                events.append(.preview(preview))
            }
            if new.responseCount > old.responseCount, let response = new.response { events.append(.response(response)) }
            if let end = new.end {
                switch end {
                case .success: events.append(.finished(nil))
                case .failure(let error): events.append(.finished(error))
                }
            }
            return events
        }
    }

    /// Something that happens to a load.
    public enum Event: Sendable {
        /// More bytes have come.
        case progress(Session.Progress)
        /// A picture of less than all bytes.
        case preview(RasterImage)
        /// The picture; a second one if it has changed since it was cached.
        case response(ImageResponse)
        /// The end; the error if it failed, of kind `.cancelled` if it was cancelled.
        case finished(ImageError?)
    }

    private func changes<Element: Sendable>(
        _ elements: @escaping @Sendable (Snapshot, Snapshot) -> [Element]
    ) -> AsyncStream<Element> {
        let reader = ChangeReader(latest.stream(), elements)
        return AsyncStream { await reader.next() }
    }

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
        latest.finish { snapshot in
            var next = snapshot
            if case .success(let response?) = result { next = Self.adding(response, to: next) }
            next.end = result.map { _ in }
            next.progress = Session.Progress(
                completedBytes: next.progress.completedBytes, totalBytes: next.progress.totalBytes,
                bytesPerSecond: next.progress.bytesPerSecond, isFinished: true)
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
