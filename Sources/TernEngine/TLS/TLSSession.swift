#if os(Linux)
import CTernOpenSSL
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The server that a session of TLS connects to.
package struct TLSTarget: Sendable {
    /// The host in canonical form: a DNS name, or an IP address without brackets.
    package var host: String
    /// The host and port for the texts of errors.
    package var authority: String
    /// The protocols to offer, the preferred one first (RFC 7301).
    package var protocols: [String]
    /// The key of the connections that may resume each other's sessions: scheme, host and port, and the way to them.
    package var origin: String

    package init(host: String, authority: String, protocols: [String], origin: String) {
        self.host = host
        self.authority = authority
        self.protocols = protocols
        self.origin = origin
    }
}

/// The state of a handshake.
package enum TLSHandshakeResult: Sendable, Equatable {
    case done
    case wantsRead
    case wantsWrite
    case failed(EngineError)
}

/// The result of reading.
package enum TLSReadResult: Sendable, Equatable {
    /// So many bytes were read, at least one.
    case bytes(Int)
    /// Read again when the socket is readable.
    case wouldBlock
    /// Read again when the socket is writable.
    case wantsWrite
    /// The connection ended. Without close_notify (`isClean` is false), an attacker can have cut it off.
    case end(isClean: Bool)
    case failed(EngineError)
}

/// The result of writing.
package enum TLSWriteResult: Sendable, Equatable {
    /// So many bytes were taken, at least one. If there are fewer than given, the socket takes no more for now.
    case bytes(Int)
    /// Write the same bytes again when the socket is writable, from any address. More bytes may follow them.
    case wouldBlock
    /// Write the same bytes again when the socket is readable: a message of the handshake, such as a session ticket,
    /// has arrived in part.
    case wantsRead
    case failed(EngineError)
}

