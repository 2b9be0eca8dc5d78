#if os(Linux)
import CTernHTTP3

/// The functions that the libraries call, which hand each event to its session.
enum HTTP3Callbacks {
    static func table() -> tern_h3_callbacks {
        var table = tern_h3_callbacks()
        unsafe table.verify = { context, certificates, count, staple in
            // 80 is the alert internal_error.
            guard let context = unsafe context, let certificates = unsafe certificates else { return 80 }
            let list = unsafe UnsafeBufferPointer(start: certificates, count: count).map {
                unsafe UnsafeRawBufferPointer(start: $0.bytes, count: $0.length)
            }
            let staple = unsafe UnsafeRawBufferPointer(start: staple.bytes, count: staple.length)
            return unsafe Unmanaged<HTTP3Session>.fromOpaque(context)._withUnsafeGuaranteedRef { session in
                unsafe session.delegate.verify(list, staple: staple)
            }
        }
        unsafe table.connected = { context, isResumed in
            unsafe HTTP3Callbacks.with(context) { $0.handshakeCompleted(isResumed: isResumed != 0) }
        }
        unsafe table.ticket = { context, bytes, length in
            let ticket = unsafe Array(UnsafeBufferPointer(start: bytes, count: length))
            unsafe HTTP3Callbacks.with(context) { $0.delegate.ticketReceived(ticket) }
        }
        unsafe table.token = { _, _, _ in }
        unsafe table.key = { context, line in
            guard let line = unsafe line else { return }
            let text = unsafe String(cString: line)
            unsafe HTTP3Callbacks.with(context) { $0.delegate.keyLogged(text) }
        }
        unsafe table.settings = { context, allowsConnect, _ in
            unsafe HTTP3Callbacks.with(context) { $0.settingsReceived(allowsExtendedConnect: allowsConnect != 0) }
        }
        unsafe table.streams = { context in
            unsafe HTTP3Callbacks.with(context) { $0.delegate.roomChanged() }
        }
        addResponses(to: &table)
        return table
    }

    private static func addResponses(to table: inout tern_h3_callbacks) {
        unsafe table.begin_head = { context, stream, _ in
            unsafe HTTP3Callbacks.with(context) { $0.headBegan(stream) }
        }
        unsafe table.field = { context, stream, name, nameLength, value, valueLength in
            let name = unsafe UnsafeRawBufferPointer(start: name, count: nameLength)
            let value = unsafe UnsafeRawBufferPointer(start: value, count: valueLength)
            guard let context = unsafe context else { return CInt(TERN_H3_DROP) }
            return unsafe Unmanaged<HTTP3Session>.fromOpaque(context)._withUnsafeGuaranteedRef { session in
                let isTaken = unsafe session.fieldReceived(stream, name: name, value: value)
                return CInt(isTaken ? TERN_H3_OK : TERN_H3_DROP)
            }
        }
        unsafe table.end_head = { context, stream, _, _ in
            unsafe HTTP3Callbacks.with(context) { $0.headEnded(stream) }
        }
        unsafe table.data = { context, stream, bytes, length in
            let bytes = unsafe UnsafeRawBufferPointer(start: bytes, count: length)
            unsafe HTTP3Callbacks.with(context) { unsafe $0.dataReceived(stream, bytes) }
        }
        unsafe table.ended = { context, stream in
            unsafe HTTP3Callbacks.with(context) { $0.responseEnded(stream) }
        }
        unsafe table.reset = { context, stream, code in
            unsafe HTTP3Callbacks.with(context) { $0.streamReset(stream, HTTP3ErrorCode(value: code)) }
        }
        unsafe table.stopped = { context, stream in
            unsafe HTTP3Callbacks.with(context) { $0.bodyStopped(stream) }
        }
        unsafe table.malformed = { context, stream, code in
            unsafe HTTP3Callbacks.with(context) { $0.streamViolated(stream, HTTP3ErrorCode(value: code)) }
        }
        unsafe table.closed = { context, stream, code in
            unsafe HTTP3Callbacks.with(context) { $0.streamClosed(stream, HTTP3ErrorCode(value: code)) }
        }
        unsafe table.going_away = { context, first in
            unsafe HTTP3Callbacks.with(context) { $0.goAwayReceived(first: first) }
        }
        unsafe table.read = { context, stream, bytes, length, flags in
            let failed = Int(TERN_H3_FAILED)
            guard let context = unsafe context, let flags = unsafe flags else { return failed }
            let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: length)
            return unsafe Unmanaged<HTTP3Session>.fromOpaque(context)._withUnsafeGuaranteedRef { session in
                unsafe session.readBody(stream, into: buffer, flags: &flags.pointee)
            }
        }
    }

    /// Calls the body with the session, which the calls that lead here keep alive.
    private static func with(_ context: UnsafeMutableRawPointer?, _ body: (HTTP3Session) -> Void) {
        guard let context = unsafe context else { return }
        unsafe Unmanaged<HTTP3Session>.fromOpaque(context)._withUnsafeGuaranteedRef { body($0) }
    }
}
#endif
