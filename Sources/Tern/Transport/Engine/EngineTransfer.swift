#if os(Linux)
import FoundationEssentials
import TernConcurrency
import TernEngine

/// One attempt on the loop: its exchange with the server, its time limits, and the part of the response that has arrived.
/// Confined to the loop's thread.
final class EngineTransfer {
    /// Nanoseconds: more often than a screen shows it, and seldom enough to cost nothing.
    private static let publicationInterval: UInt64 = 10_000_000

    let transfer: Transfer
    /// The lane of the loop on which the transfer is, and the place in its table; −1 outside of one.
    unowned var lane: TransferLane
    var place = -1
    var clock: TransferClock
    private(set) var exchange: HTTPExchange?
    /// A Boolean value that indicates whether the exchange is in the pool: it waits for a connection, or has one.
    private var isSubmitted = false
    /// The connection that carries the exchange.
    private(set) var connection: ConnectionInfo?
    /// The reason why the transfer ends, if the engine does not know it.
    var failure: TransferFailure?

    private(set) var head: ResponseHead?
    private(set) var body = CollectedBody()
    private var trailers: Headers = [:]
    /// The lines of the request's trailers, once its body has ended.
    private var requestTrailerLines: [UInt8] = []
    /// A Boolean value that indicates whether the session decompresses the body that it reads.
    private var isCompressed = false
    /// A Boolean value that indicates whether the session receives the body in chunks.
    private var isStreamed: Bool
    /// The number of bytes of the request's body that were taken from its source.
    private var produced: Int64 = 0
    private(set) var sentBytes: Int64 = 0
    private(set) var receivedBytes: Int64 = 0
    /// The times, in nanoseconds, at which the transfer entered the pool, and received the first byte; 0 before.
    private var startedAt: UInt64 = 0
    private var firstByteAt: UInt64 = 0

    /// The wait of the request's body for 100 (Continue); nil for most requests.
    private var continueWait: ContinueWait?
    private var isPaused = false
    /// A Boolean value that indicates whether the reader is behind.
    private var isHeldUp = false
    /// A Boolean value that indicates whether the request's body has no bytes yet.
    private var isStarved = false
    private var isMarked = false
    /// The number of bytes of the body at the end of the last turn.
    private var flushedCount: Int64 = 0
    /// A Boolean value that indicates whether progress is watched and the newest numbers are not published.
    private var isUnpublished = false
    /// The earliest time of the next publication: each one wakes a watcher, which costs more than the bytes of a turn.
    private(set) var nextPublication: UInt64 = 0

    init(_ transfer: Transfer, lane: TransferLane) {
        self.transfer = transfer
        self.lane = lane
        isStreamed = transfer.request.delivery == .streamed
        clock = TransferClock(transfer.request.timeouts, now: lane.now)
    }

    // MARK: The way to the wire

    func prepare(to destination: Destination, fields: RequestFields) {
        let request = transfer.request
        let body: RequestBody =
            switch request.source {
            case .none: .none
            case .bytes(let data): .length(Int64(data.count))
            case .pipe(_, let length): length.map { .length($0) } ?? .stream
            }
        let exchange = HTTPExchange(
            to: destination, method: request.method.rawValue,
            path: destination.isForwarded ? request.target.string : request.target.pathAndQuery, fields: fields,
            body: body, limits: HeadLimits(bytes: request.headLimit), priority: request.priority.rawValue,
            urgency: request.priority.urgency, needsFreshConnection: request.needsFreshConnection, handler: self)
        exchange.continueWait = request.timeouts.expectContinue.wholeNanoseconds
        self.exchange = exchange
    }

    func submit() {
        guard let exchange else { return }
        isSubmitted = true
        startedAt = lane.now
        lane.pool?.submit(exchange)
    }

