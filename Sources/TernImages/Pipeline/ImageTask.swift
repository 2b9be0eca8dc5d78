public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The load of an image: its request, its progress, and its result.
///
/// Created by `ImagePipeline.task(for:)`, it runs at once, until it ends or `cancel()` is called: releasing the task
/// does not cancel it. An image that was in memory is available before `task(for:)` returns (`current`).
public final class ImageTask: Sendable, Identifiable {
    /// A number that identifies the task, unique in the process.
    public let id: UInt64
    /// The request that the task loads.
    public let request: ImageRequest
    /// The identity of the first load that the task subscribes to; nil for an image from memory, without a load.
    private let firstKey: ImageLoadKey?
    /// The sources of a request with alternatives; nil for another one.
    private let attempts: SourceAttempts?
    /// The pipeline that loads. It lives at least as long as its tasks.
    private let pipeline: ImagePipeline
    private let state: Lock<State>
    /// The time in the background that the load holds until its end; nil for none.
    private let backgroundTime: BackgroundTime?

    private struct State {
        var priority: LoadPriority
        var newest = Snapshot()
        /// Resumed with true when there is a result, or with false when the caller is cancelled.
        var waiters: [Waiter<Bool>] = []
        /// The source of the streams; nil until the first stream, because most tasks have none.
        var latest: Latest<Snapshot>?
    }

    static let numbers = SerialNumbers()

    /// Creates a task that has ended, without a load.
    init(_ request: ImageRequest, result: Result<ImageResponse, ImageError>, pipeline: ImagePipeline) {
        id = Self.numbers.next()
        self.request = request
        firstKey = nil
        attempts = nil
        self.pipeline = pipeline
        var state = State(priority: LoadPriority(request.priority, isVisible: request.isVisible))
        state.newest.end(result.map { $0 })
        self.state = Lock(state)
        backgroundTime = nil
    }

    init(_ request: ImageRequest, loadKey: ImageLoadKey, attempts: SourceAttempts?, pipeline: ImagePipeline) {
        id = Self.numbers.next()
        self.request = request
        firstKey = loadKey
        self.attempts = attempts
        self.pipeline = pipeline
        state = Lock(State(priority: LoadPriority(request.priority, isVisible: request.isVisible)))
        backgroundTime = request.options.continuesInBackground ? pipeline.configuration.backgroundTime : nil
        backgroundTime?.beginLoad()
    }

    /// The identity of the load that the task subscribes to; nil for an image from memory, without a load.
    var loadKey: ImageLoadKey? { attempts?.key ?? firstKey }
    /// The request with the source that is tried now, and without alternatives.
    var sentRequest: ImageRequest { attempts?.request ?? request }

    // MARK: Result

    /// The image and its origin, as soon as it is available. Any number of callers may wait.
    ///
    /// For an image that is revalidated, this is the cached one; `responses` also gives the changed one. Cancelling the
    /// caller only ends its own wait, with an error of kind `.cancelled`; `cancel()` ends the task.
    public var response: ImageResponse {
        get async throws(ImageError) { try await response { $0.resume(returning: false) } }
    }

    /// Returns the response, as soon as it is available.
    ///
    /// - Parameter cancel: Called if the caller is cancelled while it waits. It must resume the waiter with false, or
    ///   end the task, which resumes it.
    func response(onCancel cancel: @Sendable (Waiter<Bool>) -> Void) async throws(ImageError) -> ImageResponse {
        // A load that has ended, often one from memory, needs no waiter.
        if let known = state.withLock({ $0.newest.result }) { return try known.get() }
        let waiter = Waiter<Bool>()
        let known = state.withLock { state -> Result<ImageResponse, ImageError>? in
            if let result = state.newest.result { return result }
            state.waiters.append(waiter)
            return nil
        }
        if let known { return try known.get() }
        if await waiter.wait(onCancel: { cancel(waiter) }), let result = state.withLock({ $0.newest.result }) {
            return try result.get()
        }
        // A cancelled caller must not stay in the list.
        state.withLock { $0.waiters.removeAll { $0 === waiter } }
        throw .cancelled
    }

    /// The number of callers that wait for `response`.
    var callerCount: Int { state.withLock { $0.waiters.count } }

    /// The image, as soon as it is available. Otherwise like `response`.
    public var image: RasterImage {
        get async throws(ImageError) { try await response.image }
    }

    /// The result so far, without waiting; nil while there is none.
    public var current: Result<ImageResponse, ImageError>? { state.withLock { $0.newest.result } }

    /// A Boolean value that indicates whether the task has ended, revalidation included.
    public var isFinished: Bool { state.withLock { $0.newest.end != nil } }

    /// The progress to show before an image, whose fraction is 1. It has the bytes that were fetched, or 0 of 0 without a
    /// fetch.
    package var wholeProgress: Session.Progress { state.withLock { $0.newest.wholeProgress } }

    // MARK: Control

    /// The priority among the loads that wait. A change applies to the load if no other subscriber has a higher
    /// priority.
    public var priority: Request.Priority {
        get { state.withLock { $0.priority.requested } }
        set { changePriority { LoadPriority(newValue, isVisible: $0.isVisible) } }
    }

    /// A Boolean value that indicates whether the image is on the screen now.
    public var isVisible: Bool {
        get { state.withLock { $0.priority.isVisible } }
        set { changePriority { LoadPriority($0.requested, isVisible: newValue) } }
    }

    /// The priority and visibility together.
    var priorityInQueue: LoadPriority { state.withLock { $0.priority } }

