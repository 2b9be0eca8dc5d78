#if os(Linux)
/// A connection that carries many exchanges at a time, over HTTP/2. Confined to the loop's thread.
///
/// It moves the bytes, and watches the connection for silence; `HTTP2Session` decides what the bytes mean.
final class HTTP2Carrier {
    private static let roundsPerEvent = 4
    /// The maximum number of reads after a failed write.
    private static let roundsAfterFailure = 1_024
    /// The number of bytes that are taken from the session at a time.
    private static let outputSize = 256 << 10

    let id: ConnectionPool.ConnectionID
    unowned let pool: LoopConnections
    private let context: LoopContext
    private let stream: ByteStream
    private var info: ConnectionInfo
    private(set) var session: HTTP2Session?
    var streams: [Int32: CarriedStream] = [:]
    private var output: [UInt8] = []
    private var outputOffset = 0
    private var isClosed = false
    private var willAct = false
    /// Whether bytes can be read for which the socket reports no event.
    private var mustRead = false
    var streamLimit = HTTP2StreamLimit()
    var liveness: HTTP2Liveness
    private lazy var livenessTimer = LoopTimer(self)
    /// Whether the connection failed because the server did not answer PING.
    private var isSilent = false
    /// The number of bytes that the socket took.
    private var written = 0

    init(
        _ id: ConnectionPool.ConnectionID, over stream: ByteStream, opening: ConnectionInfo.Opening,
        pool: LoopConnections,
        context: LoopContext
    ) throws(EngineError) {
        self.id = id
        self.stream = stream
        info = ConnectionInfo(opening, version: .http2)
        self.pool = pool
        self.context = context
        liveness = HTTP2Liveness(pool.settings.liveness, now: context.now)
        var settings = HTTP2Session.Settings()
        settings.headLimit = pool.settings.headLimit
        session = try HTTP2Session(settings: settings, delegate: self)
        stream.setHandler(self)
        stream.watch(.readable, self)
        // The server's first frames can have arrived with the end of its handshake.
        mustRead = stream.mayHoldBytes
        actAtTurnEnd()
    }

    /// Whether a stream can carry another protocol (RFC 8441).
    var allowsExtendedConnect: Bool { session?.allowsExtendedConnect ?? false }

    // MARK: Exchanges

    func start(_ exchange: HTTPExchange) {
        guard let session else { return }
        exchange.connection = self
        exchange.handler.didConnect(info)
        var length: Int64?
        if case .length(let count) = exchange.body { length = count }
        let hasBody = exchange.body == .stream || (length ?? 0) > 0
        let isReused = info.isReused
        do {
            var request = HTTP2Request(
                method: exchange.usesExtendedConnect ? "CONNECT" : exchange.method,
                scheme: exchange.destination.isSecure ? "https" : "http",
                authority: exchange.destination.authority, path: exchange.path, fields: exchange.fields.bytes,
                headLimits: exchange.limits)
            request.contentLength = length
            request.statesLength = exchange.statesLength
            request.connectProtocol = exchange.usesExtendedConnect ? exchange.upgrade : nil
            request.hasBody = hasBody || exchange.usesExtendedConnect
            request.priority = exchange.urgency.map { HTTP2Priority(urgency: $0) }
            try exchange.fields.check(against: exchange.body)
            let isFirst = session.activeStreams == 0
            let number = try session.submit(request)
            exchange.stream = Int64(number)
            // A refused request leaves the connection as it was.
            if !isReused { info = info.reused() }
            let stream = CarriedStream(exchange, isReused: isReused)
            streams[number] = stream
            if liveness.started(isFirst: isFirst, at: context.now, acknowledged: acknowledged) {
                stream.isProbe = isReused
                session.ping()
            }
            settleLivenessTimer()
            exchange.handler.didSend(exchange.fields.bytes.count)
            actAtTurnEnd()
        } catch {
            exchange.connection = nil
            pool.finished(self, isReusable: session.takesRequests)
            exchange.handler.didEnd(error, isDeadConnection: false)
        }
    }

