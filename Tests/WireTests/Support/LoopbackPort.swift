#if os(Linux) && !TERN_URLSESSION
import Dispatch
import Foundation
import Glibc
import TernConcurrency

/// The ports of 127.0.0.1 on which programs listen.
enum LoopbackPort {
    /// The ports that the system gives to no connection and to no other server by itself; empty if it gives out all of
    /// them.
    ///
    /// From the system's own range, a connection could take the port while its program starts or restarts. A client
    /// that tries a closed port of that range again and again even connects to itself in the end.
    private static let fixedPorts: Range<Int> = {
        // Without the file, the range is that of the kernel's documentation.
        let range = try? String(contentsOfFile: "/proc/sys/net/ipv4/ip_local_port_range", encoding: .utf8)
        let first = range?.split(whereSeparator: \.isWhitespace).first.flatMap { Int($0) } ?? 32_768
        return 10_000..<max(10_000, first)
    }()

    /// The ports that were given out, no two of which are the same: a server can have several, and starts on them
    /// later.
    private static let given = Lock(Set<Int>())

    /// Returns a port on which no program listens. Another program can take it before it is used.
    static func free() throws -> Int {
        for _ in 0..<100 {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { close(descriptor) }
            guard let port = fixedPorts.randomElement() else { return try bind(descriptor) }
            guard given.withLock({ $0.insert(port).inserted }) else { continue }
            if unsafe withAddress(port: port, { unsafe Glibc.bind(descriptor, $0, $1) == 0 }) { return port }
        }
        throw Child.Failure(description: "no free port: errno \(errno)")
    }

    /// Binds a socket to a free port, which is returned.
    static func bind(_ descriptor: Int32) throws -> Int {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withAddress(port: 0) { unsafe Glibc.bind(descriptor, $0, $1) == 0 }
        let isKnown = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound, isKnown else { throw Child.Failure(description: "no free port: errno \(errno)") }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    /// Returns whether a program accepts connections on a port.
    static func accepts(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        return unsafe withAddress(port: port) { unsafe connect(descriptor, $0, $1) == 0 }
    }

    /// Returns when the ports accept connections, or none of them does. Few programs report when they listen, and
    /// nothing else tells it: the ports are tried every 5 ms, on a thread that may block.
    static func wait(_ ports: [Int], areOpen: Bool = true, within seconds: Int = 20) async -> Bool {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                for _ in 0..<seconds * 200 {
                    if ports.allSatisfy({ accepts($0) == areOpen }) { return continuation.resume(returning: true) }
                    _ = poll(nil, 0, 5)
                }
                continuation.resume(returning: false)
            }
        }
    }

    private static func withAddress<Value>(
        port: Int, _ use: (UnsafePointer<sockaddr>, socklen_t) -> Value
    ) -> Value {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe use($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
#endif
