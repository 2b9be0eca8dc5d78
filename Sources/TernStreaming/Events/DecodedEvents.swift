public import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ServerSentEvents {
    /// Returns the data of the events, decoded from JSON by the session's decoder, off the caller's actor.
    ///
    /// ```swift
    /// for try await delta in client.events("chat", method: .post, body: .json(prompt)).decode(Delta.self, until: "[DONE]") {
    ///     print(delta.text)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type of the values.
    ///   - data: The data of the event that ends the stream, as in ``until(_:)``. nil, the default, names no event, and
    ///     keeps that of an earlier ``until(_:)`` or ``through(_:)``.
    public func decode<Value: Decodable & Sendable>(
        _ type: Value.Type, until data: String? = nil
    ) -> DecodedEvents<Value> {
        DecodedEvents(events: data.map { until($0) } ?? self)
    }
}

/// The decoded values of an event stream.
///
/// The events of each chunk are decoded together. An event that cannot be decoded ends the sequence with an error of
/// kind `.decoding`, after the values before it. It does not end the stream, whose next reader continues after the
/// chunk.
public struct DecodedEvents<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    /// A decoded value.
    public typealias Element = Value
    /// The error of the sequence.
    public typealias Failure = NetworkError

    /// The stream of the events.
    public let events: ServerSentEvents

    /// Returns an iterator over the values.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: events.makeAsyncIterator().reader) }

    /// An iterator over values. Most calls return a value of the current chunk and do not suspend.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: EventReader
        private var batch = DecodedBatch<Value>()

        init(reader: EventReader) { self.reader = reader }

        /// Returns the next value; nil at the end.
        ///
        /// - Throws: The error of the stream, or one of kind `.decoding`.
        public mutating func next() async throws(NetworkError) -> Value? {
            while true {
                if let value = try batch.next() { return value }
                guard !batch.hasFailed, let events = try await reader.nextBatch() else { return nil }
                let texts = events.map { event in
                    let name = "the event of type \(event.type) with \(event.data.utf8.count) bytes of data"
                    return (name: name, json: Data(event.data.utf8))
                }
                batch = await DecodedBatch(
                    texts, of: reader.request, configuration: reader.session.configuration)
            }
        }

        /// Returns the next value; nil at the end. Runs on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Value? {
            try await next()
        }
    }
}

/// Values that were decoded together, and the error of the first that could not be decoded.
struct DecodedBatch<Value: Decodable & Sendable>: Sendable {
    private var values: [Value] = []
    private var index = 0
    private var failure: NetworkError?
    /// Whether the error was thrown. Nothing follows it.
    private(set) var hasFailed = false

    init() {}

    /// Decodes JSON texts with names for errors, off every actor.
    ///
    /// - Parameter request: The request that errors name; nil if they are given another one.
    @concurrent
    init(
        _ texts: [(name: String, json: Data)], of request: Request? = nil, configuration: Session.Configuration
    ) async {
        values.reserveCapacity(texts.count)
        for text in texts {
            do {
                values.append(try configuration.json.decode(Value.self, from: text.json))
            } catch {
                let reason = "\(text.name) could not be decoded as \(Value.self): \(DecodingProblem.text(error))"
                // A server can send its own account of an error in place of a value.
                let body = text.json.prefix(configuration.errorBodyLimit)
                failure = NetworkError(
                    .decoding, method: request?.method, target: request?.target, reason: reason, body: Data(body),
                    underlying: error
                ).carrying(configuration.json)
                return
            }
        }
    }

    /// Whether all values were returned. An error can follow.
    var isEmpty: Bool { index == values.count }

    /// Returns the next value; nil if all were returned.
    mutating func next() throws(NetworkError) -> Value? {
        if index < values.count {
            defer { index += 1 }
            return values[index]
        }
        guard let failure else { return nil }
        self.failure = nil
        hasFailed = true
        throw failure
    }
}