    private func changePriority(_ change: (LoadPriority) -> LoadPriority) {
        let isChanged = state.withLock { state in
            let priority = change(state.priority)
            defer { state.priority = priority }
            return state.newest.end == nil && priority != state.priority
        }
        if isChanged { pipeline.send(.changePriority(self)) }
    }

    /// Ends the task with an error of kind `.cancelled`, unless it has ended. Work without another subscriber is
    /// stopped.
    public func cancel() {
        if end({ _ in .failure(.cancelled) }) { pipeline.send(.cancel(self)) }
    }

    // MARK: Updates from the pipeline

    func report(_ progress: Session.Progress) {
        update { newest in
            guard !newest.hasProgress || progress.completedBytes >= newest.progress.completedBytes else { return false }
            newest.progress = progress
            newest.hasProgress = true
            return true
        }
    }

    func show(preview image: RasterImage) {
        update { newest in
            guard newest.responseCount == 0 else { return false }
            newest.preview = image
            newest.previewCount += 1
            return true
        }
    }

    /// Delivers an image of a load, after which the task may continue.
    ///
    /// Returns false if the request rejects the image; the task has ended then.
    @discardableResult
    func deliver(_ response: ImageResponse) -> Bool {
        let response = attempts?.marked(response) ?? response
        if let error = failure(after: .success(response)) {
            end { _ in .failure(error) }
            return false
        }
        update { newest in
            newest.add(response)
            return true
        }
        return true
    }

    /// Returns the last result of a load for the task; nil if another source is tried instead, which the caller must
    /// begin.
    func outcome(of result: Result<ImageResponse, ImageError>) -> Result<ImageResponse, ImageError>? {
        guard let attempts else { return result }
        switch result {
        case .success(let response): return .success(attempts.marked(response))
        case .failure(let error):
            // A failed revalidation keeps the delivered image.
            guard !isFinished, current == nil else { return result }
            if let error = attempts.next(after: error, in: pipeline) { return .failure(error) }
            update { $0.beginAgain() }
            return nil
        }
    }

    /// Ends the task with the last result of its load, and adds the callers that wait for one to the list: the caller
    /// must resume them.
    func finish(_ result: Result<ImageResponse, ImageError>, callers: inout [Waiter<Bool>]) {
        let failure = failure(after: result)
        end(callers: &callers) { newest in
            // A failed revalidation keeps the delivered image.
            if case .failure = result, newest.response != nil { return .success(nil) }
            if let failure { return .failure(failure) }
            // The same image may have been delivered from memory before the load began.
            return result.map { $0.image.pixels === newest.response?.image.pixels ? nil : $0 }
        }
    }

    /// Ends the task with the image that was delivered before.
    func finish() { end { _ in .success(nil) } }

    /// Returns the error of the task after a result: that of the load, or that of an image that the request rejects; nil
    /// for an image that it accepts.
    private func failure(after result: Result<ImageResponse, ImageError>) -> ImageError? {
        let error: ImageError? =
            switch result {
            case .success(let response): response.stored.rejection(by: request.options)
            case .failure(let error): error
            }
        return error?.from(sentRequest.source.description)
    }

    /// Ends the task with the last image, or with nil if one was delivered before. Returns false if the task had ended.
    @discardableResult
    private func end(_ result: (Snapshot) -> Result<ImageResponse?, ImageError>) -> Bool {
        var callers: [Waiter<Bool>] = []
        defer { for caller in callers { caller.resume(returning: true) } }
        return end(callers: &callers, result)
    }

    @discardableResult
    private func end(
        callers: inout [Waiter<Bool>], _ result: (Snapshot) -> Result<ImageResponse?, ImageError>
    ) -> Bool {
        let isFirst = update(callers: &callers) { newest in
            newest.end(result(newest))
            return true
        }
        if isFirst { backgroundTime?.endLoad() }
        return isFirst
    }

    /// Changes the newest state unless the task has ended, and notifies callers and streams.
    private func update(_ change: (inout Snapshot) -> Bool) {
        var callers: [Waiter<Bool>] = []
        update(callers: &callers, change)
        for caller in callers { caller.resume(returning: true) }
    }

    /// Changes the newest state unless the task has ended, notifies streams, and adds the callers to notify to the
    /// list.
    ///
    /// Updates before the end come from one thread at a time; the end comes from any thread. An update that reaches the
    /// streams after the end has no effect.
    @discardableResult
    private func update(callers: inout [Waiter<Bool>], _ change: (inout Snapshot) -> Bool) -> Bool {
        let notifications = state.withLock { state -> PendingNotifications? in
            guard state.newest.end == nil, change(&state.newest) else { return nil }
            var pending = PendingNotifications(latest: state.latest, newest: state.latest == nil ? nil : state.newest)
            if !state.waiters.isEmpty, state.newest.hasResult { swap(&pending.waiters, &state.waiters) }
            return pending
        }
        guard let notifications else { return false }
        if let latest = notifications.latest, let newest = notifications.newest {
            if newest.end == nil { latest.update { _ in newest } } else { latest.finish { _ in newest } }
        }
        callers += notifications.waiters
        return true
    }

    /// The notifications to send after the lock is released.
    private struct PendingNotifications {
        let latest: Latest<Snapshot>?
        let newest: Snapshot?
        /// Resumed with true when there is a result, or with false when the caller is cancelled.
        var waiters: [Waiter<Bool>] = []
    }

    /// The source of the streams. The first access creates it.
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
