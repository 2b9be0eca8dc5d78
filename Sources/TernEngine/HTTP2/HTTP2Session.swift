#if os(Linux)
import CTernHTTP2

/// The client's end of one HTTP/2 connection (RFC 9113), without a socket: it takes the bytes that were received and
/// gives the bytes to send. nghttp2 reads and writes the frames.
///
/// The session is confined to the event loop of its connection. After each `receive(_:at:)` and each call that changes
/// a stream, the owner moves the output to its socket while `wantsWrite` is true and the socket takes it. An error of
/// `receive(_:at:)` or `takeOutput(into:upTo:)` ends the connection: the owner sends what `takeOutput` still gives,
/// closes the socket and calls `connectionClosed(_:)`.
@safe
package final class HTTP2Session {
    package struct Settings: Sendable, Equatable {
        /// The number of bytes of one response that may wait for their reader.
        package var streamWindow = 1 << 20
        /// The number of bytes that the server may send ahead over all streams. The session returns them at receipt, so
        /// that an unread stream does not stop the others.
        package var connectionWindow = 16 << 20
        /// The number of bytes of a head that the session states to the server and bounds header blocks by. At least
        /// the largest limit of a request.
        package var headLimit = 256 << 10

        package init() {}
    }

    let session: OpaquePointer
    unowned let delegate: any HTTP2SessionDelegate
    var streams: [Int32: HTTP2Stream] = [:]
    /// The stream of the last event. Most events concern the same stream as the event before.
    var lastStream: HTTP2Stream?
    var block = HTTP2FieldBlock()
    var encoded: [tern_h2_field] = []
    var frameGuard: HTTP2FrameGuard
    /// Output that was taken from nghttp2 ahead of `takeOutput(into:upTo:)`.
    private var spill: [UInt8] = []
    var pingNumber: UInt64 = 0
    var isPinging = false
    var isClosing = false
    var hasReceivedGoAway = false
    /// Whether the server's first frame arrived.
    var hasReceivedSettings = false
    private var isClosed = false
    /// The rule that the server violated last, which explains the end of the connection.
    var violation: String?

    /// The reason why the connection ends; nil while it is of use.
    package internal(set) var failure: EngineError?
    /// The number of streams that the server allows at once: 100 until its SETTINGS arrive.
    package internal(set) var maximumStreams = 100
    /// Whether the server allows extended CONNECT (RFC 8441 §3).
    package internal(set) var allowsExtendedConnect = false
    /// The number of streams that have neither ended, nor failed, nor been cancelled.
    package internal(set) var activeStreams = 0

    /// Creates a session and queues its preface. The delegate must outlive the session.
    package init(settings: Settings = Settings(), delegate: any HTTP2SessionDelegate) throws(EngineError) {
        self.delegate = delegate
        // A head beyond a small limit fails its stream. A block beyond this one ends the connection.
        let blockLimit = max(settings.headLimit, Settings().headLimit)
        frameGuard = HTTP2FrameGuard(headLimit: blockLimit)
        var values = tern_h2_settings(
            stream_window: UInt32(clamping: min(max(settings.streamWindow, 1), 1 << 30)),
            connection_window: Int32(clamping: min(max(settings.connectionWindow, 65_535), 1 << 30)),
            head_limit: UInt32(clamping: settings.headLimit), continuations: frameGuard.continuations)
        var callbacks = HTTP2Callbacks.table()
        guard let created = unsafe tern_h2_new(&callbacks, &values) else {
            throw EngineError(.connectionFailed, "HTTP/2 has no memory for a connection")
        }
        unsafe session = created
        unsafe tern_h2_set_context(created, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { unsafe tern_h2_free(session) }

    // MARK: Bytes

    /// Whether the session expects more bytes. When it is false and `wantsWrite` is false too, the connection is at its
    /// end.
    package var wantsRead: Bool { unsafe failure == nil && tern_h2_wants_read(session) != 0 }

    /// Whether `takeOutput(into:upTo:)` has something to send. Windows without room do not count.
    package var wantsWrite: Bool { unsafe !spill.isEmpty || tern_h2_wants_write(session) != 0 }

    /// Whether a request that is submitted now is sent at once.
    package var hasRoom: Bool { takesRequests && activeStreams < maximumStreams }

    /// Whether `submit(_:)` takes requests: the connection has not failed, no GOAWAY was sent or received, and
    /// identifiers are left.
    package var takesRequests: Bool {
        failure == nil && !isClosed && !hasReceivedGoAway && !isClosing && !isTerminated
    }

    /// Whether nghttp2 starts no further stream, because of GOAWAY in one of the directions or for lack of identifiers.
    var isTerminated: Bool { unsafe tern_h2_can_request(session) == 0 }

    /// Takes bytes that were received, and calls the delegate. `now` is the time in nanoseconds of a clock that does
    /// not go back. Returns an error if the connection has to end.
    package func receive(_ bytes: UnsafeRawBufferPointer, at now: UInt64) -> EngineError? {
        if let failure { return failure }
        guard !isClosed, unsafe !bytes.isEmpty else { return nil }
        let verdict = unsafe frameGuard.scan(bytes, at: now)
        if verdict.accepted > 0, let start = bytes.baseAddress {
            let count = withExtendedLifetime(self) {
                unsafe tern_h2_receive(session, start.assumingMemoryBound(to: UInt8.self), verdict.accepted)
            }
            if count < 0 {
                let reason = Self.text(of: Int32(clamping: count))
                end(.enhanceYourCalm, .malformed("the server violates HTTP/2: \(reason) (RFC 9113 §10.5)"))
            }
        }
        noticeEnd()
        if failure == nil, let refusal = verdict.refusal { end(refusal.code, refusal.error) }
        return failure
    }

    /// Appends output until the buffer has at least `limit` bytes or nothing is left to send. The buffer exceeds the
    /// limit by less than one frame, 16 KiB and 9 bytes, apart from the frames that end a connection. Returns an error
    /// if the connection has to end.
    package func takeOutput(into buffer: inout [UInt8], upTo limit: Int) -> EngineError? {
        if !spill.isEmpty {
            buffer.append(contentsOf: spill)
            spill.removeAll()
        }
        while buffer.count < limit, sendFrame(into: &buffer) {}
        return failure
    }

    /// Appends the next frame. Returns false if there is none.
    private func sendFrame(into buffer: inout [UInt8]) -> Bool {
        var start: UnsafePointer<UInt8>?
        let count = withExtendedLifetime(self) { unsafe tern_h2_send(session, &start) }
        if count > 0, let start = unsafe start {
            unsafe buffer.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
            return true
        }
        if count < 0, failure == nil {
            failure = EngineError(
                .connectionLost, "HTTP/2 has no further output: \(Self.text(of: Int32(clamping: count)))")
        }
        return false
    }

    /// Finds out whether nghttp2 queued GOAWAY because of a violation. Then the frame is taken at once, since
    /// `noticeSentGoAway` reads the reason from it.
    private func noticeEnd() {
        guard failure == nil else { return }
        guard hasReceivedGoAway || isClosing || isTerminated else { return }
        while failure == nil, spill.count < 64 << 10, sendFrame(into: &spill) {}
    }

    private func end(_ code: HTTP2ErrorCode, _ error: EngineError) {
        failure = error
        _ = unsafe tern_h2_terminate(session, code.value)
    }

    static func text(of error: Int32) -> String {
        unsafe tern_h2_error_text(error).map { unsafe String(cString: $0) } ?? "error \(error)"
    }

    // MARK: Streams

    /// Queues a request, and returns the identifier of its stream. Requests beyond `maximumStreams` wait in the
    /// session. Throws `.invalidRequest` for a request that cannot be sent, and `.notProcessed` if the connection takes
    /// no more.
    package func submit(_ request: HTTP2Request) throws(EngineError) -> Int32 {
        guard takesRequests else {
            throw EngineError(.notProcessed, "the HTTP/2 connection takes no further request (RFC 9113 §6.8)")
        }
        if let error = block.take(request) { throw error }
        encodeFields()
        let id = unsafe block.bytes.withUnsafeBufferPointer { bytes in
            unsafe tern_h2_submit(session, bytes.baseAddress, encoded, encoded.count, request.hasBody ? 1 : 0)
        }
        guard id > 0 else {
            throw EngineError(.notProcessed, "the request cannot be queued: \(Self.text(of: id))")
        }
        streams[id] = HTTP2Stream(id: id, request: request)
        activeStreams += 1
        frameGuard.requestSubmitted()
        return id
    }

    func encodeFields() {
        encoded.removeAll(keepingCapacity: true)
        for field in block.fields {
            encoded.append(
                tern_h2_field(
                    name: UInt32(truncatingIfNeeded: field.name.lowerBound),
                    name_length: UInt32(truncatingIfNeeded: field.name.count),
                    value: UInt32(truncatingIfNeeded: field.value.lowerBound),
                    value_length: UInt32(truncatingIfNeeded: field.value.count), is_secret: field.isSecret ? 1 : 0))
        }
    }

    /// Asks for the body of a request again after `HTTP2BodyPart.wait`.
    package func resumeBody(_ stream: Int32) {
        guard let stream = self.stream(stream), !stream.isDone else { return }
        // Fails for a body that was not waiting, which is asked for anyway.
        _ = unsafe tern_h2_resume(session, stream.id)
    }

    /// Returns bytes of a response's body to the window of their stream, after the reader has taken them.
    package func consume(_ stream: Int32, count: Int) {
        guard let stream = self.stream(stream), !stream.isDone else { return }
        let count = min(max(count, 0), stream.unconsumed)
        guard count > 0 else { return }
        stream.unconsumed -= count
        _ = unsafe tern_h2_consume_stream(session, stream.id, count)
    }

    /// Resets a stream with CANCEL. The delegate hears no more of it.
    package func cancel(_ stream: Int32) {
        guard let stream = self.stream(stream), !stream.isDone else { return }
        close(stream, .cancel)
    }

    /// Changes the priority of a request that was submitted, with PRIORITY_UPDATE (RFC 9218 §7.1), if the server
    /// supports RFC 9218.
    package func setPriority(_ priority: HTTP2Priority, of stream: Int32) {
        guard let stream = self.stream(stream), !stream.isDone, failure == nil else { return }
        let value = Array(priority.fieldValue.utf8)
        _ = unsafe tern_h2_update_priority(session, stream.id, value, value.count)
    }

    // MARK: The connection

    /// Queues a PING frame, unless one is on its way. Its answer calls `pongReceived()`.
    package func ping() {
        guard failure == nil, !isPinging else { return }
        isPinging = true
        pingNumber &+= 1
        frameGuard.pingSent()
        _ = unsafe withUnsafeBytes(of: pingNumber) { bytes in
            unsafe tern_h2_ping(session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
    }

    /// Queues GOAWAY. Streams that are open go on; the session takes no further request.
    package func goAway() {
        guard failure == nil, !isClosing, !isClosed else { return }
        isClosing = true
        _ = unsafe tern_h2_go_away(session)
    }

    /// Ends all streams after the socket was closed. Streams that were never sent fail with `.notProcessed`, others
    /// with the error; a body that is shorter than stated fails with `.truncatedBody` in place of `.connectionLost`.
    package func connectionClosed(_ error: EngineError) {
        guard !isClosed else { return }
        isClosed = true
        if failure == nil { failure = error }
        for stream in streams.values.sorted(by: { $0.id < $1.id }) where !stream.isDone {
            if !stream.isSent {
                fail(stream, .goneAway)
            } else if error.kind == .connectionLost, stream.isTruncated {
                fail(stream, Self.truncated(stream))
            } else {
                fail(stream, error)
            }
        }
        streams.removeAll()
        lastStream = nil
    }
}
#endif