    private func number(of exchange: HTTPExchange) -> Int32 { Int32(truncatingIfNeeded: exchange.stream) }

    func readingChanged(_ exchange: HTTPExchange) {
        guard exchange.isReading, streams[number(of: exchange)] != nil else { return }
        actAtTurnEnd()
    }

    func bodyIsReady(_ exchange: HTTPExchange) {
        session?.resumeBody(number(of: exchange))
        actAtTurnEnd()
    }

    /// Tells the server the changed priority of an exchange, unless the caller wrote a Priority field.
    func prioritize(_ exchange: HTTPExchange) {
        guard streams[number(of: exchange)] != nil, !exchange.fields.summary.contains(.priority) else { return }
        let priority = exchange.urgency.map { HTTP2Priority(urgency: $0) } ?? HTTP2Priority()
        session?.setPriority(priority, of: number(of: exchange))
        actAtTurnEnd()
    }

    var takesExchanges: Bool { session?.takesRequests ?? false }

    func takeNoMore() { pool.draining(self) }

    func cancel(_ exchange: HTTPExchange) {
        exchange.connection = nil
        let number = number(of: exchange)
        guard streams.removeValue(forKey: number) != nil, let session else { return }
        session.cancel(number)
        settleLivenessTimer()
        actAtTurnEnd()
        pool.finished(self, isReusable: session.takesRequests)
    }

    func end(_ number: Int32, _ error: EngineError?) {
        guard let ended = streams.removeValue(forKey: number) else { return }
        ended.exchange.connection = nil
        settleLivenessTimer()
        // A server that fell silent within a stream may have acted on it. One that was silent before has not.
        let isPooled = isSilent ? ended.isProbe : ended.isReused
        // A stream that the server resets leaves the connection alive.
        let hasEnded = session?.failure != nil
        let isDead = hasEnded && error?.kind == .connectionLost && isPooled && !ended.hasResponse
        pool.finished(self, isReusable: session?.takesRequests ?? false)
        ended.exchange.handler.didEnd(error, isDeadConnection: isDead)
    }

    // MARK: The end of a turn

    private func actAtTurnEnd() {
        // Held bytes are delivered after the end of the connection, too.
        guard !willAct, !isClosed || !streams.isEmpty else { return }
        willAct = true
        context.callAtTurnEnd(self)
    }

    func abort(_ number: Int32, _ error: EngineError) {
        session?.cancel(number)
        actAtTurnEnd()
        end(number, error)
    }

    private func send() {
        guard let session, !isClosed else { return }
        var rounds = 0
        while rounds < Self.roundsPerEvent {
            rounds += 1
            if outputOffset == output.count {
                output.removeAll(keepingCapacity: true)
                outputOffset = 0
                if let error = session.takeOutput(into: &output, upTo: Self.outputSize) { return fail(error) }
                // A body that failed can have ended the last stream of a connection that takes no more.
                if isClosed { return }
                if output.isEmpty { break }
            }
            let result = unsafe output.withUnsafeBytes { bytes in
                unsafe stream.write(UnsafeRawBufferPointer(rebasing: bytes[outputOffset...]))
            }
            switch result {
            case .bytes(let count):
                outputOffset += count
                written += count
            case .wouldBlock: return updateEvents()
            case .failed(let error): return failAfterReading(error)
            }
        }
        updateEvents()
        if !session.wantsRead, !session.wantsWrite, outputOffset == output.count {
            fail(EngineError(.connectionLost, "the HTTP/2 connection has ended"))
        }
    }

    private func updateEvents() {
        guard !isClosed else { return }
        let hasOutput = outputOffset < output.count || session?.wantsWrite == true
        stream.watch(hasOutput ? [.readable, .writable] : .readable, self)
    }

    // MARK: Input

