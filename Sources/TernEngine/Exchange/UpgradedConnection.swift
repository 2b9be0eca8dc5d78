#if os(Linux)
/// The owner of a connection that carries another protocol. Confined to the thread of the connection's loop.
package protocol UpgradedConnectionHandler: AnyObject {
    /// Called for bytes of the server, which are valid during the call only. Set `UpgradedConnection.isReading` to
    /// false to receive no more for now.
    func didReceive(_ bytes: UnsafeRawBufferPointer)
    /// Returns memory for the next bytes; nil, the default, to receive them by `didReceive(_:)`. `didFill(_:)` follows
    /// at once.
    func receiveBuffer() -> UnsafeMutableRawBufferPointer?
    /// Called when this number of bytes of the server is in the memory that `receiveBuffer()` returned, from its
    /// beginning; 0 if there was none.
    func didFill(_ count: Int)
    /// Called when the socket has taken all bytes after a `write` that returned false.
    func didWriteAll()
    /// Called once, when the server has ended its direction. Bytes can still be sent. Call `finishWriting()` or
    /// `close()`.
    func didEndReceiving()
    /// Called once, when both sides have ended their directions, the connection failed, or its pool was closed; not
    /// after `close()`.
    ///
    /// - Parameter error: The reason of a failure; nil after a regular end.
    func didClose(_ error: EngineError?)
}

extension UpgradedConnectionHandler {
    package func receiveBuffer() -> UnsafeMutableRawBufferPointer? { nil }
    package func didFill(_ count: Int) {}
}

