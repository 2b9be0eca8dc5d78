#if os(Linux)
/// A stream that carries an exchange, over HTTP/2 or HTTP/3.
final class CarriedStream {
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

/// A connection whose streams carry exchanges. It delivers the responses to their readers, and holds the bytes that a
/// reader does not want yet.
protocol StreamCarrier: PooledCarrier {
    associatedtype StreamID: Hashable

    var pool: LoopConnections { get }
    /// The alternative of the destination that the connection leads to; nil for none.
    var alternative: AlternativeService? { get }
    var streams: [StreamID: CarriedStream] { get set }
    /// Returns bytes of a response to the window of their stream.
    func consume(_ stream: StreamID, count: Int)
    /// Resets a stream, and ends its exchange.
    func abort(_ stream: StreamID, _ error: EngineError)
    /// Ends the exchange of a stream that has ended.
    func end(_ stream: StreamID, _ error: EngineError?)
}

extension StreamCarrier {
    var alternative: AlternativeService? { nil }

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
            consume(number, count: bytes.count)
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

    /// Delivers an interim response.
    func deliver(interim head: ReceivedHead, of stream: StreamID) {
        guard let receiving = streams[stream] else { return }
        receiving.hasResponse = true
        receiving.exchange.handler.didReceiveBytes(head.bytes.count)
        receiving.exchange.handler.didReceive(interim: head)
    }

    /// Delivers the head of a response.
    func deliver(_ head: ReceivedHead, of stream: StreamID) {
        guard let receiving = streams[stream] else { return }
        receiving.hasResponse = true
        // The connection does not serve the origin: further requests go to another (RFC 9110 §15.5.20).
        if head.status == 421 { takeNoMore() }
        pool.received(head, for: receiving.exchange, over: alternative)
        receiving.exchange.handler.didReceiveBytes(head.bytes.count)
        receiving.exchange.handler.didReceive(head)
    }

    /// Delivers bytes of a body, or holds them.
    func deliver(_ bytes: UnsafeRawBufferPointer, of stream: StreamID) {
        guard let receiving = streams[stream] else { return }
        receiving.exchange.handler.didReceiveBytes(bytes.count)
        guard receiving.exchange.isReading, receiving.held.isEmpty else {
            return unsafe receiving.held.append(contentsOf: bytes)
        }
        if unsafe receiving.exchange.handler.didReceive(body: bytes) {
            consume(stream, count: bytes.count)
        } else {
            abort(stream, EngineError(.cancelled, "the receiver ended the exchange"))
        }
    }

    /// Delivers trailers, after the bytes that are held.
    func deliver(trailers lines: [UInt8], of stream: StreamID) {
        guard let receiving = streams[stream] else { return }
        if receiving.held.isEmpty {
            receiving.exchange.handler.didReceive(trailers: lines)
        } else {
            receiving.trailers = lines
        }
    }

    /// Delivers the end of a response, after the bytes that are held.
    func deliverEnd(of stream: StreamID) {
        guard let receiving = streams[stream] else { return }
        if receiving.held.isEmpty { end(stream, nil) } else { receiving.hasEnded = true }
    }

    /// Delivers the end of the server's side of a tunnel, after the bytes that are held.
    func deliverEndOfReceiving(of stream: StreamID) {
        guard let receiving = streams[stream] else { return }
        if receiving.held.isEmpty {
            receiving.exchange.handler.didEndReceiving()
        } else {
            receiving.hasEndedReceiving = true
        }
    }

    /// Asks the handler of a stream for the next part of the request's body.
    func bodyPart(of stream: StreamID, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart {
        guard let exchange = streams[stream]?.exchange else { return .failed(EngineError(.cancelled, "cancelled")) }
        guard exchange.isSending else { return .wait }
        switch unsafe exchange.handler.readBody(into: buffer) {
        case .bytes(let count):
            exchange.handler.didSend(count)
            // The last bytes end the stream, so that no empty frame follows them.
            return exchange.handler.hasReadWholeBody() ? .last(count) : .bytes(count)
        case .wait: return .wait
        case .end:
            let trailers = exchange.handler.requestTrailers()
            if trailers.isEmpty { return .end }
            exchange.handler.didSend(trailers.count)
            return .trailers(trailers)
        case .failed: return .failed(EngineError(.cancelled, "the body of the request failed"))
        }
    }
}
#endif