    /// Takes the exchange out of the pool. Ends it if it is on the wire.
    func leave(after phase: Timeouts.Phase? = nil) {
        guard isSubmitted, let exchange else { return }
        isSubmitted = false
        if phase == .idle { exchange.avoidConnection() }
        if exchange.cancelOnConnection() { return }
        if phase == .connect { lane.pool?.giveUpConnecting(exchange) } else { lane.pool?.cancel(exchange) }
    }

    func prioritize(_ priority: Request.Priority) {
        guard let exchange else { return }
        exchange.priority = priority.rawValue
        exchange.urgency = priority.urgency
        guard isSubmitted, !exchange.prioritizeOnConnection() else { return }
        lane.pool?.prioritize(exchange)
    }

    // MARK: Pausing

    /// Pauses or resumes the transfer. One that has sent nothing yet gives up its place in the queue, because its
    /// request must not be sent.
    func setPaused(_ paused: Bool) {
        guard isPaused != paused else { return }
        isPaused = paused
        if paused { clock.paused(lane.now) } else { clock.resumed(lane.now) }
        applyPause()
        if paused, connection == nil {
            leave()
            clock.withdrawn()
        } else if !paused, !isSubmitted {
            submit()
        }
        lane.watch(clock)
    }

    func readerTookAll() {
        guard isHeldUp else { return }
        isHeldUp = false
        settleClock()
        applyPause()
    }

    func sourceIsReady() {
        guard isStarved else { return }
        isStarved = false
        settleClock()
        exchange?.bodyIsReady()
    }

    private func settleClock() {
        clock.heldUp(isHeldUp || isStarved, lane.now)
        lane.watch(clock)
    }

    private func applyPause() {
        exchange?.set(isReading: !isPaused && !isHeldUp, isSending: !isPaused && !(continueWait?.isActive ?? false))
    }

    // MARK: Expect: 100-continue

    /// Holds the body back over HTTP/2, where the engine's connection does not (RFC 9110 §10.1.1).
    private func waitForContinue() {
        guard let exchange, exchange.body != .none, exchange.fields.summary.contains(.expectsContinue) else { return }
        let wait = ContinueWait()
        continueWait = wait
        wait.begin(for: exchange.continueWait, lane.context) { [unowned self] in applyPause() }
        applyPause()
    }

    // MARK: The end of a turn

    private func markChanged() {
        guard !isMarked else { return }
        isMarked = true
        lane.flushLater(self)
    }

    /// Hands on the bytes of the turn. Small pieces wait while more arrive. Returns whether some wait.
    func flush(isIdle: Bool) -> Bool {
        isMarked = false
        guard isSubmitted else { return false }
        storeProgress()
        guard isStreamed, body.waitingCount > 0 else { return false }
        // More may arrive at once, unless nothing has arrived in this turn.
        let hasGrown = body.received != flushedCount
        flushedCount = body.received
        if isIdle || body.isChunkFull || !hasGrown {
            deliverChunk()
            return false
        }
        isMarked = true
        return true
    }

    private func deliverChunk() {
        let (wake, isFull) = unsafe transfer.receive(body.take())
        unsafe lane.context.wake(wake)
        guard isFull, !isHeldUp else { return }
        isHeldUp = true
        settleClock()
        applyPause()
    }

    private func storeProgress() {
        let total: Int64? =
            switch transfer.request.source {
            case .none: nil
            case .bytes(let data): Int64(data.count)
            case .pipe(_, let length): length
            }
        // The session counts the decompressed bytes, whose number is not known in advance.
        let received = isCompressed ? nil : body.received
        let expected = isCompressed ? nil : body.expected
        let isWatched = transfer.meter.update(sent: produced, of: total, received: received, of: expected)
        guard isWatched, !isUnpublished else { return }
        isUnpublished = true
        lane.publishLater(self)
    }

    /// Publishes the progress. Called when `nextPublication` has come.
    func publishProgress() {
        isUnpublished = false
        nextPublication = lane.now + Self.publicationInterval
        transfer.meter.publish()
    }

    // MARK: The end

