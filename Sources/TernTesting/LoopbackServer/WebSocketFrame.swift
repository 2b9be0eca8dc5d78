import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension LoopbackServer {
    /// A frame of a WebSocket (RFC 6455 §5.2), valid or not.
    public struct WebSocketFrame: Sendable, Hashable {
        /// A Boolean value that indicates whether FIN is set. True by default.
        public var isFinal: Bool
        /// The bits RSV1 (4), RSV2 (2) and RSV3 (1). 0 by default.
        public var reservedBits: UInt8
        /// The opcode, from 0 to 15.
        public var opcode: UInt8
        /// The payload, without a mask.
        public var payload: [UInt8]
        /// A Boolean value that indicates whether the payload is masked. A server sends none that is.
        public var isMasked: Bool

        /// Creates a frame.
        public init(
            opcode: UInt8, payload: [UInt8] = [], isFinal: Bool = true, reservedBits: UInt8 = 0, isMasked: Bool = false
        ) {
            self.opcode = opcode
            self.payload = payload
            self.isFinal = isFinal
            self.reservedBits = reservedBits
            self.isMasked = isMasked
        }

        /// Returns a frame with a text.
        public static func text(_ text: String, isFinal: Bool = true) -> Self {
            Self(opcode: 1, payload: Array(text.utf8), isFinal: isFinal)
        }

        /// Returns a frame with bytes.
        public static func binary(_ bytes: [UInt8], isFinal: Bool = true) -> Self {
            Self(opcode: 2, payload: bytes, isFinal: isFinal)
        }

        /// Returns a Continuation frame.
        public static func continuation(_ bytes: [UInt8], isFinal: Bool = true) -> Self {
            Self(opcode: 0, payload: bytes, isFinal: isFinal)
        }

        /// Returns a Close frame.
        public static func close(_ code: UInt16, _ reason: String = "") -> Self {
            Self(opcode: 8, payload: [UInt8(code >> 8), UInt8(code & 0xFF)] + Array(reason.utf8))
        }

        /// Returns a Ping frame.
        public static func ping(_ payload: [UInt8] = []) -> Self { Self(opcode: 9, payload: payload) }

        /// Returns a Pong frame.
        public static func pong(_ payload: [UInt8] = []) -> Self { Self(opcode: 10, payload: payload) }

        /// Removes the first frame from bytes of a client, without its mask; returns nil if it is not whole.
        ///
        /// - Throws: `LoopbackServer.Failure` for a payload of more than `limit` bytes.
        static func take(
            from bytes: inout [UInt8], limit: Int = payloadLimit
        ) throws(LoopbackServer.Failure) -> Self? {
            guard bytes.count >= 2 else { return nil }
            let start = headCount(bytes[1])
            guard bytes.count >= start else { return nil }
            let length = try payloadCount(bytes, limit: limit)
            guard bytes.count - start >= length else { return nil }
            let isMasked = bytes[1] & 0x80 != 0
            var payload = Array(bytes[start..<(start + length)])
            if isMasked {
                let key = Array(bytes[(start - 4)..<start])
                Self.mask(&payload, with: key)
            }
            let frame = Self(
                opcode: bytes[0] & 0x0F, payload: payload, isFinal: bytes[0] & 0x80 != 0,
                reservedBits: bytes[0] >> 4 & 7, isMasked: isMasked)
            bytes.removeFirst(start + length)
            return frame
        }

        /// The maximum number of bytes of the payload of a client's frame.
        static let payloadLimit = 64 << 20

        /// Returns the number of bytes before the payload, from the second byte of a frame.
        static func headCount(_ second: UInt8) -> Int {
            let lengths = [126: 2, 127: 8]
            return 2 + (lengths[Int(second & 0x7F)] ?? 0) + (second & 0x80 == 0 ? 0 : 4)
        }

        /// Returns the number of bytes of the payload, from the whole head of a frame.
        static func payloadCount(_ head: [UInt8], limit: Int) throws(LoopbackServer.Failure) -> Int {
            var count = Int(head[1] & 0x7F)
            if count >= 126 {
                count = Int(clamping: head[2..<(count == 126 ? 4 : 10)].reduce(0) { $0 << 8 | UInt64($1) })
            }
            guard count <= limit else { throw LoopbackServer.Failure("a frame of the client has \(count) bytes") }
            return count
        }

        /// The frame as it is sent. A masked frame has the key 1, 2, 3, 4.
        public var bytes: [UInt8] {
            var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | reservedBits << 4 | opcode]
            let mask: UInt8 = isMasked ? 0x80 : 0
            switch payload.count {
            case ..<126: bytes.append(mask | UInt8(payload.count))
            case ...0xFFFF: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
            default:
                bytes.append(mask | 127)
                bytes += (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
            }
            guard isMasked else { return bytes + payload }
            let key: [UInt8] = [1, 2, 3, 4]
            var masked = payload
            Self.mask(&masked, with: key)
            return bytes + key + masked
        }

        /// Adds the mask to a payload, or removes it, eight bytes at a time (RFC 6455 §5.3).
        private static func mask(_ payload: inout [UInt8], with key: [UInt8]) {
            let word = unsafe (key + key).withUnsafeBytes { unsafe $0.loadUnaligned(as: UInt64.self) }
            let count = payload.count
            unsafe payload.withUnsafeMutableBytes { bytes in
                var index = 0
                while index + 8 <= count {
                    let masked = unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ word
                    unsafe bytes.storeBytes(of: masked, toByteOffset: index, as: UInt64.self)
                    index += 8
                }
                while index < count {
                    unsafe bytes[index] ^= key[index & 3]
                    index += 1
                }
            }
        }
    }
}

