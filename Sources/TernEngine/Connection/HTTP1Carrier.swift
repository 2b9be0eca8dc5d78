#if os(Linux)
import Glibc
import TernConcurrency

/// A connection that carries one exchange at a time, over HTTP/1. Confined to the loop's thread.
///
/// It moves the bytes; `HTTP1Connection` decides what they mean.
final class HTTP1Carrier: ExchangeCarrier {
    /// The maximum number of reads, and of writes, for one event, so that one connection does not hold up the others.
    static let roundsPerEvent = 4
    /// The number of bytes that are read at once while a head is expected.
    private static let headCapacity = 16 << 10

    let id: ConnectionPool.ConnectionID
    unowned let pool: LoopConnections
    let context: LoopContext
    let stream: ByteStream
    var info: ConnectionInfo
    private let connectionPlace = Confined(HTTP1Connection())
    var connection: HTTP1Connection {
        @inline(__always) _read { yield connectionPlace.value }
        @inline(__always) _modify { yield &connectionPlace.value }
    }
    var exchange: HTTPExchange?
    /// The connection that the server has switched to another protocol, until it is closed.
    private var upgraded: UpgradedConnection?
    private let outputPlace = Confined<[UInt8]>([])
    /// Bytes that the socket has not taken yet.
    var output: [UInt8] {
        @inline(__always) _read { yield outputPlace.value }
        @inline(__always) _modify { yield &outputPlace.value }
    }
    var outputOffset = 0
    /// The number of bytes of the request's body that are still to be read; nil if it is not known.
    var missingBody: Int64?
    /// Whether the body has no bytes yet.
    var isStarved = false
    /// Whether more of the body can be sent as soon as the socket takes it.
    var hasMoreBody = false
    /// The failure of a write. A response can still be read.
    var writeFailure: EngineError? { didSet { isWriting = writeFailure == nil } }
    /// Whether no write has failed.
    private(set) var isWriting = true
    private var willReadAtTurnEnd = false
    /// nil until a body waits for 100.
    private var continueTimer: LoopTimer?
    private var liveness: HTTP1Liveness
    /// The timer of the looks at a silent path. It stays from exchange to exchange, and is cancelled when the loop is
    /// about to sleep without one: to move it with each exchange would cost more.
    private lazy var livenessTimer = LoopTimer(self)
    /// The time from which the idle connection is not used any more, by the promise of the server.
    private(set) var usableUntil = UInt64.max

    init(
        _ id: ConnectionPool.ConnectionID, over stream: ByteStream, opening: ConnectionInfo.Opening,
        pool: LoopConnections,
        context: LoopContext
    ) {
        self.id = id
        self.stream = stream
        info = ConnectionInfo(opening, version: .http11)
        self.pool = pool
        self.context = context
        liveness = HTTP1Liveness(pool.settings.path)
        stream.setHandler(self)
        stream.watch(.readable, self)
        // Bytes can have arrived with the end of the server's handshake.
        if stream.mayHoldBytes { readAtTurnEnd() }
    }

    // MARK: The response

    func readingChanged(_ exchange: HTTPExchange) {
        updateEvents()
        if exchange.isReading, stream.mayHoldBytes { readAtTurnEnd() }
    }

    private func readAtTurnEnd() {
        guard !willReadAtTurnEnd else { return }
        willReadAtTurnEnd = true
        context.callAtTurnEnd(self)
    }

    /// Whether a write has found a reset. A read then finds the end of the input, which is not that of the peer. After
    /// a peer that ended its direction before, a write fails with EPIPE.
    private var wasReset: Bool { !isWriting && writeFailure.map { $0.code != EPIPE } ?? false }

    private var wantsInput: Bool { exchange?.isReading ?? !connection.mustClose }

    var takesExchanges: Bool { true }

    func updateEvents() {
        guard !connection.mustClose else { return }
        var events: SocketEvents = wantsInput ? .readable : []
        let isSending = exchange?.isSending ?? true
        if isWriting, outputOffset < output.count || hasMoreBody && isSending { events.insert(.writable) }
        stream.watch(events, self)
    }

