#if os(Linux)
import CTernHTTP3

/// The client's end of one HTTP/3 connection (RFC 9114), without a socket: it takes the datagrams that were received
/// and gives the datagrams to send. ngtcp2 speaks QUIC, nghttp3 reads and writes the frames, and GnuTLS does the
/// handshake, but verifies nothing: the delegate does.
///
/// The session is confined to the event loop of its connection. After each `receive(_:ecn:at:)`, each `expire(at:)` and
/// each call that changes a stream, the owner sends what `takeDatagrams(into:at:)` gives, and sees to it that
/// `expire(at:)` is called at the `deadline`. An error ends the connection: the owner sends what
/// `takeClosing(into:at:)` gives, closes the socket and calls `connectionClosed(_:)`.
@safe
package final class HTTP3Session {
    package struct Settings: Sendable {
        /// The name that the server is asked for; nil for an address.
        package var serverName: String?
        package var local: SocketAddress
        package var remote: SocketAddress
        /// Data of an earlier connection, by which this one resumes its session; empty for none.
        package var ticket: [UInt8] = []
        /// The number of bytes of one response that may wait for their reader.
        package var streamWindow = 2 << 20
        /// The number of bytes that the server may send ahead over all streams. The session returns them at receipt, so
        /// that an unread stream does not stop the others.
        package var connectionWindow = 16 << 20
        /// The number of bytes of a head that the session states to the server.
        package var headLimit = 256 << 10
        /// The silence after which the connection ends, and the limit for the handshake, in nanoseconds.
        package var idleTimeout: UInt64 = 60_000_000_000
        package var handshakeTimeout: UInt64 = 10_000_000_000
        /// Whether the delegate receives the lines of a key log.
        package var logsKeys = false

        package init(local: SocketAddress, remote: SocketAddress) {
            self.local = local
            self.remote = remote
        }
    }

    /// Datagrams of one size to send, the last of which may be shorter.
    package struct Batch: Sendable, Equatable {
        /// The number of bytes in all; 0 if there is nothing to send.
        package var count = 0
        /// The size of each datagram.
        package var segment = 0
        /// The two bits of ECN for each (RFC 3168).
        package var ecn: UInt8 = 0
    }

    /// The least number of bytes of the buffer for `takeDatagrams(into:at:)`.
    package static let leastBuffer = 64 << 10
    /// The least number of bytes of the buffer for `takeClosing(into:at:)`.
    package static let closingBuffer = 2_048

    /// The reason why HTTP/3 cannot be used on this system: a library that is missing, and its package; nil if it can.
    /// The first call loads the libraries.
    package static var obstacle: String? {
        guard let text = unsafe tern_h3_obstacle() else { return nil }
        return unsafe String(cString: text)
    }

    /// Set once, in the initializer, which passes the session itself to it.
    private var pointer: OpaquePointer?
    var session: OpaquePointer? { unsafe pointer }
    unowned let delegate: any HTTP3SessionDelegate
    var streams: [Int64: HTTP3Stream] = [:]
    var block = HTTP2FieldBlock()
    private var encoded: [tern_h3_field] = []
    private var isClosed = false
    var hasReceivedGoAway = false
    /// Whether the handshake is complete, and the certificates are accepted.
    package internal(set) var isConnected = false
    /// Whether the server allows extended CONNECT (RFC 9220).
    package internal(set) var allowsExtendedConnect = false
    /// The reason why the connection ends; nil while it is of use.
    package private(set) var failure: EngineError?
    /// The number of streams that have neither ended, nor failed, nor been cancelled.
    package internal(set) var activeStreams = 0

    /// Creates a session. The delegate must outlive it.
    ///
    /// - Parameter identity: The certificates and the key for a server that asks for them; nil for none.
    package init(
        settings: Settings, identity: TLSExportedIdentity? = nil, delegate: any HTTP3SessionDelegate, at now: UInt64
    ) throws(EngineError) {
        self.delegate = delegate
        if let obstacle = Self.obstacle { throw EngineError(.connectionFailed, obstacle) }
        var callbacks = HTTP3Callbacks.table()
        let owner = unsafe Unmanaged.passUnretained(self).toOpaque()
        let created = unsafe Self.withSettings(settings, identity, at: now) { values in
            unsafe tern_h3_new(&callbacks, owner, values)
        }
        guard let created = unsafe created else {
            throw EngineError(.connectionFailed, "a connection over HTTP/3 cannot be set up")
        }
        unsafe pointer = created
    }

    deinit { unsafe tern_h3_free(pointer) }

    private static func withSettings(
        _ settings: Settings, _ identity: TLSExportedIdentity?, at now: UInt64,
        body: (UnsafePointer<tern_h3_settings>) -> OpaquePointer?
    ) -> OpaquePointer? {
        unsafe settings.local.withSystemAddress { local, localLength in
            unsafe settings.remote.withSystemAddress { remote, remoteLength in
                unsafe settings.ticket.withUnsafeBufferPointer { ticket in
                    var values = unsafe tern_h3_settings()
                    unsafe values.local = UnsafeRawPointer(local)
                    unsafe values.local_length = localLength
                    unsafe values.remote = UnsafeRawPointer(remote)
                    unsafe values.remote_length = remoteLength
                    unsafe values.ticket = tern_h3_bytes(bytes: ticket.baseAddress, length: ticket.count)
                    if let identity = unsafe identity?.bytes {
                        unsafe values.identity = bytes(identity.chain)
                        unsafe values.identity_key = bytes(identity.key)
                    }
                    unsafe values.stream_window = UInt64(clamping: settings.streamWindow)
                    unsafe values.connection_window = UInt64(clamping: settings.connectionWindow)
                    unsafe values.head_limit = UInt64(clamping: settings.headLimit)
                    unsafe values.idle_timeout = settings.idleTimeout
                    unsafe values.handshake_timeout = settings.handshakeTimeout
                    unsafe values.now = now
                    unsafe values.logs_keys = settings.logsKeys ? 1 : 0
                    guard let name = settings.serverName else { return unsafe body(&values) }
                    return unsafe name.withCString { name in
                        unsafe values.server_name = name
                        return unsafe body(&values)
                    }
                }
            }
        }
    }

    private static func bytes(_ bytes: UnsafeRawBufferPointer) -> tern_h3_bytes {
        unsafe tern_h3_bytes(bytes: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), length: bytes.count)
    }

    // MARK: Datagrams

    /// Takes a datagram that was received, and calls the delegate. `now` is the time in nanoseconds of a clock that
    /// does not go back. Returns an error if the connection has to end.
    package func receive(_ datagram: UnsafeRawBufferPointer, ecn: UInt8, at now: UInt64) -> EngineError? {
        if let failure { return failure }
        guard !isClosed, let start = datagram.baseAddress else { return nil }
        let result = withExtendedLifetime(self) {
            unsafe tern_h3_receive(
                session, start.assumingMemoryBound(to: UInt8.self), datagram.count, ecn, now)
        }
        return result == 0 ? nil : noteFailure()
    }

    /// Writes datagrams into a buffer of at least `leastBuffer` bytes. Returns an empty batch if there is nothing to
    /// send now, or if the connection has to end: then there is a `failure`.
    package func takeDatagrams(into buffer: UnsafeMutableRawBufferPointer, at now: UInt64) -> Batch {
        guard failure == nil, !isClosed, let start = buffer.baseAddress else { return Batch() }
        var batch = Batch()
        let count = withExtendedLifetime(self) {
            unsafe tern_h3_send(
                session, start.assumingMemoryBound(to: UInt8.self), buffer.count, &batch.segment, &batch.ecn, now)
        }
        guard count >= 0 else {
            noteFailure()
            return Batch()
        }
        batch.count = count
        return batch
    }

    /// The time at which `expire(at:)` is to be called; `.max` for never.
    package var deadline: UInt64 { unsafe isClosed ? .max : tern_h3_deadline(session) }

    /// Does what is due. Returns an error if the connection has to end.
    package func expire(at now: UInt64) -> EngineError? {
        if let failure { return failure }
        guard !isClosed else { return nil }
        let result = withExtendedLifetime(self) { unsafe tern_h3_expire(session, now) }
        return result == 0 ? nil : noteFailure()
    }

    /// Writes the datagram that tells the server the end of the connection. Returns the number of its bytes; 0 if none
    /// is to be sent.
    package func takeClosing(into buffer: UnsafeMutableRawBufferPointer, at now: UInt64) -> Int {
        guard !isClosed, let start = buffer.baseAddress else { return 0 }
        return unsafe tern_h3_close(
            session, HTTP3ErrorCode.noError.value, start.assumingMemoryBound(to: UInt8.self), buffer.count, now)
    }

    /// Whether the server has not acknowledged everything that it must.
    package var awaitsAcknowledgement: Bool {
        unsafe failure == nil && !isClosed && tern_h3_awaits_acknowledgement(session) != 0
    }

    /// The time in nanoseconds after which data without acknowledgement is sent again (RFC 9002 §6.2).
    package var probeTimeout: UInt64 { unsafe isClosed ? 0 : tern_h3_probe_timeout(session) }

    /// Sends PING whenever the connection was silent for the time, in nanoseconds; 0 for never.
    package func keepAlive(every interval: UInt64) {
        guard failure == nil, !isClosed else { return }
        unsafe tern_h3_keep_alive(session, interval)
    }

    /// Continues the connection from another address of this machine (RFC 9000 §9). Returns false if the server does
    /// not allow it.
    package func migrate(to local: SocketAddress, at now: UInt64) -> Bool {
        unsafe local.withSystemAddress { unsafe tern_h3_migrate(session, $0, $1, now) == 0 }
    }

    @discardableResult
    private func noteFailure() -> EngineError? {
        if failure == nil {
            var reason = tern_h3_failure()
            unsafe tern_h3_get_failure(session, &reason)
            failure = HTTP3Failure.error(of: reason, isConnected: isConnected)
        }
        return failure
    }

    // MARK: Streams

    /// Whether `submit(_:)` takes requests as soon as there is room.
    package var takesRequests: Bool { failure == nil && isConnected && !isClosed && !hasReceivedGoAway }

    /// The number of requests that can be submitted now.
    package var room: Int { takesRequests ? Int(clamping: unsafe tern_h3_streams_left(session)) : 0 }

    /// Begins a request, and returns the identifier of its stream. Throws `.invalidRequest` for a request that cannot
    /// be sent, and `.notProcessed` if the connection takes no more, or none now.
    package func submit(_ request: HTTP2Request) throws(EngineError) -> Int64 {
        guard takesRequests else { throw .goneAwayOverHTTP3 }
        if let error = block.take(request) { throw error }
        encodeFields()
        let id = unsafe block.bytes.withUnsafeBufferPointer { bytes in
            unsafe tern_h3_submit(session, bytes.baseAddress, encoded, encoded.count, request.hasBody ? 1 : 0)
        }
        guard id >= 0 else {
            let reason = id == -1 ? "the server allows no more streams now" : "the connection takes no further request"
            throw EngineError(.notProcessed, "the request was not sent: \(reason) (RFC 9000 §4.6)")
        }
        streams[id] = HTTP3Stream(id: id, request: request, version: .http3)
        activeStreams += 1
        return id
    }

    /// Submits trailers of a request. Returns false if they cannot be sent.
    func submitTrailers(of stream: Int64) -> Bool {
        encodeFields()
        return unsafe block.bytes.withUnsafeBufferPointer { bytes in
            unsafe tern_h3_submit_trailers(session, stream, bytes.baseAddress, encoded, encoded.count) == 0
        }
    }

    private func encodeFields() {
        encoded.removeAll(keepingCapacity: true)
        for field in block.fields {
            encoded.append(
                tern_h3_field(
                    name: UInt32(truncatingIfNeeded: field.name.lowerBound),
                    name_length: UInt32(truncatingIfNeeded: field.name.count),
                    value: UInt32(truncatingIfNeeded: field.value.lowerBound),
                    value_length: UInt32(truncatingIfNeeded: field.value.count), is_secret: field.isSecret ? 1 : 0))
        }
    }

    /// Asks for the body of a request again after `HTTP2BodyPart.wait`.
    package func resumeBody(_ stream: Int64) {
        guard let stream = streams[stream], !stream.isDone else { return }
        unsafe tern_h3_resume(session, stream.id)
    }

    /// Returns bytes of a response's body to the window of their stream, after the reader has taken them.
    package func consume(_ stream: Int64, count: Int) {
        guard let stream = streams[stream], !stream.isDone else { return }
        let count = min(max(count, 0), stream.unconsumed)
        guard count > 0 else { return }
        stream.unconsumed -= count
        unsafe tern_h3_consume(session, stream.id, count)
    }

    /// Ends both sides of a stream with H3_REQUEST_CANCELLED. The delegate hears no more of it.
    package func cancel(_ stream: Int64) {
        guard let stream = streams[stream], !stream.isDone else { return }
        close(stream, .requestCancelled)
    }

    /// Changes the priority of a request that was submitted, with PRIORITY_UPDATE (RFC 9218 §7.2).
    package func setPriority(_ priority: HTTP2Priority, of stream: Int64) {
        guard let stream = streams[stream], !stream.isDone, failure == nil else { return }
        let value = Array(priority.fieldValue.utf8)
        _ = unsafe tern_h3_set_priority(session, stream.id, value, value.count)
    }

    /// Ends all streams after the socket was closed. Streams of which nothing was sent fail with `.notProcessed`,
    /// others with the error; a body that is shorter than stated fails with `.truncatedBody` in place of
    /// `.connectionLost`.
    package func connectionClosed(_ error: EngineError) {
        guard !isClosed else { return }
        isClosed = true
        if failure == nil { failure = error }
        for stream in streams.values.sorted(by: { $0.id < $1.id }) where !stream.isDone {
            if unsafe tern_h3_is_sent(session, stream.id) == 0 {
                fail(stream, .goneAwayOverHTTP3)
            } else if error.kind == .connectionLost, stream.isTruncated {
                fail(stream, Self.truncated(stream))
            } else {
                fail(stream, error)
            }
        }
        streams.removeAll()
    }
}
#endif
