#if os(Linux)
import Foundation
import Glibc
import Synchronization
import Testing

/// A server over HTTP/2 without TLS whose frames the test writes. It reads requests without their fields.
final class FrameServer: Sendable {
    struct Frame: Sendable, Equatable {
        var type: UInt8
        var flags: UInt8 = 0
        var stream: UInt32
        var payload: [UInt8] = []

        static func data(_ stream: UInt32, _ bytes: [UInt8], end: Bool = false) -> Frame {
            Frame(type: 0, flags: end ? 1 : 0, stream: stream, payload: bytes)
        }

        /// HEADERS with fields that no table holds (RFC 7541 §6.2.2).
        static func headers(_ stream: UInt32, _ fields: [(String, String)], end: Bool = false) -> Frame {
            var payload: [UInt8] = []
            for (name, value) in fields {
                payload += [0, UInt8(name.utf8.count)] + Array(name.utf8)
                payload += [UInt8(value.utf8.count)] + Array(value.utf8)
            }
            return Frame(type: 1, flags: end ? 5 : 4, stream: stream, payload: payload)
        }

        static func reset(_ stream: UInt32, _ code: UInt32) -> Frame {
            Frame(type: 3, stream: stream, payload: bytes(of: code))
        }

        static func settings(streams: UInt32? = nil) -> Frame {
            Frame(type: 4, stream: 0, payload: streams.map { [0, 3] + bytes(of: $0) } ?? [])
        }

        static func goAway(last: UInt32, _ code: UInt32 = 0) -> Frame {
            Frame(type: 7, stream: 0, payload: bytes(of: last) + bytes(of: code))
        }

        private static func bytes(of number: UInt32) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * UInt32($0))) }
        }

        fileprivate var bytes: [UInt8] {
            Array(Self.bytes(of: UInt32(payload.count)).dropFirst()) + [type, flags] + Self.bytes(of: stream) + payload
        }
    }

    /// A connection, in a thread of its own.
    final class Connection {
        private let descriptor: Int32
        private var input: [UInt8] = []
        private var hasSettings = false

        fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

        deinit { close(descriptor) }

        func send(_ frames: Frame...) {
            if frames.contains(where: { $0.type == 4 && $0.flags == 0 }) { hasSettings = true }
            let bytes = frames.flatMap(\.bytes)
            _ = unsafe Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }

        private func bytes(_ count: Int) -> [UInt8]? {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while input.count < count {
                let read = unsafe recv(descriptor, &buffer, buffer.count, 0)
                guard read > 0 else { return nil }
                input += buffer[..<read]
            }
            defer { input.removeFirst(count) }
            return Array(input[..<count])
        }

        fileprivate func readPreface() -> Bool { bytes(24) != nil }

        /// Returns the next frame, and answers SETTINGS after its own; nil at the end.
        func next() -> Frame? {
            guard let head = bytes(9) else { return nil }
            let count = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            guard let payload = bytes(count) else { return nil }
            let stream = head[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
            let frame = Frame(type: head[3], flags: head[4], stream: stream, payload: payload)
            // The first frame of a server must be its SETTINGS.
            if frame.type == 4, frame.flags == 0, hasSettings { send(Frame(type: 4, flags: 1, stream: 0)) }
            return frame
        }

        /// Returns the next frame of a type; nil at the end.
        func next(_ type: UInt8) -> Frame? {
            while let frame = next() { if frame.type == type { return frame } }
            return nil
        }

        /// Reads until the client has closed the connection.
        func readToEnd() { while next() != nil {} }
    }

    let port: Int
    private let listener: Int32

    var url: String { "http://127.0.0.1:\(port)" }

    /// - Parameter serve: Called for each connection, with its number from 0, after the client's preface.
    init(_ serve: @escaping @Sendable (Connection, Int) -> Void) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (listener, size) = (listener, length)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(listener, address, size) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        try #require(isBound)
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread {
            var number = 0
            while case let descriptor = accept(listener, nil, nil), descriptor >= 0 {
                let own = number
                number += 1
                Thread.detachNewThread {
                    let connection = Connection(descriptor)
                    if connection.readPreface() { serve(connection, own) }
                }
            }
        }
    }

    deinit {
        _ = shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }
}
#endif
