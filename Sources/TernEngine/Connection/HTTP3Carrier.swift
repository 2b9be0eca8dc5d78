#if os(Linux)
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A connection that carries many exchanges at a time, over HTTP/3. Confined to the loop's thread.
///
/// It moves the datagrams, and keeps the time; `HTTP3Session` decides what the datagrams mean. An `HTTP3Attempt` owns it
/// until the handshake is done, and the pool afterwards.
final class HTTP3Carrier {
    private static let readsPerEvent = 16
    private static let batchesPerTurn = 16
    /// The silence, while exchanges are under way, after which the server is asked whether it is there, in nanoseconds.
    private static let keepAlive: UInt64 = 10_000_000_000
    private static let idleTimeout: UInt64 = 30_000_000_000
    /// A server counts as gone that has acknowledged nothing for so many of its probe timeouts, and for so many
    /// nanoseconds. The transport acknowledges by itself, also while the response takes long.
    private static let silentProbes: UInt64 = 8
    private static let leastSilence: UInt64 = 3_000_000_000

    let id: ConnectionPool.ConnectionID
    private let destination: Destination
    /// The alternative of the destination that the connection leads to; nil for the host and the port of the origin.
    let alternative: AlternativeService?
    let remote: SocketAddress
    unowned let pool: LoopConnections
    private let context: LoopContext
    private let verifier: TLSVerifier
    private weak var attempt: HTTP3Attempt?
    /// The field that names the alternative to its server (RFC 7838 §5); empty without one.
    private let alternativeField: [UInt8]
    private var socket: DatagramSocket?
    private(set) var session: HTTP3Session?
    private lazy var info = ConnectionInfo(ConnectionInfo.Opening(), version: .http3)
    var streams: [Int64: CarriedStream] = [:]
    /// Datagrams that the socket has not taken.
    private var pending: [UInt8] = []
    private var pendingSegment = 0
    private var pendingECN: UInt8 = 0
    private lazy var timer = LoopTimer(self)
    private var isClosed = false
    private var willAct = false
    /// Whether the handshake is done, which the attempt has not been told yet.
    private var hasConnected = false
    private var capacity = 0
    /// The time of the first datagram that the server has to acknowledge, since the last one from it; 0 for none.
    private var unansweredSince: UInt64 = 0

    init(
        _ id: ConnectionPool.ConnectionID, of destination: Destination, at alternative: AlternativeService?,
        to remote: SocketAddress, verifier: TLSVerifier, attempt: HTTP3Attempt, pool: LoopConnections,
        context: LoopContext
    ) {
        self.id = id
        self.destination = destination
        self.alternative = alternative
        alternativeField = alternative.map { Array("Alt-Used: \($0.authority(of: destination))\r\n".utf8) } ?? []
        self.remote = remote
        self.verifier = verifier
        self.attempt = attempt
        self.pool = pool
        self.context = context
    }

    /// Opens the socket, and sends the first datagram.
    func open(from endpoint: LocalEndpoint) throws(EngineError) {
        let socket: DatagramSocket
        do throws(SystemError) {
            socket = try DatagramSocket(to: remote, from: endpoint, context: context, handler: self)
        } catch {
            throw error.connectFailure(to: remote.description)
        }
        self.socket = socket
        var settings = HTTP3Session.Settings(local: socket.local, remote: remote)
        settings.serverName = verifier.serverName
        settings.headLimit = pool.settings.headLimit
        settings.idleTimeout = Self.idleTimeout
        settings.logsKeys = destination.trust?.options.logKeys != nil
        if let key = verifier.ticketKey {
            settings.ticket = pool.settings.http3Resumption.take(key, now: Int64(time(nil))) ?? []
        }
        var identity: TLSExportedIdentity?
        if let trust = destination.trust { identity = try TLSExportedIdentity(of: trust) }
        session = try HTTP3Session(
            settings: settings, identity: identity, delegate: self, at: MonotonicClock.nanoseconds())
        actAtTurnEnd()
    }

    /// Takes over the connection from its attempt.
    func becomesPooled(_ opening: ConnectionInfo.Opening) {
        attempt = nil
        info = ConnectionInfo(opening, version: .http3)
    }

