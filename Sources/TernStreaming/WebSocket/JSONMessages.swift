public import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension WebSocket {
    /// Sends a value as JSON in a text, encoded by the session's encoder, off every actor. See `send(_:)` for texts.
    ///
    /// ```swift
    /// try await socket.send(json: Order(symbol: "TERN", count: 3))
    /// for try await quote in socket.messages(of: Quote.self) { show(quote) }
    /// ```
    ///
    /// - Throws: An error of kind `.requestBody` for a value that cannot be encoded: nothing was sent. Otherwise the
    ///   errors of `send(_:)`.
    public nonisolated func send(json value: some Encodable & Sendable) async throws(NetworkError) {
        try await send(.text(text(of: value)))
    }

    @concurrent
    private nonisolated func text(of value: some Encodable & Sendable) async throws(NetworkError) -> String {
        do {
            return String(decoding: try stream.configuration.json.encode(value), as: UTF8.self)
        } catch {
            let reason = "the message cannot be encoded as JSON: \(EncodingProblem.text(error))"
            throw stream.error(FailureCause(.requestBody, reason, underlying: error))
        }
    }

    /// The messages of the server, decoded from JSON by the session's decoder, off every actor. Texts and bytes are
    /// both decoded.
    ///
    /// A message that cannot be decoded ends the sequence with an error of kind `.decoding`, whose body is the
    /// beginning of the message. The socket stays open: another sequence, or ``receive()``, continues after it.
    /// Otherwise as ``messages``.
    ///
    /// - Parameter type: The type of the values. `JSONValue` for messages of any form.
    public nonisolated func messages<Value: Decodable & Sendable>(of type: Value.Type) -> DecodedMessages<Value> {
        DecodedMessages { () async throws(NetworkError) in
            guard let message = try await self.receive() else { return nil }
            return (message, self.stream.configuration)
        }
    }
}

extension ReconnectingWebSocket {
    /// Sends a value as JSON over the open connection. Does not wait for one.
    ///
    /// - Throws: An error of kind `.webSocketClosed` if no connection is open, and those of `WebSocket.send(json:)`.
    public nonisolated func send(json value: some Encodable & Sendable) async throws(NetworkError) {
        try await openSocket().send(json: value)
    }

    /// The messages of all connections, decoded from JSON, for one reader at a time. See `WebSocket.messages(of:)`.
    public nonisolated func messages<Value: Decodable & Sendable>(of type: Value.Type) -> DecodedMessages<Value> {
        DecodedMessages { () async throws(NetworkError) in try await self.receiveWithConfiguration() }
    }
}

/// The decoded messages of a WebSocket.
public struct DecodedMessages<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    /// A decoded value.
    public typealias Element = Value
    /// The error of the sequence.
    public typealias Failure = NetworkError
    /// A message, and the configuration of the session that received it.
    typealias Received = (message: WebSocket.Message, configuration: Session.Configuration)

    let receive: @Sendable () async throws(NetworkError) -> Received?

    init(receive: @escaping @Sendable () async throws(NetworkError) -> Received?) { self.receive = receive }

    /// Returns an iterator over the messages that follow.
    public func makeAsyncIterator() -> Iterator { Iterator(receive: receive) }

    /// An iterator over decoded messages.
    public struct Iterator: AsyncIteratorProtocol {
        let receive: @Sendable () async throws(NetworkError) -> Received?
        private var hasFailed = false

        init(receive: @escaping @Sendable () async throws(NetworkError) -> Received?) { self.receive = receive }

        /// Returns the next value; nil after the last message, and after an error of kind `.decoding`.
        ///
        /// - Throws: The error of the socket, or one of kind `.decoding`.
        public mutating func next() async throws(NetworkError) -> Value? {
            guard !hasFailed, let received = try await receive() else { return nil }
            let name = "the message of \(received.message.byteCount) bytes"
            var batch = await DecodedBatch<Value>(
                [(name: name, json: received.message.bytes)], configuration: received.configuration)
            do throws(NetworkError) {
                return try batch.next()
            } catch {
                hasFailed = true
                throw error
            }
        }

        /// The same as ``next()``: the value is decoded off the actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Value? {
            try await next()
        }
    }
}

extension WebSocket.Message {
    /// The bytes of a message; those of a text in UTF-8.
    fileprivate var bytes: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .binary(let data): data
        }
    }
}
