#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes messages and control frames of the bytes that a server sends. Pure.
///
/// The size of a message is checked before its bytes are kept. Text is checked with each byte that arrives, so that an
/// error is found before the end of the message (RFC 6455 §8.1).
package struct MessageAssembler {
    /// An event of the connection.
    package enum Event: Sendable, Hashable {
        case message(WebSocket.Message)
        case ping([UInt8])
        case pong([UInt8])
        /// The server closes the connection. The code is nil if it sent none.
        case close(WebSocket.CloseCode?, reason: String)
        case failure(ProtocolFailure)
    }

    private var parser: FrameParser
    private let maximumSize: Int
    /// Decompresses messages; nil if no compression was negotiated.
    private let inflater: MessageInflater?

    /// The present frame.
    private var header = FrameHeader(opcode: .continuation, isFinal: true, isCompressed: false, length: 0)
    private var controlPayload: [UInt8] = []
    /// The message that is being received.
    private var isText = false
    private var isCompressed = false
    private var body = Data()
    private var checker = UTF8Checker()
    /// The number of bytes of the message's frames so far, if it is not compressed.
    private var announced = 0
    /// The message of a single frame that arrived in one piece.
    private var whole: WebSocket.Message?
    private var failure: ProtocolFailure?

    package init(maximumFrameSize: Int, maximumMessageSize: Int, inflater: MessageInflater? = nil) {
        parser = FrameParser(maximumLength: maximumFrameSize, allowsCompression: inflater != nil)
        maximumSize = maximumMessageSize
        self.inflater = inflater
    }

    /// Returns the next event from `bytes`, and moves the position behind the bytes that it used; nil if more bytes are
    /// needed. After a failure, returns the failure again.
    package mutating func next(_ bytes: UnsafeRawBufferPointer, from position: inout Int) -> Event? {
        if let failure { return .failure(failure) }
        do throws(ProtocolFailure) {
            while let event = unsafe parser.next(bytes, from: &position) {
                switch event {
                case .failure(let failure): throw failure
                case .header(let header): try begin(header)
                case .payload(let range): try unsafe take(UnsafeRawBufferPointer(rebasing: bytes[range]))
                case .end: if let event = try end() { return event }
                }
            }
            return nil
        } catch {
            failure = error
            body = Data()
            return .failure(error)
        }
    }

    private mutating func begin(_ header: FrameHeader) throws(ProtocolFailure) {
        self.header = header
        if header.opcode.isControl {
            controlPayload.removeAll(keepingCapacity: true)
            return
        }
        if header.opcode != .continuation {
            isText = header.opcode == .text
            isCompressed = header.isCompressed
            checker = UTF8Checker()
            announced = 0
        }
        // A compressed message is limited while it is inflated: its frames can be longer than it.
        if isCompressed { return }
        let (sum, overflow) = announced.addingReportingOverflow(header.length)
        announced = sum
        guard !overflow, sum <= maximumSize else { throw tooLarge }
    }

    private var tooLarge: ProtocolFailure {
        ProtocolFailure(.messageTooBig, "a message exceeds the limit of \(maximumSize) bytes")
    }

    private static var notText: ProtocolFailure {
        ProtocolFailure(.invalidPayload, "a text of the server is not UTF-8 (RFC 6455 §8.1)")
    }

    private mutating func take(_ payload: UnsafeRawBufferPointer) throws(ProtocolFailure) {
        if header.opcode.isControl {
            unsafe controlPayload.append(contentsOf: payload)
        } else if isCompressed {
            try unsafe inflate(payload)
        } else if header.isFinal, header.opcode != .continuation, payload.count == header.length {
            whole = try unsafe message(payload)
        } else {
            try unsafe append(payload)
        }
    }

    private func message(_ payload: UnsafeRawBufferPointer) throws(ProtocolFailure) -> WebSocket.Message {
        guard isText else { return unsafe .binary(Data(payload)) }
        guard let text = unsafe String(validating: payload, as: UTF8.self) else { throw Self.notText }
        return .text(text)
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) throws(ProtocolFailure) {
        guard bytes.count <= maximumSize - body.count else { throw tooLarge }
        if isText, unsafe !checker.take(bytes) { throw Self.notText }
        unsafe body.append(contentsOf: bytes)
    }

    private mutating func inflate(_ payload: UnsafeRawBufferPointer) throws(ProtocolFailure) {
        guard let inflater else { return }
        try unsafe inflater.inflate(payload) { output throws(ProtocolFailure) in try unsafe append(output) }
    }

    private mutating func end() throws(ProtocolFailure) -> Event? {
        switch header.opcode {
        case .ping: return .ping(controlPayload)
        case .pong: return .pong(controlPayload)
        case .close: return try close()
        case .text, .binary, .continuation: break
        }
        guard header.isFinal else { return nil }
        if let message = whole.take() { return .message(message) }
        if isCompressed {
            try inflater?.end()
        }
        guard !isText || checker.isComplete else { throw Self.notText }
        defer { body = Data() }
        return .message(isText ? .text(String(decoding: body, as: UTF8.self)) : .binary(body))
    }

    /// Reads a Close frame (RFC 6455 §5.5.1, §7.4).
    private func close() throws(ProtocolFailure) -> Event {
        guard !controlPayload.isEmpty else { return .close(nil, reason: "") }
        guard controlPayload.count >= 2 else {
            throw ProtocolFailure(.protocolError, "the Close frame of the server has half a code (RFC 6455 §5.5.1)")
        }
        let code = WebSocket.CloseCode(rawValue: UInt16(controlPayload[0]) << 8 | UInt16(controlPayload[1]))
        guard code.isSendable else {
            throw ProtocolFailure(
                .protocolError,
                "the server closed with the code \(code.rawValue), which is not for frames (RFC 6455 §7.4)")
        }
        guard let reason = String(validating: controlPayload[2...], as: UTF8.self) else {
            throw ProtocolFailure(
                .invalidPayload, "the reason in the server's Close frame is not UTF-8 (RFC 6455 §8.1)")
        }
        return .close(code, reason: reason)
    }
}