    /// Ends the attempt. All collected bytes go to the session.
    func complete(_ failure: TransferFailure?) {
        continueWait?.cancel()
        storeProgress()
        if isUnpublished {
            // The task may continue, with another attempt or with the processing of its body.
            lane.forgetPublication(of: self)
            publishProgress()
        }
        if isStreamed, body.waitingCount > 0 { deliverChunk() }
        if case .pipe(let pipe, _) = transfer.request.source { pipe.close() }
        let outcome = TransferOutcome(
            head: head, body: body.take(), failure: failure, metrics: metrics(), trailers: trailers)
        unsafe lane.context.wake(transfer.complete(outcome))
    }

    private func metrics() -> TaskMetrics {
        var metrics = TaskMetrics()
        let now = lane.now
        if let connection {
            metrics.isReusedConnection = connection.isReused
            if !connection.isReused {
                metrics.nameLookupEnd = microseconds(until: connection.nameLookupEnd)
                metrics.connectEnd = microseconds(until: connection.connectEnd)
                metrics.tlsEnd = connection.tlsEnd == 0 ? 0 : microseconds(until: connection.tlsEnd)
            }
            metrics.pinReport = connection.pinReport
            metrics.remoteAddress = connection.remoteAddress
            if connection.remoteAddress != nil { metrics.remotePort = Int(connection.remotePort) }
        }
        if head != nil { metrics.firstByteTime = microseconds(until: firstByteAt) }
        metrics.activeTime = clock.elapsed(now)
        metrics.totalTime = startedAt == 0 ? -1 : microseconds(until: now)
        metrics.receivedBytes = receivedBytes
        metrics.sentBytes = sentBytes
        metrics.decodedBodyBytes = body.received
        metrics.httpVersion = head?.version
        return metrics
    }

    private func microseconds(until time: UInt64) -> Int64 {
        Int64((max(time, startedAt) - startedAt) / 1_000)
    }

    /// The number of bytes of the response's body so far and in total, for the text of a failure.
    var receivedText: String {
        body.expected.map { "\(body.received) of \($0) bytes" } ?? "\(body.received) bytes"
    }
}

// MARK: The engine's calls

extension EngineTransfer: ExchangeHandler {
    func didStartConnecting() {
        clock.connecting(lane.now)
        lane.watch(clock)
    }

    func didStopConnecting() { clock.withdrawn() }

    func didConnect(_ connection: ConnectionInfo) {
        self.connection = connection
        if connection.version == .http2 { waitForContinue() }
        clock.connected(lane.now)
        lane.watch(clock)
    }

    func didSend(_ count: Int) {
        sentBytes += Int64(count)
        clock.moved(lane.now)
    }

    func didReceiveBytes(_ count: Int) {
        if receivedBytes == 0 { firstByteAt = lane.now }
        receivedBytes += Int64(count)
        clock.moved(lane.now)
    }

    func didReceive(interim received: ReceivedHead) {
        if received.status == 100 {
            continueWait?.end()
            return
        }
        guard transfer.request.reportsInterimResponses, head == nil else { return }
        let interim = ResponseHead(
            status: received.status, version: HTTPVersion(received.version), target: transfer.request.target,
            rawHead: received.bytes, maySetCookies: false)
        unsafe lane.context.wake(transfer.receive(interim: interim))
    }

    func didReceive(_ received: ReceivedHead) {
        let request = transfer.request
        let head = ResponseHead(
            status: received.status, version: HTTPVersion(received.version), target: request.target,
            rawHead: received.bytes, maySetCookies: received.setsCookies)
        self.head = head
        // A server that refuses the request does not need the body.
        if received.status < 300 { continueWait?.end() }
        if request.method != .head { body.expected = received.contentLength }
        isCompressed = received.isEncoded && request.decompresses && !head.contentCodings.isEmpty
        isStreamed = request.streamsBody(of: head, isCompressed: isCompressed)
        if isStreamed || request.announcesHead {
            unsafe lane.context.wake(transfer.receive(head, isCompressed: isCompressed))
            markChanged()
        }
    }

