#if os(Linux) && !TERN_URLSESSION
import CTernTestTLS
import Glibc

/// The server's end of a TLS connection, with the faults below TLS. It belongs to the thread of its connection.
@safe
final class ChaosSocket {
    /// The connection is of no further use.
    struct Lost: Error {}

    private let descriptor: Int32
    private let server: OpaquePointer
    private unowned let listener: ChaosListener
    /// The index of the connection, from 0 in the order of acceptance.
    let index: Int
    /// Whether FIN or RST was sent.
    private(set) var isEnded = false
    private var isClosed = false
    private var buffer = [UInt8](repeating: 0, count: 16 << 10)

    init?(_ descriptor: Int32, index: Int, context: OpaquePointer, listener: ChaosListener) {
        guard let server = unsafe tern_test_server_create(context, descriptor) else { return nil }
        unsafe self.server = server
        self.descriptor = descriptor
        self.index = index
        self.listener = listener
    }

    deinit {
        closeDescriptor()
        unsafe tern_test_server_free(server)
    }

    /// Ends the connection and waits for the client's end, so that no unread byte turns the close into a reset.
    func finish() {
        if !isEnded { endWriting() }
        // `try?`: only the order matters, and a client that keeps the connection is a defect already.
        try? waitForClientToClose()
        closeDescriptor()
    }

    private func closeDescriptor() {
        if isClosed { return }
        isClosed = true
        listener.close(descriptor)
    }

    // MARK: Waiting

    /// Waits for events of `poll`. Returns none after the time has passed.
    func wait(for events: Int32, milliseconds: Int) throws -> Int32 {
        if isClosed { throw Lost() }
        var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        while true {
            let result = unsafe poll(&entry, 1, Int32(clamping: milliseconds))
            if result >= 0 { return Int32(entry.revents) }
            if errno != EINTR { throw Lost() }
        }
    }

    private func waitLong(for events: Int32) throws {
        if try wait(for: events, milliseconds: 30_000) == 0 {
            listener.ledger.defect("connection \(index) was silent for 30 seconds")
            throw Lost()
        }
    }

    func pause(for duration: Duration) throws {
        if try wait(for: 0, milliseconds: Int(duration / .milliseconds(1))) != 0 { throw Lost() }
    }

    /// Waits until the client has closed the connection, and discards the bytes until then.
    func waitForClientToClose() throws {
        while !isClosed {
            try waitLong(for: Int32(POLLIN))
            let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
            if count == 0 || count < 0 && errno != EAGAIN && errno != EINTR { return }
        }
    }

    // MARK: Bytes

    func handshake() throws {
        while true {
            switch unsafe tern_test_server_handshake(server) {
            case 1: return
            case 0: try waitLong(for: Int32(POLLIN))
            default: throw Lost()
            }
        }
    }

    /// Answers the first message of the client with this number of bytes at most.
    func beginHandshake(limit: Int) {
        unsafe tern_test_server_limit_output(server, limit)
        // `try?`: a client that has left needs no answer.
        try? waitLong(for: Int32(POLLIN))
        _ = unsafe tern_test_server_handshake(server)
    }

    /// Appends bytes that have arrived, without waiting. Returns nil at the end of the connection.
    func receiveAvailable(into bytes: inout [UInt8]) throws -> Int? {
        if isClosed { throw Lost() }
        switch unsafe tern_test_server_read(server, &buffer, buffer.count) {
        case -2: return nil
        case ..<0: throw Lost()
        case let count:
            bytes += buffer[..<count]
            return count
        }
    }

    /// Appends the next bytes. Returns false at the end of the connection.
    func receive(into bytes: inout [UInt8]) throws -> Bool {
        while true {
            guard let count = try receiveAvailable(into: &bytes) else { return false }
            if count > 0 { return true }
            try waitLong(for: Int32(POLLIN))
        }
    }

    /// Sends bytes without waiting. Returns their number.
    func send(_ bytes: ArraySlice<UInt8>) throws -> Int {
        if isEnded { throw Lost() }
        if bytes.isEmpty { return 0 }
        let sent = unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe tern_test_server_write(server, bytes.baseAddress, bytes.count)
        }
        if sent < 0 { throw Lost() }
        return sent
    }

    func sendAll(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = try send(rest)
            rest = rest.dropFirst(sent)
            if sent == 0 { try waitLong(for: Int32(POLLOUT)) }
        }
    }

    // MARK: Faults

    /// Ends the connection with FIN, after close_notify unless `isBare` is true.
    func endWriting(isBare: Bool = false) {
        if isEnded { return }
        isEnded = true
        if !isBare { unsafe tern_test_server_close(server) }
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    func reset() {
        if isClosed { return }
        isEnded = true
        var linger = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        closeDescriptor()
    }

    /// Sends this number of bytes of the record that has these bytes as its content, and nothing after them.
    func sendPartOfRecord(of bytes: [UInt8], count: Int) throws {
        unsafe tern_test_server_limit_output(server, count)
        _ = try send(bytes[...])
    }

    /// Sends bytes that are no record of this connection.
    func sendGarbage(_ random: inout ChaosRandom) {
        var bytes: [UInt8]
        switch random.next(below: 6) {
        // A record whose content was not encrypted with the keys of the connection.
        case 0, 1: bytes = [23, 3, 3, 0, 40] + (0..<40).map { _ in UInt8(random.next(below: 256)) }
        // A record of a type that does not exist.
        case 2: bytes = [99, 3, 3, 0, 4, 1, 2, 3, 4]
        // A record that is longer than permitted.
        case 3: bytes = [23, 3, 3, 255, 255] + [UInt8](repeating: 0, count: 100)
        // A close_notify that is not encrypted.
        case 4: bytes = [21, 3, 3, 0, 2, 1, 0]
        default: bytes = Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong".utf8)
        }
        _ = unsafe Glibc.send(descriptor, &bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Changes the keys of the connection, if its version of TLS can.
    func updateKeys() { _ = unsafe tern_test_server_update_keys(server) }
}
#endif
