#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The address of a socket: IPv4 or IPv6 with a port, or the path of a Unix socket.
package enum SocketAddress: Sendable, Hashable {
    /// An IPv4 address. The first byte of its text is the most significant one.
    case ipv4(UInt32, port: UInt16)
    /// An IPv6 address, with the index of an interface as its scope; 0 without one (RFC 4007).
    case ipv6(high: UInt64, low: UInt64, scope: UInt32, port: UInt16)
    /// The path of a Unix socket, without a zero byte. Created by ``unix(path:)``, which checks its length.
    case unix([UInt8])

    /// The family of an address.
    package enum Family: Sendable, Hashable {
        case ipv4, ipv6, unix
    }

    /// The maximum number of bytes of a Unix socket's path. `sun_path` also holds the zero byte at its end.
    package static let longestPath = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// Creates an address from its numeric text: `127.0.0.1`, `::1`, `fe80::1%eth0`. Returns nil for every other text,
    /// names and short forms such as `127.1` included.
    ///
    /// - Parameter numeric: The address without brackets. The scope is the name or the number of an interface.
    package init?(numeric: String, port: UInt16) {
        // The longest text is an address of 45 bytes, a percent sign and the name of an interface.
        guard numeric.utf8.count <= 64, !numeric.utf8.contains(0) else { return nil }
        var v4 = in_addr()
        if unsafe inet_pton(AF_INET, numeric, &v4) == 1 {
            self = .ipv4(UInt32(bigEndian: v4.s_addr), port: port)
            return
        }
        let parts = numeric.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        var v6 = in6_addr()
        guard let address = parts.first, unsafe inet_pton(AF_INET6, String(address), &v6) == 1 else { return nil }
        var scope: UInt32 = 0
        if parts.count == 2 {
            guard let index = Self.scope(String(parts[1])) else { return nil }
            scope = index
        }
        self = .ipv6(v6, scope: scope, port: port)
    }

    /// Creates the address of a Unix socket.
    ///
    /// - Throws: `EngineError` of kind `.invalidRequest` for a path that is empty, too long or has a zero byte.
    package static func unix(path: String) throws(EngineError) -> SocketAddress {
        let bytes = Array(path.utf8)
        let name = "the path of the Unix socket \(printable(path))"
        if bytes.isEmpty { throw EngineError(.invalidRequest, "the path of the Unix socket is empty") }
        if bytes.contains(0) { throw EngineError(.invalidRequest, "\(name) contains a zero byte") }
        if bytes.count > longestPath { throw EngineError(.invalidRequest, "\(name) is too long for the system") }
        return .unix(bytes)
    }

    /// The family of the address.
    package var family: Family {
        switch self {
        case .ipv4: .ipv4
        case .ipv6: .ipv6
        case .unix: .unix
        }
    }

    /// The port; 0 for a Unix socket.
    package var port: UInt16 {
        switch self {
        case .ipv4(_, let port): port
        case .ipv6(_, _, _, let port): port
        case .unix: 0
        }
    }

    /// Returns the address with another port. The address of a Unix socket stays as it is.
    package func with(port: UInt16) -> SocketAddress {
        switch self {
        case .ipv4(let address, _): .ipv4(address, port: port)
        case .ipv6(let high, let low, let scope, _): .ipv6(high: high, low: low, scope: scope, port: port)
        case .unix: self
        }
    }

    /// The numeric text without the port: `127.0.0.1`, `fe80::1%2` (RFC 5952), or the path of a Unix socket.
    package var text: String {
        switch self {
        case .ipv4(let address, _):
            return (0..<4).map { String(address >> UInt32(24 - 8 * $0) & 0xFF) }.joined(separator: ".")
        case .ipv6(_, _, let scope, _):
            var address = v6Address
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            let count = socklen_t(text.count)
            guard unsafe inet_ntop(AF_INET6, &address, &text, count) != nil else { return "::" }
            let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            return String(decoding: bytes, as: UTF8.self) + (scope == 0 ? "" : "%\(scope)")
        case .unix(let path):
            return String(decoding: path, as: UTF8.self)
        }
    }

    /// The 4 or 16 bytes of an IP address in network order; empty for a Unix socket.
    package var bytes: [UInt8] {
        switch self {
        case .ipv4(let address, _): (0..<4).map { UInt8(truncatingIfNeeded: address >> UInt32(24 - 8 * $0)) }
        case .ipv6(let high, let low, _, _):
            (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64(56 - 8 * ($0 & 7))) }
        case .unix: []
        }
    }

    /// Returns the path with a question mark in place of each control character, and with at most 200 characters.
    private static func printable(_ path: String) -> String {
        let scalars = path.unicodeScalars.prefix(200).map { $0.value < 0x20 || 0x7F...0x9F ~= $0.value ? "?" : $0 }
        let isWhole = path.unicodeScalars.count <= 200
        return String(String.UnicodeScalarView(scalars)) + (isWhole ? "" : "…")
    }

    private static func scope(_ text: String) -> UInt32? {
        if !text.isEmpty, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) { return UInt32(text) }
        let index = unsafe if_nametoindex(text)
        return index == 0 ? nil : index
    }
}

