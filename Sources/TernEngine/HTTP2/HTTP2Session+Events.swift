#if os(Linux)
import CTernHTTP2

/// The events of nghttp2, which `HTTP2Callbacks` delivers.
extension HTTP2Session {
    func stream(_ id: Int32) -> HTTP2Stream? {
        if let lastStream, lastStream.id == id { return lastStream }
        lastStream = streams[id]
        return lastStream
    }

    static func truncated(_ stream: HTTP2Stream) -> EngineError {
        EngineError(
            .truncatedBody,
            "the response ended after \(stream.receivedBytes) of \(stream.contentLength ?? 0) bytes (RFC 9113 §8.1.1)")
    }

    /// Ends a stream for the delegate and, with a code, on the wire.
    func close(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode?) {
        stream.isDone = true
        activeStreams -= 1
        if let code { _ = unsafe tern_h2_reset(session, stream.id, code.value) }
    }

    func fail(_ stream: HTTP2Stream, _ error: EngineError, resetting code: HTTP2ErrorCode? = nil) {
        guard !stream.isDone else { return }
        var error = error
        // A request with a response was processed, whatever the server states.
        if error.kind == .notProcessed, stream.builder.isComplete { error.kind = .connectionLost }
        close(stream, code)
        delegate.streamFailed(stream.id, error: error)
    }

    func headersBegan(_ id: Int32, isLast: Bool) {
        guard let stream = stream(id), !stream.isDone else { return }
        stream.builder.begin()
        stream.beginFrame(count: 0, isLast: isLast)
    }

    func dataBegan(_ id: Int32, count: Int, isLast: Bool) {
        stream(id)?.beginFrame(count: count, isLast: isLast)
    }

    func fieldReceived(_ id: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> CInt {
        guard let stream = stream(id), !stream.isDone else { return CInt(TERN_H2_DROP) }
        guard let error = unsafe stream.builder.add(name: name, value: value) else { return 0 }
        fail(stream, error, resetting: error.kind == .tooLarge ? .cancel : .protocolError)
        return CInt(TERN_H2_DROP)
    }

    func invalidFieldReceived(_ id: Int32) -> CInt {
        if let stream = stream(id) {
            fail(
                stream, .malformed("a field of the response has characters that are not allowed (RFC 9113 §8.2.1)"),
                resetting: .protocolError)
        }
        return CInt(TERN_H2_DROP)
    }

    func dataReceived(_ id: Int32, _ bytes: UnsafeRawBufferPointer) {
        _ = unsafe tern_h2_consume_connection(session, bytes.count)
        guard let stream = stream(id), !stream.isDone, unsafe !bytes.isEmpty else { return }
        stream.receivedBytes += Int64(bytes.count)
        stream.unconsumed += bytes.count
        unsafe delegate.streamReceivedBody(id, bytes: bytes)
    }

    func frameReceived(_ frame: tern_h2_frame) {
        switch unsafe frame.type {
        case 0x0: if let stream = unsafe stream(frame.stream), !stream.isDone { responseEnded(stream) }
        case 0x1: unsafe headersEnded(frame.stream, isLast: frame.flags & 0x1 != 0)
        case 0x3: unsafe stream(frame.stream)?.isReset = true
        case 0x4: settingsReceived()
        case 0x6: unsafe pongReceived(UnsafeRawBufferPointer(start: frame.data, count: frame.length))
        case 0x7: unsafe goAwayReceived(lastStream: frame.last_stream, HTTP2ErrorCode(value: frame.code))
        default: break
        }
    }

    private func headersEnded(_ id: Int32, isLast: Bool) {
        guard let stream = stream(id), !stream.isDone else { return }
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
            fail(stream, error, resetting: error.kind == .tooLarge ? .cancel : .protocolError)
        }
        if isLast, !stream.isDone { responseEnded(stream) }
    }

    /// Ends a stream whose response is whole. A body that is still being sent stops (RFC 9113 §8.1), but each side of a
    /// tunnel ends by itself (§8.5).
    private func responseEnded(_ stream: HTTP2Stream) {
        if stream.isTunnel, !stream.isRequestEnded {
            stream.isResponseEnded = true
            return delegate.streamEndedReceiving(stream.id)
        }
        close(stream, stream.isRequestEnded ? nil : .noError)
        delegate.streamEnded(stream.id)
    }

    private func settingsReceived() {
        let isFirst = !hasReceivedSettings
        hasReceivedSettings = true
        let allowsExtendedConnect = unsafe tern_h2_allows_connect_protocol(session) == 1
        if allowsExtendedConnect != self.allowsExtendedConnect {
            self.allowsExtendedConnect = allowsExtendedConnect
            delegate.extendedConnectChanged(allowsExtendedConnect)
        }
        let maximum = Int(clamping: unsafe tern_h2_maximum_streams(session))
        guard isFirst || maximum != maximumStreams else { return }
        maximumStreams = maximum
        delegate.maximumStreamsChanged(maximum)
    }

    private func pongReceived(_ data: UnsafeRawBufferPointer) {
        guard isPinging, data.count == 8, unsafe data.loadUnaligned(as: UInt64.self) == pingNumber else { return }
        isPinging = false
        delegate.pongReceived()
    }

