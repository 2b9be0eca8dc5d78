#if os(Linux)
import FoundationEssentials
import TernConcurrency
import TernEngine

/// The calls that the engine makes during an exchange.
extension EngineAttempt: ExchangeHandler {
    func didStartConnecting() {
        clock.connecting(now)
        setIsQueued(false)
        inTable { $0.watch(clock) }
    }

    func didStopConnecting() { didStartWaiting() }

    func didStartWaiting() {
        clock.queued(now)
        setIsQueued(true)
        inTable { $0.watch(clock) }
    }

    func didConnect(_ connection: ConnectionInfo) {
        self.connection = connection
        if isQueued { setIsQueued(false) }
        if connection.version == .http2 || connection.version == .http3 { waitForContinue() }
        if usesExtendedConnect { applyPause() }
        clock.connected(now)
        inTable { $0.watch(clock) }
    }

    func didSend(_ count: Int) {
        sentBytes += Int64(count)
        clock.moved(now)
    }

    func didReceiveBytes(_ count: Int) {
        let now = now
        if receivedBytes == 0 { firstByteAt = now }
        receivedBytes += Int64(count)
        clock.moved(now)
    }

    func didReceive(interim received: ReceivedHead) {
        if received.status == 100 {
            continueWait?.end()
            return
        }
        guard attempt.request.reportsInterimResponses, head == nil else { return }
        let interim = ResponseHead(
            status: received.status, version: HTTPVersion(received.version), target: attempt.request.target,
            rawHead: received.bytes, maySetCookies: false)
        unsafe table.context.wake(attempt.receive(interim: interim))
    }

    func didReceive(_ received: ReceivedHead) {
        let head = ResponseHead(
            status: received.status, version: HTTPVersion(received.version), target: attempt.request.target,
            rawHead: received.bytes, maySetCookies: received.setsCookies)
        if usesExtendedConnect, 200..<300 ~= received.status {
            self.head = head
            return switchStream(head)
        }
        // A server that refuses the request does not need the body. Over HTTP/2, the stream can stay open long after
        // that.
        if received.status < 300 {
            continueWait?.end()
        } else {
            continueWait?.refuse()
            isRefused = true
            if isStarved { settleClock() }
        }
        // GET first: two equal short strings are compared as integers.
        if attempt.request.method == .get || attempt.request.method != .head {
            body.expected = received.contentLength
        }
        isCompressed =
            received.status != 101 && received.isEncoded && attempt.request.decompresses
            && !head.removableCodings.isEmpty
        isStreamed = attempt.request.streamsBody(of: head, isCompressed: isCompressed)
        attempt.expectBody(of: head)
        if isStreamed, connection?.version != .http2, attempt.request.delivery == .streamed, head.isOfLiveStream,
            SessionLoops.isAtHome(attempt)
        {
            exchange?.becomesLive()
        }
        if isStreamed || attempt.request.announcesHead {
            unsafe table.context.wake(attempt.receive(head, isCompressed: isCompressed))
            markChanged()
        }
        // The last use, so that it is moved. Nothing above can end the exchange: over HTTP/2, the body that may now be
        // sent waits for the end of the turn.
        self.head = head
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
        switch attempt.request.delivery {
        case .collected(let limit) where !isStreamed:
            unsafe isKept = body.collect(start, bytes.count, limit: limit)
        default:
            if !body.hasRoom(for: bytes.count) { deliverChunk() }
            unsafe isKept = body.gather(start, bytes.count)
            // A full chunk can end the reading, so it does not wait for the end of the turn.
            if isKept, body.isChunkFull { deliverChunk() }
        }
        guard isKept else {
            failure = FailureCause(.tooLarge, "no memory is left for the body of the response")
            return false
        }
        recordBodyBytes()
        return true
    }

    func bodyBuffer() -> UnsafeMutableRawBufferPointer? {
        if isStreamed { return unsafe body.roomToGather() }
        guard case .collected(let limit) = attempt.request.delivery else { return nil }
        return unsafe body.roomToCollect(limit: limit)
    }

    func didReceiveInPlace(_ count: Int) {
        body.filled(count)
        guard count > 0 else { return }
        if isStreamed, body.isChunkFull { deliverChunk() }
        recordBodyBytes()
    }

    /// Hands on the new bytes at the end of the turn, unless the collected body is complete: the end of its exchange
    /// comes next, most often at once.
    private func recordBodyBytes() {
        if !isStreamed, body.isWhole { storeProgress() } else { markChanged() }
    }

