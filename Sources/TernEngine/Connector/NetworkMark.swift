#if os(Linux)
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The addresses of this machine from which it reaches others, which change with the network.
struct NetworkMark: Sendable, Equatable {
    let addresses: [SocketAddress]

    /// The system chooses an address for each family, and sends nothing: these addresses are for documentation
    /// (RFC 5737, RFC 3849).
    private static let places: [SocketAddress] = [
        .ipv4(0xC000_0201, port: 443), .ipv6(high: 0x2001_0DB8_0000_0000, low: 1, scope: 0, port: 443),
    ]

    /// Asks the system, in about 10 µs. Empty without a route.
    static func current() -> NetworkMark { NetworkMark(addresses: places.compactMap { address(towards: $0) }) }

    private static func address(towards place: SocketAddress) -> SocketAddress? {
        let type = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(place.systemFamily, type, 0)
        guard descriptor >= 0 else { return nil }
        defer { Socket.close(descriptor) }
        if case .failed = Socket.connect(descriptor, to: place) { return nil }
        return Socket.local(of: descriptor)?.with(port: 0)
    }
}
#endif