/// One connection of TLS over a non-blocking socket, or over another session (TLS in TLS, to reach a server through an
/// HTTPS proxy). Confined to one thread. The socket belongs to the caller.
@safe package final class TLSSession {
    private let session: OpaquePointer
    private let judgement: TLSJudgement
    /// The session below, which must live as long as this one.
    private let outer: TLSSession?
    private let target: TLSTarget
    private let ticket: TLSTicket?
    private var isFinished = false

    /// Creates a session over a connected socket.
    package convenience init(
        policy: TLSPolicy, target: TLSTarget, descriptor: Int32, resumption: TLSResumption? = nil
    ) throws(EngineError) {
        try self.init(policy: policy, target: target, below: .socket(descriptor), resumption: resumption)
    }

    /// Creates a session over another one, whose handshake is done.
    package convenience init(
        policy: TLSPolicy, target: TLSTarget, outer: TLSSession, resumption: TLSResumption? = nil
    ) throws(EngineError) {
        try self.init(policy: policy, target: target, below: .session(outer), resumption: resumption)
    }

    private enum Transport {
        case socket(Int32)
        case session(TLSSession)
    }

    private init(
        policy: TLSPolicy, target: TLSTarget, below transport: Transport, resumption: TLSResumption?
    ) throws(EngineError) {
        let host = Self.checkedName(target.host)
        guard let host else { throw EngineError(.invalidRequest, "\"\(target.host)\" is not a host for TLS") }
        let offer = try Self.offer(of: target.protocols)
        let context = try policy.context()
        let key = TicketKey(
            policy: policy.identifier, origin: target.origin, host: host, protocols: target.protocols)
        let judgement = TLSJudgement(
            policy: policy, host: target.host, resumption: policy.allowsResumption ? resumption : nil, key: key)
        var descriptor: Int32 = -1
        var outer: TLSSession?
        switch transport {
        case .socket(let socket): descriptor = socket
        case .session(let session): outer = session
        }
        let session = unsafe tern_ssl_session_create(
            OpaquePointer(bitPattern: context), descriptor, outer?.session, host,
            policy.options.checksHostName ? 1 : 0, judgement.callbacks)
        guard let session = unsafe session else {
            throw EngineError(.tls, "TLS with \(target.authority) failed: OpenSSL cannot create a session")
        }
        unsafe self.session = session
        self.judgement = judgement
        self.outer = outer
        self.target = target
        ticket = judgement.takeTicket()
        let isOffered = unsafe offer.withUnsafeBufferPointer { bytes in
            unsafe tern_ssl_session_set_protocols(session, bytes.baseAddress, bytes.count) == 1
        }
        guard isOffered else {
            throw EngineError(.tls, "TLS with \(target.authority) failed: the protocols cannot be offered")
        }
        // If the ticket does not fit, the whole handshake follows.
        if let ticket { unsafe tern_ssl_session_set_ticket(session, OpaquePointer(bitPattern: ticket.address)) }
    }

    deinit { unsafe tern_ssl_session_free(session) }

    /// Returns the host without a dot at its end (RFC 6066 §3), or the address without its zone, which is of no meaning
    /// to the server (RFC 4007 §6). Returns nil for a text that cannot be a host.
    static func checkedName(_ host: String) -> String? {
        guard !host.isEmpty, host.utf8.count <= 255, !host.utf8.contains(0), !host.hasPrefix(".") else { return nil }
        if host.contains(":"), let zone = host.firstIndex(of: "%") { return String(host[..<zone]) }
        guard host.hasSuffix(".") else { return host }
        let name = host.dropLast()
        return name.isEmpty || name.hasSuffix(".") ? nil : String(name)
    }

    private static func offer(of protocols: [String]) throws(EngineError) -> [UInt8] {
        var offer: [UInt8] = []
        for name in protocols {
            guard let count = UInt8(exactly: name.utf8.count), count > 0 else {
                throw EngineError(.invalidRequest, "a protocol's name has 1 to 255 bytes (RFC 7301 §3.1)")
            }
            offer.append(count)
            offer.append(contentsOf: name.utf8)
        }
        return offer
    }

    /// Continues the handshake. After `.done`, the server is trusted.
    package func handshake() -> TLSHandshakeResult {
        if isFinished { return .done }
        switch unsafe tern_ssl_handshake(session) {
        case TERN_SSL_DONE:
            if let name = negotiatedProtocol, !target.protocols.contains(name) {
                return .failed(
                    EngineError(.tls, "TLS with \(target.authority) failed: it chose a protocol that was not offered"))
            }
            isFinished = true
            judgement.finishHandshake(
                resumed: isResumed ? ticket : nil, chainExpiry: unsafe tern_ssl_chain_expiry(session))
            return .done
        case TERN_SSL_WANTS_READ: return .wantsRead
        case TERN_SSL_WANTS_WRITE: return .wantsWrite
        default: return .failed(failure())
        }
    }

    /// Reads until the buffer, which is not empty, is full, or no input is left.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSReadResult {
        var count = 0
        let bytes = unsafe buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
        switch unsafe tern_ssl_read(session, bytes, buffer.count, &count) {
        case TERN_SSL_DONE: return .bytes(count)
        case TERN_SSL_WANTS_READ: return .wouldBlock
        case TERN_SSL_WANTS_WRITE: return .wantsWrite
        case TERN_SSL_CLEAN_END: return .end(isClean: true)
        case TERN_SSL_UNCLEAN_END: return .end(isClean: false)
        default: return .failed(failure())
        }
    }

    /// Writes until all bytes are written or the socket takes no more. After a failure of the socket, reading is still
    /// possible.
    package func write(_ bytes: UnsafeRawBufferPointer) -> TLSWriteResult {
        var count = 0
        let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        switch unsafe tern_ssl_write(session, start, bytes.count, &count) {
        case TERN_SSL_DONE: return .bytes(count)
        case TERN_SSL_WANTS_WRITE: return .wouldBlock
        case TERN_SSL_WANTS_READ: return .wantsRead
        // The server ended the connection within a message of the handshake, whose rest the write waited for.
        case TERN_SSL_CLEAN_END, TERN_SSL_UNCLEAN_END:
            let reason = "the connection to \(target.authority) was lost: the server ended it"
            return .failed(EngineError(.connectionLost, reason))
        default: return .failed(failure())
        }
    }

    /// Sends close_notify, after which bytes can still be read. Returns false if the socket takes no more now, or a
    /// message of the handshake has arrived in part; call it again then.
    package func endWriting() -> Bool {
        let result = unsafe tern_ssl_end_writing(session)
        return result != TERN_SSL_WANTS_WRITE && result != TERN_SSL_WANTS_READ
    }

    /// Sends close_notify, and that of the session below, if the socket takes it at once. The caller closes the socket.
    package func close() { unsafe tern_ssl_close(session) }

    /// Whether bytes were received but not delivered. They can be a part of a record.
    package var hasPending: Bool { unsafe tern_ssl_has_pending(session) == 1 }

    /// Whether a handshake message, such as a session ticket, has arrived in part. Until the rest arrives, nothing can
    /// be sent. Called after the handshake.
    package var hasIncompleteHandshakeMessage: Bool { unsafe tern_ssl_has_incomplete_message(session) == 1 }

    /// Whether the last read emptied the buffer of the socket, so that another read before the next event would find no
    /// bytes. The end of the connection can be there: with edge-triggered events, stop reading only if the event did
    /// not report it (EPOLLRDHUP).
    package var isDrained: Bool { unsafe tern_ssl_is_drained(session) == 1 }

    /// The protocol that the server chose (RFC 7301); nil for none.
    package var negotiatedProtocol: String? {
        var count = 0
        guard let name = unsafe tern_ssl_protocol(session, &count), count > 0 else { return nil }
        return unsafe String(decoding: UnsafeBufferPointer(start: name, count: count), as: UTF8.self)
    }

    /// Whether the handshake resumed an earlier session.
    package var isResumed: Bool { unsafe tern_ssl_is_resumed(session) == 1 }

    /// The report of the judge; nil if there is none. Known when the handshake is done.
    package var pinReport: String? { judgement.report }

    /// The review of the connection, to be done before its first byte; nil for none. Called when the handshake is done.
    package var review: (@Sendable () async -> TLSVerdict)? { judgement.review }

    /// The version of the connection. Known when the handshake is done.
    package var version: TLSOptions.Version { unsafe tern_ssl_is_tls13(session) == 1 ? .tls13 : .tls12 }

    /// The name of the cipher, in OpenSSL's form.
    package var cipherName: String {
        guard let name = unsafe tern_ssl_cipher_name(session) else { return "" }
        return unsafe String(cString: name)
    }

    private func failure() -> EngineError {
        let failure = unsafe tern_ssl_session_failure(session)
        return unsafe TLSFailure.error(
            failure, isHandshake: !isFinished, refusal: judgement.refusal, target: target)
    }
}
#endif