    private func goAwayReceived(lastStream last: Int32, _ code: HTTP2ErrorCode) {
        hasReceivedGoAway = true
        let error: EngineError? =
            switch code {
            case .noError: nil
            case .http11Required: .requiresHTTP11
            default:
                EngineError(
                    .connectionLost, "the server ended the connection: GOAWAY with \(code.name) (RFC 9113 §6.8)",
                    http2Code: code.value)
            }
        delegate.goAwayReceived(lastStream: last, error: error)
        for stream in streams.values.sorted(by: { $0.id < $1.id }) where !stream.isDone {
            guard stream.id > last || !stream.isSent else { continue }
            var reason = code == .http11Required ? EngineError.requiresHTTP11 : .goneAway
            reason.http2Code = code.value
            fail(stream, reason, resetting: stream.isSent ? nil : .cancel)
        }
    }

    func frameSent(_ frame: tern_h2_frame) {
        switch unsafe frame.type {
        case 0x0:
            frameGuard.dataSent()
            if unsafe frame.flags & 0x1 != 0 { unsafe stream(frame.stream)?.isRequestEnded = true }
        case 0x1:
            guard let stream = unsafe stream(frame.stream) else { return }
            stream.isSent = true
            if unsafe frame.flags & 0x1 != 0 { stream.isRequestEnded = true }
        case 0x7:
            guard unsafe frame.code != 0, failure == nil else { return }
            // The text is that of nghttp2, or empty. Bytes of the server are not in it.
            let data = unsafe UnsafeRawBufferPointer(start: frame.data, count: frame.length)
            let text = unsafe String(decoding: data, as: UTF8.self)
            let reason = text.isEmpty ? violation ?? "" : text
            let name = unsafe HTTP2ErrorCode(value: frame.code).name
            failure = .malformed(
                "the server violates HTTP/2: \(name)\(reason.isEmpty ? "" : ", \(reason)") (RFC 9113 §5.4.1)")
        default:
            break
        }
    }

    func frameNotSent(type: UInt8, _ id: Int32) {
        guard type == 0x1, let stream = stream(id), !stream.isSent else { return }
        // The stream never opens, so nothing else removes it.
        forget(stream)
        fail(stream, takesRequests ? EngineError(.invalidRequest, "the head of the request cannot be sent") : .goneAway)
    }

    /// Fails the stream of a frame that violates a rule. nghttp2 resets the stream, or ends the connection.
    func invalidFrameReceived(_ id: Int32, error: CInt) {
        let reason = Self.text(of: error)
        violation = reason
        guard id > 0, let stream = stream(id) else { return }
        fail(
            stream,
            stream.endsEarly
                ? Self.truncated(stream)
                : .malformed("the response violates a rule of HTTP/2: \(reason) (RFC 9113 §8.1.1)"))
    }

    func streamClosed(_ id: Int32, _ code: HTTP2ErrorCode) {
        guard let stream = stream(id) else { return }
        forget(stream)
        guard !stream.isDone else { return }
        if stream.isResponseEnded, stream.isRequestEnded || code == .noError {
            close(stream, nil)
            delegate.streamEnded(id)
        } else if stream.isReset {
            fail(stream, code.streamFailure)
        } else if hasReceivedGoAway && code == .refusedStream {
            fail(stream, .goneAway)
        } else if stream.endsEarly {
            fail(stream, Self.truncated(stream))
        } else {
            // nghttp2 reset the stream itself, such as for a body that exceeds its stated length.
            fail(stream, .malformed("the response violates a rule of HTTP/2: \(code.name) (RFC 9113 §8.1.1)"))
        }
    }

    private func forget(_ stream: HTTP2Stream) {
        streams[stream.id] = nil
        if lastStream === stream { lastStream = nil }
    }

    /// Writes the next part of a request's body. Returns the number of bytes, or a code of CTernHTTP2.
    func readBody(_ id: Int32, into buffer: UnsafeMutableRawBufferPointer, flags: inout UInt32) -> Int {
        guard let stream = stream(id), !stream.isDone, unsafe !buffer.isEmpty else { return TERN_H2_DROP }
        let part = unsafe delegate.readBody(id, into: buffer)
        // The delegate can cancel the stream within the call.
        guard !stream.isDone else { return TERN_H2_DROP }
        var trailers: [UInt8]?
        var count = 0
        var isLast = true
        switch part {
        case .wait, .bytes(0): return TERN_H2_WAIT
        case .bytes(let written): (count, isLast) = (written, false)
        case .last(let written): count = written
        case .end: break
        case .trailers(let lines): trailers = lines
        case .failed(let error): return drop(stream, error)
        }
        precondition(0...buffer.count ~= count, "the delegate wrote more bytes than the buffer has")
        if let error = stream.takeSent(count, isLast: isLast) { return drop(stream, error) }
        guard isLast else { return count }
        if let trailers, !trailers.isEmpty {
            if let error = block.takeTrailers(trailers) { return drop(stream, error) }
            encodeFields()
            let result = unsafe block.bytes.withUnsafeBufferPointer { bytes in
                unsafe tern_h2_submit_trailers(session, id, bytes.baseAddress, encoded, encoded.count)
            }
            guard result == 0 else {
                return drop(stream, EngineError(.invalidRequest, "the trailers of the request cannot be sent"))
            }
            flags = UInt32(TERN_H2_TRAILERS_FOLLOW)
        } else {
            flags = UInt32(TERN_H2_BODY_ENDS)
        }
        return count
    }

    private func drop(_ stream: HTTP2Stream, _ error: EngineError) -> Int {
        fail(stream, error, resetting: .cancel)
        return TERN_H2_DROP
    }
}
#endif
