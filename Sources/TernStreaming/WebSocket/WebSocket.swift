public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A WebSocket (RFC 6455): messages in both directions over one connection of a session.
///
/// ```swift
/// let socket = try await client.webSocket("live", protocols: ["chat"])
/// try await socket.send("hello")
/// for try await message in socket.messages { … }
/// print(socket.closure?.code ?? .abnormalClosure)
/// try await socket.close()
/// ```
///
/// A slow reader stops the socket, and a slow socket suspends `send`. Pings of the server are answered, and the server
/// is asked for a sign of life when it is silent, whether or not messages are read, as long as
/// ``Options/receiveBufferSize`` is not reached.
///
/// The socket is a task of its session, ``task``: with a label, progress in bytes, and cancellation, which ends it at
/// once. The time limits `idle` and `total` apply to the handshake only. A socket that is released without `close` is
/// cut once the messages that `send(_:)` has accepted have left. One that is released while it is closing ends the
/// handshake. Both take at most ``Options/closeTimeout``.
public actor WebSocket {
    /// The task of the socket in its session.
    public nonisolated var task: AnySessionTask { stream.task }
    /// The head of the server's response to the handshake.
    public nonisolated var response: ResponseHead { stream.head }
    /// The subprotocol that the server chose; nil for none.
    public nonisolated let subprotocol: String?
    /// A Boolean value that indicates whether messages can be compressed, because the server agreed to it.
    public nonisolated let isCompressed: Bool
    /// The settings of the socket.
    public nonisolated let options: Options

    nonisolated let stream: UpgradedStream
    nonisolated let stateValue = Latest(State.open)
    /// The end, once the server's bytes have no meaning any more, although the connection has not ended.
    nonisolated let knownClosure = Lock<Closure?>(nil)
    var outbox: Outbox
    var inbox: Inbox
    var closing = CloseHandshake()
    var counts = Metrics()
    /// The reason why the connection was ended by this side, for its error; nil if the transport knows it.
    var ending: FailureCause?
    var isCut = false
    var hasEnded = false
    /// The error of calls after the end; nil before it, and after a regular end.
    var endError: NetworkError?
    /// A Close frame or a failure that waits until the reader has handled the messages before it, so that it can still
    /// answer them.
    var deferred: MessageAssembler.Event?
    var liveness: PeerLiveness?
    /// The number of bytes that were sent before the last look at the liveness.
    var sentAtCheck: Int64 = 0
    /// The end of the wait for the answer to a Ping.
    enum PingEnd: Sendable {
        case answered, late, ended, cancelled
    }

    var pings: [(payload: [UInt8], waiter: Waiter<PingEnd>)] = []
    /// The time of the session's clock, for the liveness.
    nonisolated let time: StreamTime
    private var lastPing: UInt64 = 0
    var endWaiters = WaiterList()
    /// The Swift tasks of the socket: the reader of the connection, the sender of messages that wait, the sender of
    /// Pings and the time limit of the closing. Owned here, and cancelled when the socket is released.
    var reader: Task<Void, Never>?
    var sender: Task<Void, Never>?
    var keeper: Task<Void, Never>?
    var closeTimer: Task<Void, Never>?

    private init(_ stream: UpgradedStream, agreement: Handshake.Agreement, options: Options) {
        self.stream = stream
        self.options = options
        time = StreamTime(stream.clock)
        subprotocol = agreement.subprotocol
        isCompressed = agreement.compression != nil
        inbox = Inbox(options, agreement.compression)
        outbox = Outbox(options, agreement.compression)
    }

    deinit {
        keeper?.cancel()
        if hasEnded { return }
        // A wait for room among the unread messages ends. The reader then drops the bytes until the connection ends.
        reader?.cancel()
        stream.finishSending(within: options.closeTimeout)
    }

    /// Opens a socket. Called by the functions of `Session` and `Client`.
    static func open(
        _ request: Request, protocols: [String], options: Options, in session: Session
    ) async throws(NetworkError) -> WebSocket {
        let handshake = Handshake(protocols: protocols, compression: options.compression)
        if let problem = handshake.problem(with: request.headers) {
            throw NetworkError(FailureCause(.invalidRequest, problem), request: request)
        }
        let offer = UpgradeOffer(
            name: "websocket", pipeCapacity: Outbox.pipeCapacity, messageLimit: options.maximumMessageSize
        ) { handshake.fields() }
        let stream = try await UpgradedStream.open(request, offer: offer, in: session) { head, sent in
            do throws(ProtocolFailure) {
                _ = try handshake.agreement(with: head.headers, for: sent, isOverHTTP2: head.version == .http2)
                return nil
            } catch {
                return FailureCause(.malformedResponse, error.reason)
            }
        }
        do throws(ProtocolFailure) {
            let agreement = try handshake.agreement(
                with: stream.head.headers, for: stream.requestHeaders, isOverHTTP2: stream.isMultiplexed)
            let socket = WebSocket(stream, agreement: agreement, options: options)
            await socket.start()
            return socket
        } catch {
            throw stream.error(FailureCause(.malformedResponse, error.reason))
        }
    }

    // MARK: State

    /// The state of the socket.
    public nonisolated var state: State { stateValue.current }

    /// The states from now on. The current one comes first, and the last one is never lost.
    public nonisolated var states: AsyncStream<State> { stateValue.stream() }

    /// The end of the socket: that of the server's Close frame, of a failure, or of the connection. Nil as long as
    /// messages can arrive.
    ///
    /// It is known when ``messages`` end or throw. The connection itself, and with it the ``state``, can end later.
    public nonisolated var closure: Closure? {
        if case .closed(let closure) = state { closure } else { knownClosure.withLock { $0 } }
    }

    /// The measurements so far.
    public var metrics: Metrics {
        var metrics = counts
        (metrics.receivedBytes, metrics.sentBytes) = stream.byteCounts
        return metrics
    }

    /// Ends the connection now, in every state. Readers and senders receive an error of kind `.cancelled`.
    public nonisolated func cancel() { stream.cancel() }

    // MARK: Sending

    /// Sends a text. Returns when it has been handed over to the connection, and waits while the connection is slow.
    /// The message then leaves unless the connection breaks, is cancelled, or takes nothing for longer than
    /// ``Options/closeTimeout`` after the end of the socket.
    ///
    /// Cancelling the calling Swift task ends the wait with an error of kind `.cancelled`. A message that has not begun
    /// is withdrawn; one that has begun is sent to its end, unless the socket is released before, and the `reason` of
    /// the error says so. The socket stays open.
    ///
    /// A text or bytes that were handed over can still be lost with the connection: only the server can say that they
    /// arrived.
    ///
    /// - Throws: An error of kind `.webSocketClosed` if either side has closed the socket, the error with which the
    ///   connection ended, or one of kind `.cancelled`.
    public func send(_ text: String) async throws(NetworkError) { try await send(.text(text)) }

    /// Sends bytes. See `send(_:)` for texts.
    public func send(_ data: Data) async throws(NetworkError) { try await send(.binary(data)) }

    /// Sends a message. See `send(_:)` for texts.
    public func send(_ message: Message) async throws(NetworkError) {
        guard closing.isOpen, !hasEnded else { throw refusal }
        if Task.isCancelled { throw cancelled("the message was not sent") }
        let size = message.byteCount
        let waiting: Outbox.Item?
        switch outbox.send(message, over: stream.pipe) {
        case .sent(let isStarved):
            if isStarved { stream.pipeIsReady() }
            waiting = nil
        case .queued(let item):
            startSender()
            waiting = item
        case .refused: throw refusal
        }
        counts.sentMessages += 1
        counts.sentMessageBytes += Int64(size)
        guard let waiting else { return }
        switch await waiting.waiter.wait(cancelled: .cancelled) {
        case .sent: return
        case .dropped:
            uncount(size)
            throw refusal
        case .cancelled:
            if outbox.withdraw(waiting) {
                uncount(size)
                throw cancelled("the message was not sent")
            }
            throw cancelled("the message is being sent")
        }
    }

    /// Takes a message out of the measurements that was not sent.
    private func uncount(_ size: Int) {
        counts.sentMessages -= 1
        counts.sentMessageBytes -= Int64(size)
    }

    /// Sends a Ping, and returns the time until its answer.
    ///
    /// - Parameter timeout: The longest wait for the answer; nil, the default, for ``Options/pingTimeout``. The socket
    ///   stays open after it.
    /// - Throws: An error of kind `.idleTimedOut` at the time limit, and otherwise one as `send(_:)` does, also when
    ///   the connection ends before the answer.
    @discardableResult
    public func ping(timeout: Duration? = nil) async throws(NetworkError) -> Duration {
        guard closing.isOpen, !hasEnded else { throw refusal }
        lastPing += 1
        let payload = (0..<8).map { UInt8(truncatingIfNeeded: lastPing >> (56 - 8 * $0)) }
        let waiter = Waiter<PingEnd>()
        pings.append((payload, waiter))
        let start = MonotonicClock.nanoseconds()
        sendControl(.ping, payload)
        let limit = timeout ?? options.pingTimeout
        // Cancelled below, before this function returns.
        let timer = Task { [time] in
            // An error means that the wait has ended.
            guard (try? await time.sleep(limit)) != nil else { return }
            waiter.resume(returning: .late)
        }
        let end = await waiter.wait(cancelled: .cancelled)
        timer.cancel()
        pings.removeAll { $0.waiter === waiter }
        switch end {
        case .answered: break
        case .late:
            throw stream.error(FailureCause(.idleTimedOut, "the server did not answer a Ping within \(limit)"))
        case .ended: throw refusal
        case .cancelled: throw cancelled("the wait for the answer to a Ping was cancelled")
        }
        let time = Duration.nanoseconds(MonotonicClock.nanoseconds() - start)
        counts.roundTrip = time
        return time
    }

    /// Closes the socket: sends a Close frame after the messages that wait, and returns when the connection has ended,
    /// at the latest after ``Options/closeTimeout``.
    ///
    /// Messages of the server that arrive meanwhile can still be read; those for which ``Options/receiveBufferSize``
    /// has no room are dropped. Has no effect on a socket that is closed. Cancelling the calling Swift task ends the
    /// connection at once.
    ///
    /// - Parameters:
    ///   - code: A code for which ``CloseCode/isSendable`` is true.
    ///   - reason: A text of at most 123 bytes.
    /// - Throws: An error of kind `.invalidRequest` for a code or a reason that cannot be sent, and one of kind
    ///   `.cancelled`.
    public func close(code: CloseCode = .normalClosure, reason: String = "") async throws(NetworkError) {
        guard code.isSendable, reason.utf8.count <= 123 else {
            let reason = "a Close frame has a code that can be sent and a reason of at most 123 bytes (RFC 6455 §5.5.1)"
            throw stream.error(FailureCause(.invalidRequest, reason))
        }
        perform(closing.close(code, reason: reason))
        while !hasEnded {
            let waiter = endWaiters.add()
            // A cancelled connection ends at once, and its end resumes the waiter.
            await waiter.wait(onCancel: { [stream] in stream.cancel() })
            endWaiters.remove(waiter)
        }
        if Task.isCancelled, stream.isCancelled { throw cancelled("the closing of the socket was cancelled") }
    }

    // MARK: Receiving

    /// The messages of the server, in their order. Several readers share them.
    ///
    /// The sequence ends when the server has closed the socket, with any code, or this side has; see ``closure``. It
    /// throws when the connection fails. Cancelling a reader ends its wait with an error of kind `.cancelled`; the
    /// socket stays open.
    public nonisolated var messages: Messages { Messages(socket: self) }

    /// Returns the next message; nil after the last one. See ``messages``.
    public func receive() async throws(NetworkError) -> Message? {
        while true {
            if let message = inbox.take() { return message }
            performDeferred()
            if hasEnded || closing.isSettled { return try await endOfMessages() }
            if Task.isCancelled { throw cancelled("the wait for a message was cancelled; the socket stays open") }
            let waiter = inbox.readers.add()
            await waiter.wait()
            inbox.readers.remove(waiter)
        }
    }

    /// Returns nil after a regular end, and throws the error of a connection that failed.
    private func endOfMessages() async throws(NetworkError) -> Message? {
        if closing.hasReceived { return nil }
        if let failure = closing.failure { throw stream.error(FailureCause(Self.kind(failure), failure.reason)) }
        if let error = endError { throw error }
        return nil
    }

    static func kind(_ failure: ProtocolFailure) -> NetworkError.Kind {
        failure.code == .messageTooBig ? .tooLarge : .malformedResponse
    }

    /// The messages of a socket.
    public struct Messages: AsyncSequence, Sendable {
        /// A message.
        public typealias Element = Message
        let socket: WebSocket

        /// Returns an iterator over the messages that follow.
        public func makeAsyncIterator() -> Iterator { Iterator(socket: socket) }

        /// An iterator over messages.
        public struct Iterator: AsyncIteratorProtocol {
            let socket: WebSocket

            /// Returns the next message; nil after the last one.
            public mutating func next() async throws(NetworkError) -> Message? { try await socket.receive() }

            /// Returns the next message; nil after the last one. Called from the caller's actor.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Message? {
                try await socket.receive()
            }
        }
    }

    // For tests.
    var isSending: Bool { sender != nil }
    var waitingCount: Int { outbox.waitingCount }
    var readerCount: Int { inbox.readers.count }

    func cancelled(_ reason: String) -> NetworkError { stream.error(FailureCause(.cancelled, reason)) }

    /// The error of a message that can no longer be sent.
    var refusal: NetworkError {
        if let endError { return endError }
        if let ending { return stream.error(ending) }
        let by =
            closing.hasReceived
            ? "the server closed the socket with the code \(closing.closure.code)" : "the socket is closed"
        return stream.error(FailureCause(.webSocketClosed, by))
    }
}
