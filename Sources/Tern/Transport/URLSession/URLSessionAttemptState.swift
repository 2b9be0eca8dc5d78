#if TERN_URLSESSION || !os(Linux)
import Foundation

/// The state of one attempt over URLSession. Each event returns the actions that follow. Pure; `URLSessionAttempt` adds
/// the system's task, the attempt and the lock.
struct URLSessionAttemptState {
    /// An action on the system's task or on the attempt.
    enum Action {
        case resumeTask
        case suspendTask
        case cancelTask
        case announce(ResponseHead)
        case finish(AttemptOutcome)
    }

    /// The next action on the bytes that wait.
    enum Delivery {
        case nothing
        case chunk(Data)
        /// Reads the next piece of the file with the body.
        case readFile
        case actions([Action])
    }

    /// The number of bytes that may wait for a paused task or a slow reader if the system's task cannot be suspended.
    static let waitingLimit = 256 << 20

    private let request: WireRequest
    private let abilities: URLSessionAbilities
    private(set) var clock: AttemptClock
    private var stopwatch: URLSessionStopwatch
    private var response: URLSessionResponse?
    private var measured: TaskMetrics?
    /// The report on the certificates of the attempt's connection.
    var pinReport: String?

    private var waiting: [Data] = []
    private var waitingBytes = 0
    private var body = Data()
    private var sent: Int64 = 0
    private(set) var received: Int64 = 0

    /// Whether the body is in a file and was counted already.
    private var isInFile = false
    private var fileExpected: Int64?
    /// Whether the file has not been read to its end.
    private var hasFile = false

    private var isStarted = false
    private var isTaskRunning = false
    private var isPaused = false
    private var isHeldUp = false
    private(set) var isEnded = false
    /// The limit that ran out. The end of the system's task brings the measurements that give the exact error.
    private var expired: Timeouts.Phase?
    /// The end of the system's task. The outcome waits for the bytes that are not delivered yet.
    private var ending: Result<Void, any Error>?

    init(_ request: WireRequest, abilities: URLSessionAbilities, now: UInt64) {
        self.request = request
        self.abilities = abilities
        // URLSession does not report the connection. Until the first sign of life, both limits must pass.
        var limits = abilities.limitsTime ? request.timeouts : Timeouts(connect: nil, idle: nil, total: nil)
        limits.connect = limits.idle.map { max($0, limits.connect ?? $0) }
        clock = AttemptClock(limits, now: now)
        clock.connecting(now)
        stopwatch = URLSessionStopwatch(startedAt: now)
    }

    /// Whether bytes that arrive can be delivered at once.
    var takesBytes: Bool { !isPaused && !isHeldUp && !isEnded }

    var expected: Int64? { isInFile ? fileExpected : response?.expected }

    var progress: (sent: Int64, sentTotal: Int64?, received: Int64, expected: Int64?) {
        let total: Int64? =
            switch request.source {
            case .none: nil
            case .bytes(let data): Int64(data.count)
            case .pipe(_, let length): length
            }
        return (sent, total, received, expected)
    }

    // MARK: Commands

    /// The system's task was created, with its body.
    mutating func start() -> [Action] {
        isStarted = true
        return drive()
    }

    mutating func pause(_ now: UInt64) -> [Action] {
        guard !isPaused, !isEnded else { return [] }
        isPaused = true
        clock.paused(now)
        return drive()
    }

    mutating func resume(_ now: UInt64) -> [Action] {
        guard isPaused, !isEnded else { return [] }
        isPaused = false
        clock.resumed(now)
        return drive()
    }

    mutating func readerIsFull(_ now: UInt64) -> [Action] {
        guard !isHeldUp, !isEnded else { return [] }
        isHeldUp = true
        clock.heldUp(true, now)
        return drive()
    }

    mutating func readerTookAll(_ now: UInt64) -> [Action] {
        guard isHeldUp, !isEnded else { return [] }
        isHeldUp = false
        clock.heldUp(false, now)
        return drive()
    }

    /// Resumes or suspends the system's task on a change only, because the system counts suspensions.
    private mutating func drive() -> [Action] {
        guard !isEnded else { return [] }
        let wants = isStarted && !isPaused && !isHeldUp && ending == nil
        if wants, !isTaskRunning {
            isTaskRunning = true
            return [.resumeTask]
        }
        if !wants, isTaskRunning, abilities.suspends, ending == nil {
            isTaskRunning = false
            return [.suspendTask]
        }
        return []
    }

    /// Ends the attempt now, regardless of the system's task.
    mutating func fail(_ failure: FailureCause, _ now: UInt64) -> [Action] {
        guard !isEnded else { return [] }
        isEnded = true
        waiting = []
        return [.cancelTask, .finish(outcome(failure, now))]
    }

    mutating func checkLimits(_ now: UInt64) -> [Action] {
        guard !isEnded, expired == nil, ending == nil, let phase = clock.expired(now) else { return [] }
        if phase == .connect, abilities.measures {
            expired = phase
            return [.cancelTask]
        }
        // Without measurements, the error is that of the idle limit: no byte moved.
        return fail(context.timeout(phase == .connect ? .idle : phase, request.timeouts), now)
    }

