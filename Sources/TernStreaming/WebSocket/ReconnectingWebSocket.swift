public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Opens a WebSocket again when it has ended, with growing delays, for one reader.
///
/// ```swift
/// let live = ReconnectingWebSocket {
///     try await client.webSocket("live")
/// } onOpen: { socket in
///     try await socket.send("subscribe news")
/// }
/// for try await message in live.messages { … }
/// ```
///
/// Reading drives it: a connection is opened when a message is asked for and none is open. Messages that the server
/// sent while no connection was open are lost, unless the server sends them again; `onOpen` says what to send for that.
public actor ReconnectingWebSocket {
    /// The delays between attempts. A server that refuses the handshake with `Retry-After` (RFC 9110 §10.2.3) is asked
    /// no earlier, up to 5 minutes. A connection that brought a message, and lasted at least as long as the delay
    /// before it, ends the row of failures.
    public struct Backoff: Sendable, Hashable {
        /// The delay before the first new attempt. 0.5 seconds by default.
        public var initial: Duration
        /// The longest delay. 30 seconds by default.
        public var maximum: Duration
        /// The number of attempts in a row that may fail before the error is thrown; nil, the default, for any number.
        public var maximumFailures: Int?

        /// The longest delay that a server can ask for.
        static let longestServerDelay = Duration.seconds(300)

        /// Creates delays.
        public init(
            initial: Duration = .milliseconds(500), maximum: Duration = .seconds(30), maximumFailures: Int? = nil
        ) {
            self.initial = initial
            self.maximum = maximum
            self.maximumFailures = maximumFailures
        }

        /// Returns the delay after a number of failures, at least 1: it doubles with each one. `random` from 0 to 1
        /// shortens it to as little as the half, so that many clients do not come back at once.
        func delay(after failures: Int, random: Double) -> Duration {
            var delay = initial
            var left = min(failures, 64) - 1
            while left > 0, delay < maximum {
                delay *= 2
                left -= 1
            }
            return min(delay, maximum) * (0.5 + random / 2)
        }
    }

    /// The state of the connection.
    public enum State: Sendable, Hashable {
        /// No connection is open, and none is being opened: that begins when a message is asked for.
        case idle
        /// A connection is being opened, and `onOpen` runs.
        case connecting
        /// A connection is open.
        case open
        /// The next attempt begins after this time.
        case waiting(Duration)
        /// The messages have ended, and no further connection is opened.
        case closed
    }

    /// The reason why a connection is not open.
    public enum End: Sendable {
        /// The server closed the socket.
        case closed(WebSocket.Closure)
        /// The handshake or the connection failed.
        case failed(NetworkError)

        /// A Boolean value that indicates whether another attempt can succeed where this one has not: after a closing
        /// other than 1000, 1003, 1007, 1008, 1009 and 1010, after a status of 408, 429 or 500–599, and after failures
        /// of the network.
        public var isTemporary: Bool {
            switch self {
            case .closed(let closure):
                switch closure.code {
                case .normalClosure, .unsupportedData, .invalidPayload, .policyViolation, .messageTooBig,
                    .mandatoryExtension:
                    return false
                default: return true
                }
            case .failed(let error):
                switch error.kind {
                case .status: return error.status.map { $0 == 408 || $0 == 429 || 500...599 ~= $0 } ?? false
                case .dns, .proxy, .connectionRefused, .connectionFailed, .connectionLost, .queueTimedOut,
                    .connectTimedOut, .idleTimedOut, .attemptTimedOut, .totalTimedOut:
                    return true
                default: return false
                }
            }
        }
    }

    private let backoff: Backoff
    private let clock: any Clock<Duration>
    private let elapsed: @Sendable () -> Duration
    private let shouldReconnect: @Sendable (End) -> Bool
    private let open: @Sendable () async throws -> WebSocket
    private let onOpen: @Sendable (WebSocket) async throws -> Void
    private var socket: WebSocket?
    /// The open socket for which `onOpen` runs.
    private var prepared: WebSocket?
    private var failures = 0
    /// The time at which the socket was ready for its reader; nil without one.
    private var openedAt: Duration?
    /// The time at which the socket ended; nil as long as it has not.
    private var endedAt: Duration?
    /// The number of sockets so far.
    private var number = 0
    /// Whether the socket has brought a message.
    private var hasMessage = false
    private var lastDelay = Duration.zero
    private var isReading = false
    private var isClosed = false
    private nonisolated let latest = Latest(State.idle)
    /// The wait before the next attempt. Owned here; `close` and a cancellation of the reader end it.
    private var pause: Task<Void, Never>?

    /// Creates a socket, which is opened with the first message that is asked for.
    ///
    /// - Parameters:
    ///   - backoff: The delays between attempts.
    ///   - clock: The clock of the delays.
    ///   - shouldReconnect: Returns whether to open the socket again after an end. ``End/isTemporary`` by default. If
    ///     not, the messages end, or throw the error.
    ///   - open: Opens a socket.
    ///   - onOpen: Called with each new socket before its messages are read, to send what the server needs again. Its
    ///     error cuts the socket and counts as that of the connection. An error that is no `NetworkError` has the kind
    ///     `.webSocketClosed`, after which no other attempt follows by default.
    public init(
        backoff: Backoff = Backoff(), clock: any Clock<Duration> = ContinuousClock(),
        shouldReconnect: @escaping @Sendable (End) -> Bool = { $0.isTemporary },
        open: @escaping @Sendable () async throws -> WebSocket,
        onOpen: @escaping @Sendable (WebSocket) async throws -> Void = { _ in }
    ) {
        self.backoff = backoff
        self.clock = clock
        elapsed = Self.timer(clock)
        self.shouldReconnect = shouldReconnect
        self.open = open
        self.onOpen = onOpen
    }

    deinit {
        pause?.cancel()
        latest.finish { _ in .closed }
    }

    private static func timer(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }

    /// The socket that is open now; nil for none.
    public var current: WebSocket? { socket }

    /// The states from the present one on, for any number of readers. A slow reader misses states, never the last one,
    /// `.closed`, which ends the stream. Reading the states opens no connection, and does not keep the socket alive.
    ///
    /// ```swift
    /// for await state in live.states { banner.isHidden = state == .open }
    /// ```
    public nonisolated var states: AsyncStream<State> { latest.stream() }

    /// The present state.
    public nonisolated var state: State { latest.current }

    /// The messages of all connections, for one reader at a time.
    public nonisolated var messages: Messages { Messages(socket: self) }

    /// Sends a message over the open connection. Does not wait for one.
    ///
    /// - Throws: An error of kind `.webSocketClosed` if no connection is open, and those of `WebSocket.send(_:)`.
    public func send(_ message: WebSocket.Message) async throws(NetworkError) {
        try await openSocket().send(message)
    }

    /// Sends a text over the open connection. Does not wait for one.
    ///
    /// - Throws: As `send(_:)` of a message does.
    public func send(_ text: String) async throws(NetworkError) { try await send(.text(text)) }

    /// Returns the open socket, or throws the error of a message that is not sent.
    func openSocket() throws(NetworkError) -> WebSocket {
        if let socket { return socket }
        throw NetworkError(.webSocketClosed, reason: "no connection is open: the message was not sent")
    }

    /// Closes the connection, and opens no other. The messages end.
    public func close(code: WebSocket.CloseCode = .normalClosure, reason: String = "") async throws(NetworkError) {
        stopReconnecting()
        pause?.cancel()
        try await (socket ?? prepared)?.close(code: code, reason: reason)
    }

    private func stopReconnecting() {
        isClosed = true
        latest.finish { _ in .closed }
    }

    private func become(_ state: State) { latest.update { _ in state } }

    /// Returns the next message; nil after `close`, and after an end that is not to be followed by another connection.
    ///
    /// Cancelling the calling Swift task ends the wait, also that for a connection, with an error of kind `.cancelled`.
    public func receive() async throws(NetworkError) -> WebSocket.Message? {
        try await receiveWithConfiguration()?.message
    }

    /// Returns the next message, and the configuration of the session that received it.
    func receiveWithConfiguration() async throws(NetworkError) -> (
        message: WebSocket.Message, configuration: Session.Configuration
    )? {
        guard !isReading else {
            throw NetworkError(.unsupported, reason: "a reconnecting WebSocket has one reader at a time")
        }
        isReading = true
        defer { isReading = false }
        while !isClosed {
            let end: End
            do throws(NetworkError) {
                let socket = try await connected()
                if let message = try await socket.receive() {
                    hasMessage = true
                    return (message, socket.stream.configuration)
                }
                end = await Self.end(of: socket)
            } catch {
                let prepared = prepared.take()
                // A wait that was cancelled says nothing about the connection, which stays open. One that is being
                // prepared has no reader that could continue.
                if Task.isCancelled {
                    prepared?.cancel()
                    if socket == nil { become(.idle) }
                    throw error
                }
                end = await Self.end(after: error, of: prepared)
            }
            socket = nil
            if isClosed { return nil }
            // A server that greets each socket and then closes it has not served one.
            if hasMessage, let openedAt, (endedAt ?? elapsed()) - openedAt >= max(lastDelay, backoff.initial) {
                failures = 0
            }
            (openedAt, endedAt, hasMessage) = (nil, nil, false)
            failures += 1
            if !shouldReconnect(end) || failures > backoff.maximumFailures ?? .max {
                stopReconnecting()
                if case .failed(let error) = end { throw error }
                return nil
            }
            lastDelay = backoff.delay(after: failures, random: Double.random(in: 0...1))
            if case .failed(let error) = end, let head = error.response,
                let asked = RetryAfter.delay(in: head.headers, now: Date())
            {
                lastDelay = max(lastDelay, min(asked, Backoff.longestServerDelay))
            }
            become(.waiting(lastDelay))
            await wait(for: lastDelay)
            if Task.isCancelled { become(.idle) }
        }
        return nil
    }

    /// Waits for the end of a socket whose messages have ended.
    private static func end(of socket: WebSocket) async -> End {
        for await _ in socket.states {}
        return .closed(socket.closure ?? WebSocket.Closure(code: .abnormalClosure, isClean: false))
    }

    /// Returns the reason why there is no open socket, after an error of `open` or `onOpen`.
    private static func end(after error: NetworkError, of prepared: WebSocket?) async -> End {
        guard let prepared else { return .failed(error) }
        // The server closed the socket before `onOpen` had sent its message. Its code counts, not the refusal to send.
        if error.kind == .webSocketClosed, error.underlying == nil, prepared.state != .open {
            return await end(of: prepared)
        }
        prepared.cancel()
        return .failed(error)
    }

    /// Returns the open socket, or opens one.
    private func connected() async throws(NetworkError) -> WebSocket {
        if let socket { return socket }
        become(.connecting)
        do {
            let opened = try await open()
            guard !isClosed else {
                opened.cancel()
                throw NetworkError(.webSocketClosed, reason: "the socket was closed while it was opened")
            }
            prepared = opened
            try await onOpen(opened)
            // The function `close` has closed it meanwhile.
            guard !isClosed else {
                throw NetworkError(.webSocketClosed, reason: "the socket was closed while it was prepared")
            }
            prepared = nil
            socket = opened
            become(.open)
            openedAt = elapsed()
            number += 1
            // Ends with the socket. The reader can learn of that end much later.
            Task { [weak self, states = opened.states, number] in
                for await _ in states {}
                await self?.ended(number)
            }
            return opened
        } catch let error as NetworkError {
            throw error
        } catch {
            let reason = "the socket was not opened: \(EncodingProblem.text(error))"
            throw NetworkError(.webSocketClosed, reason: reason, underlying: error)
        }
    }

    private func ended(_ socket: Int) {
        guard socket == number, openedAt != nil else { return }
        endedAt = elapsed()
        become(.idle)
    }

    private func wait(for delay: Duration) async {
        let clock = clock
        // Owned here, and cancelled by `close`. An error means that.
        let pause = Task { _ = try? await clock.sleepWithoutDescriptor(for: delay) }
        self.pause = pause
        await withTaskCancellationHandler {
            await pause.value
        } onCancel: {
            pause.cancel()
        }
        self.pause = nil
    }

    /// The messages of a reconnecting socket.
    public struct Messages: AsyncSequence, Sendable {
        /// A message.
        public typealias Element = WebSocket.Message
        let socket: ReconnectingWebSocket

        /// Returns an iterator over the messages that follow.
        public func makeAsyncIterator() -> Iterator { Iterator(socket: socket) }

        /// An iterator over messages.
        public struct Iterator: AsyncIteratorProtocol {
            let socket: ReconnectingWebSocket

            /// Returns the next message; nil after the last one.
            public mutating func next() async throws(NetworkError) -> WebSocket.Message? { try await socket.receive() }

            /// Returns the next message; nil after the last one. Called from the caller's actor.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(NetworkError) -> WebSocket.Message? { try await socket.receive() }
        }
    }
}
