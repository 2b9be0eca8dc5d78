#if os(Linux)
import FoundationEssentials
import TernConcurrency
import TernEngine

/// The time after the switch to another protocol: the bytes of the server are the chunks of the response, and those of
/// the request's pipe are sent as they are.
extension EngineAttempt: UpgradedConnectionHandler {
    func didUpgrade(_ connection: UpgradedConnection) {
        connection.handler = self
        upgraded = connection
        clock.upgraded()
        applyPause()
    }

    /// Begins the other protocol on a stream over HTTP/2 (RFC 8441 §5): its bytes are the bodies of the request and of
    /// the response, which the windows of the stream hold back.
    func switchStream(_ head: ResponseHead) {
        isStreamSwitched = true
        isStreamed = true
        clock.upgraded()
        unsafe table.context.wake(attempt.receive(head, isCompressed: false))
        markChanged()
        applyPause()
    }

    /// Sends the bytes of the pipe, until it is empty or the socket takes no more.
    func sendPipe() {
        guard let upgraded, !isPaused, case .pipe(let pipe, _) = attempt.request.source else { return }
        let buffer = unsafe table.context.sendBuffer
        while upgraded.isTakingBytes {
            let (piece, waiting) = unsafe pipe.takeLarge()
            if let piece {
                unsafe table.context.wake(waiting)
                didProduce(piece.count)
                unsafe piece.withUnsafeBytes { _ = unsafe upgraded.write(bytes: $0) }
                continue
            }
            let (read, producer) = unsafe pipe.read(into: buffer, leavesLarge: true)
            unsafe table.context.wake(producer)
            switch read {
            case .bytes(let count):
                didProduce(count)
                _ = unsafe upgraded.write(bytes: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            case .wait:
                isStarved = true
                return
            case .end: return upgraded.finishWriting()
            case .failed(let failure): return table.end(self, failure)
            }
        }
    }

    private func didProduce(_ count: Int) {
        produced += Int64(count)
        sentBytes += Int64(count)
        markChanged()
    }

    func didReceive(_ bytes: UnsafeRawBufferPointer) {
        didReceiveBytes(bytes.count)
        if unsafe didReceive(body: bytes) { return }
        table.end(self, failure)
    }

    func receiveBuffer() -> UnsafeMutableRawBufferPointer? { unsafe body.roomToGather() }

    func didFill(_ count: Int) {
        if count > 0 { didReceiveBytes(count) }
        didReceiveInPlace(count)
    }

    func didWriteAll() { sendPipe() }

    /// Ends the body. This side goes on sending until the session ends the pipe: bytes that it has accepted, and an
    /// answer to the last ones of the server, such as a Close frame (RFC 6455 §5.5.1).
    func didEndReceiving() {
        if body.waitingCount > 0 { deliverChunk() }
        unsafe table.context.wake(attempt.endBody())
    }

    func didClose(_ error: EngineError?) {
        // Closed already.
        upgraded = nil
        table.end(self, failure(for: error, isDeadConnection: false))
    }
}
#endif
