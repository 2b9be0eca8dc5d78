/// The state of one connection over HTTP/1 from request to request: it decides whether the body of the request may be
/// sent, where the response ends, and whether the connection can carry another request.
///
/// It knows neither a socket nor a clock. After each call, `sending` says what may be sent.
@safe package struct HTTP1Connection: Sendable {
    /// The properties of a request that the connection needs.
    package struct Request: Sendable, Equatable {
        package var response: HTTP1Parser.Request
        /// Whether the request has a body of at least one byte, or of unknown length.
        package var hasBody = false
        /// Whether the request has Connection: close.
        package var asksToClose = false
        /// Whether the body waits for 100 (RFC 9110 §10.1.1).
        package var expectsContinue = false
        /// The protocol that the request asks for with Upgrade; nil for none.
        package var upgrade: String?
    }

    /// The state of the request's body.
    package enum Sending: Sendable, Equatable {
        /// Nothing is left to send after the head.
        case complete
        /// The body may be sent.
        case open
        /// The body waits for 100, at most until this time.
        case waits(until: UInt64)
        /// The rest of the body must not be sent, because the response does not need it. The connection closes after
        /// the response.
        case stopped
    }

    /// The next part of a response, or the end of the connection's use.
    package enum Event: Sendable, Equatable {
        /// All input is consumed.
        case needsInput
        case interim(ReceivedHead)
        case head(ReceivedHead)
        /// A part of the body, as a range of the input.
        case body(Range<Int>)
        case trailers([UInt8])
        /// The response is complete. The connection is idle and reusable, or must be closed. The rest of the
        /// request's body is not sent.
        case end(isReusable: Bool)
        /// The connection carries another protocol, whose bytes begin at `position`.
        case upgraded
        /// The exchange failed, and the connection must be closed. See `isDeadPooledConnection`.
        case failure(EngineError)
        /// Bytes or the end came while no request was outstanding: the connection must be closed, and no exchange
        /// fails.
        case unsolicited
    }

    private enum State: Sendable, Equatable {
        case idle, busy, upgraded, closed
    }

    private var state = State.idle
    private var parser = HTTP1Parser()
    private var asksToClose = false
    private var upgrade: String?
    /// The number of requests so far.
    package private(set) var exchanges = 0
    /// Whether the connection was open before the present request, so that the server can have closed it meanwhile.
    private var wasWaiting = false
    /// The state of the body of the present request.
    package private(set) var sending = Sending.complete
    /// Whether the response is a 408 with Connection: close to the first bytes of a request on a reused connection. The
    /// server may have sent it before it received the request, which can then be repeated if it is idempotent (RFC 9110
    /// §15.5.9).
    package private(set) var isLateTimeout = false
    /// The time in nanoseconds for which the idle connection may be used: the server's promise (`Keep-Alive: timeout`)
    /// without its last second, in which the server can close it while a request is on its way. nil without a promise.
    package private(set) var usableTime: UInt64?
    /// The number of further requests that the server takes, by its promise (`Keep-Alive: max`); nil without one.
    private var requestsLeft: UInt64?

    package init() {}

    /// Whether the connection can carry a request now.
    package var isIdle: Bool { state == .idle }

    /// Whether the connection must be closed.
    package var mustClose: Bool { state == .closed }

    /// Whether any byte of the present response has arrived.
    package var hasResponse: Bool { parser.hasBegun }

    /// The number of bytes of the response's body so far, without their framing.
    package var receivedLength: Int64 { parser.receivedLength }

    /// Whether a failure now means that the connection died while it was idle: it was open before this request, and no
    /// byte of the response has arrived.
    package var isDeadPooledConnection: Bool { wasWaiting && !parser.hasBegun }

    // MARK: The request

    /// Begins an exchange on an idle connection. The head of the request can be sent at once, and its body as `sending`
    /// says.
    ///
    /// - Parameters:
    ///   - wasWaiting: Whether the connection was opened for another request than this one. That holds for each request
    ///     but the first.
    ///   - continueDeadline: The time at which a body that waits for 100 is sent nevertheless.
    package mutating func start(_ request: Request, wasWaiting: Bool = false, continueDeadline: UInt64 = 0) {
        precondition(state == .idle, "a connection carries one request at a time")
        state = .busy
        self.wasWaiting = wasWaiting || exchanges > 0
        exchanges += 1
        asksToClose = request.asksToClose
        upgrade = request.upgrade
        isLateTimeout = false
        if !request.hasBody {
            sending = .complete
        } else {
            sending = request.expectsContinue ? .waits(until: continueDeadline) : .open
        }
        parser.begin(request.response)
    }

    /// Lets the body go if its time to wait for 100 has passed. Returns whether it may be sent now.
    package mutating func checkDeadline(now: UInt64) -> Bool {
        if case .waits(let deadline) = sending, now >= deadline { sending = .open }
        return sending == .open
    }

    /// Notes that the last byte of the request was sent.
    package mutating func bodyEnded() {
        if sending == .open { sending = .complete }
    }

    // MARK: The response

    /// Returns the next part of the response, and moves `position` behind it.
    @unsafe
    package mutating func receive(_ input: UnsafeRawBufferPointer, from position: inout Int) -> Event {
        switch state {
        case .idle where position == input.count: return .needsInput
        case .idle, .closed: return closeUnsolicited()
        case .upgraded: return .upgraded
        case .busy: break
        }
        return take(unsafe parser.next(input, from: &position), hasLeftOver: { position < input.count })
    }

    /// Whether a head, or the rest of one, comes next.
    package var expectsHead: Bool { state == .busy && parser.expectsHead }

    /// The number of bytes that are missing of a body with a stated length; nil while anything else is expected.
    package var missingLength: Int64? { state == .busy ? parser.missingLength : nil }

    /// Takes account of bytes of a body with a stated length that were received without `receive`: at most as many as
    /// are missing. Call `receive` afterwards, which returns the end after the last byte.
    package mutating func receivedInPlace(_ count: Int) { parser.receivedInPlace(count) }

    /// Returns the event for the end of the connection. Call `receive` until it needs input first.
    ///
    /// - Parameter isCut: Whether the peer has not ended the connection itself: it was reset, or TLS ended without
    ///   close_notify.
    package mutating func endOfInput(isCut: Bool) -> Event {
        switch state {
        case .idle, .closed: return closeUnsolicited()
        case .upgraded: return .upgraded
        case .busy: return take(parser.endOfInput(isCut: isCut), hasLeftOver: { true })
        }
    }

    /// Notes that the connection failed or is given up.
    package mutating func close() {
        state = .closed
        if sending != .complete { sending = .stopped }
    }

    private mutating func closeUnsolicited() -> Event {
        state = .closed
        return .unsolicited
    }

    private mutating func take(_ event: HTTP1Parser.Event, hasLeftOver: () -> Bool) -> Event {
        switch event {
        case .needsInput: return .needsInput
        case .body(let range): return .body(range)
        case .trailers(let bytes): return .trailers(bytes)
        case .interim(let head):
            if head.status == 100, case .waits = sending { sending = .open }
            return .interim(head)
        case .head(let head):
            if head.status == 101, let upgrade, head.version != .http11 || !head.upgrades(to: upgrade) {
                close()
                let reason = "the response switches to a protocol that was not asked for (RFC 9110 §15.2.2)"
                return .failure(EngineError(.malformedResponse, reason))
            }
            takeStatus(head.status)
            return .head(head)
        case .end: return end(hasLeftOver: hasLeftOver())
        case .upgraded:
            state = .upgraded
            return .upgraded
        case .failure(let error):
            close()
            return .failure(error)
        }
    }

    private mutating func takeStatus(_ status: Int) {
        isLateTimeout = status == 408 && wasWaiting && !parser.isReusable
        guard sending != .complete else { return }
        // The server has decided without the body, or without the rest of it (RFC 9110 §10.1.1, RFC 9112 §9.5).
        if status >= 300 {
            sending = .stopped
        } else if case .waits = sending {
            sending = .open
        }
    }

    private mutating func end(hasLeftOver: Bool) -> Event {
        takePromise()
        let isReusable =
            parser.isReusable && sending == .complete && !asksToClose && !hasLeftOver && requestsLeft != 0
            && usableTime != 0
        if sending != .complete { sending = .stopped }
        state = isReusable ? .idle : .closed
        return .end(isReusable: isReusable)
    }
}

