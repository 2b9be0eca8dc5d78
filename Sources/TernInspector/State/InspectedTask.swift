import Tern

/// One request of a task on the wire, as an inspector keeps it: without its body.
struct InspectedAttempt: Sendable {
    /// The reason why the request was sent.
    enum Cause: String, Sendable {
        case first, redirect, challenge, retry
        /// Tern itself sends the request again, for example after a 421.
        case again
    }

    let cause: Cause
    let method: String
    let url: String
    let headers: Headers
    /// Nanoseconds of `MonotonicClock`.
    let start: UInt64
    var end: UInt64?
    var response: ResponseHead?
    var failure: InspectedFailure?
    var metrics: TaskMetrics?
}

/// An error as an inspector keeps it: its texts, and neither the request nor the body that it refers to.
struct InspectedFailure: Sendable, Equatable {
    let kind: String
    let reason: String
}

/// A task, as an inspector keeps it.
struct InspectedTask: Sendable {
    /// The identity of a task among those of all sessions.
    struct Key: Hashable, Sendable {
        let session: UInt64
        let task: UInt64

        // The number alone tells nearly all apart, and is hashed for each request.
        func hash(into hasher: inout Hasher) { hasher.combine(task) }
    }

    /// The result of a task that has ended.
    struct End: Sendable {
        let time: UInt64
        var response: ResponseHead?
        var failure: InspectedFailure?
        var metrics: TaskMetrics?
    }

    let key: Key
    /// The number of the task in the order in which an inspector has seen tasks, from 1.
    let number: UInt64
    var label: String?
    let method: String
    let url: String
    let priority: Int
    /// Nanoseconds of `MonotonicClock`.
    let start: UInt64
    /// The requests on the wire, oldest first. Empty for a task that a cache has answered.
    var attempts: [InspectedAttempt] = []
    /// The number of requests on the wire that are left out of `attempts`.
    var omittedAttempts = 0
    /// The reason of the next request.
    var nextCause = InspectedAttempt.Cause.first
    var end: End?
    /// The number of the end in the order of ends, from 1; 0 for a task that runs.
    var endNumber: UInt64 = 0
    /// The number of the last change.
    var revision: UInt64 = 0
    /// The handle of a task that runs, for its state and its progress. Given up at its end.
    var handle: AnySessionTask?

    /// The maximum number of requests that are kept of one task. Of more, the first and the last ones.
    static let attemptLimit = 12
    /// The maximum number of bytes of the header fields of one message that are kept.
    static let headLimit = 16 << 10
    /// The maximum number of characters of a URL that are kept.
    static let urlLimit = 4_096

    /// Returns the beginning of a text that is kept.
    static func kept(_ text: String) -> String {
        text.utf8.count <= urlLimit ? text : String(text.prefix(urlLimit)) + "…"
    }

    mutating func add(_ attempt: InspectedAttempt) {
        if attempts.count >= Self.attemptLimit {
            attempts.remove(at: Self.attemptLimit / 2)
            omittedAttempts += 1
        }
        attempts.append(attempt)
    }

    /// Records the end of the last request, unless it is known.
    mutating func endAttempt(
        at now: UInt64, response: ResponseHead? = nil, failure: InspectedFailure? = nil, metrics: TaskMetrics? = nil
    ) {
        guard !attempts.isEmpty, attempts[attempts.count - 1].end == nil else { return }
        let last = attempts.count - 1
        attempts[last].end = now
        if let response { attempts[last].response = response }
        if let failure { attempts[last].failure = failure }
        if let metrics { attempts[last].metrics = metrics }
    }
}
