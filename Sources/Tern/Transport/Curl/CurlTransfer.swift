#if os(Linux)
import CTernCurl
import FoundationEssentials
import Glibc

/// One attempt on the loop: what libcurl's callbacks do with it, and what is known of it so far. Confined to the loop's
/// thread.
final class CurlTransfer {
    /// Nanoseconds: more often than a screen shows it, and seldom enough to cost nothing.
    private static let publicationInterval: UInt64 = 10_000_000

    let transfer: Transfer
    let pool: CurlPool
    /// Where the attempt queues: its host, or its socket.
    let origin: String
    private let turn: LoopTurn
    var clock: TransferClock
    /// Its place among what is queued; may change meanwhile.
    var priority: Request.Priority
    /// While the attempt is on the wire, or withdrawn from it by a pause.
    var handle: CurlHandle?
    /// Ends the attempt whatever libcurl says afterwards.
    var failure: TransferFailure?

    private var headLines: CollectedHead
    private(set) var head: ResponseHead?
    private var body = CollectedBody()
    /// A Boolean value that indicates whether the session decompresses the body that it reads.
    private var isCompressed = false
    /// A Boolean value that indicates whether the session receives the body in chunks.
    private var isStreamed: Bool
    /// Why the handshake of the attempt's own connection was refused; what is to be told of one that was not.
    var trustFailure: TransferFailure?
    var pinReport: String?
    private var sourceOffset = 0
    /// Bytes taken out of the body's pipe.
    private var produced: Int64 = 0
    /// How often a connection was ready to carry the request.
    private(set) var connections = 0
    /// A Boolean value that indicates whether the attempt was stopped before its request was sent, because the pooled
    /// connection had unread bytes. The attempt then starts again on a new connection.
    private(set) var mustStartOver = false
    /// A Boolean value that indicates whether the attempt must open a connection of its own.
    private(set) var needsFreshConnection: Bool
    private var isMarked = false
    /// Somebody watches the progress, and has not seen the newest numbers.
    private var isUnpublished = false
    /// Not earlier: who watches is woken, which costs more than the bytes of a turn.
    private(set) var nextPublication: UInt64 = 0

    private var pauseState: PauseState
    private var isPauseNew = false
    /// libcurl is being told: it may call back before it has returned, and is not told more meanwhile.
    private var isSettling = false
    private var failureOfPause: CURLcode?

    var isPaused: Bool { pauseState.isPaused }

    /// The connection carries the request, or has begun to.
    var isConnected: Bool { connections > 0 }

    init(_ transfer: Transfer, pool: CurlPool, turn: LoopTurn) {
        self.transfer = transfer
        self.pool = pool
        self.turn = turn
        headLines = CollectedHead(limit: transfer.request.headLimit)
        isStreamed = transfer.request.delivery == .streamed
        let sendsNothing = if case .none = transfer.request.source { true } else { false }
        pauseState = PauseState(sendsNothing: sendsNothing)
        needsFreshConnection = transfer.request.needsFreshConnection
        origin = transfer.request.unixSocketPath ?? transfer.request.target.origin
        priority = transfer.request.priority
        clock = TransferClock(transfer.request.timeouts, now: turn.now)
    }

    // MARK: The response

