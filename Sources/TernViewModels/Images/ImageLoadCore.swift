import TernConcurrency
import TernImages

/// What of a view's load outlives the main actor: its task, its one result, and who awaits it. A view may end on any thread.
final class ImageLoadCore: Sendable {
    private struct State {
        var result: Result<ImageResponse, ImageError>?
        var task: ImageTask?
        var drivers: [Task<Void, Never>] = []
        var waiters: [Waiter<Void>] = []
    }

    private let state = Lock(State())

    var result: Result<ImageResponse, ImageError>? { state.withLock { $0.result } }
    var task: ImageTask? { state.withLock { $0.task } }

    func begin(_ task: ImageTask) {
        let isOver = state.withLock { state in
            state.task = task
            return state.result != nil
        }
        if isOver { task.cancel() }
    }

    /// Runs work in a Swift task that ends with the load.
    @MainActor
    func drive(_ work: @escaping @MainActor () async -> Void) {
        // Owned here, cancelled at the end.
        let driver = Task { await work() }
        let isOver = state.withLock { state in
            if state.result == nil { state.drivers.append(driver) }
            return state.result != nil
        }
        if isOver { driver.cancel() }
    }

    /// The end; false if it has ended before.
    @discardableResult
    func finish(_ result: Result<ImageResponse, ImageError>) -> Bool {
        let ended = state.withLock { state -> State? in
            guard state.result == nil else { return nil }
            state.result = result
            defer { (state.drivers, state.waiters) = ([], []) }
            return state
        }
        guard let ended else { return false }
        for driver in ended.drivers { driver.cancel() }
        for waiter in ended.waiters { waiter.resume() }
        return true
    }

    /// The end, and that of the task.
    @discardableResult
    func cancel() -> Bool {
        let isFirst = finish(.failure(Self.cancellation))
        if isFirst { task?.cancel() }
        return isFirst
    }

    func value() async throws(ImageError) -> ImageResponse {
        let waiter = Waiter<Void>()
        let isOver = state.withLock { state in
            if state.result == nil { state.waiters.append(waiter) }
            return state.result != nil
        }
        if !isOver {
            await waiter.wait()
            state.withLock { state in state.waiters.removeAll { $0 === waiter } }
        }
        guard let result else {
            throw ImageError(.cancelled, "the wait for the picture was cancelled; its load goes on")
        }
        return try result.get()
    }

    private static let cancellation = ImageError(
        .cancelled, "the view's load was cancelled, or another took its place, or the view has ended")
}
