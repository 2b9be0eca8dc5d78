#if os(Linux)
/// A connection that carries one exchange at a time, over HTTP/1. Confined to the loop's thread.
///
/// It moves the bytes; `HTTP1Connection` decides what they mean.
final class HTTP1Carrier: ExchangeCarrier {
    /// The maximum number of reads, and of writes, for one event, so that one connection does not hold up the others.
    private static let roundsPerEvent = 4
    /// The number of bytes of a buffer that are kept for the framing of a chunk.
    private static let framingRoom = 32

    let id: ConnectionPool.ConnectionID
    private unowned let pool: LoopConnections
    private let context: LoopContext
    private let stream: ByteStream
    /// The time in nanoseconds of the turn in which the connection was opened.
    private let openedAt: UInt64
    private var info: ConnectionInfo
    private var connection = HTTP1Connection()
    private var exchange: HTTPExchange?
    /// The connection that the server has switched to another protocol, until it is closed.
    private var upgraded: UpgradedConnection?
    /// Bytes that the socket has not taken yet.
    private var output: [UInt8] = []
    private var outputOffset = 0
    /// The number of bytes of the request's body that are still to be read; nil if it is not known.
    private var missingBody: Int64?
    /// A Boolean value that indicates whether the body has no bytes yet.
    private var isStarved = false
    /// A Boolean value that indicates whether more of the body can be sent as soon as the socket takes it.
    private var hasMoreBody = false
    /// The failure of a write. A response can still be read.
    private var writeFailure: EngineError?
    private var willReadAtTurnEnd = false
    private lazy var continueTimer = LoopTimer(self)

    init(
        _ id: ConnectionPool.ConnectionID, over stream: ByteStream, info: ConnectionInfo, pool: LoopConnections,
        context: LoopContext
    ) {
        self.id = id
        self.stream = stream
        self.info = info
        self.pool = pool
        self.context = context
        openedAt = context.now
        stream.setHandler(self)
        stream.watch(.readable, self)
    }

    // MARK: The request

    func start(_ exchange: HTTPExchange) {
        if mustLookBeforeUse(by: exchange), stream.hasStrayInput() {
            // Bytes that arrive before the request can only belong to an answer that nobody asked for, and an end means
            // that the request would be lost. Nothing was sent, so the exchange goes to another connection. The system
            // is asked each time: the loop can have polled the socket before the bytes arrived, or serve other sockets
            // first.
            closeIdle()
            return pool.returned(exchange)
        }
        self.exchange = exchange
        exchange.connection = self
        exchange.handler.didConnect(info)
        info.isReused = true
        info.pinReport = nil
        let framing: HTTP1RequestHead.Framing
        switch exchange.body {
        case .none: (framing, missingBody) = (.none, 0)
        case .length(let count): (framing, missingBody) = (.length(count), count)
        case .stream: (framing, missingBody) = (.chunked, nil)
        }
        var head = HTTP1RequestHead(
            method: exchange.method, target: exchange.path, authority: exchange.destination.authority,
            framing: framing)
        head.dropsProxyAuthorization = !exchange.destination.isForwarded
        head.upgrade = exchange.upgrade
        do {
            try head.write(exchange.fields, into: &output)
        } catch {
            self.exchange = nil
            exchange.connection = nil
            pool.finished(self, isReusable: true)
            return exchange.handler.didEnd(error, isDeadConnection: false)
        }
        let request = HTTP1Connection.Request(
            method: exchange.method, fields: exchange.fields, hasBody: missingBody != 0, limits: exchange.limits,
            upgrade: exchange.upgrade)
        let deadline = context.now.addingReportingOverflow(exchange.continueWait)
        connection.start(request, continueDeadline: deadline.overflow ? .max : deadline.partialValue)
        isStarved = false
        hasMoreBody = connection.sending == .open
        if case .waits(let deadline) = connection.sending { context.schedule(continueTimer, at: deadline) }
        send()
    }

    func bodyIsReady(_ exchange: HTTPExchange) {
        isStarved = false
        if connection.sending == .open { hasMoreBody = true }
        send()
    }