    /// - Parameter mayLend: Whether the socket has input, so that it is worth lending.
    private func read(mayLend: Bool = false) {
        var rounds = 0
        while wantsInput, !connection.mustClose {
            let missing = connection.missingLength
            if mayLend, let missing, stream.isPlain,
                exchange?.handler.borrow(stream.descriptor, missing: missing) == true
            {
                return updateEvents()
            }
            let place = unsafe missing.flatMap { unsafe bodyBuffer(missing: $0) }
            let buffer = unsafe place ?? receiveBuffer
            let reading = unsafe stream.read(into: buffer)
            if case .bytes = reading {} else if unsafe place != nil { exchange?.handler.didReceiveInPlace(0) }
            switch reading {
            case .bytes(let count):
                exchange?.handler.didReceiveBytes(count)
                if unsafe place == nil {
                    unsafe take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                } else {
                    takeInPlace(count)
                }
                if connection.mustClose { return }
                // Bytes after the end of a body are an error: they are noticed as an event, or before the next request.
                let isLast = unsafe place != nil && missing == Int64(count)
                if count < buffer.count || isLast, !stream.mayHoldBytes { return updateEvents() }
            case .wouldBlock: return updateEvents()
            case .end(let isClean): return takeEnd(connection.endOfInput(isCut: !isClean || wasReset))
            case .failed(let error): return takeFailure(error)
            }
            rounds += 1
            if rounds == Self.roundsPerEvent {
                if stream.mayHoldBytes { readAtTurnEnd() }
                return updateEvents()
            }
        }
    }

    func didMoveBytes(_ count: Int64, code: Int32) {
        if code != 0 { return takeFailure(EngineError(.connectionLost, SystemError(code).text, code: code)) }
        connection.receivedInPlace(Int(count))
        takeEndOfBody()
    }

    /// The buffer for bytes that are copied: a smaller one for a head, so that most of a large body behind it is read
    /// in place, and for a body whose reader must not have more bytes in memory.
    private var receiveBuffer: UnsafeMutableRawBufferPointer {
        let capacity = connection.expectsHead ? Self.headCapacity : exchange?.readLimit ?? .max
        return unsafe UnsafeMutableRawBufferPointer(rebasing: context.receiveBuffer.prefix(capacity))
    }