    private func read() {
        var rounds = 0
        while !isClosed, let session {
            let buffer = unsafe context.receiveBuffer
            switch unsafe stream.read(into: buffer) {
            case .bytes(let count):
                let input = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
                liveness.received(at: context.now)
                if let error = unsafe session.receive(input, at: context.now) { return fail(error) }
                actAtTurnEnd()
                if count < buffer.count, !stream.mayHoldBytes { return }
            case .wouldBlock: return updateEvents()
            case .end:
                let reason =
                    session.hasReceivedSettings
                    ? "the connection ended"
                    : "the connection ended before the server's first frame: it may not speak HTTP/2"
                return fail(EngineError(.connectionLost, reason))
            case .failed(let error): return fail(error)
            }
            rounds += 1
            if rounds == Self.roundsPerEvent {
                mustRead = stream.mayHoldBytes
                return actAtTurnEnd()
            }
        }
    }

    /// Ends the connection after a failed write. A response, GOAWAY or an alert of TLS can wait in the socket, which
    /// says more than the reset. No byte comes after a reset, so what is read is bounded by the buffer of the socket.
    private func failAfterReading(_ error: EngineError) {
        var error = error
        // A response that is read frees a stream, and nobody may be put on a connection that is about to end.
        pool.draining(self)
        for _ in 0..<Self.roundsAfterFailure {
            guard !isClosed, let session else { return }
            let buffer = unsafe context.receiveBuffer
            let reading = unsafe stream.read(into: buffer)
            guard case .bytes(let count) = reading else {
                if case .failed(let reason) = reading, reason.kind == .tls { error = reason }
                break
            }
            let input = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
            if let violation = unsafe session.receive(input, at: context.now) {
                error = violation
                break
            }
        }
        fail(error)
    }

    // MARK: Silence

    /// The number of bytes that the peer's system has acknowledged. TLS adds some bytes, so it can be too small.
    private var acknowledged: Int { written - stream.unacknowledgedCount }

    /// Lets the timer fire at the next deadline, or never while no stream is in flight.
    func settleLivenessTimer() {
        guard let session, !isClosed else { return }
        if session.activeStreams == 0 {
            liveness.rested()
            context.cancel(livenessTimer)
        } else if liveness.deadline < livenessTimer.deadline {
            context.schedule(livenessTimer, at: liveness.deadline)
        }
    }

    private func checkLiveness() {
        guard let session, !isClosed, session.activeStreams > 0 else { return }
        // After a long turn, an answer can wait in the socket.
        if context.now >= liveness.deadline { read() }
        if isClosed { return }
        switch liveness.expired(at: context.now, acknowledged: acknowledged) {
        case .wait: break
        case .ping:
            session.ping()
            actAtTurnEnd()
        case .close:
            isSilent = true
            let reason = "the server sent nothing for a time, and did not answer PING (RFC 9113 §6.7)"
            return fail(EngineError(.connectionLost, reason))
        }
        settleLivenessTimer()
    }

    // MARK: The end

    private func fail(_ error: EngineError) {
        guard !isClosed else { return }
        // GOAWAY with the reason, if the socket takes it at once. Afterwards the streams fail, and with the last one
        // the pool can close the connection.
        var last: [UInt8] = []
        _ = session?.takeOutput(into: &last, upTo: 4_096)
        if !isClosed, outputOffset == output.count, !last.isEmpty {
            _ = unsafe last.withUnsafeBytes { unsafe stream.write($0) }
        }
        session?.connectionClosed(error)
        close()
        pool.closed(self)
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        context.cancel(livenessTimer)
        stream.close()
    }
}

extension HTTP2Carrier: SocketHandler, TimerHandler, TurnEndHandler {
    func timerFired(_ timer: LoopTimer) { checkLiveness() }

    func socketIsReady(_ events: SocketEvents) {
        let canWrite = stream.canWrite(after: events)
        if stream.canRead(after: events) { read() }
        if canWrite { send() }
    }

    func turnEnds(isIdle: Bool) -> Bool {
        willAct = false
        if mustRead, !isClosed {
            mustRead = false
            read()
        }
        deliverHeld()
        send()
        return false
    }
}
#endif
