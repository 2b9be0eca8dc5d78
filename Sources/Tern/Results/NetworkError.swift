#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The error of a failed request, transfer or task. It tells what failed, on what, and why.
///
/// Every call that sends a request throws this type. A few calls without a request, such as `CookieStore.insert` and
/// `FormEncoder`, throw errors of their own. Its texts never contain secrets: no header values, no user information,
/// and no query values.
public struct NetworkError: Error, Sendable {
    // A reference, so that the success path of every `throws(NetworkError)` call moves only one word.
    private final class Storage: Sendable {
        let fields: Fields
        init(_ fields: Fields) { self.fields = fields }
    }

    /// The parts of an error.
    struct Fields: Sendable {
        var kind: Kind
        var reason: String
        var method: Request.Method?
        var target: Target?
        /// The request of the caller, a `Request`. Without its type, because a request refers to rules that throw errors.
        var request: (any Sendable)?
        var response: ResponseHead?
        var body = Data()
        var metrics: TaskMetrics?
        var underlying: (any Error)?
        var taskID: TaskID?
        var sessionID: Session.ID?
        var label: String?
        var resumeData: ResumeData?
        var attempts = 1
        var attemptsDuration: Duration?
        var coding: JSONCoding?
        /// Whether the server stated that it has not processed the request.
        var isStatedUnprocessed = false
        var http2Code: UInt32?
    }

    private var storage: Storage
    /// The maximum number of characters of a reason. A reason can quote bytes from a server; this type makes all of it
    /// printable.
    private static let reasonLimit = 4_096

    // Nothing that makes an error is inlined: an asynchronous function would keep room for its fields in its frame,
    // which lasts as long as the call.
    @inline(never)
    package init(
        _ kind: Kind, method: Request.Method? = nil, target: Target? = nil, reason: String, body: Data = Data(),
        underlying: (any Error)? = nil
    ) {
        let reason = reason.printable(limit: Self.reasonLimit)
        var fields = Fields(kind: kind, reason: reason, method: method, target: target)
        fields.body = body
        fields.underlying = underlying
        storage = Storage(fields)
    }

    @inline(never)
    init(_ fields: Fields) {
        var fields = fields
        fields.reason = fields.reason.printable(limit: Self.reasonLimit)
        storage = Storage(fields)
    }

    /// The request of the caller, a `Request`; nil if none could be created.
    var untypedRequest: (any Sendable)? { storage.fields.request }

    @inline(never)
    func with(_ change: (inout Fields) -> Void) -> NetworkError {
        var copy = self
        var fields = storage.fields
        change(&fields)
        copy.storage = Storage(fields)
        return copy
    }

    @inline(never)
    package func identified(task: TaskID, session: Session.ID, label: String?) -> NetworkError {
        with { fields in
            fields.taskID = task
            fields.sessionID = session
            fields.label = label ?? fields.label
        }
    }

    @inline(never)
    package func identified(session: Session.ID) -> NetworkError {
        with { $0.sessionID = session }
    }

    @inline(never)
    package func adding(_ reason: String) -> NetworkError {
        with { $0.reason += "; \(reason.printable(limit: Self.reasonLimit))" }
    }

    /// Returns the error of the last of several attempts, with the number and the duration of all attempts.
    @inline(never)
    package func ending(attempts: Int, in duration: Duration) -> NetworkError {
        with { fields in
            fields.attempts = attempts
            fields.attemptsDuration = duration
            fields.reason += "; \(attempts) attempts failed in \(duration.inSeconds)"
        }
    }

    @inline(never)
    package func carrying(_ resumeData: ResumeData?) -> NetworkError {
        with { $0.resumeData = resumeData }
    }

    @inline(never)
    package func carrying(_ metrics: TaskMetrics) -> NetworkError {
        with { $0.metrics = $0.metrics ?? metrics }
    }

    /// Returns the error with the coding for its body.
    @inline(never)
    package func carrying(_ coding: JSONCoding) -> NetworkError { with { $0.coding = coding } }

    /// The coding of the session; nil for an error without one.
    var coding: JSONCoding? { storage.fields.coding }

    /// Whether an interceptor, a policy or a credential provider failed.
    var isThrownByHooks: Bool { kind == .interceptor || kind == .policy || kind == .authentication }

    /// Returns this error as a cancellation. After a task was cancelled, the cancellation is the cause of any error
    /// that such code throws.
    var asCancellation: NetworkError {
        with { fields in
            fields.kind = .cancelled
            fields.reason = FailureCause.cancelled.reason
        }
    }