    func didReceive(body bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.baseAddress else { return true }
        body.count(bytes.count)
        if let refusal = refusalOfBody() {
            failure = refusal
            unsafe keepStart(start, bytes.count)
            return false
        }
        let isKept: Bool
        switch transfer.request.delivery {
        case .collected(let limit) where !isStreamed:
            unsafe isKept = body.collect(start, bytes.count, limit: limit)
        default:
            if !body.hasRoom(for: bytes.count) { deliverChunk() }
            unsafe isKept = body.gather(start, bytes.count)
        }
        guard isKept else {
            failure = TransferFailure(.tooLarge, "no memory is left for the body of the response")
            return false
        }
        markChanged()
        return true
    }

    /// Keeps the start of a refused body for the error.
    private func keepStart(_ bytes: UnsafeRawPointer, _ count: Int) {
        guard !isStreamed, case .collected(let limit) = transfer.request.delivery else { return }
        let room = limit - Int(clamping: body.received - Int64(count))
        if room > 0 { _ = unsafe body.collect(bytes, min(count, room), limit: limit) }
    }

    private func refusalOfBody() -> TransferFailure? {
        guard !isStreamed, case .collected(let limit) = transfer.request.delivery else { return nil }
        return max(body.received, body.expected ?? 0) > limit ? .bodyTooLarge(limit: limit) : nil
    }

    func didReceive(trailers: [UInt8]) {
        self.trailers = ResponseHeadParser.fields(trailers)
    }

    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        switch transfer.request.source {
        case .none:
            return .end
        case .bytes(let data):
            let offset = Int(produced)
            let count = min(buffer.count, data.count - offset)
            guard count > 0 else { return .end }
            let start = data.startIndex + offset
            unsafe data.copyBytes(to: buffer, from: start..<(start + count))
            return took(count)
        case .pipe(let pipe, _):
            return unsafe read(pipe, into: buffer)
        }
    }

    private func read(_ pipe: UploadPipe, into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let (read, producer) = unsafe pipe.read(into: buffer)
        unsafe lane.context.wake(producer)
        switch read {
        case .bytes(let count):
            return took(count)
        case .wait:
            isStarved = true
            clock.heldUp(true, lane.now)
            return .wait
        case .end:
            return takeTrailers(of: pipe)
        case .failed(let failure):
            self.failure = failure
            return .failed
        }
    }

    /// Checks the trailers before the end of the body is sent. Without it, the request is not complete.
    private func takeTrailers(of pipe: UploadPipe) -> BodyRead {
        guard pipe.hasTrailers else { return .end }
        do throws(EngineError) {
            var fields = RequestFields()
            for field in pipe.trailers { try fields.append(name: field.name, value: field.value) }
            requestTrailerLines = try fields.trailerLines()
            return .end
        } catch {
            failure = TransferFailure(Self.kind(error.kind), error.reason)
            return .failed
        }
    }

    func requestTrailers() -> [UInt8] { requestTrailerLines }

    private func took(_ count: Int) -> BodyRead {
        produced += Int64(count)
        markChanged()
        return .bytes(count)
    }

    func didEnd(_ error: EngineError?, isDeadConnection: Bool) {
        isSubmitted = false
        lane.end(self, failure(for: error, isDeadConnection: isDeadConnection))
    }
}

extension Request.Priority {
    /// The urgency that the server is told over HTTP/2 (RFC 9218 §4.1); nil for the default, which is not sent.
    var urgency: UInt8? {
        switch self {
        case .veryHigh: 0
        case .high: 1
        case .normal: nil
        case .low: 5
        case .veryLow: 7
        }
    }
}

extension HTTPVersion {
    fileprivate init(_ version: WireVersion) {
        self =
            switch version {
            case .http10: .http10
            case .http11: .http11
            case .http2: .http2
            }
    }
}
#endif
