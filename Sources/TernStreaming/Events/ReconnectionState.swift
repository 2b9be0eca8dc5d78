import Tern

/// Decides on the end of each connection of an event stream: connect again, and when, or end the stream. Pure.
struct ReconnectionState {
    /// The end of a connection, or of an attempt to make one.
    struct End {
        /// The reason; nil if the server ended the response.
        var failure: NetworkError?
        /// The time for which the connection was open; nil if the attempt failed before.
        var openTime: Duration?
        /// The delay that a refused response asks for with `Retry-After`; nil for none.
        var retryAfter: Duration?
    }

    /// The action that the end of a connection requires.
    enum Action {
        case connect(after: Duration)
        /// Connects when there is a network.
        case connectWithNetwork
        case end(EventStreamEnd)
    }

    private let rules: EventReconnection
    /// Whether the request can be sent again after events.
    private let isRepeatable: Bool
    /// Whether the request can be sent again as long as no event has arrived.
    private let isRepeatableBeforeFirstEvent: Bool
    private var hasHadNoEvent = true
    private var serverDelay: Duration?
    /// The number of connections and attempts in a row that brought no event.
    private var failures = 0
    private var hasEvents = false
    /// Whether the connection brought an ID.
    private var hasID = false

    /// The shortest delay, so that a server with `retry: 0` cannot cause a busy loop.
    static let shortestDelay = Duration.milliseconds(100)

    /// The greatest random addition to a time that the server asks for, so that its clients do not return together.
    private static let addition = Duration.milliseconds(500)

    /// The failures before any byte of a request was sent. Without a network, they are its consequence.
    private static let connectKinds: Set<NetworkError.Kind> = [
        .dns, .connectionFailed, .connectTimedOut, .proxy,
    ]
    /// The failures after which another attempt can succeed. A transfer that was damaged on its way, such as in its
    /// chunks or its compression, is a network error by the standard, like one that was cut.
    private static let kinds: Set<NetworkError.Kind> = [
        .dns, .connectionRefused, .connectionFailed, .queueTimedOut, .connectTimedOut, .idleTimedOut, .attemptTimedOut,
        .totalTimedOut, .connectionLost, .truncatedBody, .malformedResponse, .firstByteTimedOut, .silenceTimedOut,
    ]

    init(_ rules: EventReconnection, method: Request.Method, isReplayable: Bool) {
        self.rules = rules
        isRepeatable = isReplayable && rules.methods.contains(method)
        isRepeatableBeforeFirstEvent = isReplayable && rules.methodsBeforeFirstEvent.contains(method)
    }

    /// Records that events have arrived.
    mutating func receiveEvents() {
        hasEvents = true
        hasHadNoEvent = false
    }

    /// Records that an ID has arrived, with an event or without. Servers that are polled send it alone when there is
    /// nothing new, so that the next request continues from there.
    mutating func receiveID() { hasID = true }

    /// Records the reconnection time of the server.
    mutating func setServerDelay(_ delay: Duration) { serverDelay = min(delay, rules.maximumServerDelay) }

    /// Decides on the end of a connection.
    ///
    /// - Parameters:
    ///   - hasNetwork: False if the machine is known to have no network.
    ///   - random: A number between 0 and 1 from which the delay is computed.
    mutating func decide(_ end: End, hasNetwork: Bool, random: Double) -> Action {
        // An answer without events that ended as it should is an answer.
        let isUnanswered = isRepeatableBeforeFirstEvent && hasHadNoEvent && end.failure != nil
        guard isRepeatable || isUnanswered else {
            return .end(end.failure.map { .failed($0) } ?? .server)
        }
        if let failure = end.failure {
            if !hasNetwork, end.openTime == nil, Self.connectKinds.contains(failure.kind) { return .connectWithNetwork }
            guard isTemporary(failure) else { return .end(.failed(failure)) }
        }
        // For a request that asks for an answer, an open connection and an ID are no progress: a server that accepts it
        // and loses the connection each time would do its work without end.
        let hasLasted = isRepeatable && end.openTime.map { $0 >= rules.maximumDelay } ?? false
        let hasLived = isRepeatable && hasID
        if hasEvents || hasLasted || hasLived {
            failures = 0
        } else {
            failures += 1
            guard failures <= rules.limit else { return .end(.failed(exhausted(end.failure))) }
        }
        hasEvents = false
        hasID = false
        let random = min(max(random, 0), 1)
        if let asked = end.retryAfter {
            return .connect(
                after: max(min(asked, rules.maximumServerDelay), Self.shortestDelay) + Self.addition * random)
        }
        let base = max(serverDelay ?? rules.firstDelay, Self.shortestDelay)
        var bound = base
        for _ in 0..<min(failures, 64) where bound < rules.maximumDelay { bound = bound * 2 }
        return .connect(after: base + min(bound, rules.maximumDelay) * random)
    }

    private func isTemporary(_ failure: NetworkError) -> Bool {
        if failure.kind == .status { return failure.status.map { rules.statuses.contains($0) } ?? false }
        return Self.kinds.contains(failure.kind)
    }

    private func exhausted(_ failure: NetworkError?) -> NetworkError {
        let count = "\(failures) connections in a row brought no event"
        return failure?.adding(count) ?? NetworkError(.noEvents, reason: "the server ended its streams; \(count)")
    }
}
