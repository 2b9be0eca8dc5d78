public import Tern
import TernConcurrency

/// A stream of server-sent events (WHATWG HTML standard §9.2), read by one reader at a time.
///
/// ```swift
/// for try await event in client.events("v1/stream", method: .post, body: .json(prompt)) {
///     print(event.data)
/// }
/// ```
///
/// The request is sent when the first event is asked for. The socket waits while events are unread. After the end of a
/// connection, a GET request is sent again as ``EventReconnection`` says, with the last event ID; requests with other
/// methods are not, unless `EventReconnection.methods` contains theirs, or `methodsBeforeFirstEvent` does and no event
/// has arrived.
///
/// The limits `idle`, `attempt` and `total` of `Timeouts` do not apply; ``EventStreamOptions`` has limits of its own. The
/// responses are never stored in a cache, and `RetryInterceptor` does not send the request again.
///
/// The stream ends with ``close()``, with the cancellation of the task that reads, and when the stream and its readers
/// are released. A response with a status other than 200 and 204, or of another type than `text/event-stream`, is an
/// error that contains the start of the body.
public struct ServerSentEvents: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent
    /// The error of a stream.
    public typealias Failure = NetworkError

    /// An event that ends a stream.
    struct LastEvent: Sendable {
        let matches: @Sendable (ServerSentEvent) -> Bool
        let isDelivered: Bool
    }

    let source: EventSource
    var lastEvent: LastEvent?

    init(_ request: Result<Request, NetworkError>, session: Session, options: EventStreamOptions) {
        source = EventSource(request, session: session, options: options)
    }

    /// The current state.
    public var state: EventStreamState { source.states.current }

    /// The current state, then each change. A slow reader receives the newest. Every reader receives the last state,
    /// `.closed`, and then ends.
    public var states: AsyncStream<EventStreamState> { source.states.stream() }

    /// Ends the stream and its connection. A reader that waits receives the end. Closing again has no effect.
    public func close() async { await source.close() }

    /// Returns the same stream, which ends at the first event with this data. That event is not delivered. The end of
    /// the stream before it is an error of kind `.lastEventMissing`.
    ///
    /// ```swift
    /// for try await event in client.events("chat", method: .post, body: .json(prompt)).until("[DONE]") { … }
    /// ```
    public func until(_ data: String) -> Self {
        var events = self
        events.lastEvent = LastEvent(matches: { $0.data == data }, isDelivered: false)
        return events
    }

    /// Returns the same stream, which ends after the first event that satisfies a condition. That event is delivered.
    /// The end of the stream before it is an error of kind `.lastEventMissing`.
    ///
    /// ```swift
    /// for try await event in client.events("messages").through({ $0.type == "message_stop" }) { … }
    /// ```
    public func through(_ isLast: @escaping @Sendable (ServerSentEvent) -> Bool) -> Self {
        var events = self
        events.lastEvent = LastEvent(matches: isLast, isDelivered: true)
        return events
    }

    /// Returns an iterator over the events that have not been read.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: EventReader(source, lastEvent)) }

    /// An iterator over events. Most calls return an event of the current chunk and do not suspend.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: EventReader

        /// Returns the next event; nil at the end.
        ///
        /// - Throws: The error of the stream. Of kind `.cancelled` if the calling task is cancelled.
        public mutating func next() async throws(NetworkError) -> ServerSentEvent? { try await reader.next() }

        /// Returns the next event; nil at the end. Runs on the caller's actor.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(NetworkError) -> ServerSentEvent? {
            try await next()
        }
    }
}

/// Reads the events of a source. Events that it fetched and did not return go back to the source.
final class EventReader {
    private let source: EventSource
    private let lastEvent: ServerSentEvents.LastEvent?
    private var events: [ServerSentEvent] = []
    private var index = 0
    private var isAtEnd = false

    var session: Session { source.session }
    /// The request of the stream; nil if it could not be created.
    var request: Request? { try? source.request.get() }

    init(_ source: EventSource, _ lastEvent: ServerSentEvents.LastEvent?) {
        self.source = source
        self.lastEvent = lastEvent
        source.unread.withLock { swap(&events, &$0) }
    }

    deinit {
        if index < events.count, !isAtEnd {
            source.unread.withLock { $0 = Array(events[index...]) + $0 }
        }
    }

    func next() async throws(NetworkError) -> ServerSentEvent? {
        while true {
            if isAtEnd { return nil }
            if index < events.count {
                let event = events[index]
                index += 1
                guard let lastEvent, lastEvent.matches(event) else { return event }
                await end()
                return lastEvent.isDelivered ? event : nil
            }
            try await fetch()
        }
    }

    /// Returns all events that have arrived, at least one; nil at the end.
    func nextBatch() async throws(NetworkError) -> [ServerSentEvent]? {
        while true {
            if isAtEnd { return nil }
            if index < events.count {
                var batch = Array(events[index...])
                index = events.count
                guard let lastEvent, let last = batch.firstIndex(where: lastEvent.matches) else { return batch }
                await end()
                batch.removeSubrange((lastEvent.isDelivered ? last + 1 : last)...)
                return batch.isEmpty ? nil : batch
            }
            try await fetch()
        }
    }

    private func fetch() async throws(NetworkError) {
        if let next = try await source.nextEvents(expectsLastEvent: lastEvent != nil) {
            events = next
            index = 0
        } else {
            isAtEnd = true
        }
    }

    private func end() async {
        isAtEnd = true
        await source.close(.lastEvent)
    }
}
