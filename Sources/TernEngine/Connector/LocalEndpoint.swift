/// The local endpoint of connections.
package enum LocalEndpoint: Sendable, Hashable {
    /// The endpoint that the system chooses.
    case any
    /// A network interface, such as `eth0`.
    case interface(String)
    /// An address of this machine. Its port is 0 unless all connections are to use the same one.
    case address(SocketAddress)
}

#if os(Linux)
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension Socket {
    /// Binds a socket to a local endpoint before it connects. A Unix socket is not bound.
    ///
    /// An interface is bound to as a device. Where the process has no right to that, the socket is bound to the
    /// interface's first address of the same family.
    ///
    /// - Parameter remote: The address that the socket is opened for.
    /// - Throws: `SystemError`, with `ENODEV` for an interface that does not exist, and `EADDRNOTAVAIL` for an endpoint
    ///   without an address of the same family. Another address of the server can be tried then.
    package static func bind(
        _ descriptor: Int32, to endpoint: LocalEndpoint, for remote: SocketAddress
    ) throws(SystemError) {
        if remote.family == .unix { return }
        switch endpoint {
        case .any: return
        case .address(let address):
            try bind(descriptor, to: address, for: remote)
        case .interface(let name):
            guard 1..<Int(IFNAMSIZ) ~= name.utf8.count, !name.utf8.contains(0) else { throw SystemError(ENODEV) }
            let length = socklen_t(name.utf8.count)
            if unsafe setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, name, length) == 0 { return }
            try bind(descriptor, to: address(ofInterface: name, for: remote), for: remote)
        }
    }

    private static func bind(
        _ descriptor: Int32, to address: SocketAddress, for remote: SocketAddress
    ) throws(SystemError) {
        guard address.family == remote.family else { throw SystemError(EADDRNOTAVAIL) }
        if address.port == 0 {
            // The port is chosen when the socket connects, so that one port serves several servers.
            _ = set(IP_BIND_ADDRESS_NO_PORT, level: Int32(IPPROTO_IP), to: 1, on: descriptor)
        }
        guard unsafe address.withSystemAddress({ unsafe systemBind(descriptor, to: $0, length: $1) }) == 0 else {
            throw .last
        }
    }

    /// Returns the first address of an interface that has the family of the remote one.
    static func address(
        ofInterface name: String, for remote: SocketAddress
    ) throws(SystemError) -> SocketAddress {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard unsafe getifaddrs(&list) == 0 else { throw .last }
        defer { unsafe freeifaddrs(list) }
        var isKnown = false
        var found: SocketAddress?
        var next = unsafe list
        while let entry = unsafe next {
            unsafe next = entry.pointee.ifa_next
            guard unsafe strcmp(entry.pointee.ifa_name, name) == 0 else { continue }
            isKnown = true
            guard found == nil, let form = unsafe entry.pointee.ifa_addr else { continue }
            guard unsafe Int32(form.pointee.sa_family) == remote.systemFamily else { continue }
            let isV4 = remote.family == .ipv4
            let length = isV4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
            found = unsafe SocketAddress(form, length: length)
        }
        guard let found else { throw SystemError(isKnown ? EADDRNOTAVAIL : ENODEV) }
        return found
    }
}

// Inside `Socket`, this name is that of its own methods.
private func systemBind(_ descriptor: Int32, to address: UnsafePointer<sockaddr>, length: socklen_t) -> Int32 {
    unsafe bind(descriptor, address, length)
}
#endif
