#if os(Linux)
import FoundationEssentials
import TernConcurrency
import TernEngine

/// One attempt on the loop: its exchange with the server, its time limits, and the part of the response that has
/// arrived. Confined to the loop's thread.
final class EngineAttempt {
    /// The shortest time between two publications of progress, in nanoseconds: more often than a screen shows it, and
    /// seldom enough to cost nothing.
    private static let publicationInterval: UInt64 = 10_000_000

    let attempt: Attempt
    /// The table of the loop, and the index in it; −1 before and after.
    let table: AttemptTable
    var tableIndex = -1
    var clock: AttemptClock {
        @inline(__always) _read { yield confined.value.clock }
        @inline(__always) _modify { yield &confined.value.clock }
    }
    private(set) var exchange: HTTPExchange?
    /// The connection after the switch to another protocol; nil before, and for other requests.
    var upgraded: UpgradedConnection?
    /// Whether a stream over HTTP/2 carries another protocol (RFC 8441).
    var isStreamSwitched = false
    /// Whether the exchange is in the pool: it waits for a connection, or has one.
    var isSubmitted = false
    /// Whether the exchange waits for a connection that becomes free.
    private(set) var isQueued = false
    /// The connection that carries the exchange.
    var connection: ConnectionInfo?
    /// The reason why the attempt ends, if the engine does not know it.
    var failure: FailureCause?

    var head: ResponseHead?
    var body: CollectedBody {
        @inline(__always) _read { yield confined.value.body }
        @inline(__always) _modify { yield &confined.value.body }
    }
    private let confined: Confined<(body: CollectedBody, clock: AttemptClock)>
    /// The pipe through which the reader moves the rest of the body out of the socket; nil if the bytes are copied.
    private var pipe: BodyPipe?
    private var socketUse = SocketUse.available
    /// nil for none.
    var trailers: Headers?
    /// The lines of the request's trailers, once its body has ended.
    var requestTrailerLines: [UInt8] = []
    /// Whether the session decompresses the body that it reads.
    var isCompressed = false
    /// Whether the session receives the body in chunks.
    var isStreamed: Bool
    /// Whether the request asks for another protocol.
    let isUpgrade: Bool
    /// The number of bytes of the request's body; nil if it has none, or if that is not known.
    let bodyLength: Int64?
    /// The number of bytes of the request's body that were taken from its source.
    var produced: Int64 = 0
    var sentBytes: Int64 = 0
    var receivedBytes: Int64 = 0
    /// The times, in nanoseconds, at which the attempt entered the pool, and received the first byte; 0 before.
    private var startedAt: UInt64 = 0
    var firstByteAt: UInt64 = 0

    /// The wait of the request's body for 100 (Continue); nil for most requests.
    var continueWait: ContinueWait?
    private(set) var isPaused = false
    /// Whether the reader is behind.
    private var isHeldUp = false
    /// Whether the request's body has no bytes yet.
    var isStarved = false
    /// Whether the server has refused the request, so that the rest of its body no longer holds the response up.
    var isRefused = false
    private var isMarked = false
    /// Whether the bytes of an upgraded connection leave at the end of the turn.
    private var sendsAtTurnEnd = false
    /// The number of bytes of the body at the end of the last turn.
    private var flushedCount: Int64 = 0
    /// Whether progress is watched and the newest numbers are not published.
    private var isUnpublished = false
    /// The earliest time of the next publication: each one wakes a watcher, which costs more than the bytes of a turn.
    private(set) var nextPublication: UInt64 = 0

    /// The owner of the socket of a body that has a pipe.
    private enum SocketUse {
        /// The loop reads the socket, and lends it to the reader when bytes have arrived.
        case available
        /// The loop copies the next bytes instead of lending the socket, because the reader has moved none. A socket
        /// can have input that the system does not move, such as bytes after urgent data.
        case copyNext
        /// The reader has the socket. Nothing else may read it.
        case lent
    }