extension SocketAddress: CustomStringConvertible {
    /// The address and the port: `127.0.0.1:80`, `[::1]:80`, or the path of a Unix socket.
    package var description: String {
        switch self {
        case .ipv4: "\(text):\(port)"
        case .ipv6: "[\(text)]:\(port)"
        case .unix: text
        }
    }
}

// MARK: - The system's form

extension SocketAddress {
    /// The number of the family in system calls.
    var systemFamily: Int32 {
        switch self {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .unix: AF_UNIX
        }
    }

    /// Copies an address out of the system's form. Returns nil for other families and for a structure that is too
    /// short.
    init?(_ pointer: UnsafePointer<sockaddr>, length: Int) {
        let raw = unsafe UnsafeRawBufferPointer(start: pointer, count: length)
        guard length >= MemoryLayout<sa_family_t>.size + 1 else { return nil }
        switch unsafe Int32(pointer.pointee.sa_family) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            let address = unsafe raw.loadUnaligned(as: sockaddr_in.self)
            let port = UInt16(bigEndian: address.sin_port)
            self = .ipv4(UInt32(bigEndian: address.sin_addr.s_addr), port: port)
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            let address = unsafe raw.loadUnaligned(as: sockaddr_in6.self)
            let port = UInt16(bigEndian: address.sin6_port)
            self = .ipv6(address.sin6_addr, scope: address.sin6_scope_id, port: port)
        case AF_UNIX:
            let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
            guard length > offset else { return nil }
            self = unsafe .unix(Array(raw[offset...].prefix { $0 != 0 }))
        default: return nil
        }
    }

    /// Calls the closure with the system's form of the address.
    func withSystemAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        var storage = sockaddr_storage()
        let length = write(to: &storage)
        return unsafe withUnsafePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, socklen_t(length)) }
        }
    }

    /// Writes the system's form and returns its length.
    private func write(to storage: inout sockaddr_storage) -> Int {
        unsafe withUnsafeMutableBytes(of: &storage) { raw in
            switch self {
            case .ipv4(let address, let port):
                var form = sockaddr_in()
                form.sin_family = sa_family_t(AF_INET)
                form.sin_port = port.bigEndian
                form.sin_addr.s_addr = address.bigEndian
                unsafe raw.storeBytes(of: form, as: sockaddr_in.self)
                return MemoryLayout<sockaddr_in>.size
            case .ipv6(_, _, let scope, let port):
                var form = sockaddr_in6()
                form.sin6_family = sa_family_t(AF_INET6)
                form.sin6_port = port.bigEndian
                form.sin6_addr = v6Address
                form.sin6_scope_id = scope
                unsafe raw.storeBytes(of: form, as: sockaddr_in6.self)
                return MemoryLayout<sockaddr_in6>.size
            case .unix(let path):
                var form = sockaddr_un()
                form.sun_family = sa_family_t(AF_UNIX)
                let path = path.prefix(Self.longestPath)
                unsafe withUnsafeMutableBytes(of: &form.sun_path) { unsafe $0.copyBytes(from: path) }
                unsafe raw.storeBytes(of: form, as: sockaddr_un.self)
                return MemoryLayout<sockaddr_un>.size
            }
        }
    }

    private static func ipv6(_ address: in6_addr, scope: UInt32, port: UInt16) -> SocketAddress {
        unsafe withUnsafeBytes(of: address) { bytes in
            let high = unsafe UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
            let low = unsafe UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            return .ipv6(high: high, low: low, scope: scope, port: port)
        }
    }

    private var v6Address: in6_addr {
        var address = in6_addr()
        guard case .ipv6(let high, let low, _, _) = self else { return address }
        unsafe withUnsafeMutableBytes(of: &address) { bytes in
            unsafe bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
            unsafe bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        return address
    }
}
