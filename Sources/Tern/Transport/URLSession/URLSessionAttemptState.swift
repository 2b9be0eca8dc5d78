#if TERN_URLSESSION || !os(Linux)
import Foundation

/// One attempt over URLSession: what is known of it, and what follows from each event. Pure; the system's task, the
/// transfer and the lock are around it.
struct URLSessionAttemptState {
    /// What is to be done to the system's task, or told to the session.
    enum Action {
        case resumeTask
        case suspendTask
        case cancelTask
        case announce(ResponseHead)
        case finish(TransferOutcome)
    }

    /// What to do about the bytes that wait.
    enum Delivery {
        case nothing
        case chunk(Data)
        /// The next piece of the file in which the body is.
        case readFile
        case actions([Action])
    }

    /// Bytes that may wait for a paused task or a slow reader where the system's task cannot be held back.
    static let waitingLimit = 256 << 20

    private let order: TransferOrder
    private let abilities: URLSessionAbilities
    private(set) var clock: TransferClock
    private var stopwatch: URLSessionStopwatch
    private var response: URLSessionResponse?
    private var measured: TaskMetrics?
    /// What is to be told of the certificates of the attempt's connection.
    var pinReport: String?

    private var waiting: [Data] = []
    private var waitingBytes = 0
    private var body = Data()
    private var sent: Int64 = 0
    private(set) var received: Int64 = 0

    /// The body is in a file, and counted already.
    private var isInFile = false
    private var fileExpected: Int64?
    /// The file has not been read to its end.
    private var hasFile = false

    private var isStarted = false
    private var isTaskRunning = false
    private var isPaused = false
    private var isHeldUp = false
    private(set) var isEnded = false
    /// Decided here; the end of the system's task brings the measurements that tell more of it.
    private var expired: Timeouts.Phase?
    /// The system's task has ended; the outcome waits for what is not delivered yet.
    private var ending: Result<Void, any Error>?

    init(_ order: TransferOrder, abilities: URLSessionAbilities, now: UInt64) {
        self.order = order
        self.abilities = abilities
        // URLSession does not say when a connection is there. Until the first sign of life both limits have to pass.
        var limits = abilities.limitsTime ? order.timeouts : Timeouts(connect: nil, idle: nil, total: nil)
        limits.connect = limits.idle.map { max($0, limits.connect ?? $0) }
        clock = TransferClock(limits, now: now)
        clock.connecting(now)
        stopwatch = URLSessionStopwatch(startedAt: now)
    }

    var expected: Int64? { isInFile ? fileExpected : response?.expected }

    var progress: (sent: Int64, sentTotal: Int64?, received: Int64, expected: Int64?) {
        let total: Int64? =
            switch order.source {
            case .none: nil
            case .bytes(let data): Int64(data.count)
            case .pipe(_, let length): length
            }
        return (sent, total, received, expected)
    }

    // MARK: Commands

    /// The system's task is there, with its body.
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

    /// Suspensions of a system task are counted: it is told of changes alone.
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

    /// Ends now, whatever the system's task does.
    mutating func fail(_ failure: TransferFailure, _ now: UInt64) -> [Action] {
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
        // What cannot be told apart is said to be idle: no byte moved, that is known.
        return fail(context.timeout(phase == .connect ? .idle : phase, order.timeouts), now)
    }

    // MARK: What the system's task tells

    mutating func receive(_ response: URLSessionResponse, _ now: UInt64) -> [Action] {
        guard !isEnded, self.response == nil else { return [] }
        self.response = response
        stopwatch.firstByteAt = now
        signOfLife(now)
        return order.announcesHead || order.isAnswer(response.head) ? [.announce(response.head)] : []
    }

    mutating func receive(_ data: Data, _ now: UInt64) -> [Action] {
        guard !isEnded, !data.isEmpty else { return [] }
        signOfLife(now)
        waiting.append(data)
        waitingBytes += data.count
        guard waitingBytes > Self.waitingLimit else { return [] }
        let reason = "\(waitingBytes) bytes wait to be read, and URLSession cannot hold the server back here"
        return fail(TransferFailure(.unsupported, reason), now)
    }