    /// Tells the pool how many exchanges the connection carries at a time.
    func reportCapacity() {
        guard let session, attempt == nil else { return }
        let now = streams.count + session.room
        guard now != capacity else { return }
        capacity = now
        pool.capacityChanged(self, to: now)
    }

    /// The report about accepted certificates; nil if there is none.
    var pinReport: String? { verifier.pinReport }

    /// The review of the connection, to be done before its first request; nil for none.
    var review: (@Sendable () async -> TLSVerdict)? { verifier.review }

    // MARK: Datagrams

    private func actAtTurnEnd() {
        guard !willAct, !isClosed || !streams.isEmpty else { return }
        willAct = true
        context.callAtTurnEnd(self)
    }

    private func read() {
        for _ in 0..<Self.readsPerEvent {
            guard let socket, let session, !isClosed else { return }
            let buffer = unsafe context.receiveBuffer
            switch unsafe socket.receive(into: buffer) {
            case .datagrams(let count, let segment, let ecn):
                let received = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
                if let error = unsafe take(received, segment: segment, ecn: ecn, session) { return fail(error) }
            case .wouldBlock: return
            case .failed(let error):
                // Once the connection is open, anyone on the path could have sent such a message.
                guard !session.isConnected else { continue }
                return fail(error.connectFailure(to: remote.description))
            }
        }
    }

    private func take(
        _ received: UnsafeRawBufferPointer, segment: Int, ecn: UInt8, _ session: HTTP3Session
    ) -> EngineError? {
        let now = MonotonicClock.nanoseconds()
        unansweredSince = 0
        var start = 0
        while start < received.count, segment > 0 {
            let end = min(received.count, start + segment)
            let datagram = unsafe UnsafeRawBufferPointer(rebasing: received[start..<end])
            if let error = unsafe session.receive(datagram, ecn: ecn, at: now) { return error }
            start = end
        }
        actAtTurnEnd()
        return nil
    }

    private func send() {
        guard let session, let socket, !isClosed, sendPending(over: socket) else { return }
        for _ in 0..<Self.batchesPerTurn {
            let buffer = unsafe context.sendBuffer
            let batch = unsafe session.takeDatagrams(into: buffer, at: MonotonicClock.nanoseconds())
            if let failure = session.failure { return fail(failure) }
            guard batch.count > 0 else { return settleTimer() }
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<batch.count])
            var taken = 0
            switch unsafe socket.send(bytes, segment: batch.segment, ecn: batch.ecn) {
            case .bytes(let count): taken = count
            case .wouldBlock, .end: break
            // Such as a message that the port is closed, which belongs to an earlier datagram. QUIC sends lost ones
            // again, and has its own limits for that.
            case .failed(let error):
                if !session.isConnected { return fail(error.connectFailure(to: remote.description)) }
                taken = batch.count
            }
            if taken < batch.count {
                unsafe pending.append(contentsOf: bytes[taken...])
                (pendingSegment, pendingECN) = (batch.segment, batch.ecn)
                socket.watch(room: true)
                return settleTimer()
            }
        }
        // The others of the loop have their turn first.
        actAtTurnEnd()
    }

    /// Returns whether nothing is left over from an earlier turn.
    private func sendPending(over socket: DatagramSocket) -> Bool {
        guard !pending.isEmpty else { return true }
        let result = unsafe pending.withUnsafeBytes { bytes in
            unsafe socket.send(bytes, segment: pendingSegment, ecn: pendingECN)
        }
        switch result {
        case .bytes(let count): pending.removeFirst(min(count, pending.count))
        case .wouldBlock, .end: return false
        case .failed: pending = []
        }
        guard pending.isEmpty else { return false }
        socket.watch(room: false)
        return true
    }

    /// The time at which the server counts as gone; `.max` for none. The handshake has a limit of its own.
    private func silenceEnd(_ session: HTTP3Session) -> UInt64 {
        guard session.isConnected, !streams.isEmpty else { return .max }
        if unansweredSince == 0, session.awaitsAcknowledgement { unansweredSince = MonotonicClock.nanoseconds() }
        guard unansweredSince != 0 else { return .max }
        return unansweredSince + max(Self.leastSilence, Self.silentProbes * session.probeTimeout)
    }

    private func settleTimer() {
        guard let session, !isClosed else { return }
        let deadline = min(session.deadline, silenceEnd(session))
        if deadline != timer.deadline { context.schedule(timer, at: deadline) }
    }

    // MARK: The end

    private func fail(_ error: EngineError) {
        guard !isClosed else { return }
        // A refusal of the certificates says more than the alert that it causes.
        let error = verifier.failure ?? error
        sayGoodbye()
        let attempt = attempt
        // A network can stop to carry UDP, and a server can fail on every request: the next ones go over TCP.
        if attempt == nil, !streams.isEmpty, let alternative {
            pool.settings.alternatives.failed(alternative, of: destination, now: context.now)
        }
        session?.connectionClosed(error)
        close()
        if let attempt { attempt.carrier(self, didFail: error) } else { pool.closed(self) }
    }

    private func sayGoodbye() {
        guard let session, let socket, !isClosed else { return }
        // Not the buffer of the loop: another connection can be filling it.
        var buffer = [UInt8](repeating: 0, count: HTTP3Session.closingBuffer)
        unsafe buffer.withUnsafeMutableBytes { buffer in
            let count = unsafe session.takeClosing(into: buffer, at: MonotonicClock.nanoseconds())
            guard count > 0 else { return }
            _ = unsafe socket.send(UnsafeRawBufferPointer(rebasing: buffer[..<count]), segment: count, ecn: 0)
        }
    }

    func close() {
        guard !isClosed else { return }
        sayGoodbye()
        isClosed = true
        attempt = nil
        context.cancel(timer)
        socket?.close()
        socket = nil
    }
}