    /// Sends the waiting bytes, and as much of the body as the socket takes.
    private func send() {
        guard writeFailure == nil else { return }
        var rounds = 0
        while rounds < Self.roundsPerEvent {
            rounds += 1
            guard let exchange else { break }
            let canRead = hasMoreBody && exchange.isSending && connection.sending == .open
            // Bytes that wait go together with the next piece of the body, in one call.
            guard canRead, output.count - outputOffset < LoopContext.receiveCapacity / 4 else {
                if outputOffset == output.count { break }
                if !sendOutput() { break }
                if !canRead { break }
                continue
            }
            guard sendPiece(of: exchange) else { break }
        }
        updateEvents()
    }

    /// Sends the waiting bytes and one piece of the body. Returns whether more can be sent.
    private func sendPiece(of exchange: HTTPExchange) -> Bool {
        let buffer = unsafe context.sendBuffer
        var filled = output.count - outputOffset
        unsafe output.withUnsafeBytes { waiting in
            let rest = unsafe UnsafeRawBufferPointer(rebasing: waiting[outputOffset...])
            unsafe buffer.copyMemory(from: rest)
        }
        output.removeAll(keepingCapacity: true)
        outputOffset = 0
        let isChunked = missingBody == nil
        let front = isChunked ? Self.framingRoom : 0
        var room = buffer.count - filled - 2 * Self.framingRoom
        if let missingBody { room = Int(min(Int64(room), missingBody)) }
        guard room > 0 else { return finishBody(filled) }
        let start = filled + front
        let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[start..<(start + room)])
        switch unsafe exchange.handler.readBody(into: piece) {
        case .bytes(let count):
            if isChunked {
                var frame: [UInt8] = []
                HTTP1ChunkFraming.appendSizeLine(of: count, to: &frame)
                copy(frame, to: filled)
                // The size line is shorter than its room: the bytes move up to it.
                let target = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[(filled + frame.count)...])
                unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: piece[..<count]))
                filled += frame.count + count
                copy(HTTP1ChunkFraming.dataEnd, to: filled)
                filled += 2
            } else {
                filled += count
                missingBody = (missingBody ?? 0) - Int64(count)
                if missingBody == 0 { return finishBody(filled) }
            }
            return sendBuffer(filled)
        case .wait:
            isStarved = true
            hasMoreBody = false
            _ = sendBuffer(filled)
            return false
        case .end:
            if let missingBody, missingBody > 0 {
                fail(EngineError(.invalidRequest, "the body of the request ended \(missingBody) bytes early"))
                return false
            }
            return finishBody(filled)
        case .failed:
            fail(EngineError(.cancelled, "the body of the request failed"))
            return false
        }
    }

    private func copy(_ bytes: [UInt8], to offset: Int) {
        for (index, byte) in bytes.enumerated() { unsafe context.sendBuffer[offset + index] = byte }
    }

    /// Sends the last bytes of the body, and the last chunk with the trailers (RFC 9112 §7.1).
    private func finishBody(_ count: Int) -> Bool {
        var filled = count
        var end: [UInt8] = []
        if missingBody == nil, let exchange {
            HTTP1ChunkFraming.appendEnd(trailerLines: exchange.handler.requestTrailers(), to: &end)
        }
        hasMoreBody = false
        connection.bodyEnded()
        if unsafe end.count <= context.sendBuffer.count - filled {
            copy(end, to: filled)
            filled += end.count
            _ = sendBuffer(filled)
        } else if sendBuffer(filled) || writeFailure == nil {
            output.append(contentsOf: end)
            _ = sendOutput()
        }
        return false
    }

    /// Sends the first bytes of the send buffer, and keeps those that the socket does not take. Returns whether it took
    /// all of them.
    private func sendBuffer(_ count: Int) -> Bool {
        if count == 0 { return true }
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: context.sendBuffer[..<count])
        var sent = 0
        while sent < count {
            switch unsafe stream.write(UnsafeRawBufferPointer(rebasing: bytes[sent...])) {
            case .bytes(let taken):
                sent += taken
                exchange?.handler.didSend(taken)
            case .wouldBlock:
                unsafe output.append(contentsOf: bytes[sent...])
                return false
            case .failed(let error):
                writeFailure = error
                return false
            }
        }
        return true
    }

    /// Sends the waiting bytes. Returns whether the socket took all of them.
    private func sendOutput() -> Bool {
        while outputOffset < output.count {
            let result = unsafe output.withUnsafeBytes { bytes in
                unsafe stream.write(UnsafeRawBufferPointer(rebasing: bytes[outputOffset...]))
            }
            switch result {
            case .bytes(let count):
                outputOffset += count
                exchange?.handler.didSend(count)
            case .wouldBlock: return false
            case .failed(let error):
                writeFailure = error
                return false
            }
        }
        output.removeAll(keepingCapacity: output.capacity <= 64 << 10)
        outputOffset = 0
        return true
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

    private var wantsInput: Bool { exchange?.isReading ?? !connection.mustClose }

    var takesExchanges: Bool { true }

    /// Returns whether the exchange may only be sent while no byte waits. That does not hold for the first exchange of a
    /// connection that was opened in this turn, or after another new connection: a server that speaks first would cost one
    /// connection after the other, and its reason would never be read.
    private func mustLookBeforeUse(by exchange: HTTPExchange) -> Bool {
        connection.exchanges > 0 || context.now != openedAt && exchange.newConnectionsLost == 0
    }

    private func updateEvents() {
        guard !connection.mustClose else { return }
        var events: SocketEvents = wantsInput ? .readable : []
        let isSending = exchange?.isSending ?? true
        if writeFailure == nil, outputOffset < output.count || hasMoreBody && isSending { events.insert(.writable) }
        stream.watch(events, self)
    }

    private func read() {
        var rounds = 0
        while wantsInput, !connection.mustClose {
            let buffer = unsafe context.receiveBuffer
            switch unsafe stream.read(into: buffer) {
            case .bytes(let count):
                unsafe take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                if connection.mustClose { return }
                if count < buffer.count, !stream.mayHoldBytes { return updateEvents() }
            case .wouldBlock: return updateEvents()
            case .end(let isClean): return takeEnd(connection.endOfInput(isCut: !isClean))
            case .failed(let error): return takeFailure(error)
            }
            rounds += 1
            if rounds == Self.roundsPerEvent {
                if stream.mayHoldBytes { readAtTurnEnd() }
                return updateEvents()
            }
        }
    }

    private func take(_ input: UnsafeRawBufferPointer) {
        exchange?.handler.didReceiveBytes(input.count)
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
            context.cancel(continueTimer)
            hasMoreBody = true
            send()
        } else if connection.sending == .stopped {
            context.cancel(continueTimer)
            hasMoreBody = false
        }
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

    // MARK: The end

    private func finish(isReusable: Bool) {
        guard let exchange else { return }
        self.exchange = nil
        exchange.connection = nil
        context.cancel(continueTimer)
        hasMoreBody = false
        // Bytes of the request that the socket has not taken cannot be taken back.
        let isReusable = isReusable && outputOffset == output.count && writeFailure == nil
        if isReusable {
            pool.finished(self, isReusable: true)
            // The pool may have started the next exchange, or closed the connection.
            if self.exchange == nil { updateEvents() }
        } else {
            close()
            pool.finished(self, isReusable: false)
        }
        exchange.handler.didEnd(nil, isDeadConnection: false)
    }

    /// Hands the connection to the handler of the exchange, with the bytes after the head of the 101 response. For the
    /// pool, the connection stays in use until it is closed.
    private func upgrade(_ rest: UnsafeRawBufferPointer) {
        guard let exchange, exchange.upgrade != nil else { return finish(isReusable: false) }
        guard outputOffset == output.count, writeFailure == nil else {
            return fail(EngineError(.malformedResponse, "the server switched protocols before the request was sent"))
        }
        self.exchange = nil
        exchange.connection = nil
        connection.close()
        let upgraded = unsafe UpgradedConnection(over: stream, received: Array(rest), context: context, carrier: self)
        self.upgraded = upgraded
        exchange.handler.didUpgrade(upgraded)
        exchange.handler.didEnd(nil, isDeadConnection: false)
    }

    private func fail(_ error: EngineError, isDead: Bool = false) {
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

    private func closeIdle() {
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
        context.cancel(continueTimer)
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
        if events.contains(.writable) { send() }
        guard !connection.mustClose else { return }
        if wantsInput {
            read()
        } else if !events.isDisjoint(with: .failed) {
            // The failure is found when the reader continues.
            stream.watch([], self)
        }
    }

    func timerFired(_ timer: LoopTimer) {
        if connection.checkDeadline(now: context.now) { continueBody() }
    }

    func turnEnds(isIdle: Bool) -> Bool {
        willReadAtTurnEnd = false
        if wantsInput, !connection.mustClose { read() }
        return false
    }
}
#endif