extension HTTP1Connection {
    /// Notes what the server has promised about the connection. A promise stays until the next one. Requests count
    /// down.
    private mutating func takePromise() {
        let promise = parser.keepAlive
        requestsLeft = promise.requests ?? requestsLeft.map { $0 > 0 ? $0 - 1 : 0 }
        if let timeout = promise.timeout {
            let (time, isTooLarge) = (max(timeout, 1) - 1).multipliedReportingOverflow(by: 1_000_000_000)
            usableTime = isTooLarge ? .max : time
        }
    }
}

extension HTTP1Connection.Request {
    /// Describes a request with these fields.
    @inline(__always)
    package init(method: String, fields: RequestFields, hasBody: Bool, limits: HeadLimits, upgrade: String? = nil) {
        // GET first: two equal short strings are compared as integers.
        let isGet = method == "GET"
        let isConnect = !isGet && method == "CONNECT"
        self.init(
            response: HTTP1Parser.Request(
                isHead: !isGet && method == "HEAD", isConnect: isConnect, allowsUpgrade: upgrade != nil && !isConnect,
                limits: limits),
            hasBody: hasBody, asksToClose: fields.summary.contains(.asksToClose),
            expectsContinue: hasBody && fields.summary.contains(.expectsContinue), upgrade: upgrade)
    }
}
