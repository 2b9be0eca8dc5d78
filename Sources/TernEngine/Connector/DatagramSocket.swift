#if os(Linux)
import CTernLoop

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A non-blocking UDP socket that is connected to one address. Several datagrams of one size move in one system call
/// (UDP_SEGMENT, UDP_GRO) where the system can do that. Confined to the loop's thread.
final class DatagramSocket {
    /// The result of receiving.
    enum Receipt {
        /// Datagrams of `segment` bytes each, the last of which may be shorter, with the bits of ECN (RFC 3168).
        case datagrams(count: Int, segment: Int, ecn: UInt8)
        case wouldBlock
        case failed(SystemError)
    }

    let remote: SocketAddress
    /// The address of this side.
    let local: SocketAddress
    private let descriptor: Int32
    private let context: LoopContext
    private var registration: SocketRegistration?
    private var events = SocketEvents.readable
    /// Whether the system can send several datagrams in one call.
    private var usesSegments: Int32 = 1

    /// Opens a socket, which is watched for datagrams.
    init(
        to remote: SocketAddress, from endpoint: LocalEndpoint, context: LoopContext, handler: any SocketHandler
    ) throws(SystemError) {
        let type = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(remote.systemFamily, type, 0)
        guard descriptor >= 0 else { throw .last }
        do throws(SystemError) {
            guard tern_datagrams_prepare(descriptor, remote.family == .ipv6 ? 1 : 0) == 0 else { throw .last }
            try Socket.bind(descriptor, to: endpoint, for: remote)
            if case .failed(let error) = Socket.connect(descriptor, to: remote) { throw error }
            guard let local = Socket.local(of: descriptor) else { throw .last }
            guard let registration = context.watch(descriptor, for: .readable, handler: handler) else { throw .last }
            self.local = local
            self.registration = registration
        } catch {
            Socket.close(descriptor)
            throw error
        }
        self.remote = remote
        self.descriptor = descriptor
        self.context = context
    }

    deinit { close() }

    /// Receives into a buffer of at least 64 KiB.
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Receipt {
        var segment = 0
        var ecn: UInt8 = 0
        let start = unsafe buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let count = unsafe tern_datagrams_receive(descriptor, start, buffer.count, &segment, &ecn)
        if count >= 0 { return .datagrams(count: count, segment: segment, ecn: ecn) }
        return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed(.last)
    }

    /// Sends datagrams of `segment` bytes each. The number of bytes that were sent is a multiple of it, or all.
    func send(_ bytes: UnsafeRawBufferPointer, segment: Int, ecn: UInt8) -> Socket.Transfer {
        let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let count = unsafe tern_datagrams_send(
            descriptor, remote.family == .ipv6 ? 1 : 0, start, bytes.count, segment, ecn, &usesSegments)
        if count >= 0 { return .bytes(count) }
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? .wouldBlock : .failed(.last)
    }

    /// Watches the socket for datagrams, and with `room` also for room to send.
    func watch(room: Bool) {
        let wanted: SocketEvents = room ? [.readable, .writable] : .readable
        guard wanted != events, let registration else { return }
        events = wanted
        context.change(registration, to: wanted)
    }

    func close() {
        guard let registration else { return }
        self.registration = nil
        context.forget(registration)
        Socket.close(descriptor)
    }
}
#endif