// MARK: - Exchanges

extension HTTP3Carrier: StreamCarrier {
    func start(_ exchange: HTTPExchange) {
        guard let session else { return }
        exchange.connection = self
        exchange.handler.didConnect(info)
        var length: Int64?
        if case .length(let count) = exchange.body { length = count }
        let isReused = info.isReused
        do {
            var request = HTTP2Request(
                method: exchange.method, scheme: "https", authority: exchange.destination.authority,
                path: exchange.path, fields: exchange.fields.bytes, headLimits: exchange.limits)
            if !alternativeField.isEmpty { request.fields += alternativeField }
            request.contentLength = length
            request.statesLength = exchange.statesLength
            request.hasBody = exchange.body == .stream || (length ?? 0) > 0
            request.priority = exchange.urgency.map { HTTP2Priority(urgency: $0) }
            try exchange.fields.check(against: exchange.body)
            let number = try session.submit(request)
            exchange.stream = number
            if !isReused { info = info.reused() }
            streams[number] = CarriedStream(exchange, isReused: isReused)
            if streams.count == 1 { session.keepAlive(every: Self.keepAlive) }
            exchange.handler.didSend(exchange.fields.bytes.count)
            actAtTurnEnd()
        } catch {
            exchange.connection = nil
            pool.finished(self, isReusable: session.takesRequests)
            exchange.handler.didEnd(error, isDeadConnection: false)
        }
    }

    func readingChanged(_ exchange: HTTPExchange) {
        guard exchange.isReading, streams[exchange.stream] != nil else { return }
        actAtTurnEnd()
    }

    func bodyIsReady(_ exchange: HTTPExchange) {
        session?.resumeBody(exchange.stream)
        actAtTurnEnd()
    }

    /// Tells the server the changed priority of an exchange, unless the caller wrote a Priority field.
    func prioritize(_ exchange: HTTPExchange) {
        guard streams[exchange.stream] != nil, !exchange.fields.summary.contains(.priority) else { return }
        let priority = exchange.urgency.map { HTTP2Priority(urgency: $0) } ?? HTTP2Priority()
        session?.setPriority(priority, of: exchange.stream)
        actAtTurnEnd()
    }