    @inline(__always)
    init(_ attempt: Attempt, table: AttemptTable) {
        self.attempt = attempt
        self.table = table
        isStreamed = attempt.request.delivery == .streamed
        isUpgrade = attempt.request.upgrade != nil
        bodyLength =
            switch attempt.request.source {
            case .none: nil
            case .bytes(let data): Int64(data.count)
            case .pipe(_, let length): length
            }
        // By default, at most half of the limit, and a size of a slab: the loop fills one chunk while the reader has
        // another.
        let limit = attempt.request.chunkLimit ?? max(attempt.request.bufferLimit, 4) / 2
        let chunk = 1 << (Int.bitWidth - 1 - limit.leadingZeroBitCount)
        confined = Confined(
            (
                CollectedBody(chunkLimit: min(CollectedBody.chunkSize, chunk)),
                AttemptClock(attempt.request.timeouts, now: table.now)
            ))
    }

    /// Calls a function with the table without retaining it: `self.table` holds it meanwhile.
    @inline(__always)
    func inTable<Result>(_ body: (AttemptTable) -> Result) -> Result {
        unsafe Unmanaged.passUnretained(table)._withUnsafeGuaranteedRef(body)
    }

    /// The time of the loop's turn, in nanoseconds.
    var now: UInt64 { inTable { $0.now } }

    /// Whether extended CONNECT on a stream asks for another protocol (RFC 8441).
    var usesExtendedConnect: Bool { isUpgrade && exchange?.usesExtendedConnect == true }

    // MARK: The way to the wire

    func prepare(to destination: consuming Destination, fields: consuming RequestFields.Shared) {
        // The request has many fields, so it is not copied to a variable.
        let priority = attempt.request.priority
        // The pipe of a request for another protocol is for the time after the switch.
        let hasBody = attempt.request.hasBody && !isUpgrade
        let body: RequestBody = hasBody ? bodyLength.map { .length($0) } ?? .stream : .none
        let isForwarded = destination.isForwarded
        let exchange = HTTPExchange(
            to: destination, method: attempt.request.method.rawValue,
            path: isForwarded ? attempt.request.target.stringForProxy : attempt.request.target.string,
            pathStart: isForwarded ? 0 : attempt.request.target.pathStart, fields: fields, body: body,
            limits: HeadLimits(bytes: attempt.request.headLimit),
            priority: priority.rawValue, urgency: priority.urgency,
            needsFreshConnection: attempt.request.needsFreshConnection, handler: self)
        if hasBody { exchange.continueWait = attempt.request.timeouts.expectContinue.wholeNanoseconds }
        if let limit = attempt.request.chunkLimit { exchange.readLimit = limit }
        if let upgrade = attempt.request.upgrade { exchange.upgrade = upgrade.name }
        if attempt.request.isLive { exchange.isLive = true }
        if !attempt.request.sendsDefaultFields { exchange.statesLength = false }
        self.exchange = exchange
    }

    /// Submits the exchange to the pool, which can end it at once.
    func submit() {
        guard let exchange else { return }
        isSubmitted = true
        startedAt = now
        table.pool.submit(exchange)
    }

    /// Takes the exchange out of the pool. Ends it if it is on the wire.
    func leave(after phase: Timeouts.Phase? = nil) {
        guard isSubmitted, let exchange else { return }
        isSubmitted = false
        if let upgraded {
            // Bytes whose `send` has returned leave, although the turn has not ended.
            if sendsAtTurnEnd { sendPipe() }
            self.upgraded = nil
            return upgraded.close()
        }
        if phase == .idle { exchange.avoidConnection() }
        if exchange.cancelOnConnection() { return }
        if phase == .connect { table.pool.giveUpConnecting(exchange) } else { table.pool.cancel(exchange) }
    }

    /// The attempt asks for a connection later.
    func delayStart(by delay: Duration) {
        clock.delayStart(by: delay, now)
        inTable { $0.watch(clock) }
    }

    /// Returns whether the time has come to ask for a connection. True once.
    func takeStart() -> Bool { clock.takeStart(now) }

    func prioritize(_ priority: Request.Priority) {
        guard let exchange else { return }
        exchange.priority = priority.rawValue
        exchange.urgency = priority.urgency
        guard isSubmitted, upgraded == nil, !exchange.prioritizeOnConnection() else { return }
        table.pool.prioritize(exchange)
    }