    func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        switch unsafe headLines.add(line) {
        case .inside:
            clock.moved(turn.now)
        case .http2Status:
            if handle?.isHTTP1(transfer.request) == true {
                let reason = "the response's status line names HTTP/2, and the connection carries HTTP/1.1"
                failure = TransferFailure(.malformedResponse, reason)
                return 0
            }
            clock.moved(turn.now)
        case .end:
            if let problem = headLines.framingProblem, transfer.request.method != .head {
                failure = TransferFailure(.malformedResponse, problem)
                return 0
            }
            if headLines.hasTwoLengths { handle?.closeAfterResponse() }
            if headLines.hasForeignTransferCoding, transfer.request.method != .head {
                // libcurl decodes transfer codings that were not requested (RFC 9112 §7.4), and bypasses all limits of
                // Tern.
                let reason = "the response has a transfer coding that was not asked for (RFC 9112 §7.4)"
                failure = TransferFailure(.malformedResponse, reason)
                return 0
            }
            headEnded()
            if failure != nil { return 0 }
        case .tooManyFields:
            let limit = CollectedHead.fieldLimit
            failure = TransferFailure(.tooLarge, "the head of the response has more than \(limit) fields")
            return 0
        case .tooLarge:
            let limit = transfer.request.headLimit
            failure = TransferFailure(.tooLarge, "the head of the response has more than \(limit) bytes")
            return 0
        case .malformed(let reason):
            failure = TransferFailure(.malformedResponse, "\(reason)")
            return 0
        }
        return line.count
    }

    private func headEnded() {
        guard let handle else { return }
        clock.moved(turn.now)
        let status = handle.number(CURLINFO_RESPONSE_CODE)
        if status == 101, !transfer.request.headers.contains("Upgrade") {
            // The bytes that follow belong to an unknown protocol.
            let reason = "the server switched to another protocol without being asked (RFC 9110 §15.2.2)"
            failure = TransferFailure(.malformedResponse, reason)
            return
        }
        if status < 200 && status != 101 {
            if !headLines.startOver() {
                let limit = CollectedHead.interimLimit
                failure = TransferFailure(.tooLarge, "more than \(limit) interim responses came before the response")
            }
            return
        }
        let version = Self.version(handle.number(CURLINFO_HTTP_VERSION))
        let head = ResponseHead(
            status: status, version: version, target: transfer.request.target, rawHead: headLines.bytes,
            maySetCookies: headLines.setsCookies)
        self.head = head
        headLines.complete()
        let length = handle.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        if length >= 0, transfer.request.method != .head { body.expected = length }
        if version == .http2 { pool.learnedHTTP2(self) }
        isCompressed = headLines.isEncoded && transfer.request.decompresses && !head.contentCodings.isEmpty
        isStreamed = transfer.request.streamsBody(of: head, isCompressed: isCompressed)
        if isStreamed || transfer.request.announcesHead {
            unsafe turn.wake(transfer.receive(head, isCompressed: isCompressed))
            markChanged()
        }
    }

    /// A Boolean value that indicates whether any line of a response has arrived, including lines of an interim
    /// response.
    var hasResponse: Bool { headLines.hasBegun }

    private static func version(_ value: Int) -> HTTPVersion {
        switch value {
        case Int(CURL_HTTP_VERSION_1_0): .http10
        case Int(CURL_HTTP_VERSION_2_0): .http2
        case Int(CURL_HTTP_VERSION_3): .http3
        default: .http11
        }
    }

    func receiveBody(_ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        if pauseState.refusesBytes() { return Int(CURL_WRITEFUNC_PAUSE) }
        clock.moved(turn.now)
        body.count(count)
        if let refusal = refusalOfBody() {
            failure = refusal
            unsafe keepStart(bytes, count)
            return 0
        }
        let isKept: Bool
        switch transfer.request.delivery {
        case .collected(let limit) where !isStreamed:
            unsafe isKept = body.collect(bytes, count, limit: limit)
        default:
            if !body.hasRoom(for: count), deliverChunk() { stopReading() }
            unsafe isKept = body.gather(bytes, count)
        }
        guard isKept else {
            failure = TransferFailure(.tooLarge, "no memory is left for the body of the response")
            return 0
        }
        markChanged()
        return count
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

    // MARK: The request

    /// Called before the request is sent on a connection. Returns false for the second connection, because libcurl
    /// sends a request of any method again after a pooled connection died. Also returns false for a connection with
    /// unexpected unread bytes, which libcurl then closes.
    func connected(localPort: Int32) -> Bool {
        if connections == 0, let handle, !isMultiplexed,
            !handle.isConnectionClean(transfer.request, localPort: localPort)
        {
            mustStartOver = true
            return false
        }
        connections += 1
        clock.connected(turn.now)
        turn.watch(clock)
        return connections == 1
    }

    func sendBody(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        if isPaused {
            pauseState.refusedToSend()
            return Int(CURL_READFUNC_PAUSE)
        }
        switch transfer.request.source {
        case .none:
            return 0
        case .bytes(let data):
            let count = min(buffer.count, data.count - sourceOffset)
            let start = data.startIndex + sourceOffset
            unsafe data.copyBytes(to: buffer, from: start..<(start + count))
            sourceOffset += count
            return moved(count)
        case .pipe(let pipe, _):
            return unsafe send(from: pipe, into: buffer)
        }
    }

    private func send(from pipe: UploadPipe, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let (read, producer) = unsafe pipe.read(into: buffer)
        unsafe turn.wake(producer)
        switch read {
        case .bytes(let count):
            produced += Int64(count)
            return moved(count)
        case .wait:
            pauseState.isStarved = true
            clock.heldUp(true, turn.now)
            pauseState.refusedToSend()
            return Int(CURL_READFUNC_PAUSE)
        case .end:
            return 0
        case .failed(let failure):
            self.failure = failure
            return Int(CURL_READFUNC_ABORT)
        }
    }

    private func moved(_ count: Int) -> Int {
        clock.moved(turn.now)
        markChanged()
        return count
    }

    /// Without OpenSSL, the protocol of a connection is not known before the first response on it.
    private var isMultiplexed: Bool {
        transfer.request.target.isSecure && !TLSBackend.current.isOpenSSL && pool.queue.isMultiplexed(origin)
    }

    // MARK: The end of a turn

    private func markChanged() {
        guard !isMarked else { return }
        isMarked = true
        turn.changed.append(self)
    }

    /// Marks the transfer for the next turn, together with its new bytes.
    func waitForMore() { markChanged() }

    /// Hands on the bytes of the turn. Small pieces wait while more is coming. Returns whether some wait.
    func flush(isIdle: Bool) -> Bool {
        isMarked = false
        guard handle != nil else { return false }
        storeProgress()
        guard isStreamed, body.waitingCount > 0 else { return false }
        if isIdle || body.isChunkFull {
            if deliverChunk() { stopReading() }
            return false
        }
        return true
    }

    /// Returns whether the reader is behind from now on.
    private func deliverChunk() -> Bool {
        let (wake, isFull) = unsafe transfer.receive(body.take())
        unsafe turn.wake(wake)
        guard isFull, !pauseState.isHeldUp else { return false }
        pauseState.isHeldUp = true
        clock.heldUp(true, turn.now)
        return true
    }

    private func storeProgress() {
        let (sent, total) = uploadCounts()
        // The session counts the decompressed bytes, whose number is not known in advance.
        let received = isCompressed ? nil : body.received
        let expected = isCompressed ? nil : body.expected
        let isWatched = transfer.meter.update(sent: sent, of: total, received: received, of: expected)
        guard isWatched, !isUnpublished else { return }
        isUnpublished = true
        turn.publishLater(self)
    }

    /// Publishes the progress. Called when `nextPublication` has come.
    func publishProgress() {
        isUnpublished = false
        nextPublication = turn.now + Self.publicationInterval
        transfer.meter.publish()
    }

    private func uploadCounts() -> (sent: Int64, total: Int64?) {
        switch transfer.request.source {
        case .none: (0, nil)
        case .bytes(let data): (handle?.offset(CURLINFO_SIZE_UPLOAD_T) ?? 0, Int64(data.count))
        // Without a length, libcurl also counts the framing of the chunks.
        case .pipe(_, let length): (min(handle?.offset(CURLINFO_SIZE_UPLOAD_T) ?? 0, produced), length)
        }
    }

    // MARK: Pausing

    func setPaused(_ paused: Bool) {
        guard isPaused != paused else { return }
        pauseState.isPaused = paused
        if paused { clock.paused(turn.now) } else { clock.resumed(turn.now) }
        turn.watch(clock)
        applyPause()
    }

    func readerTookAll() {
        guard pauseState.isHeldUp else { return }
        pauseState.isHeldUp = false
        clock.heldUp(pauseState.isStarved, turn.now)
        turn.watch(clock)
        applyPause()
    }

    func sourceIsReady() {
        guard pauseState.isStarved else { return }
        pauseState.isStarved = false
        clock.heldUp(pauseState.isHeldUp, turn.now)
        turn.watch(clock)
        applyPause()
    }

    /// Stops reading when the reader is behind.
    private func stopReading() {
        guard let handle, let head, !isSettling, let bits = pauseState.stopAtOnce(head.version) else { return }
        if handle.pause(bits) != CURLE_BAD_FUNCTION_ARGUMENT { pauseState.stoppedAtOnce(bits) }
    }

    /// Notes that the directions to pause have changed. libcurl gets only the final state, once a turn. If it were
    /// continued and paused again at once, it would read in between, and drop the bytes if they were the end of the
    /// response.
    private func applyPause() {
        if isPauseNew { return }
        isPauseNew = true
        turn.pausing.append(self)
    }

    /// Tells libcurl which directions to pause. libcurl may call back, and be paused again, before it returns.
    func settlePause() {
        isPauseNew = false
        guard let handle, isConnected else { return }
        guard let bits = pauseState.settle() else { return }
        isSettling = true
        defer { isSettling = false }
        let result = handle.pause(bits)
        // CURLE_BAD_FUNCTION_ARGUMENT means that the attempt has no connection, or no longer has one, and nothing was
        // held back.
        if result != CURLE_OK, result != CURLE_BAD_FUNCTION_ARGUMENT { failureOfPause = result }
    }

    /// Returns the failure of delivering held-back bytes. libcurl delivers them while it is continued, and does not end
    /// an attempt that refuses them.
    func takeFailureOfPause() -> TransferFailure? {
        guard let result = failureOfPause else { return nil }
        failureOfPause = nil
        return failure(for: result)
    }

    /// Resets an attempt that was taken off the wire before anything was sent. It may go there again.
    func withdraw() {
        // A proxy may have answered already.
        if !CurlPool.reusesHandles { handle = nil }
        connections = 0
        if mustStartOver { needsFreshConnection = true }
        mustStartOver = false
        pauseState.withdraw()
        clock.withdrawn()
    }

    // MARK: The end

    /// Ends the attempt. All collected bytes go to the session, and the engine keeps nothing of the attempt.
    func complete(_ failure: TransferFailure?) {
        if handle != nil { storeProgress() }
        if isUnpublished {
            // The task may continue, with another attempt or with the processing of its body.
            turn.forget(self)
            publishProgress()
        }
        if isStreamed, body.waitingCount > 0 { _ = deliverChunk() }
        if case .pipe(let pipe, _) = transfer.request.source { pipe.close() }
        let outcome = TransferOutcome(
            head: head, body: body.take(), failure: failure, metrics: handle.map(metrics) ?? TaskMetrics(),
            trailers: headLines.trailers)
        unsafe turn.wake(transfer.complete(outcome))
    }

    private func metrics(_ handle: CurlHandle) -> TaskMetrics {
        var metrics = TaskMetrics()
        metrics.isReusedConnection = handle.number(CURLINFO_NUM_CONNECTS) == 0 && isConnected
        if isConnected, !metrics.isReusedConnection {
            metrics.nameLookupEnd = handle.offset(CURLINFO_NAMELOOKUP_TIME_T)
            metrics.connectEnd = handle.offset(CURLINFO_CONNECT_TIME_T)
            metrics.tlsEnd = handle.offset(CURLINFO_APPCONNECT_TIME_T)
        }
        if head != nil { metrics.firstByteTime = handle.offset(CURLINFO_STARTTRANSFER_TIME_T) }
        metrics.pinReport = pinReport
        metrics.activeTime = clock.elapsed(turn.now)
        metrics.totalTime = handle.offset(CURLINFO_TOTAL_TIME_T)
        metrics.receivedBytes = Int64(handle.number(CURLINFO_HEADER_SIZE)) + handle.offset(CURLINFO_SIZE_DOWNLOAD_T)
        metrics.sentBytes = Int64(handle.number(CURLINFO_REQUEST_SIZE))
        // A body that libcurl gets whole goes out with the head, and libcurl counts it there.
        if !CurlHandle.isWhole(transfer.request.source) { metrics.sentBytes += handle.offset(CURLINFO_SIZE_UPLOAD_T) }
        metrics.decodedBodyBytes = body.received
        metrics.httpVersion = head?.version
        // For a Unix socket, libcurl reports its path here.
        if isConnected, transfer.request.unixSocketPath == nil {
            metrics.remoteAddress = handle.text(CURLINFO_PRIMARY_IP)
            metrics.remotePort = handle.number(CURLINFO_PRIMARY_PORT)
        }
        return metrics
    }

    /// The number of bytes of the response's body so far and in total, for the text of a failure.
    var receivedText: String {
        body.expected.map { "\(body.received) of \($0) bytes" } ?? "\(body.received) bytes"
    }
}
#endif