    /// Keeps the start of a refused body for the error.
    private func keepStart(_ bytes: UnsafeRawPointer, _ count: Int) {
        guard !isStreamed, case .collected(let limit) = attempt.request.delivery else { return }
        let room = limit - Int(clamping: body.received - Int64(count))
        if room > 0 { _ = unsafe body.collect(bytes, min(count, room), limit: limit) }
    }

    private func refusalOfBody() -> FailureCause? {
        guard !isStreamed, case .collected(let limit) = attempt.request.delivery else { return nil }
        return max(body.received, body.expected ?? 0) > limit ? .bodyTooLarge(limit: limit) : nil
    }

    func didReceive(trailers: [UInt8]) {
        self.trailers = ResponseHeadParser.fields(trailers)
    }

    func readBody(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        switch attempt.request.source {
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
        unsafe table.context.wake(producer)
        switch read {
        case .bytes(let count):
            return took(count)
        case .wait:
            isStarved = true
            settleClock()
            return .wait
        case .end:
            return takeTrailers(of: pipe)
        case .failed(let failure):
            self.failure = failure
            return .failed
        }
    }

    func hasReadWholeBody() -> Bool {
        switch attempt.request.source {
        case .none: return true
        case .bytes(let data): return produced == data.count
        case .pipe(let pipe, _):
            // The last bytes of a body with a stated length come when it is known that no more follow.
            if produced == bodyLength, !pipe.hasTrailers { return true }
            let (isWhole, producer) = unsafe pipe.takeEnd()
            unsafe table.context.wake(producer)
            return isWhole
        }
    }

    func fileOfBody(upTo limit: Int) -> BodyFile? {
        guard case .pipe(let pipe, _) = attempt.request.source, let piece = pipe.filePiece(upTo: limit) else {
            return nil
        }
        return BodyFile(piece.file.descriptor, at: piece.offset, count: piece.count, owner: piece.file)
    }

    func didSendFile(_ count: Int) {
        if case .pipe(let pipe, _) = attempt.request.source { pipe.sentFilePiece(count) }
        _ = took(count)
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
            failure = FailureCause(Self.kind(error.kind), error.reason)
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
        // The connection carries another protocol from here on.
        if upgraded != nil { return }
        isSubmitted = false
        table.end(self, failure(for: error, isDeadConnection: isDeadConnection))
    }
}

// MARK: Expect: 100-continue

extension EngineAttempt {
    /// Holds the body back over HTTP/2 (RFC 9110 §10.1.1). Over HTTP/1, `HTTP1Carrier` waits by itself.
    private func waitForContinue() {
        guard let exchange, exchange.body != .none, exchange.fields.summary.contains(.expectsContinue) else { return }
        let wait = ContinueWait()
        continueWait = wait
        wait.begin(for: exchange.continueWait, table.context) { [unowned self] in applyPause() }
        applyPause()
    }
}

/// The time for which the body of a request waits for 100 (Continue). Confined to the loop's thread.
final class ContinueWait: TimerHandler {
    private(set) var isActive = false
    private var onEnd: (() -> Void)?
    private var context: LoopContext?
    private lazy var timer = LoopTimer(self)

    /// Begins to wait, for at most this number of nanoseconds.
    func begin(for limit: UInt64, _ context: LoopContext, onEnd: @escaping () -> Void) {
        isActive = true
        self.context = context
        self.onEnd = onEnd
        let (deadline, isBeyond) = context.now.addingReportingOverflow(limit)
        if !isBeyond { context.schedule(timer, at: deadline) }
    }

    /// Ends the wait: the body can be sent. Does nothing if the body does not wait, or was refused.
    func end() {
        guard isActive, let onEnd else { return }
        cancel()
        onEnd()
    }

    /// Makes the wait last until the attempt ends, because the server has refused the body.
    func refuse() {
        onEnd = nil
        context?.cancel(timer)
    }

    /// Ends the wait without effect, because the attempt has ended.
    func cancel() {
        guard isActive else { return }
        isActive = false
        refuse()
    }

    func timerFired(_ timer: LoopTimer) { end() }
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

extension ResponseHead {
    /// Whether the body is a stream that lasts as long as its server and its reader want.
    fileprivate var isOfLiveStream: Bool {
        guard let essence = mediaType?.essence else { return false }
        return essence == "text/event-stream" || essence == "multipart/x-mixed-replace"
    }
}

extension HTTPVersion {
    fileprivate init(_ version: WireVersion) {
        self =
            switch version {
            case .http10: .http10
            case .http11: .http11
            case .http2: .http2
            case .http3: .http3
            }
    }
}
#endif
