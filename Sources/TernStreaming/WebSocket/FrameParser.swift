/// The opcode of a frame (RFC 6455 §5.2).
package enum FrameOpcode: UInt8, Sendable, Hashable {
    case continuation = 0
    case text = 1
    case binary = 2
    case close = 8
    case ping = 9
    case pong = 10

    package var isControl: Bool { rawValue >= 8 }
}

/// The header of a frame that was received, after its checks.
package struct FrameHeader: Sendable, Hashable {
    package var opcode: FrameOpcode
    /// Whether the frame is the last one of its message.
    package var isFinal: Bool
    /// Whether RSV1 is set: the message is compressed (RFC 7692 §6).
    package var isCompressed: Bool
    /// The number of bytes of the payload.
    package var length: Int
}

/// The reason why a connection is failed (RFC 6455 §7.1.7), with the code that the peer is sent.
package struct ProtocolFailure: Error, Sendable, Hashable {
    package var code: WebSocket.CloseCode
    /// A sentence in present or past tense that cites the section of the rule. Contains no byte of the peer.
    package var reason: String

    package init(_ code: WebSocket.CloseCode, _ reason: String) {
        self.code = code
        self.reason = reason
    }
}

/// Reads the frames that a server sends, from bytes in pieces of any size. Pure; keeps at most the 10 bytes of a
/// header.
///
/// The payload is passed through: it stays in the caller's memory.
package struct FrameParser: Sendable {
    /// A part of a frame, in the order of the bytes.
    package enum Event: Sendable, Hashable {
        /// A frame begins.
        case header(FrameHeader)
        /// These positions of the input hold the next bytes of the payload. A frame without payload has none.
        case payload(Range<Int>)
        /// The frame has ended.
        case end
        case failure(ProtocolFailure)
    }

    private enum State {
        case header
        case payload(missing: Int)
        case failed(ProtocolFailure)
    }

    /// The maximum number of bytes of a data frame's payload.
    private let maximumLength: Int
    /// Whether messages may be compressed.
    private let allowsCompression: Bool
    private var state = State.header
    private var head: [UInt8] = []
    /// Whether a message has begun and is not complete.
    private var isInMessage = false

    package init(maximumLength: Int, allowsCompression: Bool) {
        self.maximumLength = maximumLength
        self.allowsCompression = allowsCompression
    }

    /// Returns the next event from `bytes`, and moves the position behind the bytes that it used; nil if more bytes are
    /// needed. After a failure, returns the failure again.
    package mutating func next(_ bytes: UnsafeRawBufferPointer, from position: inout Int) -> Event? {
        switch state {
        case .failed(let failure): return .failure(failure)
        case .payload(0):
            state = .header
            return .end
        case .payload(let missing):
            let count = min(missing, bytes.count - position)
            guard count > 0 else { return nil }
            defer { position += count }
            state = .payload(missing: missing - count)
            return .payload(position..<(position + count))
        case .header:
            guard let length = unsafe readHead(bytes, from: &position) else { return nil }
            do throws(ProtocolFailure) {
                let header = try self.header(length: length)
                head.removeAll(keepingCapacity: true)
                state = .payload(missing: header.length)
                if !header.opcode.isControl { isInMessage = !header.isFinal }
                return .header(header)
            } catch {
                state = .failed(error)
                return .failure(error)
            }
        }
    }

    /// Collects the bytes of a header. Returns the length in it, before its check; nil if bytes are missing. A second
    /// byte that is not valid ends the header.
    private mutating func readHead(_ bytes: UnsafeRawBufferPointer, from position: inout Int) -> UInt64? {
        while position < bytes.count {
            unsafe head.append(bytes[position])
            position += 1
            guard head.count >= 2 else { continue }
            // A mask, or a length that a control frame cannot have: the rest is not read.
            let isEnd = head[1] & 0x80 != 0 || head[0] & 0x08 != 0
            let extra = isEnd ? 0 : head[1] == 127 ? 8 : head[1] == 126 ? 2 : 0
            guard head.count == 2 + extra else { continue }
            return extra == 0 ? UInt64(head[1] & 0x7F) : head[2...].reduce(0) { $0 << 8 | UInt64($1) }
        }
        return nil
    }

    /// Checks a header.
    private func header(length: UInt64) throws(ProtocolFailure) -> FrameHeader {
        let (first, second) = (head[0], head[1])
        guard let opcode = FrameOpcode(rawValue: first & 0x0F) else {
            throw ProtocolFailure(.protocolError, "the server sent the reserved opcode \(first & 0x0F) (RFC 6455 §5.2)")
        }
        let isFinal = first & 0x80 != 0
        let isCompressed = first & 0x40 != 0
        guard first & 0x30 == 0, !isCompressed || allowsCompression else {
            throw ProtocolFailure(
                .protocolError, "the server set a reserved bit that no extension defines (RFC 6455 §5.2)")
        }
        guard second & 0x80 == 0 else {
            throw ProtocolFailure(.protocolError, "the server sent a masked frame (RFC 6455 §5.1)")
        }
        if opcode.isControl {
            guard isFinal, length <= 125 else {
                throw ProtocolFailure(
                    .protocolError, "the server sent a control frame that is fragmented or too long (RFC 6455 §5.5)")
            }
            guard !isCompressed else {
                throw ProtocolFailure(.protocolError, "the server compressed a control frame (RFC 7692 §6.1)")
            }
        } else if opcode == .continuation {
            guard isInMessage else {
                throw ProtocolFailure(.protocolError, "the server continued no message (RFC 6455 §5.4)")
            }
            guard !isCompressed else {
                throw ProtocolFailure(.protocolError, "RSV1 is set on a frame that is not the first (RFC 7692 §6.1)")
            }
        } else if isInMessage {
            throw ProtocolFailure(.protocolError, "the server began a message within another (RFC 6455 §5.4)")
        }
        let isMinimal = second == 127 ? length > 0xFFFF : second == 126 ? length > 125 : true
        guard isMinimal, length >> 63 == 0 else {
            throw ProtocolFailure(.protocolError, "the length of a frame is not in its shortest form (RFC 6455 §5.2)")
        }
        guard let count = Int(exactly: length), opcode.isControl || count <= maximumLength else {
            throw ProtocolFailure(
                .messageTooBig, "a frame of \(length) bytes exceeds the limit of \(maximumLength) bytes")
        }
        return FrameHeader(opcode: opcode, isFinal: isFinal, isCompressed: isCompressed, length: count)
    }
}