    /// The kind of the failure.
    public var kind: Kind { storage.fields.kind }
    /// One sentence that says what failed and with which host. It is safe for logs, because it contains no control
    /// characters.
    public var reason: String { storage.fields.reason }
    /// The head of the response, if it arrived before the failure.
    public var response: ResponseHead? { storage.fields.response }
    /// The start of the response's body, if it arrived before the failure. A refused status has at most the session's
    /// `errorBodyLimit` bytes.
    public var body: Data { storage.fields.body }
    /// The metrics up to the failure.
    public var metrics: TaskMetrics? { storage.fields.metrics }
    /// The number of attempts, including this one. Greater than 1 if a `RetryInterceptor` gave up after retries;
    /// otherwise 1, also for a cancelled task.
    public var attempts: Int { storage.fields.attempts }
    /// The duration of all attempts, including the waits between them; nil without a retry and for a cancelled task.
    public var attemptsDuration: Duration? { storage.fields.attemptsDuration }
    /// The underlying error, for example of a decoder, the file system, or the caller's own body sequence.
    public var underlying: (any Error)? { storage.fields.underlying }
    /// The task that failed; nil if the failure came before a task existed.
    public var taskID: TaskID? { storage.fields.taskID }
    /// The session of the task.
    public var sessionID: Session.ID? { storage.fields.sessionID }
    /// The label of the task.
    public var label: String? { storage.fields.label }
    /// The data to continue a failed or cancelled download.
    public var resumeData: ResumeData? { storage.fields.resumeData }

    /// A Boolean value that indicates whether the task was cancelled: by its handle, by the Swift task that ran it, or
    /// by its session.
    public var isCancelled: Bool { kind == .cancelled }
    /// Whether the limit on the whole of the task or of the attempt was exceeded.
    package var isOutOfTime: Bool { kind == .totalTimedOut || kind == .attemptTimedOut }
    /// The time limit that was exceeded; nil for other kinds.
    public var timeoutPhase: Timeouts.Phase? {
        switch kind {
        case .queueTimedOut: .queue
        case .connectTimedOut: .connect
        case .idleTimedOut: .idle
        case .attemptTimedOut: .attempt
        case .totalTimedOut: .total
        default: nil
        }
    }
    /// A Boolean value that indicates whether the server certainly has not processed the request of the last attempt: it
    /// stated so (REFUSED_STREAM, GOAWAY or HTTP_1_1_REQUIRED, RFC 9113 §8.7), or no connection was made, so that nothing
    /// was sent. Such a request can be sent again, whatever its method. False if it is not known.
    public var wasNotProcessed: Bool {
        switch kind {
        case .dns, .connectionRefused, .connectionFailed, .connectTimedOut, .queueTimedOut, .untrustedServer,
            .pinMismatch:
            true
        default: storage.fields.isStatedUnprocessed
        }
    }
    /// The error code with which the server reset the stream or ended the connection over HTTP/2, for example 11 for
    /// ENHANCE_YOUR_CALM (RFC 9113 §7); nil for other failures, other protocols, and on Apple's systems.
    public var http2Code: UInt32? { storage.fields.http2Code }
    /// The status of the response, if it arrived.
    public var status: Int? { response?.status }
    /// A Boolean value that indicates whether the server refused the request because there is no such resource: with
    /// the status 404 or 410.
    public var isNotFound: Bool { kind == .status && (status == 404 || status == 410) }
    /// A Boolean value that indicates whether the host could not be found or no route leads to it, which is how a
    /// missing network shows. Nothing was sent. A wrong name looks the same, and a server that is down does not.
    public var isOffline: Bool { kind == .dns || kind == .connectionFailed }
}

extension NetworkError: CustomStringConvertible {
    /// One line that says what failed, on what and why, without secrets. Control characters are written as `\u{1B}`.
    public var description: String { description(revealing: .none) }

    /// Returns the text of ``description`` with the revealed values of query parameters.
    public func description(revealing revealed: RevealedValues) -> String {
        let fields = storage.fields
        var text = fields.kind.rawValue
        if let method = fields.method, let target = fields.target {
            text += ": \(method.rawValue.printable(limit: 80)) \(target.description(revealing: revealed))"
        } else if let method = fields.method {
            text += ": \(method.rawValue.printable(limit: 80))"
        }
        if let label = fields.label { text += " [\(label.printable())]" }
        text += ": \(fields.reason)"
        return text
    }

    /// A short form for metric labels: the kind, and the status if there is one.
    public var shortDescription: String {
        if kind == .status, let status { "\(kind.rawValue)-\(status)" } else { kind.rawValue }
    }
}

extension NetworkError: LocalizedError {
    /// The same as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}

extension NetworkError: CustomReflectable {
    /// The parts of ``description``. Without this mirror, `dump` would show the request and the response with their
    /// secrets.
    public var customMirror: Mirror {
        let fields = storage.fields
        let request = fields.method.flatMap { method in fields.target.map { "\(method) \($0)" } }
        let children: KeyValuePairs<String, Any> = [
            "kind": kind, "reason": reason, "request": request as Any, "status": status as Any, "label": label as Any,
            "taskID": taskID as Any, "underlying": underlying as Any,
        ]
        return Mirror(self, children: children)
    }
}

extension Duration {
    /// The time in seconds with three digits after the point, such as `4.010 seconds`, for a text.
    var inSeconds: String {
        let (seconds, attoseconds) = components
        let milliseconds = attoseconds / 1_000_000_000_000_000
        return "\(seconds).\("\(milliseconds + 1_000)".dropFirst()) seconds"
    }
}
