#if os(Linux)
import Glibc

/// The client's end of a TCP connection on this machine. Asks the kernel about this one socket (sock_diag(7)), whereas
/// /proc/net/tcp lists every socket of the machine.
final class PeerSocket {
    private let netlink: OwnedDescriptor
    private let question: [UInt8]

    /// Returns nil if the socket is not a connected TCP socket, or the kernel does not answer such queries.
    init?(of socket: Int32) {
        guard let own = unsafe Self.address(socket, getsockname), let peer = unsafe Self.address(socket, getpeername)
        else {
            return nil
        }
        let descriptor = Glibc.socket(AF_NETLINK, Int32(SOCK_DGRAM.rawValue) | Self.closeOnExec, Self.sockDiag)
        guard descriptor >= 0 else { return nil }
        netlink = OwnedDescriptor(descriptor)
        question = Self.question(about: peer, connectedTo: own)
    }

    /// The bytes at the client's end of the connection.
    struct ReceivedBytes {
        /// The bytes that the client's program has not read.
        var unreadBytes: UInt64
        /// All bytes that arrived, acknowledged or not; the acknowledgement may take 40 ms longer.
        var receivedBytes: UInt64
    }

    /// The current counts; nil if the socket no longer exists.
    var receivedBytes: ReceivedBytes? {
        let sent = unsafe send(netlink.number, question, question.count, 0)
        guard sent == question.count else { return nil }
        var answer = [UInt8](repeating: 0, count: 512)
        let count = unsafe recv(netlink.number, &answer, answer.count, 0)
        // nlmsghdr: length, type. Another type is an error: the socket no longer exists.
        guard count >= Self.attributesOffset, answer[4] == Self.byFamily else { return nil }
        let unread = Self.number(answer, at: Self.receiveQueueOffset, size: 4)
        var offset = Self.attributesOffset
        while offset + 4 <= count {
            let size = Int(Self.number(answer, at: offset, size: 2))
            if answer[offset + 2] == Self.info, size >= Self.receivedOffset + 8, offset + size <= count {
                let received = Self.number(answer, at: offset + Self.receivedOffset, size: 8)
                return ReceivedBytes(unreadBytes: unread, receivedBytes: received)
            }
            offset += max(4, (size + 3) & ~3)
        }
        return nil
    }

    /// Reads a number in host byte order, which netlink uses. Swift on Linux only supports little-endian machines.
    private static func number(_ bytes: [UInt8], at offset: Int, size: Int) -> UInt64 {
        (0..<size).reduce(0) { $0 | UInt64(bytes[offset + $1]) << UInt64(8 * $1) }
    }

    // MARK: The kernel's format (linux/netlink.h, linux/inet_diag.h), which Swift cannot import.

    private static let sockDiag: Int32 = 4
    private static let closeOnExec: Int32 = 0o2000000
    private static let byFamily: UInt8 = 20
    /// The offset of `idiag_rqueue`: after nlmsghdr and a part of inet_diag_msg.
    private static let receiveQueueOffset = 16 + 4 + 48 + 4
    private static let attributesOffset = 16 + 72
    /// INET_DIAG_INFO: a `tcp_info`. Its `tcpi_bytes_received` follows the head of the attribute and 128 bytes.
    private static let info: UInt8 = 2
    private static let receivedOffset = 4 + 128

    private struct Address {
        let family: UInt8
        /// The port in network byte order.
        let port: [UInt8]
        let host: [UInt8]
    }

    private static func question(about socket: Address, connectedTo peer: Address) -> [UInt8] {
        var bytes: [UInt8] = [72, 0, 0, 0, byFamily, 0, 1, 0]
        // Sequence number and sender: the kernel answers the socket that sent the query.
        bytes += [UInt8](repeating: 0, count: 8)
        bytes += [socket.family, UInt8(IPPROTO_TCP), 1 << (info - 1), 0, 0xFF, 0xFF, 0xFF, 0xFF]
        bytes += socket.port + peer.port + padded(socket.host) + padded(peer.host)
        // Any interface, no cookie.
        bytes += [0, 0, 0, 0] + [UInt8](repeating: 0xFF, count: 8)
        return bytes
    }

    private static func padded(_ host: [UInt8]) -> [UInt8] {
        host + [UInt8](repeating: 0, count: 16 - host.count)
    }

    private typealias Lookup = (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32

    private static func address(_ socket: Int32, _ lookup: Lookup) -> Address? {
        var bytes = [UInt8](repeating: 0, count: MemoryLayout<sockaddr_in6>.size)
        var size = socklen_t(bytes.count)
        let result = unsafe bytes.withUnsafeMutableBytes { bytes -> Int32 in
            guard let start = bytes.baseAddress else { return -1 }
            return unsafe lookup(socket, start.assumingMemoryBound(to: sockaddr.self), &size)
        }
        guard result == 0 else { return nil }
        // sockaddr_in: family, port, address; sockaddr_in6: family, port, flow, address.
        switch Int32(bytes[0]) {
        case AF_INET: return Address(family: bytes[0], port: Array(bytes[2..<4]), host: Array(bytes[4..<8]))
        case AF_INET6: return Address(family: bytes[0], port: Array(bytes[2..<4]), host: Array(bytes[8..<24]))
        default: return nil
        }
    }
}
#endif
