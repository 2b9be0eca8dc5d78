#if os(Linux)
import CTernHTTP3

/// The events of the libraries, which `HTTP3Callbacks` delivers.
extension HTTP3Session {
    static func truncated(_ stream: HTTP3Stream) -> EngineError {
        EngineError(
            .truncatedBody,
            "the response ended after \(stream.receivedBytes) of \(stream.contentLength ?? 0) bytes (RFC 9114 §4.1.2)")
    }

    /// Ends a stream for the delegate and, with a code, on the wire.
    func close(_ stream: HTTP3Stream, _ code: HTTP3ErrorCode?) {
        stream.isDone = true
        activeStreams -= 1
        if let code { unsafe tern_h3_cancel(session, stream.id, code.value) }
    }

    func fail(_ stream: HTTP3Stream, _ error: EngineError, resetting code: HTTP3ErrorCode? = nil) {
        guard !stream.isDone else { return }
        var error = error
        // A request with a response was processed, whatever the server states.
        if error.kind == .notProcessed, stream.builder.isComplete { error.kind = .connectionLost }
        close(stream, code)
        delegate.streamFailed(stream.id, error: error)
    }

    // MARK: The connection

    func handshakeCompleted(isResumed: Bool) {
        isConnected = true
        delegate.handshakeCompleted(isResumed: isResumed)
    }

    func settingsReceived(allowsExtendedConnect: Bool) {
        self.allowsExtendedConnect = allowsExtendedConnect
        delegate.settingsReceived(allowsExtendedConnect: allowsExtendedConnect)
    }

    func goAwayReceived(first: Int64) {
        hasReceivedGoAway = true
        delegate.goAwayReceived()
        for stream in streams.values.sorted(by: { $0.id < $1.id }) where !stream.isDone && stream.id >= first {
            fail(stream, .goneAwayOverHTTP3, resetting: .requestCancelled)
        }
    }

    // MARK: Responses

    private func live(_ id: Int64) -> HTTP3Stream? {
        guard let stream = streams[id], !stream.isDone else { return nil }
        return stream
    }

    func headBegan(_ id: Int64) { live(id)?.builder.begin() }

    /// Takes a field. Returns false if the rest is of no use.
    func fieldReceived(_ id: Int64, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
        guard let stream = live(id) else { return false }
        guard let error = unsafe stream.builder.add(name: name, value: value) else { return true }
        fail(stream, error, resetting: error.kind == .tooLarge ? .requestCancelled : .messageError)
        return false
    }

    func headEnded(_ id: Int64) {
        guard let stream = live(id) else { return }
        switch stream.builder.finish() {
        case .interim(let head):
            delegate.streamReceivedInterim(id, head: head)
        case .head(let head):
            // The response to CONNECT has no body, so that its length means nothing (RFC 9110 §9.3.6).
            stream.isTunnel = stream.isConnect && 200..<300 ~= head.status
            stream.contentLength = stream.isTunnel ? nil : head.contentLength
            delegate.streamReceivedHead(id, head: head)
        case .trailers(let lines):
            if !lines.isEmpty { delegate.streamReceivedTrailers(id, lines: lines) }
        case .failed(let error):
            fail(stream, error, resetting: error.kind == .tooLarge ? .requestCancelled : .messageError)
        }
    }

    func dataReceived(_ id: Int64, _ bytes: UnsafeRawBufferPointer) {
        guard let stream = live(id), unsafe !bytes.isEmpty else { return }
        stream.receivedBytes += Int64(bytes.count)
        stream.unconsumed += bytes.count
        unsafe delegate.streamReceivedBody(id, bytes: bytes)
    }

    /// Ends a stream whose response is whole. A body that is still being sent stops (RFC 9114 §4.1), but each side of a
    /// tunnel ends by itself (§4.4).
    func responseEnded(_ id: Int64) {
        guard let stream = live(id) else { return }
        guard stream.builder.isComplete else {
            return fail(stream, .malformed("the stream ended without a response (RFC 9114 §4.1)"))
        }
        if stream.isTunnel, !stream.isRequestEnded {
            stream.isResponseEnded = true
            return delegate.streamEndedReceiving(id)
        }
        let isSending = !stream.isRequestEnded
        close(stream, nil)
        if isSending { unsafe tern_h3_cancel_body(session, id, HTTP3ErrorCode.noError.value) }
        delegate.streamEnded(id)
    }

    func streamReset(_ id: Int64, _ code: HTTP3ErrorCode) {
        guard let stream = live(id) else { return }
        fail(stream, code.streamFailure, resetting: .requestCancelled)
    }

    /// Fails the stream of a message that violates a rule. nghttp3 resets the stream.
    func streamViolated(_ id: Int64, _ code: HTTP3ErrorCode) {
        guard let stream = live(id) else { return }
        let error =
            stream.isTruncated
            ? Self.truncated(stream)
            : .malformed("the response violates a rule of HTTP/3: \(code.name) (RFC 9114 §4.1.2)")
        fail(stream, error)
    }

    func streamClosed(_ id: Int64, _ code: HTTP3ErrorCode) {
        guard let stream = streams.removeValue(forKey: id), !stream.isDone else { return }
        if stream.isResponseEnded {
            close(stream, nil)
            delegate.streamEnded(id)
        } else if stream.isTruncated {
            fail(stream, Self.truncated(stream))
        } else {
            fail(stream, code.streamFailure)
        }
    }

    // MARK: Requests

    /// Notes that the server reads no more of a request's body. The response tells why.
    func bodyStopped(_ id: Int64) { live(id)?.isRequestEnded = true }

    /// Writes the next part of a request's body. Returns the number of bytes, or a code of CTernHTTP3.
    func readBody(_ id: Int64, into buffer: UnsafeMutableRawBufferPointer, flags: inout UInt32) -> Int {
        let failed = Int(TERN_H3_FAILED)
        guard let stream = live(id), unsafe !buffer.isEmpty else { return failed }
        let part = unsafe delegate.readBody(id, into: buffer)
        // The delegate can cancel the stream within the call.
        guard !stream.isDone else { return failed }
        var trailers: [UInt8]?
        var count = 0
        var isLast = true
        switch part {
        case .wait, .bytes(0): return Int(TERN_H3_WAIT)
        case .bytes(let written): (count, isLast) = (written, false)
        case .last(let written): count = written
        case .end: break
        case .trailers(let lines): trailers = lines
        case .failed(let error): return drop(stream, error)
        }
        precondition(0...buffer.count ~= count, "the delegate wrote more bytes than the buffer has")
        if let error = stream.takeSent(count, isLast: isLast) { return drop(stream, error) }
        guard isLast else { return count }
        stream.isRequestEnded = true
        guard let trailers, !trailers.isEmpty else {
            flags = UInt32(TERN_H3_BODY_ENDS)
            return count
        }
        if let error = block.takeTrailers(trailers) { return drop(stream, error) }
        guard submitTrailers(of: id) else {
            return drop(stream, EngineError(.invalidRequest, "the trailers of the request cannot be sent"))
        }
        flags = UInt32(TERN_H3_TRAILERS_FOLLOW)
        return count
    }

    private func drop(_ stream: HTTP3Stream, _ error: EngineError) -> Int {
        fail(stream, error, resetting: .requestCancelled)
        return Int(TERN_H3_FAILED)
    }
}
#endif