    var takesExchanges: Bool { (session?.room ?? 0) > 0 }

    func takeNoMore() { pool.draining(self) }

    func cancel(_ exchange: HTTPExchange) {
        exchange.connection = nil
        guard streams.removeValue(forKey: exchange.stream) != nil else { return }
        session?.cancel(exchange.stream)
        left()
        actAtTurnEnd()
    }

    func consume(_ stream: Int64, count: Int) {
        session?.consume(stream, count: count)
        actAtTurnEnd()
    }

    func abort(_ number: Int64, _ error: EngineError) {
        session?.cancel(number)
        actAtTurnEnd()
        end(number, error)
    }

    func end(_ number: Int64, _ error: EngineError?) {
        guard let ended = streams.removeValue(forKey: number) else { return }
        ended.exchange.connection = nil
        // A stream that the server resets leaves the connection alive.
        let hasEnded = session?.failure != nil
        let isDead = hasEnded && error?.kind == .connectionLost && ended.isReused && !ended.hasResponse
        left()
        ended.exchange.handler.didEnd(error, isDeadConnection: isDead)
    }

    /// Tells the pool that an exchange has left the connection.
    private func left() {
        guard let session else { return }
        if streams.isEmpty { session.keepAlive(every: 0) }
        reportCapacity()
        pool.finished(self, isReusable: session.takesRequests)
    }
}

// MARK: - Events

extension HTTP3Carrier: HTTP3SessionDelegate {
    func verify(_ certificates: [UnsafeRawBufferPointer], staple: UnsafeRawBufferPointer) -> UInt8 {
        unsafe verifier.judge(certificates, staple: staple)
    }

    func handshakeCompleted(isResumed: Bool) { hasConnected = true }

    func ticketReceived(_ ticket: [UInt8]) {
        guard let key = verifier.ticketKey else { return }
        pool.settings.http3Resumption.insert(
            ticket, for: key, chainExpiry: verifier.chainExpiry, now: Int64(time(nil)))
    }

    func keyLogged(_ line: String) { destination.trust?.options.logKeys?(line) }

    func streamReceivedInterim(_ stream: Int64, head: ReceivedHead) { deliver(interim: head, of: stream) }
    func streamReceivedHead(_ stream: Int64, head: ReceivedHead) { deliver(head, of: stream) }
    func streamReceivedBody(_ stream: Int64, bytes: UnsafeRawBufferPointer) { unsafe deliver(bytes, of: stream) }
    func streamReceivedTrailers(_ stream: Int64, lines: [UInt8]) { deliver(trailers: lines, of: stream) }
    func streamEnded(_ stream: Int64) { deliverEnd(of: stream) }
    func streamEndedReceiving(_ stream: Int64) { deliverEndOfReceiving(of: stream) }
    func streamFailed(_ stream: Int64, error: EngineError) { end(stream, error) }

    func readBody(_ stream: Int64, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart {
        unsafe bodyPart(of: stream, into: buffer)
    }

    func roomChanged() { reportCapacity() }
    func settingsReceived(allowsExtendedConnect: Bool) {}
    func goAwayReceived() { pool.draining(self) }
}

extension HTTP3Carrier: SocketHandler, TimerHandler, TurnEndHandler {
    func timerFired(_ timer: LoopTimer) {
        guard let session, !isClosed else { return }
        // After a long turn, an answer can wait in the socket.
        read()
        guard !isClosed else { return }
        let now = MonotonicClock.nanoseconds()
        if silenceEnd(session) <= now {
            return fail(EngineError(.connectionLost, "the server acknowledged nothing for a time (RFC 9002 §6.2)"))
        }
        if session.deadline <= now, let error = session.expire(at: now) { return fail(error) }
        actAtTurnEnd()
    }

    func socketIsReady(_ events: SocketEvents) {
        read()
        if events.contains(.writable) { send() }
    }

    func turnEnds(isIdle: Bool) -> Bool {
        willAct = false
        if hasConnected, let attempt {
            hasConnected = false
            attempt.carrierDidConnect(self)
        }
        deliverHeld()
        send()
        return false
    }
}
#endif
