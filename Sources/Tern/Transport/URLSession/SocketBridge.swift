#if TERN_URLSESSION || !os(Linux)
import Foundation

/// Translates between the frames of a WebSocket (RFC 6455 §5.2), which the session's side of a connection writes and
/// reads, and the messages of the system's socket task. Pure.
///
/// The frames to send are the session's own: valid, masked and not compressed. The system writes frames of its own,
/// with its own masks and fragments.
struct SocketBridge {
    /// A call to the system's task.
    enum Command: Equatable, Sendable {
        case text(String)
        case binary(Data)
        /// Sends a Ping. Its answer becomes a Pong with these bytes.
        case ping([UInt8])
        case close(code: UInt16?, reason: Data)
    }

    /// The opcodes of frames (RFC 6455 §5.2).
    private enum Opcode {
        static let text: UInt8 = 1
        static let binary: UInt8 = 2
        static let close: UInt8 = 8
        static let ping: UInt8 = 9
        static let pong: UInt8 = 10
    }

    private var input: [UInt8] = []
    /// The message whose fragments are being collected.
    private var message: [UInt8] = []
    private var isText = false

    /// Takes bytes of the session's side. Returns the calls for the frames that are whole.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [Command] {
        input.append(contentsOf: bytes)
        var commands: [Command] = []
        var position = 0
        while let end = frameEnd(from: position) {
            if let command = command(position, end) { commands.append(command) }
            position = end
        }
        input.removeFirst(position)
        return commands
    }

    /// Returns the end of the frame at a position; nil if it is not whole.
    private func frameEnd(from start: Int) -> Int? {
        guard let (head, length) = shape(start) else { return nil }
        let end = start + head + length
        return end <= input.count ? end : nil
    }

    /// Returns the number of bytes of a frame's head, with the mask, and of its payload; nil if the head is not whole.
    private func shape(_ start: Int) -> (head: Int, length: Int)? {
        guard input.count - start >= 2 else { return nil }
        let short = Int(input[start + 1] & 0x7F)
        let extra = short < 126 ? 0 : short == 126 ? 2 : 8
        guard input.count - start >= 2 + extra + 4 else { return nil }
        let length = input[(start + 2)..<(start + 2 + extra)].reduce(extra == 0 ? short : 0) { $0 << 8 | Int($1) }
        return (2 + extra + 4, length)
    }

    private mutating func command(_ start: Int, _ end: Int) -> Command? {
        guard let (head, _) = shape(start) else { return nil }
        let mask = Array(input[(start + head - 4)..<(start + head)])
        var payload = Array(input[(start + head)..<end])
        for index in payload.indices { payload[index] ^= mask[index & 3] }
        let (opcode, isFinal) = (input[start] & 0x0F, input[start] & 0x80 != 0)
        switch opcode {
        case Opcode.ping: return .ping(payload)
        case Opcode.close:
            let code = payload.count < 2 ? nil : UInt16(payload[0]) << 8 | UInt16(payload[1])
            return .close(code: code, reason: Data(payload.dropFirst(2)))
        // The system answers Pings itself.
        case Opcode.pong: return nil
        case Opcode.text, Opcode.binary:
            isText = opcode == Opcode.text
            message = payload
        default: message.append(contentsOf: payload)
        }
        guard isFinal else { return nil }
        defer { message = [] }
        return isText ? .text(String(decoding: message, as: UTF8.self)) : .binary(Data(message))
    }

    // MARK: Frames of the server

    /// Returns the frame of a message that the system has received.
    static func frame(text: String) -> Data { frame(Opcode.text, Array(text.utf8)) }

    /// Returns the frame of a message that the system has received.
    static func frame(binary: Data) -> Data { frame(Opcode.binary, Array(binary)) }

    /// Returns the Pong with the bytes of a Ping.
    static func pong(_ payload: [UInt8]) -> Data { frame(Opcode.pong, payload) }

    /// Returns the Close frame of the server. Codes that are never in a frame, such as 1005, stand for a frame without
    /// a code.
    static func close(code: Int, reason: Data?) -> Data {
        guard let code = UInt16(exactly: code), code >= 1_000, code != 1_005, code != 1_006, code != 1_015 else {
            return frame(Opcode.close, [])
        }
        return frame(Opcode.close, [UInt8(code >> 8), UInt8(code & 0xFF)] + (reason ?? Data()).prefix(123))
    }

    private static func frame(_ opcode: UInt8, _ payload: [UInt8]) -> Data {
        var bytes: [UInt8] = [0x80 | opcode]
        switch payload.count {
        case ..<126: bytes.append(UInt8(payload.count))
        case ...0xFFFF: bytes += [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default: bytes += [127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        }
        return Data(bytes + payload)
    }
}
#endif
