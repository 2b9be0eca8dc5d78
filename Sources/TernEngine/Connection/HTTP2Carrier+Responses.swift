#if os(Linux)
extension HTTP2Carrier: StreamCarrier {
    func consume(_ stream: Int32, count: Int) { session?.consume(stream, count: count) }
}

extension HTTP2Carrier: HTTP2SessionDelegate {
    func streamReceivedInterim(_ stream: Int32, head: ReceivedHead) {
        liveness.responseProgressed()
        deliver(interim: head, of: stream)
    }

    func streamReceivedHead(_ stream: Int32, head: ReceivedHead) {
        liveness.responseProgressed()
        deliver(head, of: stream)
    }

    func streamReceivedBody(_ stream: Int32, bytes: UnsafeRawBufferPointer) {
        liveness.responseProgressed()
        unsafe deliver(bytes, of: stream)
    }

    func streamReceivedTrailers(_ stream: Int32, lines: [UInt8]) { deliver(trailers: lines, of: stream) }

    func streamEnded(_ stream: Int32) {
        guard streams[stream] != nil else { return }
        settleLivenessTimer()
        if streamLimit.answered() { pool.capacityChanged(self, to: streamLimit.current) }
        deliverEnd(of: stream)
    }

    func streamEndedReceiving(_ stream: Int32) { deliverEndOfReceiving(of: stream) }

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
        unsafe bodyPart(of: stream, into: buffer)
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
