#if os(Linux)
/// A connection that carries many exchanges at a time, over HTTP/2. Confined to the loop's thread.
///
/// It moves the bytes; `HTTP2Session` decides what they mean.
final class HTTP2Carrier: ExchangeCarrier {
    private static let roundsPerEvent = 4
    /// The number of bytes that are taken from the session at a time.
    private static let outputSize = 256 << 10

    /// A stream that carries an exchange.
    private final class Stream {
        let exchange: HTTPExchange
        /// A Boolean value that indicates whether the connection carried an exchange before.
        let isReused: Bool
        /// Bytes of the body that the reader does not want yet.
        var held: [UInt8] = []
        /// A Boolean value that indicates whether the response has ended, apart from the held bytes.
        var hasEnded = false
        var trailers: [UInt8]?
        var hasResponse = false

        init(_ exchange: HTTPExchange, isReused: Bool) {
            self.exchange = exchange
            self.isReused = isReused
        }
    }

    let id: ConnectionPool.ConnectionID
    private unowned let pool: ExchangePool
    private let context: LoopContext
    private let stream: ByteStream
    private var info: ConnectionInfo
    private var session: HTTP2Session?
    private var streams: [Int32: Stream] = [:]
    private var output: [UInt8] = []
    private var outputOffset = 0
    private var isClosed = false
    private var willAct = false
    /// A Boolean value that indicates whether bytes can be read for which the socket reports no event.
    private var mustRead = false

    init(
        _ id: ConnectionPool.ConnectionID, over stream: ByteStream, info: ConnectionInfo, pool: ExchangePool,
        context: LoopContext
    ) throws(EngineError) {
        self.id = id
        self.stream = stream
        self.info = info
        self.pool = pool
        self.context = context
        self.info.version = .http2
        session = try HTTP2Session(delegate: self)
        stream.setHandler(self)
        stream.watch(.readable, self)
        actAtTurnEnd()
    }

    /// The number of streams that the server allows at once.
    var capacity: Int { max(1, session?.maximumStreams ?? 1) }

    // MARK: Exchanges

    func start(_ exchange: HTTPExchange) {
        guard let session else { return }
        exchange.connection = self
        exchange.handler.didConnect(info)
        var length: Int64?
        if case .length(let count) = exchange.body { length = count }
        let hasBody = exchange.body == .stream || (length ?? 0) > 0
        let isReused = info.isReused
        info.isReused = true
        info.pinReport = nil
        do {
            var request = HTTP2Request(
                method: exchange.method, scheme: exchange.destination.isSecure ? "https" : "http",
                authority: exchange.destination.authority, path: exchange.path, fields: exchange.fields.bytes,
                headLimits: exchange.limits)
            request.contentLength = length
            request.hasBody = hasBody
            exchange.stream = try session.submit(request)
            streams[exchange.stream] = Stream(exchange, isReused: isReused)
            exchange.handler.didSend(exchange.fields.bytes.count)
            actAtTurnEnd()
        } catch {
            exchange.connection = nil
            pool.finished(self, isReusable: session.takesRequests)
            exchange.handler.didEnd(error, isDeadConnection: false)
        }
    }

    func readingChanged(_ exchange: HTTPExchange) {
        guard exchange.isReading, streams[exchange.stream] != nil else { return }
        actAtTurnEnd()
    }

    func bodyIsReady(_ exchange: HTTPExchange) {
        session?.resumeBody(exchange.stream)
        actAtTurnEnd()
    }

    func cancel(_ exchange: HTTPExchange) {
        exchange.connection = nil
        guard streams.removeValue(forKey: exchange.stream) != nil, let session else { return }
        session.cancel(exchange.stream)
        actAtTurnEnd()
        pool.finished(self, isReusable: session.takesRequests)
    }

