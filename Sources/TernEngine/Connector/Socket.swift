#if os(Linux)
import CTernLoop

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

// Inside `Socket`, these names are those of its own methods.
private func systemConnect(_ descriptor: Int32, to address: UnsafePointer<sockaddr>, length: socklen_t) -> Int32 {
    unsafe connect(descriptor, address, length)
}

private func systemSend(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) -> Int {
    unsafe send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
}

private func systemClose(_ descriptor: Int32) { _ = close(descriptor) }

/// The system calls of non-blocking stream sockets. None of them blocks, raises SIGPIPE or leaks a descriptor to a
/// child process. A call that a signal interrupts is repeated.
package enum Socket {
    /// The result of receiving or sending.
    package enum Transfer: Sendable, Equatable {
        /// So many bytes were received or sent, at least one.
        case bytes(Int)
        /// Nothing can be received or sent now.
        case wouldBlock
        /// The peer has ended its direction. Only for receiving.
        case end
        case failed(SystemError)
    }

    /// The state of an attempt to connect.
    package enum Attempt: Sendable, Equatable {
        case connected
        /// The socket becomes writable when the attempt ends. Then call ``finishConnecting(_:to:)``.
        case pending
        case failed(SystemError)
    }

    // MARK: - Connecting

    /// Opens a socket for an address. TCP sockets send at once (TCP_NODELAY) and probe silent peers: after 60 seconds,
    /// and every 15 seconds then, four times.
    package static func open(for address: SocketAddress) throws(SystemError) -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.systemFamily, type, 0)
        guard descriptor >= 0 else { throw .last }
        if address.family != .unix {
            // A socket without these options still works.
            _ = set(TCP_NODELAY, level: Int32(IPPROTO_TCP), to: 1, on: descriptor)
            _ = set(SO_KEEPALIVE, level: SOL_SOCKET, to: 1, on: descriptor)
            probe(descriptor, Probing.seldom)
        }
        return descriptor
    }

    /// Starts to connect.
    package static func connect(_ descriptor: Int32, to address: SocketAddress) -> Attempt {
        let result = unsafe address.withSystemAddress { unsafe systemConnect(descriptor, to: $0, length: $1) }
        if result == 0 { return .connected }
        let error = SystemError.last
        // An interrupted attempt goes on. EAGAIN of a Unix socket is a failure: the listener's queue is full.
        return error.code == EINPROGRESS || error.code == EINTR ? .pending : .failed(error)
    }

    /// Returns the state of an attempt whose socket is writable.
    package static func finishConnecting(_ descriptor: Int32, to address: SocketAddress) -> Attempt {
        if let error = pendingError(of: descriptor) { return .failed(error) }
        if address.family == .unix { return .connected }
        guard peer(of: descriptor) != nil else {
            let error = SystemError.last
            return error.code == ENOTCONN ? .pending : .failed(error)
        }
        // A socket can connect to itself, if the system gives it the port of a server on this machine that is down.
        if address.port != 0, local(of: descriptor) == address { return .failed(SystemError(ECONNREFUSED)) }
        return .connected
    }

    /// Closes the socket.
    package static func close(_ descriptor: Int32) {
        // On Linux, the descriptor is free also after an error.
        systemClose(descriptor)
    }

    /// Ends the direction to the peer.
    package static func endSending(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// Ends both directions. The socket stays open.
    package static func endBoth(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Returns the error that waits on the socket, and clears it; nil without one.
    package static func pendingError(of descriptor: Int32) -> SystemError? {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        if unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) != 0 { return .last }
        return code == 0 ? nil : SystemError(code)
    }

    /// Returns the address of the peer; nil if the socket is not connected.
    package static func peer(of descriptor: Int32) -> SocketAddress? {
        unsafe address { unsafe getpeername(descriptor, $0, $1) }
    }

    /// Returns the address of this side; nil for a descriptor that is not a socket.
    package static func local(of descriptor: Int32) -> SocketAddress? {
        unsafe address { unsafe getsockname(descriptor, $0, $1) }
    }

    // MARK: - Receiving and sending

    /// Receives bytes into a buffer that is not empty.
    package static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        while true {
            let count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .bytes(count) }
            if count == 0 { return .end }
            if let result = failure() { return result }
        }
    }

    /// Sends bytes out of a buffer that is not empty.
    package static func send(_ descriptor: Int32, from buffer: UnsafeRawBufferPointer) -> Transfer {
        while true {
            let count = unsafe systemSend(descriptor, buffer)
            if count >= 0 { return .bytes(count) }
            if let result = failure() { return result }
        }
    }

    /// Sends bytes out of two buffers, such as a head and a body, in one call. The number counts the bytes of both.
    package static func send(
        _ descriptor: Int32, from first: UnsafeRawBufferPointer, and second: UnsafeRawBufferPointer
    ) -> Transfer {
        var vectors = unsafe (
            iovec(iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count),
            iovec(iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count)
        )
        return unsafe withUnsafeMutableBytes(of: &vectors) { raw in
            var message = unsafe msghdr()
            unsafe message.msg_iov = raw.baseAddress?.assumingMemoryBound(to: iovec.self)
            unsafe message.msg_iovlen = 2
            while true {
                let count = unsafe sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
                if count >= 0 { return .bytes(count) }
                if let result = failure() { return result }
            }
        }
    }

    /// Sends bytes out of a file, which must be in memory, because a wait for the disk would hold up the thread.
    /// Returns `.end` if the file ends before them.
    package static func send(_ descriptor: Int32, from file: BodyFile) -> Transfer {
        while true {
            let count = tern_loop_send_file(descriptor, file.descriptor, file.offset, Int64(file.count))
            if count > 0 { return .bytes(Int(count)) }
            if count == 0 { return .end }
            if let result = failure() { return result }
        }
    }

    /// Returns whether a byte, an end or an error waits on the socket. A connection that is idle is closed then.
    package static func hasInput(_ descriptor: Int32) -> Bool {
        var byte: UInt8 = 0
        while true {
            let count = unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
            if count >= 0 { return true }
            if let result = failure() { return result != .wouldBlock }
        }
    }

    /// Returns the number of bytes that the peer's system has not acknowledged; 0 where the system does not know it.
    package static func unacknowledgedCount(of descriptor: Int32) -> Int {
        var count: Int32 = 0
        return unsafe ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    // MARK: - Probes

    /// How the system probes a silent peer.
    package struct Probing: Sendable {
        /// The silence before the first probe, in seconds.
        let silence: Int32
        /// The time between two probes, in seconds.
        let interval: Int32
        /// The number of probes without an answer after which the connection fails.
        let count: Int32

        /// The probes of each connection.
        package static let seldom = Probing(silence: 60, interval: 15, count: 4)
        /// The probes of a connection whose peer is silent although it owes an answer.
        package static let frequent = Probing(silence: 5, interval: 3, count: 4)
    }

    /// Sets how the system probes a silent peer. Without effect on a socket that is not of TCP.
    package static func probe(_ descriptor: Int32, _ probing: Probing) {
        _ = set(TCP_KEEPINTVL, level: Int32(IPPROTO_TCP), to: probing.interval, on: descriptor)
        _ = set(TCP_KEEPCNT, level: Int32(IPPROTO_TCP), to: probing.count, on: descriptor)
        // Last, because it starts the timer of the next probe.
        _ = set(TCP_KEEPIDLE, level: Int32(IPPROTO_TCP), to: probing.silence, on: descriptor)
    }

    /// Returns the state of the path to the peer; nil for a socket that is not of TCP.
    package static func path(of descriptor: Int32) -> PathState? {
        var info = tcp_info()
        var length = socklen_t(MemoryLayout<tcp_info>.size)
        guard unsafe getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &length) == 0 else { return nil }
        let milliseconds = min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv)
        return PathState(
            silence: UInt64(milliseconds) * 1_000_000, retransmissions: Int(info.tcpi_retransmits),
            unansweredProbes: Int(info.tcpi_probes))
    }

    // MARK: - Options

    /// Sets a number as an option. Returns false if the system refuses it.
    static func set(_ option: Int32, level: Int32, to value: Int32, on descriptor: Int32) -> Bool {
        var value = value
        return unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }

    /// Returns the result of the call that failed; nil if a signal interrupted it.
    private static func failure() -> Transfer? {
        switch errno {
        case EINTR: nil
        case EAGAIN, EWOULDBLOCK: .wouldBlock
        case let code: .failed(SystemError(code))
        }
    }

    private static func address(
        _ read: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard unsafe read(pointer, &length) == 0 else { return nil }
                return unsafe SocketAddress(pointer, length: Int(length))
            }
        }
    }
}
#endif
