#if os(Linux)
/// The streams of the connection, and the responses to their exchanges. Bytes that a reader does not want yet are held.
extension HTTP2Carrier {
    /// A stream that carries an exchange.
    final class Stream {
        let exchange: HTTPExchange
        /// Whether the connection carried an exchange before.
        let isReused: Bool
        /// Whether the stream was sent with PING, after a time without use.
        var isProbe = false
        /// Bytes of the body that the reader does not want yet.
        var held: [UInt8] = []
        /// Whether the response has ended, apart from the held bytes.
        var hasEnded = false
        /// Whether the server has ended its side of a tunnel, apart from the held bytes.
        var hasEndedReceiving = false
        var trailers: [UInt8]?
        var hasResponse = false

        init(_ exchange: HTTPExchange, isReused: Bool) {
            self.exchange = exchange
            self.isReused = isReused
        }
    }

    /// Delivers the bytes of streams whose readers want them again.
    func deliverHeld() {
        for (number, stream) in streams where stream.exchange.isReading && (!stream.held.isEmpty || stream.hasEnded) {
            // A handler can have withdrawn the exchange of another stream, and its own below.
            guard streams[number] === stream else { continue }
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
            if stream.hasEndedReceiving, streams[number] === stream {
                stream.hasEndedReceiving = false
                stream.exchange.handler.didEndReceiving()
            }
            if stream.hasEnded, streams[number] === stream {
                if let trailers = stream.trailers { stream.exchange.handler.didReceive(trailers: trailers) }
                end(number, nil)
            }
        }
    }
}

extension HTTP2Carrier: HTTP2SessionDelegate {
    func streamReceivedInterim(_ stream: Int32, head: ReceivedHead) {
        guard let exchange = streams[stream]?.exchange else { return }
        liveness.responseProgressed()
        streams[stream]?.hasResponse = true
        exchange.handler.didReceiveBytes(head.bytes.count)
        exchange.handler.didReceive(interim: head)
    }

    func streamReceivedHead(_ stream: Int32, head: ReceivedHead) {
        guard let exchange = streams[stream]?.exchange else { return }
        liveness.responseProgressed()
        streams[stream]?.hasResponse = true
        // The connection does not serve the origin: further requests go to another (RFC 9110 §15.5.20).
        if head.status == 421 { pool.draining(self) }
        exchange.handler.didReceiveBytes(head.bytes.count)
        exchange.handler.didReceive(head)
    }

    func streamReceivedBody(_ stream: Int32, bytes: UnsafeRawBufferPointer) {
        guard let receiving = streams[stream] else { return }
        liveness.responseProgressed()
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
        settleLivenessTimer()
        if streamLimit.answered() { pool.capacityChanged(self, to: streamLimit.current) }
        if receiving.held.isEmpty { end(stream, nil) } else { receiving.hasEnded = true }
    }

    func streamEndedReceiving(_ stream: Int32) {
        guard let receiving = streams[stream] else { return }
        if receiving.held.isEmpty {
            receiving.exchange.handler.didEndReceiving()
        } else {
            receiving.hasEndedReceiving = true
        }
    }

    func streamFailed(_ stream: Int32, error: EngineError) {
        if error == .requiresHTTP11 { pool.requiresHTTP1(self) }
        if error == .refusedStream {
            switch streamLimit.refused(besides: streams.count - 1) {
            case .none: break
            case .lowered: pool.capacityChanged(self, to: streamLimit.current)
            case .ended: pool.draining(self)
            }
        }
        end(stream, error)
    }

    func readBody(_ stream: Int32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart {
        guard let exchange = streams[stream]?.exchange else { return .failed(EngineError(.cancelled, "cancelled")) }
        guard exchange.isSending else { return .wait }
        switch unsafe exchange.handler.readBody(into: buffer) {
        case .bytes(let count):
            exchange.handler.didSend(count)
            return .bytes(count)
        case .wait: return .wait
        case .end:
            let trailers = exchange.handler.requestTrailers()
            if trailers.isEmpty { return .end }
            exchange.handler.didSend(trailers.count)
            return .trailers(trailers)
        case .failed: return .failed(EngineError(.cancelled, "the body of the request failed"))
        }
    }

    func maximumStreamsChanged(_ maximum: Int) {
        if streamLimit.stated(maximum) { pool.capacityChanged(self, to: streamLimit.current) }
    }

    func extendedConnectChanged(_ isAllowed: Bool) { pool.extendedConnectChanged(self, isAllowed: isAllowed) }

    func goAwayReceived(lastStream: Int32, error: EngineError?) {
        if error == .requiresHTTP11 { pool.requiresHTTP1(self) }
        pool.draining(self)
    }

    func pongReceived() {}
}
#endif
