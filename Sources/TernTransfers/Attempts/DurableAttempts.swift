import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The decisions that the traces of downloads and uploads have in common.
protocol DurableEvent: Sendable {
    /// Whether the transfer sends its file.
    static var isUpload: Bool { get }
    /// The decision to continue with a new URL; nil for a transfer that is never given one.
    static var urlReplacement: Self? { get }
    static var waitedForNetwork: Self { get }
    static var paused: Self { get }
    static var resumed: Self { get }
    static func failed(_ error: String) -> Self
    static func waited(_ delay: Duration) -> Self
}

/// The attempts of one durable transfer: its requests, the waits between them, and the texts of its errors.
///
/// The actor of the transfer decides what an attempt does. The handle and the queue of the transfer read its state from
/// any thread, at any time and without a wait for that actor, which can be busy with a file. So the state is behind a
/// lock. All segments of a download share it.
final class DurableAttempts<Event: DurableEvent, Value: Sendable>: Sendable {
    /// The state that the handle shows and that each attempt changes.
    private struct State {
        var request: Result<Request, NetworkError>
        var count = 0
        /// The number of failed attempts, with those of all segments.
        var failedCount = 0
        var movedBytes: Int64 = 0
        var trace: [Event] = []
        var wait: TransferWait?
        var endedOffline = false
        var lifecycle = TransferLifecycle()
        /// The end of the run that a pause has ended; nil while the transfer runs.
        var interruption: Result<Value, NetworkError>?
        /// The task that executes the transfer. Owned here, cancelled by `cancel` and by `pause`.
        var driver: Task<Void, Never>?
        /// The number of runs that have begun: one, and one more for each pause.
        var runCount = 0
    }

    let session: Session
    let time: TransferTime
    let meter = ProgressMeter()
    let states = Latest(Session.TaskState.running)
    /// Whether a later run or process continues what this one has moved.
    let continues: Bool
    let outcome = TaskValue<Value>()
    /// The request that the caller made.
    let firstRequest: Result<Request, NetworkError>
    private let newURL: (@Sendable (NetworkError) async throws -> URL)?
    private let state: Lock<State>

    /// The number of decisions that are kept: the newest ones.
    private static var traceLimit: Int { 1_000 }

    /// Creates the attempts of a transfer that has not begun.
    ///
    /// - Parameters:
    ///   - newURL: Returns another URL in place of one that the server has refused; nil if there is none.
    ///   - continues: Whether a later run or process continues what this one has moved.
    init(
        _ request: Result<Request, NetworkError>, session: Session, retry: TransferRetry,
        clock: some Clock<Duration>, newURL: (@Sendable (NetworkError) async throws -> URL)? = nil,
        continues: Bool = true
    ) {
        firstRequest = request
        self.continues = continues
        self.session = session
        time = TransferTime(clock, maximum: retry.maximumTime)
        self.newURL = newURL
        state = Lock(State(request: request))
    }

    // A paused transfer without a handle can never be resumed. Its readers are not left waiting.
    deinit {
        if taskState.isTerminal { return }
        meter.finish()
        states.finish { _ in .cancelled }
        outcome.deliver(.failure(cancellation))
    }

    // MARK: The transfer

    /// The work of a transfer, from where the last run has left it.
    typealias Perform = @Sendable () async throws(NetworkError) -> Value

