#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A plain blocking socket: the tests of the server must not depend on the client that the server is used to test.
final class PlainClient {
    struct Answer {
        let status: Int
        let head: String
        let body: [UInt8]
        var text: String { String(decoding: body, as: UTF8.self) }
    }

    enum End: Equatable { case open, closed, reset }

    struct Broken: Error { let code: Int32 }

    private let socket: Int32
    private var buffer: [UInt8] = []
    private var isOpen = true

    init(port: Int, isIPv6: Bool = false) throws {
        #if canImport(Glibc)
        let type = Int32(SOCK_STREAM.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        socket = Self.makeSocket(isIPv6 ? AF_INET6 : AF_INET, type)
        var result: Int32
        if isIPv6 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = in_port_t(port).bigEndian
            address.sin6_addr = in6addr_loopback
            result = Self.connect(socket, &address)
        } else {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(port).bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            result = Self.connect(socket, &address)
        }
        try check(result)
        limitWaiting()
    }

    init(path: String) throws {
        #if canImport(Glibc)
        socket = Self.makeSocket(AF_UNIX, Int32(SOCK_STREAM.rawValue))
        #else
        socket = Self.makeSocket(AF_UNIX, SOCK_STREAM)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        try check(Self.connect(socket, &address))
        limitWaiting()
    }

    deinit { close() }

    private static func makeSocket(_ family: Int32, _ type: Int32) -> Int32 {
        #if canImport(Glibc)
        Glibc.socket(family, type, 0)
        #else
        Darwin.socket(family, type, 0)
        #endif
    }

    private static func connect<Address>(_ socket: Int32, _ address: inout Address) -> Int32 {
        unsafe withUnsafeBytes(of: &address) { bytes in
            guard let start = bytes.baseAddress else { return -1 }
            let address = unsafe start.assumingMemoryBound(to: sockaddr.self)
            #if canImport(Glibc)
            return unsafe Glibc.connect(socket, address, socklen_t(bytes.count))
            #else
            return unsafe Darwin.connect(socket, address, socklen_t(bytes.count))
            #endif
        }
    }

    /// Makes a test that waits for missing bytes fail instead of hang.
    private func limitWaiting() {
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        _ = unsafe setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    private func check(_ result: Int32) throws { if result < 0 { throw Broken(code: errno) } }

    func close() {
        guard isOpen else { return }
        isOpen = false
        #if canImport(Glibc)
        _ = Glibc.close(socket)
        #else
        _ = Darwin.close(socket)
        #endif
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            #if canImport(Glibc)
            let flags = Int32(MSG_NOSIGNAL)
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.send(socket, $0.baseAddress, $0.count, flags) }
            #else
            let count = unsafe rest.withUnsafeBytes { unsafe Darwin.send(socket, $0.baseAddress, $0.count, 0) }
            #endif
            try check(Int32(clamping: count))
            rest = rest.dropFirst(count)
        }
    }

    /// Calls `recv` once. Returns no bytes at the end of the stream.
    func receive(waits: Bool = true) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = unsafe recv(socket, &bytes, bytes.count, waits ? 0 : Int32(MSG_DONTWAIT))
        try check(Int32(clamping: count))
        return Array(bytes.prefix(count))
    }

    /// Reads the next response: its body by `Content-Length` or to the end of the stream, and none if `hasBody` is
    /// false.
    func answer(hasBody: Bool = true) throws -> Answer {
        var end: Int?
        while end == nil {
            end = buffer.indices.first { buffer[$0...].starts(with: [13, 10, 13, 10]) }.map { $0 + 4 }
            if end == nil {
                let bytes = try receive()
                if bytes.isEmpty { throw Broken(code: 0) }
                buffer += bytes
            }
        }
        let head = String(decoding: buffer.prefix(end ?? 0), as: UTF8.self)
        buffer.removeFirst(end ?? 0)
        let status = head.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
            .flatMap { Int($0.dropFirst(16)) }
        let wanted = hasBody && status >= 200 && status != 204 && status != 304 ? length ?? .max : 0
        while buffer.count < wanted {
            let bytes = try receive()
            if bytes.isEmpty { break }
            buffer += bytes
        }
        let body = Array(buffer.prefix(wanted))
        buffer.removeFirst(body.count)
        return Answer(status: status, head: head, body: body)
    }

    func get(_ target: String, headers: String = "") throws -> Answer {
        try send("GET \(target) HTTP/1.1\r\nHost: here\r\n\(headers)\r\n")
        return try answer()
    }

    /// Returns the state of the connection after the last bytes of the server.
    func end() throws -> End {
        do {
            while try !receive().isEmpty {}
            return .closed
        } catch let error as Broken {
            return error.code == ECONNRESET ? .reset : .open
        }
    }

    /// Returns whether the server responds to a connection attempt within 50 ms.
    static func connects(to port: Int) -> Bool {
        #if canImport(Glibc)
        let socket = makeSocket(AF_INET, Int32(SOCK_STREAM.rawValue))
        #else
        let socket = makeSocket(AF_INET, SOCK_STREAM)
        #endif
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        _ = connect(socket, &address)
        var entry = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
        let answered = unsafe poll(&entry, 1, 50) == 1
        #if canImport(Glibc)
        _ = Glibc.close(socket)
        #else
        _ = Darwin.close(socket)
        #endif
        return answered
    }
}