    private func end(_ number: Int32, _ error: EngineError?) {
        guard let ended = streams.removeValue(forKey: number) else { return }
        ended.exchange.connection = nil
        let isDead = error?.kind == .connectionLost && ended.isReused && !ended.hasResponse
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

    /// Delivers the bytes of streams whose readers want them again.
    private func deliverHeld() {
        for (number, stream) in streams where stream.exchange.isReading && (!stream.held.isEmpty || stream.hasEnded) {
            let bytes = stream.held
            stream.held = []
            let goesOn = unsafe bytes.withUnsafeBytes { bytes in
                unsafe bytes.isEmpty || stream.exchange.handler.didReceive(body: bytes)
            }
            session?.consume(number, count: bytes.count)
            guard goesOn else {
                abort(number, EngineError(.cancelled, "the receiver ended the exchange"))
                continue
            }
            if stream.hasEnded {
                if let trailers = stream.trailers { stream.exchange.handler.didReceive(trailers: trailers) }
                end(number, nil)
            }
        }
    }

    private func abort(_ number: Int32, _ error: EngineError) {
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
            case .bytes(let count): outputOffset += count
            case .wouldBlock: return updateEvents()
            case .failed(let error): return fail(error)
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
                if let error = unsafe session.receive(input, at: context.now) { return fail(error) }
                actAtTurnEnd()
                if count < buffer.count, !stream.mayHoldBytes { return }
            case .wouldBlock: return
            case .end: return fail(EngineError(.connectionLost, "the connection ended"))
            case .failed(let error): return fail(error)
            }
            rounds += 1
            if rounds == Self.roundsPerEvent {
                mustRead = stream.mayHoldBytes
                return actAtTurnEnd()
            }
        }
    }

    // MARK: The end

    private func fail(_ error: EngineError) {
        guard !isClosed else { return }
        // GOAWAY with the reason, if the socket takes it at once. Afterwards the streams fail, and with the last one the
        // pool can close the connection.
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
        stream.close()
    }
}

extension HTTP2Carrier: SocketHandler, TurnEndHandler {
    func socketIsReady(_ events: SocketEvents) {
        if !events.isDisjoint(with: [.readable, .failed]) { read() }
        if events.contains(.writable) { send() }
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

extension HTTP2Carrier: HTTP2SessionDelegate {
    func streamReceivedInterim(_ stream: Int32, head: ReceivedHead) {
        guard let exchange = streams[stream]?.exchange else { return }
        streams[stream]?.hasResponse = true
        exchange.handler.didReceiveBytes(head.bytes.count)
        exchange.handler.didReceive(interim: head)
    }

    func streamReceivedHead(_ stream: Int32, head: ReceivedHead) {
        guard let exchange = streams[stream]?.exchange else { return }
        streams[stream]?.hasResponse = true
        exchange.handler.didReceiveBytes(head.bytes.count)
        exchange.handler.didReceive(head)
    }

    func streamReceivedBody(_ stream: Int32, bytes: UnsafeRawBufferPointer) {
        guard let receiving = streams[stream] else { return }
        receiving.exchange.handler.didReceiveBytes(bytes.count)
        guard receiving.exchange.isReading, receiving.held.isEmpty else {
            return unsafe receiving.held.append(contentsOf: bytes)
        }
        if unsafe receiving.exchange.handler.didReceive(body: bytes) {
            session?.consume(stream, count: bytes.count)
        } else {
            abort(stream, EngineError(.cancelled, "the receiver ended the exchange"))
        }
    }

    func streamReceivedTrailers(_ stream: Int32, lines: [UInt8]) {
        guard let receiving = streams[stream] else { return }
        if receiving.held.isEmpty {
            receiving.exchange.handler.didReceive(trailers: lines)
        } else {
            receiving.trailers = lines
        }
    }

    func streamEnded(_ stream: Int32) {
        guard let receiving = streams[stream] else { return }
        if receiving.held.isEmpty { end(stream, nil) } else { receiving.hasEnded = true }
    }

    func streamFailed(_ stream: Int32, error: EngineError) { end(stream, error) }

    func readBody(_ stream: Int32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart {
        guard let exchange = streams[stream]?.exchange else { return .failed(EngineError(.cancelled, "cancelled")) }
        guard exchange.isSending else { return .wait }
        switch unsafe exchange.handler.readBody(into: buffer) {
        case .bytes(let count):
            exchange.handler.didSend(count)
            return .bytes(count)
        case .wait: return .wait
        case .end: return .end
        case .failed: return .failed(EngineError(.cancelled, "the body of the request failed"))
        }
    }

    func maximumStreamsChanged(_ maximum: Int) { pool.capacityChanged(self, to: max(1, maximum)) }

    func goAwayReceived(lastStream: Int32, error: EngineError?) { pool.draining(self) }

    func pongReceived() {}
}
#endif
