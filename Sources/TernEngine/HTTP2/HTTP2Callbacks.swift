#if os(Linux)
import CTernHTTP2

/// The functions that nghttp2 calls for a session. Their context is the session, which outlives nghttp2's own.
enum HTTP2Callbacks {
    static func table() -> tern_h2_callbacks {
        var table = tern_h2_callbacks()
        unsafe table.begin_headers = { context, stream, flags in
            unsafe HTTP2Callbacks.session(context)?.headersBegan(stream, isLast: flags & 0x1 != 0)
            return 0
        }
        unsafe table.begin_data = { context, stream, flags, length in
            unsafe HTTP2Callbacks.session(context)?.dataBegan(stream, count: length, isLast: flags & 0x1 != 0)
            return 0
        }
        unsafe table.header = { context, stream, name, nameLength, value, valueLength in
            let name = unsafe UnsafeRawBufferPointer(start: name, count: nameLength)
            let value = unsafe UnsafeRawBufferPointer(start: value, count: valueLength)
            return unsafe HTTP2Callbacks.session(context)?.fieldReceived(stream, name: name, value: value) ?? 0
        }
        unsafe table.invalid_header = { context, stream in
            unsafe HTTP2Callbacks.session(context)?.invalidFieldReceived(stream) ?? 0
        }
        unsafe table.data = { context, stream, bytes, length in
            let bytes = unsafe UnsafeRawBufferPointer(start: bytes, count: length)
            unsafe HTTP2Callbacks.session(context)?.dataReceived(stream, bytes)
            return 0
        }
        unsafe table.received = { context, frame in
            if let frame = unsafe frame?.pointee { unsafe HTTP2Callbacks.session(context)?.frameReceived(frame) }
            return 0
        }
        unsafe table.sent = { context, frame in
            if let frame = unsafe frame?.pointee { unsafe HTTP2Callbacks.session(context)?.frameSent(frame) }
            return 0
        }
        unsafe table.not_sent = { context, type, stream in
            unsafe HTTP2Callbacks.session(context)?.frameNotSent(type: type, stream)
            return 0
        }
        unsafe table.invalid_frame = { context, _, stream, error in
            unsafe HTTP2Callbacks.session(context)?.invalidFrameReceived(stream, error: error)
            return 0
        }
        unsafe table.closed = { context, stream, code in
            unsafe HTTP2Callbacks.session(context)?.streamClosed(stream, HTTP2ErrorCode(value: code))
            return 0
        }
        unsafe table.read = { context, stream, bytes, length, flags in
            guard let session = unsafe HTTP2Callbacks.session(context), let flags = unsafe flags else {
                return TERN_H2_FATAL
            }
            let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: length)
            return unsafe session.readBody(stream, into: buffer, flags: &flags.pointee)
        }
        return table
    }

    private static func session(_ context: UnsafeMutableRawPointer?) -> HTTP2Session? {
        unsafe context.map { unsafe Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
    }
}
#endif