extension LoopbackServer.Exchange {
    /// Answers the handshake of a WebSocket with 101 (RFC 6455 §4.2.2). Frames follow.
    ///
    /// - Parameters:
    ///   - subprotocol: The subprotocol that the server chooses; nil for none.
    ///   - extensions: The value of Sec-WebSocket-Extensions; nil for none.
    ///   - headers: Additional fields. A field of the handshake replaces the usual one.
    public func acceptWebSocket(
        subprotocol: String? = nil, extensions: String? = nil, headers: LoopbackServer.Fields = []
    ) throws {
        closeAfterResponse()
        var fields: LoopbackServer.Fields = [
            ("Upgrade", "websocket"), ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", SHA1.webSocketAccept(for: request["Sec-WebSocket-Key"] ?? "")),
        ]
        fields.removeAll { field in headers.contains { $0.name.lowercased() == field.name.lowercased() } }
        if let subprotocol { fields.append(("Sec-WebSocket-Protocol", subprotocol)) }
        if let extensions { fields.append(("Sec-WebSocket-Extensions", extensions)) }
        try writeHead(status: 101, headers: fields + headers)
    }

    /// Sends frames, in one system call.
    public func write(_ frames: LoopbackServer.WebSocketFrame...) throws { try write(frames.flatMap(\.bytes)) }

    /// Returns the next frame of the client, without its mask; nil if the client has ended its direction.
    ///
    /// - Parameter limit: The maximum number of bytes of the payload; a longer frame throws.
    public func readFrame(limit: Int = 64 << 20) throws -> LoopbackServer.WebSocketFrame? {
        typealias Frame = LoopbackServer.WebSocketFrame
        guard var bytes = try connection.take(upTo: 1).map({ Array($0) }), !bytes.isEmpty else { return nil }
        bytes += try exactly(1)
        bytes += try exactly(Frame.headCount(bytes[1]) - 2)
        bytes += try exactly(Frame.payloadCount(bytes, limit: limit))
        return try Frame.take(from: &bytes, limit: limit)
    }

    /// Sends the client's messages and Pings back, until it closes the socket, and answers that.
    public func echoMessages() throws {
        while let frame = try readFrame() {
            switch frame.opcode {
            case 8:
                return try write(LoopbackServer.WebSocketFrame(opcode: 8, payload: Array(frame.payload.prefix(2))))
            case 9: try write(.pong(frame.payload))
            case 10: break
            default:
                try write(
                    LoopbackServer.WebSocketFrame(
                        opcode: frame.opcode, payload: frame.payload, isFinal: frame.isFinal,
                        reservedBits: frame.reservedBits))
            }
        }
    }

    private func exactly(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            guard let part = try connection.take(upTo: count - bytes.count) else {
                throw LoopbackServer.Failure("the client ended the connection within a frame")
            }
            bytes += part
        }
        return bytes
    }
}
