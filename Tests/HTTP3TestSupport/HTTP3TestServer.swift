#if os(Linux)
import CTernTestHTTP3
import CTernTestTLS
import Glibc

/// The server's side of a connection in memory, which writes any bytes into its streams (`CTernTestHTTP3`).
@safe package final class HTTP3TestServer {
    /// The limits that the server sets its client, and its requests to it.
    package struct Options: Sendable {
        package var streamWindow: UInt64 = 1 << 20
        package var connectionWindow: UInt64 = 4 << 20
        package var requests: UInt64 = 100
        /// In nanoseconds.
        package var idleTimeout: UInt64 = 60_000_000_000
        /// Whether the client is asked for a certificate, which is not checked.
        package var requestsIdentity = false

        package init() {}
    }

    private let pointer: OpaquePointer
    private var buffer = [UInt8](repeating: 0, count: 2_048)

    /// Creates the server for the first datagram of a client; nil for another datagram.
    init?(_ options: Options, for datagram: UnsafeRawBufferPointer, at now: UInt64) {
        guard let identity = Self.identity else { return nil }
        let created = unsafe identity.chain.withUnsafeBufferPointer { chain in
            unsafe identity.key.withUnsafeBufferPointer { key in
                let values = unsafe tern_test_http3_options(
                    chain: chain.baseAddress, chain_length: chain.count, key: key.baseAddress, key_length: key.count,
                    stream_window: options.streamWindow, connection_window: options.connectionWindow,
                    requests: options.requests, idle_timeout: options.idleTimeout,
                    requests_identity: options.requestsIdentity ? 1 : 0)
                return unsafe tern_test_http3_new(
                    datagram.baseAddress?.assumingMemoryBound(to: UInt8.self), datagram.count, values, now)
            }
        }
        guard let created = unsafe created else { return nil }
        unsafe pointer = created
    }

    deinit { unsafe tern_test_http3_free(pointer) }

    /// A certificate that signs itself, and its key, made once in a process.
    private static let identity: (chain: [UInt8], key: [UInt8])? = {
        guard let made = unsafe tern_test_identity_create(nil, "localhost", "DNS:localhost", 0, -3_600, 86_400)
        else { return nil }
        defer { unsafe tern_test_identity_free(made) }
        func bytes(_ make: (UnsafeMutablePointer<Int>) -> UnsafeMutablePointer<UInt8>?) -> [UInt8] {
            var count = 0
            guard let start = unsafe make(&count) else { return [] }
            defer { unsafe free(start) }
            return unsafe Array(UnsafeBufferPointer(start: start, count: count))
        }
        return (
            unsafe bytes { unsafe tern_test_certificate_pem(made, $0) },
            unsafe bytes { unsafe tern_test_key_pem(made, nil, $0) }
        )
    }()

    // MARK: Datagrams

    func receive(_ datagram: [UInt8], from port: UInt16, at now: UInt64) {
        _ = unsafe tern_test_http3_receive(pointer, datagram, datagram.count, port, now)
    }

    /// Returns the next datagram; nil for none.
    func takeDatagram(at now: UInt64) -> [UInt8]? {
        taken(unsafe tern_test_http3_send(pointer, &buffer, buffer.count, now))
    }

    private func taken(_ count: Int) -> [UInt8]? { count > 0 ? Array(buffer[..<count]) : nil }

    var deadline: UInt64 { unsafe tern_test_http3_deadline(pointer) }
    func expire(at now: UInt64) { _ = unsafe tern_test_http3_expire(pointer, now) }

    // MARK: Streams

    /// Opens a stream that the server alone writes; nil if the client allows no more.
    package func openStream() -> Int64? {
        let id = unsafe tern_test_http3_open(pointer)
        return id < 0 ? nil : id
    }

    package func write(_ bytes: [UInt8], to stream: Int64, isLast: Bool = false) {
        _ = unsafe tern_test_http3_write(pointer, stream, bytes, bytes.count, isLast ? 1 : 0)
    }

    package func reset(_ stream: Int64, code: UInt64) { _ = unsafe tern_test_http3_reset(pointer, stream, code) }
    package func stop(_ stream: Int64, code: UInt64) { _ = unsafe tern_test_http3_stop(pointer, stream, code) }

    /// Removes and returns the next stream that the client has ended, and the number of its bytes; nil for none.
    package func takeRequest() -> (stream: Int64, length: UInt64)? {
        var length: UInt64 = 0
        let stream = unsafe tern_test_http3_request(pointer, &length)
        return stream < 0 ? nil : (stream, length)
    }

    /// Changes the keys of both sides. Returns false if they cannot change now.
    package func updateKeys(at now: UInt64) -> Bool { unsafe tern_test_http3_update_key(pointer, now) == 0 }

    package var isResumed: Bool { unsafe tern_test_http3_is_resumed(pointer) != 0 }
    /// The number of certificates that the client has shown.
    package var clientCertificates: Int { unsafe tern_test_http3_client_certificates(pointer) }
    /// Whether the client's end of the connection was received.
    package var isClosed: Bool { unsafe tern_test_http3_is_closed(pointer) != 0 }

    // MARK: Forged datagrams

    /// Returns a datagram with any frames, protected by the keys of the connection. The server is of no use afterwards.
    package func sealed(_ frames: [UInt8]) -> [UInt8] {
        taken(unsafe tern_test_http3_seal(pointer, frames, frames.count, &buffer, buffer.count)) ?? []
    }

    /// Returns a datagram for the connection, without protection.
    package func forged(_ bytes: [UInt8]) -> [UInt8] {
        taken(unsafe tern_test_http3_forge(pointer, bytes, bytes.count, &buffer, buffer.count)) ?? []
    }

    /// Returns the datagram of a server that has forgotten the connection.
    package func statelessReset() -> [UInt8] {
        taken(unsafe tern_test_http3_stateless_reset(pointer, &buffer, buffer.count)) ?? []
    }

    /// Returns the datagram that ends the connection with a code of HTTP/3.
    package func closing(code: UInt64, at now: UInt64) -> [UInt8] {
        taken(unsafe tern_test_http3_close(pointer, code, &buffer, buffer.count, now)) ?? []
    }
}
#endif