    mutating func sent(_ total: Int64, _ now: UInt64) {
        sent = max(sent, total)
        signOfLife(now)
    }

    /// The system puts the body into a file, and has come so far.
    mutating func wrote(_ total: Int64, of whole: Int64?, _ now: UInt64) {
        isInFile = true
        received = max(received, total)
        fileExpected = whole ?? fileExpected
        signOfLife(now)
    }

    /// The body is in a file, and comes no other way: also one that was written before this process began.
    mutating func bodyIsInFile() { isInFile = true }

    /// The body is to be read from its file.
    mutating func fileIsReady() { hasFile = true }

    /// A piece of the file; none at its end.
    mutating func receiveFromFile(_ data: Data) {
        if data.isEmpty { hasFile = false } else { waiting.append(data) }
    }

    mutating func receive(_ metrics: TaskMetrics?) { measured = metrics }

    private mutating func signOfLife(_ now: UInt64) { clock.connected(now) }

    /// The last word of the system's task. `response`: in case that it never told of one.
    mutating func complete(_ error: (any Error)?, _ response: URLSessionResponse?, _ now: UInt64) -> [Action] {
        guard !isEnded, ending == nil else { return [] }
        let announcement = response.map { receive($0, now) } ?? []
        ending = error.map { .failure($0) } ?? .success(())
        return announcement
    }

    // MARK: Bytes

    /// The next thing to do about the bytes that wait; to be asked until it is nothing.
    mutating func next(_ now: UInt64) -> Delivery {
        guard !isEnded, !isPaused else { return .nothing }
        // Nothing can be held back of what has come, but a file can wait.
        let mayDeliver = !isHeldUp || ending != nil && !hasFile
        while let chunk = waiting.first, mayDeliver {
            waiting.removeFirst()
            if !isInFile {
                waitingBytes -= chunk.count
                received += Int64(chunk.count)
            }
            if let failure = excess { return .actions(fail(failure, now)) }
            guard case .collected = order.delivery else { return .chunk(chunk) }
            if body.isEmpty { body = chunk } else { body.append(chunk) }
        }
        guard let ending else { return .nothing }
        if hasFile { return isHeldUp ? .nothing : .readFile }
        isEnded = true
        return .actions([.finish(outcome(failure(of: ending), now))])
    }

    private var excess: TransferFailure? {
        if response?.isCompressed == true, received > order.decompressionLimit {
            return TransferFailure(
                .tooLarge, "the response decompresses to more than \(order.decompressionLimit) bytes")
        }
        if case .collected(let limit) = order.delivery, received > limit {
            return .bodyTooLarge(limit: limit)
        }
        return nil
    }

    private func failure(of ending: Result<Void, any Error>) -> TransferFailure? {
        if let expired {
            return context.timeout(context.wasConnected ? .idle : expired, order.timeouts)
        }
        switch ending {
        case .failure(let error):
            return context.failure(error)
        case .success:
            guard response != nil else {
                return TransferFailure(.malformedResponse, "what \(order.target.host) sent is not HTTP")
            }
            guard !isInFile, let expected, received < expected else { return nil }
            return TransferFailure(
                .truncatedBody, "the body from \(order.target.host) ended after \(received) of \(expected) bytes")
        }
    }

    private var context: URLSessionFailure {
        var context = URLSessionFailure(target: order.target)
        context.hasHead = response != nil
        context.received = received
        context.expected = expected
        #if !canImport(FoundationNetworking)
        context.wasConnected = measured?.wasConnected ?? (response != nil)
        #endif
        context.isReusedConnection = response == nil && measured?.isReusedConnection == true
        return context
    }

    private func outcome(_ failure: TransferFailure?, _ now: UInt64) -> TransferOutcome {
        var metrics = measured ?? stopwatch.metrics(now: now, sent: sent, received: received)
        let head = response?.head.over(metrics.httpVersion)
        metrics.httpVersion = metrics.httpVersion ?? head?.version
        metrics.pinReport = pinReport
        if metrics.decodedBodyBytes == 0 { metrics.decodedBodyBytes = received }
        return TransferOutcome(head: head, body: body, failure: failure, metrics: metrics)
    }
}
#endif
