#if os(Linux)
import Foundation
import Glibc
import TernConcurrency

/// A proxy for tests: CONNECT of HTTP and SOCKS 5, both with or without a password. Each tunnel leads to 127.0.0.1,
/// whatever its name is.
final class Tunnel: Sendable {
    struct Broken: Error {}

    private struct Seen {
        var isListening = true
        var requests: [String] = []
        var peers: [String] = []
    }

    let port: UInt16
    private let listener: Int32
    private let user: String?
    private let password: String
    private let seen = Lock(Seen())

    /// The tunnels requested: `CONNECT name:port` or `SOCKS name:port`.
    var requests: [String] { seen.withLock { $0.requests } }

    /// The addresses that its clients connected from.
    var peers: [String] { seen.withLock { $0.peers } }

    init(user: String? = nil, password: String = "") throws {
        self.user = user
        self.password = password
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isReady = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(listener, pointer, length) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        guard isReady else { throw Broken() }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { self.accept() }
    }

    func stop() {
        // A descriptor that is closed can be another's by now.
        seen.withLock { if $0.isListening { _ = shutdown(listener, Int32(SHUT_RDWR)) } }
    }

    private func accept() {
        while true {
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let client = unsafe withUnsafeMutablePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    unsafe Glibc.accept(listener, pointer, &length)
                }
            }
            if client < 0 { break }
            let peer = UInt32(bigEndian: address.sin_addr.s_addr)
            seen.withLock { $0.peers.append("\(peer >> 24).\(peer >> 16 & 255).\(peer >> 8 & 255).\(peer & 255)") }
            Thread.detachNewThread {
                defer { close(client) }
                // A client that cannot be served is disconnected.
                guard let server = try? self.negotiate(client) else { return }
                defer { close(server) }
                Self.splice(client, server)
            }
        }
        seen.withLock { seen in
            seen.isListening = false
            close(listener)
        }
    }

    private func negotiate(_ client: Int32) throws -> Int32 {
        let first = try Self.read(client, 1)
        return first == [5] ? try negotiateSOCKS(client) : try negotiateHTTP(client, first)
    }

    private func negotiateHTTP(_ client: Int32, _ first: [UInt8]) throws -> Int32 {
        var head = first
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try Self.read(client, 1) }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        let words = lines[0].split(separator: " ")
        guard words.count == 3, let port = words[1].split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw Broken()
        }
        seen.withLock { $0.requests.append("\(words[0]) \(words[1])") }
        if let user {
            let expected = "Proxy-Authorization: Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
            guard lines.contains(Substring(expected)) else {
                try Self.write(client, Array("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n".utf8))
                throw Broken()
            }
        }
        let server = try Self.connect(port)
        try Self.write(client, Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
        return server
    }

    /// Implements RFC 1928, with RFC 1929 for the password.
    private func negotiateSOCKS(_ client: Int32) throws -> Int32 {
        let count = try Self.read(client, 1)
        let methods = try Self.read(client, Int(count[0]))
        let method: UInt8 = user == nil ? 0 : 2
        guard methods.contains(method) else {
            try Self.write(client, [5, 255])
            throw Broken()
        }
        try Self.write(client, [5, method])
        if let user {
            _ = try Self.read(client, 1)
            let name = try Self.read(client, Int(try Self.read(client, 1)[0]))
            let word = try Self.read(client, Int(try Self.read(client, 1)[0]))
            let isRight = name.elementsEqual(user.utf8) && word.elementsEqual(password.utf8)
            try Self.write(client, [1, isRight ? 0 : 1])
            if !isRight { throw Broken() }
        }
        let kind = try Self.read(client, 4)[3]
        let host: String
        switch kind {
        case 1: host = try Self.read(client, 4).map { "\($0)" }.joined(separator: ".")
        case 3: host = String(decoding: try Self.read(client, Int(try Self.read(client, 1)[0])), as: UTF8.self)
        default: throw Broken()
        }
        let bytes = try Self.read(client, 2)
        let port = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        seen.withLock { $0.requests.append("SOCKS \(host):\(port)") }
        let server = try Self.connect(port)
        try Self.write(client, [5, 0, 0, 1, 127, 0, 0, 1, 0, 0])
        return server
    }

    // MARK: Sockets

    private static func connect(_ port: UInt16) throws -> Int32 {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe Glibc.connect(server, pointer, length) == 0
            }
        }
        guard isConnected else {
            close(server)
            throw Broken()
        }
        return server
    }

    private static func read(_ descriptor: Int32, _ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe recv(descriptor, buffer.baseAddress.map { unsafe $0 + done }, count - done, 0)
            }
            if got <= 0 { throw Broken() }
            done += got
        }
        return bytes
    }

    private static func write(_ descriptor: Int32, _ bytes: [UInt8]) throws {
        var done = 0
        while done < bytes.count {
            let sent = unsafe bytes.withUnsafeBytes { buffer in
                unsafe send(
                    descriptor, buffer.baseAddress.map { unsafe $0 + done }, bytes.count - done, Int32(MSG_NOSIGNAL))
            }
            if sent <= 0 { throw Broken() }
            done += sent
        }
    }

    /// Copies bytes in both directions until one side ends.
    private static func splice(_ client: Int32, _ server: Int32) {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            var watched = [
                pollfd(fd: client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: server, events: Int16(POLLIN), revents: 0),
            ]
            if unsafe poll(&watched, 2, -1) < 0 { return }
            for (index, entry) in watched.enumerated() where entry.revents != 0 {
                let count = unsafe recv(entry.fd, &buffer, buffer.count, 0)
                guard count > 0 else { return }
                guard (try? write(index == 0 ? server : client, Array(buffer[..<count]))) != nil else { return }
            }
        }
    }
}
#endif
