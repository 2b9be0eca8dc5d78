/// Decides on the end of a connection (RFC 6455 §7). Pure: the owner of the socket performs the actions.
package struct CloseHandshake: Sendable {
    /// The step that follows an event.
    package enum Action: Sendable, Hashable {
        case none
        /// Sends a Close frame with this payload after the messages that wait, and limits the wait for the server's.
        case sendAfterMessages([UInt8])
        /// Sends a Close frame with this payload before anything that waits, and then waits for the end of the
        /// connection.
        case answer([UInt8])
        /// Sends a Close frame with this payload before anything that waits, and then ends this side's direction.
        case fail([UInt8])
        /// Waits for the end of the connection, which the server closes first (RFC 6455 §7.1.1).
        case awaitEnd
    }

    private var hasSent = false
    /// Whether this side's Close frame has left, so that it arrives unless the connection breaks.
    package private(set) var hasLeft = false
    /// The Close frame of the server.
    private var received: (code: WebSocket.CloseCode?, reason: String)?
    /// The reason why this side failed the connection.
    package private(set) var failure: ProtocolFailure?

    package init() {}

    /// Whether messages can be sent.
    package var isOpen: Bool { !hasSent && received == nil && failure == nil }
    /// Whether bytes of the server still have a meaning (RFC 6455 §5.5.1).
    package var takesInput: Bool { received == nil && failure == nil }
    /// Whether this side has closed the connection.
    package var hasClosed: Bool { hasSent && failure == nil }
    /// Whether the server has sent a Close frame.
    package var hasReceived: Bool { received != nil }

    /// Begins to close the connection.
    package mutating func close(_ code: WebSocket.CloseCode?, reason: String) -> Action {
        guard isOpen else { return .none }
        hasSent = true
        return .sendAfterMessages(Self.payload(code, reason))
    }

    /// Receives the Close frame of the server. Its code is sent back (RFC 6455 §5.5.1).
    package mutating func receive(_ code: WebSocket.CloseCode?, reason: String) -> Action {
        guard takesInput else { return .none }
        received = (code, reason)
        if hasSent { return .awaitEnd }
        hasSent = true
        return .answer(Self.payload(code, ""))
    }

    /// Fails the connection (RFC 6455 §7.1.7).
    package mutating func fail(_ failure: ProtocolFailure) -> Action {
        guard takesInput else { return .none }
        self.failure = failure
        if hasSent { return .awaitEnd }
        hasSent = true
        return .fail(Self.payload(failure.code, ""))
    }

    /// Whether the end is known: bytes of the server have no meaning any more, and this side's Close frame has left.
    package var isSettled: Bool { !takesInput && hasLeft }

    /// Notes that this side's Close frame has left. Has no effect if there is none.
    package mutating func closeFrameLeft() { hasLeft = hasSent }

    /// The end of the connection, as it is reported.
    package var closure: WebSocket.Closure {
        guard let received else { return WebSocket.Closure(code: failure?.code ?? .abnormalClosure, isClean: false) }
        return WebSocket.Closure(code: received.code ?? .noStatus, reason: received.reason, isClean: hasLeft)
    }

    /// Returns the payload of a Close frame (RFC 6455 §5.5.1).
    static func payload(_ code: WebSocket.CloseCode?, _ reason: String) -> [UInt8] {
        guard let code else { return [] }
        return [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + Array(reason.utf8)
    }
}

/// Decides when a Ping is sent, and when a silent peer counts as dead. Pure. Times are those since an arbitrary start.
package struct PeerLiveness: Sendable {
    /// The step that follows a wait.
    package enum Action: Sendable, Hashable {
        case wait(Duration)
        /// Sends a Ping, and then waits.
        case ping(thenWait: Duration)
        case dead
    }

    private let interval: Duration
    private let timeout: Duration
    /// The time of the last sign of life.
    private var seen: Duration
    /// The time of the Ping after it; nil for none.
    private var pinged: Duration?

    package init(interval: Duration, timeout: Duration, now: Duration) {
        self.interval = interval
        self.timeout = timeout
        seen = now
    }

    /// Receives a sign of life: bytes of the peer, or bytes that it took.
    package mutating func received(at now: Duration) {
        seen = now
        pinged = nil
    }

    /// Decides at the beginning, and after each wait. A Ping follows `interval` after the last sign of life, and the
    /// end `timeout` after the Ping.
    ///
    /// - Parameter isHeldUp: Whether this side does not read, so that nothing can arrive.
    package mutating func next(at now: Duration, isHeldUp: Bool) -> Action {
        if isHeldUp { received(at: now) }
        let deadline = pinged.map { $0 + timeout } ?? seen + interval
        if now < deadline { return .wait(deadline - now) }
        if pinged != nil { return .dead }
        pinged = now
        return .ping(thenWait: timeout)
    }
}