    // MARK: Events of the system's task

    mutating func receive(_ response: URLSessionResponse, _ now: UInt64) -> [Action] {
        guard !isEnded, self.response == nil else { return [] }
        self.response = response
        stopwatch.firstByteAt = now
        signOfLife(now)
        if request.upgrade != nil, response.head.status == 101 { clock.upgraded() }
        return request.announcesHead || request.streamsBody(of: response.head) ? [.announce(response.head)] : []
    }

    mutating func receive(_ data: Data, _ now: UInt64) -> [Action] {
        guard !isEnded, !data.isEmpty else { return [] }
        signOfLife(now)
        waiting.append(data)
        waitingBytes += data.count
        guard waitingBytes > Self.waitingLimit else { return [] }
        let reason = "\(waitingBytes) bytes wait to be read, and URLSession cannot hold the server back here"
        return fail(FailureCause(.unsupported, reason), now)
    }

    mutating func recordSent(_ total: Int64, _ now: UInt64) {
        sent = max(sent, total)
        signOfLife(now)
    }

    /// The system has written this many bytes to its file.
    mutating func wrote(_ total: Int64, of whole: Int64?, at now: UInt64) {
        isInFile = true
        received = max(received, total)
        fileExpected = whole ?? fileExpected
        signOfLife(now)
    }

    /// The body is in a file, possibly written before this process began, and does not arrive as data.
    mutating func bodyIsInFile() { isInFile = true }

    /// The file is open and can be read.
    mutating func fileIsReady() { hasFile = true }

    /// Receives a piece of the file; empty at its end.
    mutating func receiveFromFile(_ data: Data) {
        if data.isEmpty { hasFile = false } else { waiting.append(data) }
    }

    mutating func receive(_ metrics: TaskMetrics?) { measured = metrics }

    private mutating func signOfLife(_ now: UInt64) { clock.connected(now) }

    /// The system's task has ended. `response` is there in case it was never reported.
    mutating func complete(_ error: (any Error)?, response: URLSessionResponse?, at now: UInt64) -> [Action] {
        guard !isEnded, ending == nil else { return [] }
        let announcement = response.map { receive($0, now) } ?? []
        ending = error.map { .failure($0) } ?? .success(())
        return announcement
    }

    // MARK: Bytes

    /// Returns the next action on the bytes that wait. Called until it is `.nothing`.
    mutating func next(_ now: UInt64) -> Delivery {
        guard !isEnded, !isPaused else { return .nothing }
        // Bytes that have arrived cannot be held back at the end, but a file can wait.
        let mayDeliver = !isHeldUp || ending != nil && !hasFile
        while let chunk = waiting.first, mayDeliver {
            waiting.removeFirst()
            if !isInFile {
                waitingBytes -= chunk.count
                received += Int64(chunk.count)
            }
            if let failure = excess { return .actions(fail(failure, now)) }
            guard case .collected = request.delivery else { return .chunk(chunk) }
            if body.isEmpty { body = chunk } else { body.append(chunk) }
        }
        guard let ending else { return .nothing }
        if hasFile { return isHeldUp ? .nothing : .readFile }
        isEnded = true
        return .actions([.finish(outcome(failure(of: ending), now))])
    }

    private var excess: FailureCause? {
        if response?.isCompressed == true, received > request.decompressionLimit {
            return FailureCause(
                .tooLarge, "the response decompresses to more than \(request.decompressionLimit) bytes")
        }
        if case .collected(let limit) = request.delivery, received > limit {
            return .bodyTooLarge(limit: limit)
        }
        return nil
    }

    private func failure(of ending: Result<Void, any Error>) -> FailureCause? {
        if let expired {
            return context.timeout(context.wasConnected ? .idle : expired, request.timeouts)
        }
        switch ending {
        case .failure(let error):
            return context.failure(error)
        case .success:
            guard response != nil else {
                return FailureCause(.malformedResponse, "what \(request.target.host) sent is not HTTP")
            }
            guard !isInFile, let expected, received < expected else { return nil }
            return FailureCause(
                .truncatedBody, "the body from \(request.target.host) ended after \(received) of \(expected) bytes")
        }
    }

    private var context: URLSessionFailure {
        var context = URLSessionFailure(target: request.target)
        context.isForUpgrade = request.upgrade != nil
        context.hasHead = response != nil
        context.received = received
        context.expected = expected
        #if !canImport(FoundationNetworking)
        context.wasConnected = measured?.wasConnected ?? (response != nil)
        #endif
        context.isReusedConnection = response == nil && measured?.isReusedConnection == true
        return context
    }

    private func outcome(_ failure: FailureCause?, _ now: UInt64) -> AttemptOutcome {
        var metrics = measured ?? stopwatch.metrics(now: now, sent: sent, received: received)
        let head = response?.head.over(metrics.httpVersion)
        metrics.httpVersion = metrics.httpVersion ?? head?.version
        metrics.pinReport = pinReport
        if metrics.decodedBodyBytes == 0 { metrics.decodedBodyBytes = received }
        return AttemptOutcome(head: head, body: body, failure: failure, metrics: metrics)
    }
}
#endif