    /// Starts a task that performs the transfer, and delivers its end.
    ///
    /// - Parameter actor: The actor of the transfer, on which its end is delivered without another thread.
    func start(on actor: any Actor, _ perform: @escaping Perform) {
        let number = state.withLock { state in
            state.runCount += 1
            return state.runCount
        }
        // Owned here and cancelled by `cancel`; it ends with the transfer.
        let task: Task<Void, Never>
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            // Without a detour over the threads of the global executor.
            task = .immediate { await self.run(isolation: actor, perform) }
        } else {
            task = Task { await self.run(isolation: actor, perform) }
        }
        let isInterrupted = state.withLock { state in
            // This run can have ended, and another one can have begun.
            guard state.runCount == number else { return false }
            state.driver = task
            return state.lifecycle.isInterrupted
        }
        if isInterrupted { task.cancel() }
    }

    private func run(isolation: isolated any Actor, _ perform: @escaping Perform) async {
        let result = await Result(perform)
        let end: Session.TaskState =
            switch result {
            case .success: .completed
            case .failure(let error): error.isCancelled ? .cancelled : .failed
            }
        let action = state.withLock { state in
            state.driver = nil
            let action = state.lifecycle.runEnded(end)
            if action == .none { state.interruption = result }
            return action
        }
        switch action {
        case .deliver: deliver(result)
        case .start: start(on: isolation, perform)
        case .none, .interrupt: break
        }
    }

    private func deliver(_ result: Result<Value, NetworkError>) {
        meter.finish()
        let state = state.withLock { $0.lifecycle.state }
        states.finish { _ in state }
        outcome.deliver(result)
    }

    /// Ends the transfer. One that is paused ends at once.
    func cancel() {
        let (action, driver, interruption) = state.withLock { state in
            (state.lifecycle.cancel(), state.driver, state.interruption)
        }
        switch action {
        case .interrupt: driver?.cancel()
        case .deliver: deliver(interruption ?? .failure(cancellation))
        case .none, .start: break
        }
    }

    /// Ends the run, so that the transfer holds nothing until it is resumed.
    func pause() {
        let (action, driver) = change { $0.pause() }
        if action == .interrupt { driver?.cancel() }
    }

    /// Begins another run of a paused transfer.
    func resume(on actor: any Actor, _ perform: @escaping Perform) {
        let (action, _) = change { $0.resume() }
        if action == .start { start(on: actor, perform) }
    }

    /// Performs a command, and shows the new state.
    private func change(
        _ command: (inout TransferLifecycle) -> TransferLifecycle.Action
    ) -> (TransferLifecycle.Action, driver: Task<Void, Never>?) {
        let (hasChanged, action, driver) = state.withLock { state in
            let before = state.lifecycle.state
            let action = command(&state.lifecycle)
            let hasChanged = state.lifecycle.state != before
            // Under the lock, so that the time and the trace have the order of the commands.
            if hasChanged {
                let isPaused = state.lifecycle.state == .suspended
                if isPaused { time.pause() } else { time.resume() }
                Self.add([isPaused ? .paused : .resumed], to: &state.trace)
            }
            return (hasChanged, action, state.driver)
        }
        if hasChanged {
            meter.taskPausedOrResumed()
            // Of two calls at the same time, each shows the state after both.
            states.update { _ in self.taskState }
        }
        return (action, driver)
    }

    /// Whether the transfer is paused, and holds nothing any more.
    var isPaused: Bool { state.withLock { $0.lifecycle.isPaused } }

    /// The state that a handle shows.
    var taskState: Session.TaskState { state.withLock { $0.lifecycle.state } }

    /// The decisions so far, oldest first.
    var trace: [Event] { state.withLock { $0.trace } }

    /// Adds decisions to the trace.
    func record(_ events: Event...) { state.withLock { Self.add(events, to: &$0.trace) } }

    private static func add(_ events: [Event], to trace: inout [Event]) {
        trace += events
        let excess = trace.count - traceLimit
        if excess > 0 { trace.removeFirst(excess) }
    }

    /// The reason for which no bytes move at present; nil for none.
    var wait: TransferWait? { state.withLock { $0.lifecycle.isInterrupted ? nil : $0.wait } }

    /// Whether the transfer has ended because there is no network, for which its queue waits.
    var endedOffline: Bool { state.withLock { $0.endedOffline } }

    /// The number of bytes that were received or sent, some of them more than once.
    var movedBytes: Int64 { state.withLock { $0.movedBytes } }

    /// Counts bytes that were received or sent.
    func addMoved(_ count: Int64) { state.withLock { $0.movedBytes += count } }

    // MARK: Requests

    /// The request of the next attempt. The caller or the queue can have given it another URL.
    var request: Result<Request, NetworkError> { state.withLock { $0.request } }

    /// Replaces the request of the next attempt.
    func setRequest(_ request: Request) { state.withLock { $0.request = .success(request) } }

    /// The number of attempts, without those that only waited for the network or a descriptor.
    var count: Int { state.withLock { $0.count } }

    /// Counts an attempt that begins.
    func begin() { state.withLock { $0.count += 1 } }

    /// Returns a request as an attempt sends it: past caches and interceptors that retry, within the rest of the time.
    func prepared(_ request: Request) throws(NetworkError) -> Request {
        // A transfer that was paused between two attempts sends nothing more.
        if Task.isCancelled { throw cancellation }
        var request = request
        if let rest = time.remaining.map({ max(.milliseconds(1), $0) }) {
            // The attempt that runs when the time is over ends, too.
            request.timeouts.total = min(rest, request.timeouts(in: session.configuration.timeouts).total ?? rest)
        }
        request.cache = .noStore
        request.isRetriedByCaller = true
        return request
    }

    // MARK: The time between two attempts

    /// Waits after a failed attempt as the rules say, or throws its error. Returns the rules for the next failure.
    ///
    /// - Parameter failure: The facts on the attempt. Its request is that with which the attempt began. The time and
    ///   the network are filled in here.
    func next(
        _ schedule: RetrySchedule, after failure: RetrySchedule.Failure
    ) async throws(NetworkError) -> RetrySchedule {
        let error = failure.error
        guard !error.isCancelled, !Task.isCancelled else { throw error }
        var schedule = schedule
        switch decide(&schedule, failure) {
        case .giveUp(let reason):
            throw reason.map { error.adding($0) } ?? error
        case .endOffline:
            state.withLock { $0.endedOffline = true }
            throw error
        case .retry(let delay):
            record(.failed("\(error)"), .waited(delay))
            try await wait(.delay(delay)) { () throws(NetworkError) in try await sleep(delay) }
        case .waitForDescriptor(let delay):
            record(.failed("\(error)"), .waited(delay))
            try await waitWithoutAttempt(&schedule, for: .descriptor(nextTrial: delay)) { () throws(NetworkError) in
                try await sleep(delay)
            }
        case .waitForNetwork(let limit):
            record(.failed("\(error)"), .waitedForNetwork)
            let reason = TransferWait.route(host: failure.request.target.host, nextTrial: limit)
            try await waitWithoutAttempt(&schedule, for: reason) { () throws(NetworkError) in
                _ = await session.configuration.reachability.returns(within: limit, sleep: time.sleep)
                if Task.isCancelled { throw cancellation }
            }
        case .replaceURL:
            record(.failed("\(error)"))
            try await replaceURL(after: failure)
        }
        return schedule
    }

    private func decide(_ schedule: inout RetrySchedule, _ failure: RetrySchedule.Failure) -> RetrySchedule.Action {
        var failure = failure
        failure.hasNetwork = !session.configuration.reachability.isOffline(to: failure.request.target)
        failure.canReplaceURL = newURL != nil
        (failure.elapsed, failure.random) = (time.elapsed(), Double.random(in: 0...1))
        schedule.failedAttempts = state.withLock { $0.failedCount }
        let action = schedule.decide(failure)
        let failedCount = schedule.failedAttempts
        state.withLock { $0.failedCount = failedCount }
        return action
    }

    /// Does `body`, and shows the reason of the wait meanwhile.
    private func wait(
        _ reason: TransferWait, _ body: () async throws(NetworkError) -> Void
    ) async throws(NetworkError) {
        state.withLock { $0.wait = reason }
        defer { state.withLock { $0.wait = nil } }
        try await body()
    }

    /// Waits for a reason outside of the transfer. The attempt before does not count, nor does the time.
    private func waitWithoutAttempt(
        _ schedule: inout RetrySchedule, for reason: TransferWait, _ body: () async throws(NetworkError) -> Void
    ) async throws(NetworkError) {
        let start = time.elapsed()
        // Also if a pause ends the wait.
        defer { state.withLock { $0.count -= 1 } }
        try await wait(reason, body)
        schedule.addOfflineTime(time.elapsed() - start)
    }

    /// Asks the caller for another URL, unless another segment has got one since the attempt began. Secret headers go
    /// to the origin that they were meant for.
    private func replaceURL(after failure: RetrySchedule.Failure) async throws(NetworkError) {
        var request = try request.get()
        if request.target.string != failure.request.target.string { return }
        guard let newURL, let event = Event.urlReplacement else { throw failure.error }
        do {
            try request.move(to: try Target(try await Self.url(after: failure.error, newURL)))
        } catch {
            throw failure.error.adding("no new URL could be made: \(error)")
        }
        setRequest(request)
        record(event)
    }

    /// Calls the function of the caller, off the thread of the files.
    @concurrent
    private static func url(
        after failure: NetworkError, _ newURL: @Sendable (NetworkError) async throws -> URL
    ) async throws -> URL {
        try await newURL(failure)
    }

    /// Waits for a time, or throws that the transfer was cancelled.
    func sleep(_ duration: Duration) async throws(NetworkError) {
        do {
            try await time.sleep(duration)
        } catch {
            throw cancellation
        }
    }
}