    /// Records whether the exchange waits for a connection, and tells the one who shows that.
    func setIsQueued(_ isQueued: Bool) {
        guard isQueued != self.isQueued else { return }
        self.isQueued = isQueued
        attempt.request.onQueueChange?(isQueued)
    }

    /// Returns whether an attempt that has reached a time limit goes on: it waits for a connection, has no limit for
    /// that, and requests that end some time hold connections.
    func mayWaitOn(after phase: Timeouts.Phase) -> Bool {
        guard phase == .queue, clock.isQueueLimitImplied, let exchange,
            !table.pool.connectionsInUse(for: exchange).areAllLive
        else { return false }
        clock.queued(now)
        return true
    }

    // MARK: Pausing

    /// Pauses or resumes the attempt. One that has sent nothing yet gives up its place in the queue, because its
    /// request must not be sent.
    func setPaused(_ paused: Bool) {
        guard isPaused != paused else { return }
        isPaused = paused
        pipe?.setStopped(paused)
        if paused { clock.paused(now) } else { clock.resumed(now) }
        applyPause()
        // The connection may have sent the rest of the body at once, and the body may have failed.
        guard tableIndex >= 0 else { return }
        if paused, connection == nil {
            leave()
            clock.withdrawn()
            setIsQueued(false)
        }
        inTable { $0.watch(clock) }
        if !paused, !isSubmitted, clock.startsAt == nil { submit() }
    }

    func readerTookAll() {
        if socketUse == .lent {
            // This demand can be older than the lending. The demand that gives the socket back follows.
            guard let moved = attempt.takeMoved() else { return }
            takeSocketBack(moved)
        }
        // The attempt has ended if these were the last bytes.
        guard isHeldUp, tableIndex >= 0 else { return }
        isHeldUp = false
        settleClock()
        applyPause()
    }

    func sourceIsReady() {
        guard isStarved else { return }
        isStarved = false
        settleClock()
        guard upgraded != nil else {
            exchange?.bodyIsReady()
            return
        }
        // Tasks on the loop may have more messages to send: they leave in one write.
        sendsAtTurnEnd = true
        markChanged()
    }

    /// Stops the clock of the idle limit while this side holds the attempt up.
    func settleClock() {
        clock.heldUp(isHeldUp || isStarved && !isRefused, now)
        inTable { $0.watch(clock) }
    }

    func applyPause() {
        if let upgraded {
            upgraded.isReading = !isPaused && !isHeldUp
            return sendPipe()
        }
        // The bytes of another protocol wait for the server's consent.
        let awaitsSwitch = usesExtendedConnect && !isStreamSwitched
        let isSending = !isPaused && !(continueWait?.isActive ?? false) && !awaitsSwitch
        exchange?.set(isReading: !isPaused && !isHeldUp, isSending: isSending)
    }

    // MARK: The end of a turn

    func markChanged() {
        guard !isMarked else { return }
        isMarked = true
        inTable { $0.flushLater(self) }
    }

