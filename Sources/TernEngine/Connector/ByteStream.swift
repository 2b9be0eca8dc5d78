#if os(Linux)
/// The bytes of a connection: a socket, with TLS or without. Confined to the loop's thread.
final class ByteStream {
    enum Reading {
        /// The number of bytes that were read, at least 1.
        case bytes(Int)
        case wouldBlock
        /// The end of the peer's direction. With `isClean` false, TLS ended without a close_notify: an attacker can
        /// have cut the bytes.
        case end(isClean: Bool)
        case failed(EngineError)
    }

    enum Writing {
        case bytes(Int)
        case wouldBlock
        case failed(EngineError)
    }

    let descriptor: Int32
    private let context: LoopContext
    /// The session over the socket, after its handshake; nil without TLS.
    private var tls: TLSSession?
    private var registration: SocketRegistration?
    private(set) var events: SocketEvents
    /// Whether the last write over TLS waits for the rest of a message of the handshake.
    private var writeNeedsInput = false
    /// Whether the last read over TLS must first write an answer to the peer, such as to a key update. Until the socket
    /// has room for it, no byte can be read.
    private(set) var readNeedsOutput = false
    private var isOpen = true

    /// - Parameters:
    ///   - registration: The registration of the connected socket.
    ///   - events: The events for which the socket is watched.
    init(_ context: LoopContext, _ registration: SocketRegistration, watching events: SocketEvents) {
        self.context = context
        self.registration = registration
        self.events = events
        descriptor = registration.descriptor
    }

    deinit { close() }

    /// Moves all further bytes over a session, whose handshake is done. It lies over the present one, if there is one.
    func secure(with session: TLSSession?) { tls = session }

    /// The protocol that was negotiated by TLS.
    var negotiatedProtocol: String? { tls?.negotiatedProtocol }

    /// Whether another read could find bytes for which the socket reports no event, after a read of fewer bytes than
    /// the buffer holds.
    var mayHoldBytes: Bool {
        guard let tls else { return false }
        return tls.hasPending || !tls.isDrained
    }

    /// Returns whether a byte, an end or an error waits on a connection that nobody reads. It must be closed then.
    /// Records of TLS without data, such as tickets, are taken and do not count, unless one is incomplete: nothing can
    /// be sent before its rest, which may never come.
    func hasStrayInput() -> Bool {
        guard let tls else { return Socket.hasInput(descriptor) }
        guard mayHoldBytes || Socket.hasInput(descriptor) else { return tls.hasIncompleteHandshakeMessage }
        // Not the buffer of the loop: another connection can be using its bytes.
        var byte: UInt8 = 0
        return switch unsafe withUnsafeMutableBytes(of: &byte, { unsafe tls.read(into: $0) }) {
        // A part of a record waits for its rest, which can be data.
        case .wouldBlock, .wantsWrite: tls.hasIncompleteHandshakeMessage || tls.hasPending
        case .bytes, .end, .failed: true
        }
    }

    /// Watches the socket for these events, and calls the handler. With no events, the socket is not watched at all:
    /// the system would report a failed connection again and again.
    ///
    /// While a write waits for input, bytes are awaited in place of room for them, which there is: the handler writes
    /// when `canWrite(after:)` says so. While a read waits for room, `.writable` is watched in place of `.readable`: no
    /// byte can be read before.
    func watch(_ wanted: SocketEvents, _ handler: any SocketHandler) {
        var wanted = wanted
        if writeNeedsInput, wanted.remove(.writable) != nil { wanted.insert(.readable) }
        if readNeedsOutput, wanted.remove(.readable) != nil { wanted.insert(.writable) }
        guard wanted != events || registration == nil, isOpen else { return }
        events = wanted
        if let registration {
            if wanted.isEmpty {
                context.forget(registration)
                self.registration = nil
            } else {
                context.change(registration, to: wanted)
            }
        } else if !wanted.isEmpty {
            // This stream gave its registration up, so the system has room for one. If it has not, the descriptor is
            // shut down, and the next read or write reports that.
            registration = context.watch(descriptor, for: wanted, handler: handler)
            if registration == nil { Socket.endBoth(descriptor) }
        }
    }

    /// Makes the object the handler of the socket's events.
    func setHandler(_ handler: any SocketHandler) {
        if let registration { context.change(registration, handler: handler) }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Reading {
        guard let tls else {
            return switch unsafe Socket.receive(descriptor, into: buffer) {
            case .bytes(let count): .bytes(count)
            case .wouldBlock: .wouldBlock
            case .end: .end(isClean: true)
            case .failed(let error): .failed(EngineError(.connectionLost, error.text, code: error.code))
            }
        }
        let result = unsafe tls.read(into: buffer)
        readNeedsOutput = result == .wantsWrite
        if writeNeedsInput, !tls.hasIncompleteHandshakeMessage { writeNeedsInput = false }
        return switch result {
        case .bytes(let count): .bytes(count)
        case .wouldBlock, .wantsWrite: .wouldBlock
        case .end(let isClean): .end(isClean: isClean)
        case .failed(let error): .failed(error)
        }
    }

    /// Whether the system can move bytes between the socket and a pipe or a file: not over TLS, which changes them.
    var isPlain: Bool { tls == nil }

    func write(_ bytes: UnsafeRawBufferPointer) -> Writing {
        guard let tls else {
            return switch unsafe Socket.send(descriptor, from: bytes) {
            case .bytes(let count): .bytes(count)
            case .wouldBlock, .end: .wouldBlock
            case .failed(let error): .failed(EngineError(.connectionLost, error.text, code: error.code))
            }
        }
        let result = unsafe tls.write(bytes)
        writeNeedsInput = result == .wantsRead
        return switch result {
        case .bytes(let count): .bytes(count)
        case .wouldBlock, .wantsRead: .wouldBlock
        case .failed(let error): .failed(error)
        }
    }

    /// Returns whether a write that was stopped can go on after these events.
    func canWrite(after events: SocketEvents) -> Bool { writeNeedsInput || events.contains(.writable) }

    /// Returns whether a read can find bytes after these events.
    func canRead(after events: SocketEvents) -> Bool {
        !events.isDisjoint(with: [.readable, .failed]) || readNeedsOutput && events.contains(.writable)
    }

    /// Sends bytes out of a file without copying them. The number is 0 at the end of the file.
    func write(_ file: BodyFile) -> Writing {
        switch Socket.send(descriptor, from: file) {
        case .bytes(let count): .bytes(count)
        case .wouldBlock: .wouldBlock
        case .end: .bytes(0)
        case .failed(let error): .failed(EngineError(.connectionLost, error.text, code: error.code))
        }
    }

    /// Ends this side's direction, after which bytes can still be read. Returns false if the socket takes no more now;
    /// call it again then.
    func endWriting() -> Bool {
        // Over TLS, close_notify is the end: the socket must still take answers to the peer's key updates.
        if let tls {
            let hasEnded = tls.endWriting()
            writeNeedsInput = !hasEnded && tls.hasIncompleteHandshakeMessage
            return hasEnded
        }
        Socket.endSending(descriptor)
        return true
    }

    /// The number of bytes that the peer's system has not acknowledged, with those of TLS.
    var unacknowledgedCount: Int { isOpen ? Socket.unacknowledgedCount(of: descriptor) : 0 }

    /// Closes the socket. Over TLS, the peer is told first, without a wait.
    func close() {
        guard isOpen else { return }
        isOpen = false
        tls?.close()
        if let registration { context.forget(registration) }
        registration = nil
        Socket.close(descriptor)
    }
}
#endif
