import Synchronization
import Tern
import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The system calls of the server, with their EINTR loops. They throw errors as `Failure`.
enum System {
    typealias Failure = LoopbackServer.Failure

    static func message(of code: Int32) -> String {
        guard let text = unsafe strerror(code) else { return "unknown error" }
        return unsafe String(cString: text)
    }

    static func check(_ result: Int32, _ operation: String) throws(Failure) {
        if result < 0 { throw Failure(operation, code: errno) }
    }

    static func setOption(_ name: Int32, level: Int32, of socket: Int32, to value: Int32 = 1) {
        var value = value
        // A failure leaves the default, with which the server also works.
        _ = unsafe setsockopt(socket, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Sets the options for low latency, and for no SIGPIPE after the peer has closed the connection.
    static func prepare(_ socket: Int32) {
        setOption(TCP_NODELAY, level: Int32(IPPROTO_TCP), of: socket)
        #if canImport(Darwin)
        setOption(SO_NOSIGPIPE, level: SOL_SOCKET, of: socket)
        #endif
    }

    /// Returns the number of bytes received; 0 at the peer's FIN.
    static func receive(_ socket: Int32, into buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
        while true {
            let count = unsafe recv(socket, buffer.baseAddress, buffer.count, 0)
            if count >= 0 { return count }
            if errno != EINTR { throw .connection("receiving failed", code: errno) }
        }
    }

    /// Discards at most `limit` bytes of a TCP socket; returns 0 at the peer's FIN.
    static func discard(_ socket: Int32, scratch: UnsafeMutableRawBufferPointer, limit: Int) throws(Failure) -> Int {
        #if os(Linux)
        // With MSG_TRUNC, Linux drops the bytes inside the kernel instead of copying them (tcp(7)).
        while true {
            let count = recv(socket, nil, limit, Int32(MSG_TRUNC))
            if count >= 0 { return count }
            if errno == EINTR { continue }
            if errno == EFAULT || errno == EINVAL { break }
            throw .connection("receiving failed", code: errno)
        }
        #endif
        return try unsafe receive(socket, into: UnsafeMutableRawBufferPointer(rebasing: scratch.prefix(limit)))
    }

    static func sendAll(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) throws(Failure) {
        #if canImport(Darwin)
        let flags: Int32 = 0
        #else
        let flags = Int32(MSG_NOSIGNAL)
        #endif
        var rest = unsafe bytes
        while let start = rest.baseAddress, rest.count > 0 {
            let count = unsafe send(socket, start, rest.count, flags)
            if count >= 0 {
                unsafe rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
            } else if errno != EINTR {
                throw .connection("sending failed", code: errno)
            }
        }
    }

    /// Returns the events of `poll` for each descriptor; all zero after the timeout.
    static func wait(_ descriptors: [(Int32, Int32)], milliseconds: Int) throws(Failure) -> [Int32] {
        var entries = descriptors.map { pollfd(fd: $0.0, events: Int16($0.1), revents: 0) }
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        while true {
            let left = milliseconds < 0 ? -1 : max(0, (deadline - ContinuousClock.now).wholeMilliseconds)
            let result = unsafe poll(&entries, nfds_t(entries.count), Int32(clamping: left))
            if result >= 0 { return entries.map { Int32($0.revents) } }
            if errno != EINTR { throw Failure("poll failed", code: errno) }
        }
    }

    static func close(_ descriptor: Int32) {
        #if canImport(Glibc)
        _ = Glibc.close(descriptor)
        #else
        _ = Darwin.close(descriptor)
        #endif
    }
}

extension Duration {
    /// The milliseconds, rounded up so that a wait never ends early.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(seconds) * 1_000 + Int((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}

/// Wakes a thread from `poll`. The reading end of the pipe stays readable after the signal.
final class WakeupPipe: Sendable {
    let descriptor: Int32
    private let writer: OwnedDescriptor

    init() throws(LoopbackServer.Failure) {
        var ends: [Int32] = [-1, -1]
        try System.check(unsafe pipe(&ends), "creating a pipe failed")
        descriptor = ends[0]
        writer = OwnedDescriptor(ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }

    /// Makes the reading end readable (end of file) by closing the writing end.
    func signal() { writer.close() }

    deinit {
        writer.close()
        System.close(descriptor)
    }
}

/// A descriptor that its owner closes once, while another thread may shut it down. A lock ensures that a number that
/// the system has reused is never shut down or closed.
final class OwnedDescriptor: Sendable {
    let number: Int32
    private let isOpen = Lock(true)

    init(_ number: Int32) { self.number = number }

    deinit { close() }

    func close() {
        isOpen.withLock { isOpen in
            if isOpen { System.close(number) }
            isOpen = false
        }
    }

    /// Wakes threads that block on this socket, and sends FIN.
    func endBothWays() { endIfOpen(Int32(SHUT_RDWR)) }

    func endWriting() { endIfOpen(Int32(SHUT_WR)) }

    /// Turns the close into an abort: with a linger time of zero, TCP drops queued bytes and sends RST.
    func abort() {
        isOpen.withLock { isOpen in
            guard isOpen else { return }
            var linger = linger(l_onoff: 1, l_linger: 0)
            _ = unsafe setsockopt(number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            System.close(number)
            isOpen = false
        }
    }

    private func endIfOpen(_ direction: Int32) {
        isOpen.withLock { isOpen in
            // Fails with ENOTCONN if the peer has reset the connection; there is then nothing to shut down.
            if isOpen { _ = shutdown(number, direction) }
        }
    }
}
