public import Tern

/// The settings of a stream of server-sent events.
public struct EventStreamOptions: Sendable {
    /// The last event ID of an earlier stream, to continue after that event. Sent as `Last-Event-ID`; empty by default,
    /// which sends none. An ID that a header field cannot have, because of a control character or of more than 8 KiB,
    /// is not sent, and neither is one of the server.
    public var lastEventID = ""
    /// The time of each attempt from its start to the head of its response. 60 seconds by default; nil for no limit. It
    /// includes the wait for a connection, redirects and interceptors.
    public var firstByteTimeout: Duration? = .seconds(60)
    /// The time without any byte from the server, after which an open connection counts as lost. Comments count as
    /// bytes, and servers send them for this purpose. 60 seconds by default; nil for no limit. The time during which
    /// nobody reads the events does not count, and neither does a pause of the task.
    public var silenceTimeout: Duration? = .seconds(60)
    /// The rules for connecting again.
    public var reconnection = EventReconnection()
    /// The maximum number of bytes of a line. 16 MiB by default. A longer line ends the stream with an error of kind
    /// `.tooLarge`.
    public var maximumLineSize = 16 << 20
    /// The maximum number of bytes of the data of an event. 16 MiB by default. A larger event ends the stream with an
    /// error of kind `.tooLarge`.
    public var maximumEventSize = 16 << 20
    /// The clock of the time limits and of the delays. `ContinuousClock` by default.
    public var clock: any Clock<Duration> = ContinuousClock()

    /// Creates settings with the defaults of their properties.
    public init() {}
}

/// The rules for connecting again after the end of an event stream (WHATWG HTML standard §9.2.3).
///
/// A connection that the server ended, that was lost, that was damaged, that was silent for too long, or that could not
/// be made is made again, with the last event ID as `Last-Event-ID`. A status or content type that is refused, 204 (No
/// Content), an untrusted server and an event that is too large end the stream.
///
/// The delay is the server's `retry`, or `firstDelay`, and a random addition. The bound of the addition is the delay
/// itself, and doubles with each attempt in a row that brought no event, up to `maximumDelay`. Clients that lost their
/// server together do not return together.
///
/// While the session's `Reachability` reports no network, an attempt that could not connect does not count. The next
/// one follows as soon as there is a network.
public struct EventReconnection: Sendable {
    /// The methods whose requests are sent again. Only GET by default. A body that can be sent only once is never sent
    /// again.
    public var methods: Set<Request.Method> = [.get]
    /// The methods whose requests are sent again after a failure as long as no event has arrived. None by default. With
    /// `[.post]` and the statuses 429 and 503, a request is sent again until a busy server accepts it, up to ``limit``
    /// times.
    ///
    /// The reader never sees two beginnings, but the server can do its work again: a request is also repeated after a
    /// time limit and a lost connection, which do not tell whether the server had accepted it. Each repetition counts
    /// for ``limit``, also after a long connection. The end of a response without events ends the stream.
    public var methodsBeforeFirstEvent: Set<Request.Method> = []
    /// The delay if the server has named none with `retry`. 3 seconds by default. The shortest delay is 0.1 seconds.
    public var firstDelay: Duration = .seconds(3)
    /// The highest bound of the random addition. 30 seconds by default.
    public var maximumDelay: Duration = .seconds(30)
    /// The longest delay that a server can ask for. 1 hour by default. A longer `retry` counts as this one.
    public var maximumServerDelay: Duration = .seconds(3_600)
    /// The number of reconnections in a row without an event, without an `id` and without a connection that lasted for
    /// `maximumDelay`, after which the last failure is the stream's error. 10 by default; `.max` for no limit. For the
    /// requests of ``methodsBeforeFirstEvent``, a connection that lasted or that brought an `id` alone counts, too.
    public var limit = 10
    /// The refused statuses after which the request is sent again. None by default, as the standard says. 502, 503 and
    /// 504 are useful behind a proxy whose servers restart. The next attempt follows the time in
    /// `Retry-After`, up to `maximumServerDelay` and with up to 0.5 seconds at random, in place of the delays above.
    public var statuses: Set<Int> = []

    /// Creates rules with the defaults of their properties.
    public init() {}

    /// Rules that never connect again.
    public static var never: Self {
        var rules = Self()
        rules.methods = []
        rules.methodsBeforeFirstEvent = []
        return rules
    }
}
