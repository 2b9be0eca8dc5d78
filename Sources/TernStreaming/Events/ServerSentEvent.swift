/// An event of a server (server-sent events, WHATWG HTML standard §9.2).
public struct ServerSentEvent: Sendable, Hashable {
    /// The type of the event: the field `event`, or "message" without one.
    public var type: String

    /// The data: the lines of the fields `data`, joined by U+000A.
    public var data: String

    /// The last event ID: the last field `id` that the server sent up to this event, in this or in an earlier event;
    /// empty without one. A reconnection sends it as `Last-Event-ID`.
    public var id: String

    /// Creates an event.
    public init(type: String = "message", data: String, id: String = "") {
        self.type = type
        self.data = data
        self.id = id
    }
}
