public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension StubTransport {
    /// The server's end of a WebSocket that a stub has accepted, for its script and for the checks after it.
    ///
    /// ```swift
    /// let stub = StubTransport([
    ///     "GET /live": .webSocket { socket in
    ///         try await socket.send("welcome")
    ///         while let message = try await socket.receive() { try await socket.send(message) }
    ///     }
    /// ])
    /// let client = try Client(baseURL: "https://api.example.com", session: Session(stub: stub))
    /// let socket = try await client.webSocket("live")
    /// try await socket.send("hello")
    /// try await socket.close()
    /// #expect(stub.webSockets.first?.received == [.text("hello")])
    /// ```
    ///
    /// The client's side is that of production: handshake, masks, fragments, limits and the close handshake (RFC 6455).
    /// Pings are answered while the script is in `receive()`, so a script that does something else is a peer that does
    /// not answer. Call the functions from one task at a time.
    public final class WebSocket: Sendable {
        /// A message.
        public enum Message: Sendable, Hashable {
            /// A text. Bytes of the client that are not UTF-8 are replaced.
            case text(String)
            /// Bytes.
            case binary(Data)
        }

        /// The server's side of the conversation. When the script returns, the server closes the WebSocket with the
        /// code 1000, if the script has not closed it, and waits for the client's answer. A ``Failure`` that it throws
        /// cuts the connection and fails it with its kind, any other error with `.connectionFailed`.
        public typealias Script = @concurrent @Sendable (_ socket: WebSocket) async throws -> Void

        private struct State {
            /// nil after the end.
            var exchange: StubExchange?
            var received: [Message] = []
            var closeCode: UInt16?
            var closeReason = ""
            var hasSentClose = false
            var isAtEnd = false
            var endWaiters: [Waiter<Void>] = []
            var input: [UInt8] = []
            /// The message of which fragments have arrived.
            var message: (isText: Bool, bytes: [UInt8])?
        }

        /// The handshake of the client.
        public let call: Call
        private let state: Lock<State>

        init(_ call: Call, on exchange: StubExchange) {
            self.call = call
            state = Lock(State(exchange: exchange))
        }

        // MARK: The client's messages

        /// The messages of the client that the script, or the end after it, has received, in their order.
        public var received: [Message] { state.withLock { $0.received } }

        /// The code of the client's Close frame; 1005 for a frame without a code (RFC 6455 §7.1.5), and nil before the
        /// frame.
        public var closeCode: UInt16? { state.withLock { $0.closeCode } }

        /// The reason of the client's Close frame; empty for none.
        public var closeReason: String { state.withLock { $0.closeReason } }

        /// Waits until the script has returned or thrown and nothing more is received, or the caller is cancelled. Call
        /// it before the checks where the server closes first, because the client then does not wait for the server.
        public func waitForEnd() async {
            let waiter = Waiter<Void>()
            let isWaiting = state.withLock { state in
                if state.exchange != nil { state.endWaiters.append(waiter) }
                return state.exchange != nil
            }
            if isWaiting { await waiter.wait() }
        }

        // MARK: The script

        /// Waits for the next message of the client. Returns nil after its Close frame, which is answered, and after
        /// the last byte of a client that ends its direction.
        ///
        /// - Throws: An error if the client cuts the connection, or cancels.
        public func receive() async throws -> Message? {
            while let frame = try await nextFrame() {
                switch frame.opcode {
                case 8:
                    try await takeClose(frame.payload)
                    return nil
                case 9: try await send(frame: .pong(frame.payload))
                case 10: break
                default: if let message = take(frame) { return message }
                }
            }
            return nil
        }

        /// Sends a text.
        ///
        /// - Throws: An error if the client has cut the connection, or cancels. So do all functions that send.
        public func send(_ text: String) async throws { try await send(frame: .text(text)) }

        /// Sends bytes.
        public func send(_ bytes: Data) async throws { try await send(frame: .binary(Array(bytes))) }

        /// Sends a message.
        public func send(_ message: Message) async throws {
            switch message {
            case .text(let text): try await send(text)
            case .binary(let bytes): try await send(bytes)
            }
        }

        /// Sends a frame as it is, valid or not.
        public func send(frame: LoopbackServer.WebSocketFrame) async throws {
            let exchange = state.withLock { state in
                if frame.opcode == 8 { state.hasSentClose = true }
                return state.exchange
            }
            guard let exchange else { throw Failure(.connectionLost, "the script of the WebSocket has ended") }
            try await exchange.write(frame.bytes)
        }

        /// Sends a Close frame, unless one was sent. `receive()` then returns nil once the client has answered it.
        public func close(code: UInt16 = 1_000, reason: String = "") async throws {
            if state.withLock({ $0.hasSentClose }) { return }
            try await send(frame: .close(code, reason))
        }

        /// Sends each message of the client back, until it closes the WebSocket.
        public func echoMessages() async throws {
            while let message = try await receive() { try await send(message) }
        }

        // MARK: The end

        /// Closes the WebSocket after its script, and waits for the client's answer.
        func end() async throws {
            try await close()
            while try await receive() != nil {}
        }

        /// Lets go of the connection, which has ended or failed.
        func letGo() {
            let waiters = state.withLock { state in
                state.exchange = nil
                defer { state.endWaiters = [] }
                return state.endWaiters
            }
            for waiter in waiters { waiter.resume() }
        }

        private func takeClose(_ payload: [UInt8]) async throws {
            state.withLock { state in
                state.isAtEnd = true
                state.closeCode = payload.count < 2 ? 1_005 : UInt16(payload[0]) << 8 | UInt16(payload[1])
                state.closeReason = String(decoding: payload.dropFirst(2), as: UTF8.self)
            }
            if state.withLock({ $0.hasSentClose }) { return }
            try await send(frame: LoopbackServer.WebSocketFrame(opcode: 8, payload: Array(payload.prefix(2))))
        }

        // MARK: Frames

        private func nextFrame() async throws -> LoopbackServer.WebSocketFrame? {
            while true {
                let (frame, exchange, isAtEnd) = try state.withLock { state in
                    (try LoopbackServer.WebSocketFrame.take(from: &state.input), state.exchange, state.isAtEnd)
                }
                if let frame { return frame }
                guard !isAtEnd, let exchange else { return nil }
                if let bytes = try await exchange.readBytes() {
                    state.withLock { $0.input += bytes }
                } else {
                    state.withLock { $0.isAtEnd = true }
                }
            }
        }

        /// Adds a fragment to its message. Returns the message if it is whole.
        private func take(_ frame: LoopbackServer.WebSocketFrame) -> Message? {
            state.withLock { state in
                var message = state.message ?? (frame.opcode == 1, [])
                message.bytes += frame.payload
                state.message = frame.isFinal ? nil : message
                guard frame.isFinal else { return nil }
                let whole: Message =
                    message.isText
                    ? .text(String(decoding: message.bytes, as: UTF8.self)) : .binary(Data(message.bytes))
                state.received.append(whole)
                return whole
            }
        }
    }
}

extension StubTransport.Answer {
    /// Returns an answer that accepts a WebSocket (RFC 6455 §4.2.2) and plays a script. A call that asks for none fails
    /// with `.unsupported`. Any other answer to a handshake refuses it.
    ///
    /// - Parameters:
    ///   - subprotocol: The subprotocol that the server chooses; nil for none.
    ///   - headers: Additional fields. A field of the handshake replaces the usual one.
    ///   - script: The server's side of the conversation.
    public static func webSocket(
        subprotocol: String? = nil, headers: Headers = [:], script: @escaping StubTransport.WebSocket.Script
    ) -> Self {
        var fields: Headers = ["Upgrade": "websocket", "Connection": "Upgrade"]
        if let subprotocol { fields["Sec-WebSocket-Protocol"] = subprotocol }
        var answer = Self(status: 101, headers: fields.overriding(with: headers))
        answer.script = script
        return answer
    }
}

extension StubTransport.WebSocket: CustomReflectable {
    /// The handshake, without secrets, and the number of messages. Without this mirror, `dump` would show the messages.
    public var customMirror: Mirror { Mirror(self, children: ["call": call, "received": received.count]) }
}