    /// Returns memory of the handler for the next bytes of a body: never for more than are missing.
    private func bodyBuffer(missing: Int64) -> UnsafeMutableRawBufferPointer? {
        guard let buffer = unsafe exchange?.handler.bodyBuffer(), buffer.count > 0 else { return nil }
        return unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: missing)))
    }

    private func takeInPlace(_ count: Int) {
        connection.receivedInPlace(count)
        exchange?.handler.didReceiveInPlace(count)
        takeEndOfBody()
    }

    /// Takes the end of the body, if its last byte has been received in place.
    private func takeEndOfBody() { unsafe take(UnsafeRawBufferPointer(start: nil, count: 0)) }

    private func take(_ input: UnsafeRawBufferPointer) {
        var position = 0
        while true {
            switch unsafe connection.receive(input, from: &position) {
            case .needsInput: return
            case .interim(let head):
                exchange?.handler.didReceive(interim: head)
                continueBody()
            case .head(let head):
                if connection.isLateTimeout, let exchange, Self.isIdempotent(exchange.method) {
                    return fail(EngineError(.connectionLost, "the server ended an idle connection"), isDead: true)
                }
                if let exchange { pool.received(head, for: exchange) }
                exchange?.handler.didReceive(head)
                continueBody()
            case .body(let range):
                let piece = unsafe UnsafeRawBufferPointer(rebasing: input[range])
                if unsafe exchange?.handler.didReceive(body: piece) == false {
                    return fail(EngineError(.cancelled, "the receiver ended the exchange"))
                }
            case .trailers(let lines): exchange?.handler.didReceive(trailers: lines)
            case .end(let isReusable): return finish(isReusable: isReusable)
            case .upgraded: return unsafe upgrade(UnsafeRawBufferPointer(rebasing: input[position...]))
            case .failure(let error): return fail(error)
            case .unsolicited: return closeIdle()
            }
            // The handler can have ended the exchange.
            if connection.mustClose { return }
        }
    }

    /// Sends the body that has waited for 100, or stops sending it.
    private func continueBody() {
        if connection.sending == .open, !hasMoreBody, !isStarved, missingBody != 0 {
            cancelContinueTimer()
            hasMoreBody = true
            send()
        } else if connection.sending == .stopped {
            cancelContinueTimer()
            hasMoreBody = false
        }
    }

    func scheduleContinueTimer(at deadline: UInt64) {
        let timer = continueTimer ?? LoopTimer(self)
        continueTimer = timer
        context.schedule(timer, at: deadline)
    }

    private func cancelContinueTimer() {
        if let continueTimer { context.cancel(continueTimer) }
    }

    private func takeEnd(_ event: HTTP1Connection.Event) {
        switch event {
        case .end(let isReusable): finish(isReusable: isReusable)
        case .failure(let error): fail(error)
        case .unsolicited: closeIdle()
        default: finish(isReusable: false)
        }
    }

    private func takeFailure(_ error: EngineError) {
        if exchange == nil { return closeIdle() }
        fail(error)
    }

    private static func isIdempotent(_ method: String) -> Bool {
        ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method)
    }

    // MARK: Silence

    func watchPath() {
        let look = liveness.started(at: context.now)
        livenessTimer.isNeeded = true
        if livenessTimer.deadline == .max { context.schedule(livenessTimer, at: look) }
    }

    private func checkPath() {
        guard exchange != nil, !connection.mustClose, let path = Socket.path(of: stream.descriptor) else { return }
        switch liveness.look(at: context.now, path) {
        case .wait(let time): context.schedule(livenessTimer, at: time)
        case .probe(let time):
            Socket.probe(stream.descriptor, .frequent)
            context.schedule(livenessTimer, at: time)
        case .close:
            // Bytes that arrived before are delivered first, also to a reader that pauses.
            guard wantsInput, !Socket.hasInput(stream.descriptor) else {
                context.schedule(livenessTimer, at: context.now + pool.settings.path.interval)
                if wantsInput { read() }
                return
            }
            let reason = "the server's system no longer answers, although a response is due"
            fail(EngineError(.connectionLost, reason, code: ETIMEDOUT))
        }
    }

    // MARK: The end

    private func finish(isReusable: Bool) {
        guard let exchange else { return }
        self.exchange = nil
        exchange.connection = nil
        cancelContinueTimer()
        hasMoreBody = false
        // Bytes of the request that the socket has not taken cannot be taken back.
        let isReusable = isReusable && outputOffset == output.count && isWriting
        if isReusable {
            if liveness.rested() { Socket.probe(stream.descriptor, .seldom) }
            context.cancelBeforeSleep(livenessTimer)
            usableUntil = connection.usableTime.map { context.now > .max - $0 ? .max : context.now + $0 } ?? .max
            pool.finished(self, isReusable: true)
            // The pool may have started the next exchange, or closed the connection.
            if self.exchange == nil { updateEvents() }
        } else {
            close()
            pool.finished(self, isReusable: false)
        }
        exchange.handler.didEnd(nil, isDeadConnection: false)
    }

    /// Hands the connection to the handler of the exchange, with the bytes after the head of the 101 response. It
    /// leaves the pool, so that open connections of another protocol do not hold up requests.
    private func upgrade(_ rest: UnsafeRawBufferPointer) {
        guard let exchange, exchange.upgrade != nil else { return finish(isReusable: false) }
        guard outputOffset == output.count, writeFailure == nil else {
            return fail(EngineError(.malformedResponse, "the server switched protocols before the request was sent"))
        }
        self.exchange = nil
        exchange.connection = nil
        context.cancel(livenessTimer)
        if liveness.rested() { Socket.probe(stream.descriptor, .seldom) }
        connection.close()
        let upgraded = unsafe UpgradedConnection(
            over: stream, received: Array(rest), context: context
        ) { [self] in upgradedConnectionClosed() }
        self.upgraded = upgraded
        exchange.handler.didUpgrade(upgraded)
        // The handler can have closed the connection.
        if self.upgraded != nil { pool.detached(self) }
        exchange.handler.didEnd(nil, isDeadConnection: false)
    }

    func fail(_ error: EngineError, isDead: Bool = false) {
        guard let exchange else { return closeIdle() }
        let isDead = isDead || error.kind == .connectionLost && connection.isDeadPooledConnection
        self.exchange = nil
        exchange.connection = nil
        close()
        pool.closed(self)
        exchange.handler.didEnd(error, isDeadConnection: isDead)
    }

    /// Handles the end of the connection that another protocol used.
    func upgradedConnectionClosed() {
        upgraded = nil
        pool.closed(self)
    }

    func closeIdle() {
        close()
        pool.closed(self)
    }

    func cancel(_ exchange: HTTPExchange) {
        self.exchange = nil
        exchange.connection = nil
        close()
        pool.closed(self)
    }

    func close() {
        cancelContinueTimer()
        context.cancel(livenessTimer)
        connection.close()
        if let upgraded {
            self.upgraded = nil
            upgraded.poolClosed()
        } else {
            stream.close()
        }
    }
}

extension HTTP1Carrier: SocketHandler, TimerHandler, TurnEndHandler {
    func socketIsReady(_ events: SocketEvents) {
        if stream.canWrite(after: events) { send() }
        guard !connection.mustClose else { return }
        if wantsInput {
            read(mayLend: events.contains(.readable))
        } else if !events.isDisjoint(with: .failed) {
            // The failure is found when the reader continues.
            stream.watch([], self)
        }
    }

    func timerFired(_ timer: LoopTimer) {
        if timer === livenessTimer { return checkPath() }
        if connection.checkDeadline(now: context.now) { continueBody() }
    }

    func turnEnds(isIdle: Bool) -> Bool {
        willReadAtTurnEnd = false
        if wantsInput, !connection.mustClose { read() }
        return false
    }
}
#endif
