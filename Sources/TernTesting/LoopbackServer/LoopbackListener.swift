#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A bound socket. Converts the three kinds of address to the structures of the system.
struct LoopbackListener: Sendable {
    typealias Failure = LoopbackServer.Failure
    typealias Address = LoopbackServer.Address

    let socket: OwnedDescriptor
    let port: Int
    /// The clients that fill the queue of a listener that accepts no connections.
    private(set) var fillers: [OwnedDescriptor] = []

    /// Binds the socket, and listens with a queue of `backlog` connections unless it is nil.
    init(_ address: Address, port: Int, backlog: Int32?) throws(Failure) {
        socket = try Self.makeSocket(address)
        if case .unix(let path) = address { _ = unsafe unlink(path) }
        System.setOption(SO_REUSEADDR, level: SOL_SOCKET, of: socket.number)
        let number = socket.number
        let result = try unsafe Self.withSocketAddress(address, port: port) { unsafe bind(number, $0, $1) }
        try System.check(result, "binding to \(address) failed")
        self.port = try Self.boundPort(of: number, address)
        guard let backlog else { return }
        try System.check(listen(number, backlog), "listening on \(address) failed")
        // A client may disconnect after `poll`; a blocking `accept` would then wait for the next one.
        _ = fcntl(number, F_SETFL, O_NONBLOCK)
    }

    /// Connects to this listener until a connection stays unanswered. From then on no other client is accepted.
    mutating func fillQueue(_ address: Address) throws(Failure) {
        for _ in 0..<1_024 {
            let client = try Self.makeSocket(address)
            _ = fcntl(client.number, F_SETFL, O_NONBLOCK)
            let number = client.number
            let result = try unsafe Self.withSocketAddress(address, port: port) { unsafe connect(number, $0, $1) }
            let code = errno
            fillers.append(client)
            if result == 0 { continue }
            guard code == EINPROGRESS else { return }
            if try System.wait([(number, Int32(POLLOUT))], milliseconds: 100) == [0] { return }
        }
        throw Failure("the queue of the listener could not be filled")
    }

    /// Returns the next client; nil if none is waiting.
    func accept() throws(Failure) -> OwnedDescriptor? {
        while true {
            #if canImport(Glibc)
            let client = Glibc.accept(socket.number, nil, nil)
            #else
            let client = unsafe Darwin.accept(socket.number, nil, nil)
            #endif
            if client >= 0 {
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                // On Darwin, accepted sockets inherit the listener's mode.
                _ = fcntl(client, F_SETFL, 0)
                System.prepare(client)
                return OwnedDescriptor(client)
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EAGAIN: return nil
            default: throw Failure("accepting a client failed", code: errno)
            }
        }
    }

    private static func makeSocket(_ address: Address) throws(Failure) -> OwnedDescriptor {
        let family: Int32 =
            switch address {
            case .ipv4: AF_INET
            case .ipv6: AF_INET6
            case .unix: AF_UNIX
            }
        #if canImport(Glibc)
        let number = openSocket(family, Int32(SOCK_STREAM.rawValue))
        #else
        let number = openSocket(family, SOCK_STREAM)
        #endif
        try System.check(number, "creating a socket failed")
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        return OwnedDescriptor(number)
    }

    private static func openSocket(_ family: Int32, _ type: Int32) -> Int32 {
        #if canImport(Glibc)
        Glibc.socket(family, type, 0)
        #else
        Darwin.socket(family, type, 0)
        #endif
    }

    private static func withSocketAddress(
        _ address: Address, port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(Failure) -> Int32 {
        guard let port = in_port_t(exactly: port) else { throw Failure("\(port) is not a port") }
        switch address {
        case .ipv4:
            var value = sockaddr_in()
            value.sin_family = sa_family_t(AF_INET)
            value.sin_port = port.bigEndian
            value.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            return unsafe pass(&value, body)
        case .ipv6:
            var value = sockaddr_in6()
            value.sin6_family = sa_family_t(AF_INET6)
            value.sin6_port = port.bigEndian
            value.sin6_addr = in6addr_loopback
            return unsafe pass(&value, body)
        case .unix(let path):
            var value = sockaddr_un()
            value.sun_family = sa_family_t(AF_UNIX)
            let bytes = Array(path.utf8)
            let fits = unsafe withUnsafeMutableBytes(of: &value.sun_path) { field in
                guard bytes.count < field.count else { return false }
                unsafe field.copyBytes(from: bytes)
                return true
            }
            guard fits else { throw Failure("the socket's path is too long: \(path)", code: ENAMETOOLONG) }
            return unsafe pass(&value, body)
        }
    }

    private static func pass<Value>(
        _ value: inout Value, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        unsafe withUnsafeBytes(of: &value) { bytes in
            guard let start = bytes.baseAddress else { return -1 }
            return unsafe body(start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
    }

    private static func boundPort(of number: Int32, _ address: Address) throws(Failure) -> Int {
        if case .unix = address { return 0 }
        return try endpoints(of: number).local
    }

    /// Returns the two ports of a TCP socket; `peer` is 0 if it is not connected.
    static func endpoints(of number: Int32) throws(Failure) -> (local: Int, peer: Int) {
        var value = sockaddr_in6()
        var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        // The port is at the same offset in sockaddr_in and sockaddr_in6.
        let local = unsafe withUnsafeMutableBytes(of: &value) { bytes -> Int32 in
            guard let start = bytes.baseAddress else { return -1 }
            return unsafe getsockname(number, start.assumingMemoryBound(to: sockaddr.self), &size)
        }
        try System.check(local, "reading the address of the socket failed")
        let port = Int(in_port_t(bigEndian: value.sin6_port))
        size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let peer = unsafe withUnsafeMutableBytes(of: &value) { bytes -> Int32 in
            guard let start = bytes.baseAddress else { return -1 }
            return unsafe getpeername(number, start.assumingMemoryBound(to: sockaddr.self), &size)
        }
        return (port, peer == 0 ? Int(in_port_t(bigEndian: value.sin6_port)) : 0)
    }
}
