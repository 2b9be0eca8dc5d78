#if os(Linux)
import CTernHTTP2

/// The functions that nghttp2 calls for a session. Their context is the session, which outlives nghttp2's own.
enum HTTP2Callbacks {
    static func table() -> tern_h2_callbacks {
        var table = tern_h2_callbacks()
        unsafe table.begin_headers = { context, stream, flags in
            unsafe HTTP2Callbacks.with(context) { session in
                session.headersBegan(stream, isLast: flags & 0x1 != 0)
                return 0
            }
        }
        unsafe table.begin_data = { context, stream, flags, length in
            unsafe HTTP2Callbacks.with(context) { session in
                session.dataBegan(stream, count: length, isLast: flags & 0x1 != 0)
                return 0
            }
        }
        unsafe table.header = { context, stream, name, nameLength, value, valueLength in
            let name = unsafe UnsafeRawBufferPointer(start: name, count: nameLength)
            let value = unsafe UnsafeRawBufferPointer(start: value, count: valueLength)
            return unsafe HTTP2Callbacks.with(context) { session in
                unsafe session.fieldReceived(stream, name: name, value: value)
            }
        }
        unsafe table.invalid_header = { context, stream in
            unsafe HTTP2Callbacks.with(context) { session in session.invalidFieldReceived(stream) }
        }
        unsafe table.data = { context, stream, bytes, length in
            let bytes = unsafe UnsafeRawBufferPointer(start: bytes, count: length)
            return unsafe HTTP2Callbacks.with(context) { session in
                unsafe session.dataReceived(stream, bytes)
                return 0
            }
        }
        unsafe table.received = { context, frame in
            guard let frame = unsafe frame?.pointee else { return 0 }
            return unsafe HTTP2Callbacks.with(context) { session in
                unsafe session.frameReceived(frame)
                return 0
            }
        }
        unsafe table.sent = { context, frame in
            guard let frame = unsafe frame?.pointee else { return 0 }
            return unsafe HTTP2Callbacks.with(context) { session in
                unsafe session.frameSent(frame)
                return 0
            }
        }
        unsafe table.not_sent = { context, type, stream in
            unsafe HTTP2Callbacks.with(context) { session in
                session.frameNotSent(type: type, stream)
                return 0
            }
        }
        unsafe table.invalid_frame = { context, _, stream, error in
            unsafe HTTP2Callbacks.with(context) { session in
                session.invalidFrameReceived(stream, error: error)
                return 0
            }
        }
        unsafe table.closed = { context, stream, code in
            unsafe HTTP2Callbacks.with(context) { session in
                session.streamClosed(stream, HTTP2ErrorCode(value: code))
                return 0
            }
        }
        unsafe table.read = { context, stream, bytes, length, flags in
            guard let context = unsafe context, let flags = unsafe flags else { return TERN_H2_FATAL }
            let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: length)
            return unsafe Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef { session in
                unsafe session.readBody(stream, into: buffer, flags: &flags.pointee)
            }
        }
        return table
    }

    /// Calls the body with the session. `receive(_:at:)` and `takeOutput(into:upTo:)` keep it alive, so no callback
    /// retains it.
    private static func with(_ context: UnsafeMutableRawPointer?, _ body: (HTTP2Session) -> CInt) -> CInt {
        guard let context = unsafe context else { return CInt(TERN_H2_FATAL) }
        return unsafe Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef { body($0) }
    }
}
#endif
