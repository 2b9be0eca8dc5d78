import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Owns the connections of an event stream, one after the other. The reader of the events drives it: nothing is read,
/// and no connection is made, unless the reader asks for events.
actor EventSource {
    /// A connection whose response was accepted.
    private struct Connection {
        var chunks: ResponseStream.Chunks.Iterator
        let openedAt: Duration
    }

    /// A time limit that runs while the reader waits for a connection.
    struct Watch {
        let number: Int
        let limit: Duration
        let kind: NetworkError.Kind
        /// The start of the wait; nil while nobody waits.
        var start: Duration?
        var isExceeded = false
    }

    /// The reason why a wait for the next attempt has ended.
    private enum Wake {
        case elapsed, closed, cancelled
    }

    nonisolated let session: Session
    /// The request; an error if it cannot be created.
    nonisolated let request: Result<Request, NetworkError>
    nonisolated let states = Latest(EventStreamState.connecting)
    /// The events that a reader received and did not deliver, for the next reader.
    nonisolated let unread = Lock<[ServerSentEvent]>([])

    private let options: EventStreamOptions
    private let time: StreamTime
    private var reconnection: ReconnectionState
    /// The delays after which a host without a route is tried again.
    private var trials = RouteTrials()
    private var parser: EventParser
    private var connection: Connection?
    /// The task of the connection, also while it is being made.
    private var task: AnySessionTask?
    private(set) var watch: Watch?
    /// Ends the connection at its time limit. Owned here, cancelled with the watch and with this actor.
    private var watchTask: Task<Void, Never>?
    private var watchCount = 0
    /// The reader that waits for the next attempt.
    private var sleeper: Waiter<Wake>?
    private var isReading = false
    /// The end of the stream, once it is known.
    private var end: EventStreamEnd?

    /// The longest ID that is sent as `Last-Event-ID`, in bytes. Servers refuse longer fields.
    private static let longestSentID = 8 << 10

    init(_ request: Result<Request, NetworkError>, session: Session, options: EventStreamOptions) {
        self.session = session
        self.options = options
        self.request = request.map { $0.forEvents(defaults: session.configuration) }
        time = StreamTime(options.clock)
        reconnection =
            switch request {
            case .success(let request):
                ReconnectionState(
                    options.reconnection, method: request.method, isReplayable: request.body.isReplayable)
            case .failure:
                // Nothing is ever connected.
                ReconnectionState(.never, method: .get, isReplayable: false)
            }
        parser = EventParser(
            lastEventID: options.lastEventID, maximumLineSize: options.maximumLineSize,
            maximumEventSize: options.maximumEventSize)
    }

    deinit {
        watchTask?.cancel()
        states.finish { state in
            if case .closed = state { state } else { .closed(.closed) }
        }
    }

    // MARK: The reader

    /// Returns the next events, at least one; nil at the end. Connects again as often as the rules allow. Cancelling
    /// the calling task ends the stream.
    ///
    /// - Parameter expectsLastEvent: Whether the end of the stream before a certain event is an error.
    func nextEvents(expectsLastEvent: Bool) async throws(NetworkError) -> [ServerSentEvent]? {
        guard !isReading else {
            throw NetworkError(.unsupported, reason: "an event stream has one reader at a time")
        }
        isReading = true
        defer { isReading = false }
        while true {
            if let end {
                if case .failed(let error) = end { throw error }
                if case .server = end, expectsLastEvent { throw missingLastEvent("the server ended the stream") }
                if case .noContent = end, expectsLastEvent { throw missingLastEvent("the server answered 204") }
                return nil
            }
            if Task.isCancelled {
                finish(.failed(cancellation))
                continue
            }
            let ended: ReconnectionState.End
            do throws(NetworkError) {
                guard try await connect() else { continue }
                if let events = try await readEvents() { return events }
                ended = endConnection(nil)
            } catch {
                ended = endConnection(error)
            }
            if end == nil { await perform(decision(on: ended), after: ended.failure) }
        }
    }

    /// Ends the stream. A reader that waits returns.
    func close(_ reason: EventStreamEnd = .closed) {
        guard end == nil else { return }
        finish(reason)
        sleeper?.resume(returning: .closed)
    }

    private func finish(_ reason: EventStreamEnd) {
        end = reason
        stopWatch()
        task?.cancel()
        task = nil
        connection = nil
        states.finish { _ in .closed(reason) }
    }

    private var cancellation: NetworkError {
        error(.cancelled, "the task that reads the event stream was cancelled")
    }

    private func missingLastEvent(_ reason: String) -> NetworkError {
        error(.lastEventMissing, "\(reason) before its last event")
    }

    private func error(_ kind: NetworkError.Kind, _ reason: String) -> NetworkError {
        switch request {
        case .success(let request): NetworkError(FailureCause(kind, reason), request: request)
        case .failure: NetworkError(kind, reason: reason)
        }
    }

    // MARK: One connection

    /// Makes a connection unless there is one. Returns false if the stream has ended.
    private func connect() async throws(NetworkError) -> Bool {
        if connection != nil { return true }
        var request = try self.request.get()
        let id = parser.lastEventID
        if !id.isEmpty, id.utf8.count <= Self.longestSentID {
            let fields = request.headers.overriding(with: ["Last-Event-ID": id])
            // An ID can have characters that a field cannot have.
            if fields.firstProblem() == nil { request.headers = fields }
        }
        states.update { _ in .connecting }
        request.onQueueChange = { [states] isQueued in
            states.update { state in
                switch state {
                case .connecting where isQueued: .waitingForConnection
                case .waitingForConnection where !isQueued: .connecting
                default: state
                }
            }
        }
        let stream = session.stream(request)
        let task = stream.task
        self.task = task
        startWatch(options.firstByteTimeout, .firstByteTimedOut)
        watch?.start = time.elapsed()
        let result = await withTaskCancellationHandler {
            await stream.head
        } onCancel: {
            task.cancel()
        }
        if end != nil { return false }
        let head = try result.get()
        stopWatch()
        if head.status == 204 {
            finish(.noContent)
            return false
        }
        guard
            head.mediaType?.essence == "text/event-stream"
                || request.validation?.contentTypes == .any
        else {
            // The validation accepts an empty body of any type.
            let failure = FailureCause(.contentType, "the response is empty and no text/event-stream")
            throw NetworkError(failure, request: request, response: head)
        }
        parser = EventParser(
            lastEventID: id, maximumLineSize: options.maximumLineSize, maximumEventSize: options.maximumEventSize)
        connection = Connection(
            chunks: stream.chunks.makeAsyncIterator(), openedAt: time.elapsed())
        trials = RouteTrials()
        startWatch(options.silenceTimeout, .silenceTimedOut)
        states.update { _ in .open }
        return true
    }

    /// Reads until a chunk completes events. Returns nil at the end of the response, and after `close`.
    private func readEvents() async throws(NetworkError) -> [ServerSentEvent]? {
        var events: [ServerSentEvent] = []
        while let current = connection {
            var chunks = current.chunks
            if watch != nil { watch?.start = time.elapsed() }
            let chunk = try await chunks.next()
            watch?.start = nil
            // The stream can be closed while its reader waits.
            guard connection != nil, let chunk else { return nil }
            let failure: EventParser.Failure?
            do throws(EventParser.Failure) {
                try parser.parse(chunk, into: &events)
                failure = nil
            } catch {
                failure = error
            }
            if parser.hasCompletedID { reconnection.receiveID() }
            if let retry = parser.retry { reconnection.setServerDelay(retry) }
            if let failure {
                let error = tooLarge(failure)
                if events.isEmpty { throw error }
                finish(.failed(error))
            }
            if !events.isEmpty {
                reconnection.receiveEvents()
                return events
            }
        }
        return nil
    }

    private func tooLarge(_ failure: EventParser.Failure) -> NetworkError {
        let reason =
            switch failure {
            case .lineTooLong(let limit):
                "a line of the event stream has more than \(limit) bytes: raise maximumLineSize"
            case .eventTooLarge(let limit): "an event has more than \(limit) bytes of data: raise maximumEventSize"
            }
        return error(.tooLarge, reason)
    }

    /// Releases the connection that has ended, or could not be made.
    private func endConnection(_ failure: NetworkError?) -> ReconnectionState.End {
        var end = ReconnectionState.End(failure: failure)
        if let expired = watch, expired.isExceeded, failure != nil {
            let reason =
                expired.kind == .silenceTimedOut
                ? "no byte arrived within \(expired.limit)" : "no response within \(expired.limit)"
            end.failure = error(expired.kind, reason)
        }
        stopWatch()
        if let connection { end.openTime = time.elapsed() - connection.openedAt }
        task?.cancel()
        task = nil
        connection = nil
        end.retryAfter = failure?.response.flatMap { RetryAfter.delay(in: $0.headers, now: Date()) }
        return end
    }

    // MARK: The next connection

    private func decision(on end: ReconnectionState.End) -> ReconnectionState.Action {
        // `try?`: a request that cannot be created is not sent.
        let isOffline = (try? request.get()).map { session.configuration.reachability.isOffline(to: $0.target) }
        return reconnection.decide(end, hasNetwork: isOffline != true, random: Double.random(in: 0...1))
    }

    private func perform(_ action: ReconnectionState.Action, after failure: NetworkError?) async {
        switch action {
        case .end(let reason):
            finish(reason)
        case .connect(let delay):
            let (seconds, attoseconds) = delay.components
            let date = Date().addingTimeInterval(Double(seconds) + Double(attoseconds) / 1e18)
            states.update { _ in .waiting(until: date, after: failure) }
            await wait { [time] in
                // Cancelled: the wait has ended for another reason.
                try? await time.sleep(delay)
            }
        case .connectWithNetwork:
            states.update { _ in .waiting(until: nil, after: failure) }
            let reachability = session.configuration.reachability
            // A host can be reached without a default route, so the wait ends also by trying.
            await wait { [time, delay = trials.next()] in
                _ = await reachability.returns(within: delay, sleep: time.sleep)
            }
        }
    }

    /// Waits until an operation is done, the stream is closed, or the reader is cancelled.
    private func wait(for operation: @escaping @Sendable () async -> Void) async {
        let waiter = Waiter<Wake>()
        sleeper = waiter
        // Cancelled below, before this function returns.
        let timer = Task {
            await operation()
            waiter.resume(returning: .elapsed)
        }
        let wake = await waiter.wait(cancelled: .cancelled)
        timer.cancel()
        sleeper = nil
        if wake == .cancelled, end == nil { finish(.failed(cancellation)) }
    }

    // MARK: Time limits

    private func startWatch(_ limit: Duration?, _ kind: NetworkError.Kind) {
        stopWatch()
        guard let limit else { return }
        watchCount += 1
        let number = watchCount
        watch = Watch(number: number, limit: limit, kind: kind)
        // Owned by this actor, which cancels it at the end of the phase. Between its looks at the time it holds no
        // reference, so that a released stream ends.
        watchTask = Task { [weak self, time] in
            var rest = limit
            while true {
                do { try await time.sleep(rest) } catch { return }
                guard let next = await self?.timeLeft(of: number) else { return }
                rest = next
            }
        }
    }

    private func stopWatch() {
        watchTask?.cancel()
        watchTask = nil
        watch = nil
    }

    /// Returns the time after which a watch looks again; nil if it has ended. Ends the connection at the limit.
    private func timeLeft(of number: Int) -> Duration? {
        guard let current = watch, current.number == number, !current.isExceeded else { return nil }
        if task?.state == .suspended {
            watch?.start = current.start.map { _ in time.elapsed() }
            return current.limit
        }
        guard let start = current.start else { return current.limit }
        let left = current.limit - (time.elapsed() - start)
        if left > .zero { return left }
        watch?.isExceeded = true
        task?.cancel()
        return nil
    }
}