/// A connection that the server has switched to another protocol (101, RFC 9110 §15.2.2). Confined to the thread of the
/// loop that called `ExchangeHandler.didUpgrade(_:)`.
///
/// It no longer counts for the limits of its pool. Its owner sets `handler` and `isReading`, and calls `close()`
/// at the end. No function calls the handler before it returns, except `ExchangePool.close()`.
package final class UpgradedConnection {
    /// The maximum number of reads for one event, so that one connection does not hold up the others.
    private static let roundsPerEvent = 4

    /// The state of this side's direction.
    private enum Writing {
        case open
        /// The end follows the waiting bytes.
        case finishing
        case finished
        case failed(EngineError)
    }

    let stream: ByteStream
    private let context: LoopContext
    /// Tells the pool that the connection is closed; nil once it is.
    private var onClose: (() -> Void)?
    /// Bytes that arrived together with the response, and were not delivered yet.
    private var received: [UInt8]
    /// Bytes that the socket has not taken yet.
    private var output: [UInt8] = []
    private var outputOffset = 0
    private var writing = Writing.open
    private var hasReceivedEnd = false
    private var willAct = false
    /// The owner of the connection. Without one, the connection is closed at its next event.
    package weak var handler: (any UpgradedConnectionHandler)?
    /// Whether the handler receives bytes. False until the owner sets it. While it is false, bytes wait in the socket,
    /// and an end or a failure is found only by a write.
    package var isReading = false {
        didSet {
            guard isReading != oldValue, isOpen else { return }
            updateEvents()
            if isReading { actAtTurnEnd() }
        }
    }

    init(over stream: ByteStream, received: [UInt8], context: LoopContext, onClose: @escaping () -> Void) {
        self.stream = stream
        self.received = received
        self.context = context
        self.onClose = onClose
        stream.setHandler(self)
        updateEvents()
    }

    /// Whether the connection is not closed.
    package var isOpen: Bool { onClose != nil }

    /// Whether the socket has taken all bytes so far, and more can be written.
    package var isTakingBytes: Bool {
        guard isOpen, case .open = writing else { return false }
        return outputOffset == output.count
    }

    // MARK: Writing

    /// Sends bytes. See `write(bytes:)`.
    package func write(_ bytes: [UInt8]) -> Bool { unsafe bytes.withUnsafeBytes { unsafe write(bytes: $0) } }

    /// Sends bytes, and keeps a copy of those that the socket does not take. Returns whether it took all. Otherwise,
    /// the caller waits for `didWriteAll`; more bytes before it are kept, too. Bytes after a failure are dropped.
    package func write(bytes: UnsafeRawBufferPointer) -> Bool {
        guard isOpen else { return false }
        switch writing {
        case .open: break
        case .failed: return false
        case .finishing, .finished: preconditionFailure("bytes after finishWriting()")
        }
        var sent = 0
        while outputOffset == output.count, sent < bytes.count {
            switch unsafe stream.write(UnsafeRawBufferPointer(rebasing: bytes[sent...])) {
            case .bytes(let count): sent += count
            case .wouldBlock:
                unsafe output.append(contentsOf: bytes[sent...])
                updateEvents()
                return false
            case .failed(let error):
                writing = .failed(error)
                actAtTurnEnd()
                return false
            }
        }
        guard sent < bytes.count else { return true }
        unsafe output.append(contentsOf: bytes[sent...])
        return send()
    }

    /// Ends this side's direction after the bytes so far. The server can still send.
    package func finishWriting() {
        guard isOpen, case .open = writing else { return }
        writing = .finishing
        _ = send()
    }

    /// Closes the connection now, without a call to the handler. Bytes that the socket has not taken are lost.
    package func close() {
        guard let onClose else { return }
        self.onClose = nil
        stream.close()
        onClose()
    }

    /// Sends the waiting bytes, and the end if it follows. Returns whether the socket took all of them.
    private func send() -> Bool {
        defer { updateEvents() }
        while outputOffset < output.count {
            let result = unsafe output.withUnsafeBytes { bytes in
                unsafe stream.write(UnsafeRawBufferPointer(rebasing: bytes[outputOffset...]))
            }
            switch result {
            case .bytes(let count): outputOffset += count
            case .wouldBlock: return false
            case .failed(let error):
                output = []
                outputOffset = 0
                writing = .failed(error)
                actAtTurnEnd()
                return false
            }
        }
        output.removeAll(keepingCapacity: output.capacity <= 64 << 10)
        outputOffset = 0
        if case .finishing = writing {
            guard stream.endWriting() else { return false }
            writing = .finished
            if hasReceivedEnd { actAtTurnEnd() }
        }
        return true
    }

    // MARK: Reading

    /// Delivers bytes. Returns whether none is left that could be delivered now.
    private func read() -> Bool {
        if isReading, !received.isEmpty {
            let bytes = received
            received = []
            unsafe bytes.withUnsafeBytes { unsafe handler?.didReceive($0) }
        }
        for _ in 0..<Self.roundsPerEvent {
            guard isReading, isOpen, !hasReceivedEnd else { return true }
            let place = unsafe handler?.receiveBuffer()
            let buffer = unsafe place ?? context.receiveBuffer
            let reading = unsafe stream.read(into: buffer)
            if case .bytes = reading {} else if unsafe place != nil { handler?.didFill(0) }
            switch reading {
            case .bytes(let count):
                if unsafe place != nil {
                    handler?.didFill(count)
                } else {
                    unsafe handler?.didReceive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                }
                if count < buffer.count, !stream.mayHoldBytes, !hasFailed { return true }
            case .wouldBlock: return true
            case .end(isClean: true):
                receiveEnd()
                return true
            case .end(isClean: false):
                end(EngineError(.connectionLost, "TLS ended without close_notify"))
                return true
            case .failed(let error):
                end(error)
                return true
            }
        }
        return false
    }

    private func receiveEnd() {
        hasReceivedEnd = true
        updateEvents()
        if case .finished = writing { return end(nil) }
        handler?.didEndReceiving()
    }

    // MARK: The loop

    private func actAtTurnEnd() {
        guard !willAct else { return }
        willAct = true
        context.callAtTurnEnd(self)
    }

    private func updateEvents() {
        guard isOpen else { return }
        var events: SocketEvents = isReading && !hasReceivedEnd ? .readable : []
        if isSending { events.insert(.writable) }
        stream.watch(events, self)
    }

    /// Whether bytes or the end wait for the socket.
    private var isSending: Bool {
        if case .finishing = writing { return true }
        return outputOffset < output.count
    }

    private var hasFailed: Bool {
        if case .failed = writing { return true }
        return false
    }

    private func act() {
        guard handler != nil else { return close() }
        let isDrained = read()
        guard isOpen else { return }
        // A write may have waited for the bytes, or the read waits for room.
        updateEvents()
        switch writing {
        // Bytes that the server sent before the failure are delivered first, if the handler wants them.
        case .failed(let error) where isDrained: end(error)
        case .finished where hasReceivedEnd: end(nil)
        default: if !isDrained, stream.mayHoldBytes { actAtTurnEnd() }
        }
    }

    private func end(_ error: EngineError?) {
        guard isOpen else { return }
        close()
        handler?.didClose(error)
    }

    /// Handles the end of the pool, which closes its connections.
    func poolClosed() {
        guard isOpen else { return }
        onClose = nil
        stream.close()
        handler?.didClose(EngineError(.cancelled, "the connections of the session were closed"))
    }
}

extension UpgradedConnection: SocketHandler, TurnEndHandler {
    package func socketIsReady(_ events: SocketEvents) {
        let hasFailed = !events.isDisjoint(with: .failed)
        if isSending, hasFailed || stream.canWrite(after: events), send() { handler?.didWriteAll() }
        guard isOpen else { return }
        if isReading {
            act()
        } else if hasFailed {
            // The failure is found when the handler reads again, or by a write.
            stream.watch([], self)
        }
    }

    package func turnEnds(isIdle: Bool) -> Bool {
        willAct = false
        if isOpen { act() }
        return false
    }
}
#endif
