#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The system calls of the server, each with its EINTR loop and with its errors as `Failure`.
enum System {
    typealias Failure = LoopbackServer.Failure

    static func message(of code: Int32) -> String {
        guard let text = unsafe strerror(code) else { return "unknown error" }
        return unsafe String(cString: text)
    }

    static func check(_ result: Int32, _ operation: String) throws(Failure) {
        if result < 0 { throw Failure(operation, code: errno) }
    }

    static func setOption(_ socket: Int32, _ level: Int32, _ name: Int32, _ value: Int32 = 1) {
        var value = value
        // Failing leaves the default, with which the server still works.
        _ = unsafe setsockopt(socket, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Latency for TCP, and no SIGPIPE when the peer has gone.
    static func prepare(_ socket: Int32) {
        setOption(socket, Int32(IPPROTO_TCP), TCP_NODELAY)
        #if canImport(Darwin)
        setOption(socket, SOL_SOCKET, SO_NOSIGPIPE)
        #endif
    }

    /// Bytes received, 0 at the peer's FIN.
    static func receive(_ socket: Int32, into buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
        while true {
            let count = unsafe recv(socket, buffer.baseAddress, buffer.count, 0)
            if count >= 0 { return count }
            if errno != EINTR { throw .connection("receiving failed", code: errno) }
        }
    }

    /// Takes up to `limit` bytes out of a TCP socket without looking at them; 0 at the peer's FIN.
    static func discard(_ socket: Int32, scratch: UnsafeMutableRawBufferPointer, limit: Int) throws(Failure) -> Int {
        #if os(Linux)
        // With MSG_TRUNC Linux drops TCP's bytes inside the kernel instead of copying them (tcp(7)).
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

    /// What `poll` saw for each descriptor; all zero after the timeout.
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
    /// Rounded up, so that a wait never ends early.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(seconds) * 1_000 + Int((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}

/// Wakes a thread out of `poll`: a pipe whose reading end becomes ready for good once it is rung.
final class Bell: Sendable {
    let descriptor: Int32
    private let writer: OwnedDescriptor

    init() throws(LoopbackServer.Failure) {
        var ends: [Int32] = [-1, -1]
        try System.check(unsafe pipe(&ends), "no pipe")
        descriptor = ends[0]
        writer = OwnedDescriptor(ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }

    /// Closing the writing end makes the reading end readable (end of file).
    func ring() { writer.close() }

    deinit {
        writer.close()
        System.close(descriptor)
    }
}