    /// Sends the bytes of an upgraded connection, and hands on those that the turn has received. Small pieces wait
    /// while more arrive. Returns whether some wait.
    func flush(isIdle: Bool) -> Bool {
        // Marked still: the bytes that are sent now need no other flush.
        if sendsAtTurnEnd {
            sendsAtTurnEnd = false
            sendPipe()
        }
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

    func deliverChunk() {
        let (wake, isFull) = unsafe attempt.receive(body.take())
        inTable { unsafe $0.context.wake(wake) }
        if isFull { holdUp() }
    }

    /// Stops the reading until the reader asks for more.
    private func holdUp() {
        guard !isHeldUp else { return }
        isHeldUp = true
        settleClock()
        applyPause()
    }

    func storeProgress() {
        // The session counts the decompressed bytes, whose number is not known in advance.
        let received = isCompressed ? nil : body.received
        let expected = isCompressed ? nil : body.expected
        let isWatched = attempt.updateProgress(
            sent: produced, of: bodyLength, received: received, of: expected)
        guard isWatched, !isUnpublished else { return }
        isUnpublished = true
        inTable { $0.publishLater(self) }
    }

    /// Publishes the progress. Called when `nextPublication` has come.
    func publishProgress() {
        isUnpublished = false
        nextPublication = now + Self.publicationInterval
        attempt.meter.publish()
    }

    // MARK: A lent socket

    /// Lets the reader move the rest of the body through the pipe that it offers.
    func usePipe() {
        if isStreamed { pipe = attempt.pipe }
    }

    func borrow(_ socket: Int32, missing: Int64) -> Bool {
        if socketUse == .copyNext {
            socketUse = .available
            return false
        }
        guard let pipe, pipe.holdSocket(socket) else { return false }
        if body.waitingCount > 0 { deliverChunk() }
        socketUse = .lent
        unsafe table.context.wake(attempt.lendSocket(missing: missing))
        holdUp()
        return true
    }

    /// Takes the socket back, and what the reader has moved.
    private func takeSocketBack(_ moved: BodyPipe.Moved) {
        socketUse = moved.count == 0 ? .copyNext : .available
        if moved.cannotMoveMore {
            pipe?.releaseSocket()
            pipe = nil
        }
        if moved.count > 0 {
            didReceiveBytes(Int(moved.count))
            body.count(Int(moved.count))
            markChanged()
        }
        exchange?.didMoveBytes(moved.count, code: moved.code)
    }

    // MARK: The end

    /// Ends the attempt. All collected bytes go to the session.
    func complete(_ failure: FailureCause?) {
        continueWait?.cancel()
        storeProgress()
        if isUnpublished {
            table.forgetPublication(of: self)
            // The task may continue. After a whole response, the session publishes the numbers, most often with the end
            // of the task, which then takes one wake.
            if isStreamed || failure != nil { publishProgress() }
        }
        if isStreamed, body.waitingCount > 0 { deliverChunk() }
        pipe?.releaseSocket()
        if attempt.request.hasBody, case .pipe(let upload, _) = attempt.request.source { upload.close() }
        let version = head?.version
        let outcome = AttemptOutcome(
            head: head.take(), body: body.take(), failure: failure, metrics: metrics(version),
            trailers: trailers.take() ?? [:])
        inTable { unsafe $0.context.wake(attempt.complete(outcome)) }
    }

    /// - Parameter version: That of the response; nil without one.
    private func metrics(_ version: HTTPVersion?) -> TaskMetrics {
        let now = now
        let isReused = connection?.isReused ?? false
        // A request on a pooled connection did not wait for its opening.
        let opening = isReused ? nil : connection?.opening
        // The memberwise initializer builds the value in its place; a variable would be copied at the end.
        return TaskMetrics(
            nameLookupEnd: opening.map { microseconds(until: $0.nameLookupEnd) } ?? -1,
            connectEnd: opening.map { microseconds(until: $0.connectEnd) } ?? -1,
            tlsEnd: opening.map { $0.tlsEnd == 0 ? 0 : microseconds(until: $0.tlsEnd) } ?? -1,
            firstByteTime: version == nil ? -1 : microseconds(until: firstByteAt),
            totalTime: startedAt == 0 ? -1 : microseconds(until: now), activeTime: clock.elapsed(now),
            receivedBytes: receivedBytes, sentBytes: sentBytes, decodedBodyBytes: body.received,
            httpVersion: version, isReusedConnection: isReused,
            remoteAddress: connection?.opening.remoteAddress,
            remotePort: connection.flatMap { $0.opening.remoteAddress == nil ? nil : Int($0.opening.remotePort) },
            connectionNumber: connection?.number, pinReport: connection?.opening.pinReport)
    }

    private func microseconds(until time: UInt64) -> Int64 {
        Int64((max(time, startedAt) - startedAt) / 1_000)
    }

    /// The number of bytes of the response's body so far and in total, for the text of a failure.
    var receivedText: String {
        body.expected.map { "\(body.received) of \($0) bytes" } ?? "\(body.received) bytes"
    }
}
#endif
