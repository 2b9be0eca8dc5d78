import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Changes requests and responses between a task and the network: it can change a request, answer in place of a server,
/// examine the response, or send the request again.
///
/// ```swift
/// struct Signed: Interceptor {
///     let keys: KeyStore
///
///     func intercept(_ request: Request, next: Next) async throws -> Reply {
///         var request = request
///         request.headers["X-Signature"] = try await keys.signature(of: request)
///         return try await next(request)
///     }
/// }
/// ```
///
/// One that changes requests without waiting is a ``RequestAdapter``, which is shorter and costs less.
///
/// The session's interceptors (`Session.Configuration.interceptors`) surround those of the request
/// (`Request.interceptors`), in the order of the lists. Redirects, authentication, cookies, and the check of status and
/// content type happen below them. `next` throws every error from below, including that of a refused status.
///
/// An interceptor runs in the Swift task that executes the request: the caller's own for a call, and one that belongs
/// to the session's task for a handle, a download, a stream, and a call with an interceptor whose ``waitsOnlyInNext``
/// is false. It never runs on an actor, and on an event loop only if the calling task prefers `Session.executor`.
/// Cancelling the session's task cancels a Swift task that belongs to it; in the caller's, it ends the waits of
/// ``Next``. An error that an interceptor throws fails the task: a `NetworkError` unchanged, any other error as the
/// `underlying` error of one of kind `.interceptor`.
public protocol Interceptor: Sendable {
    /// Returns the reply to a request, usually that of `next`. `next` can be called any number of times, one call after
    /// the other.
    @concurrent func intercept(_ request: Request, next: Next) async throws -> Reply

    /// A Boolean value that indicates whether the interceptor can change a request or a response, or answer in place of
    /// the server. true by default.
    ///
    /// Such an interceptor can decide for which user a request is sent, for example by a token, and what that user
    /// sees. So the responses in a cache belong to its session alone (`Session.Configuration.partition`). Return false
    /// only if it waits, sends a request again or reports, as `RetryInterceptor` and all others of Tern do, except
    /// `AuthenticationInterceptor`.
    var changesRequests: Bool { get }

    /// A Boolean value that indicates whether the interceptor waits only for `next`, and in ``Next/sleep(for:on:)`` and
    /// ``Next/cancellable(_:)``. false by default.
    ///
    /// These waits end when the session's task is cancelled or its time is over, so a call needs no Swift task besides
    /// the caller's, which makes it cheaper. With true, `AnySessionTask.cancel()`, `Session.invalidateAndCancel()` and
    /// `Timeouts.total` end no other wait of the interceptor.
    var waitsOnlyInNext: Bool { get }
}

extension Interceptor {
    /// Returns true.
    public var changesRequests: Bool { true }

    /// Returns false.
    public var waitsOnlyInNext: Bool { false }
}

/// An interceptor that changes requests and cannot wait, for example one that adds a header.
///
/// ```swift
/// struct Versioned: RequestAdapter {
///     func adapt(_ request: Request) throws -> Request {
///         var request = request
///         request.headers["X-App-Version"] = "7.1"
///         return request
///     }
/// }
/// ```
///
/// It stands in the same lists as other interceptors, and acts in the order of the list. The interceptors before it can
/// send a request several times: it is then called for each. The session calls ``adapt(_:)`` alone, so write no
/// `intercept` for it.
public protocol RequestAdapter: Interceptor {
    /// Returns the request to send in place of another one. It is called where the task executes, never on an actor,
    /// and must not block.
    ///
    /// - Throws: Any error, which fails the task as that of an interceptor does.
    func adapt(_ request: Request) throws -> Request
}

extension RequestAdapter {
    /// Sends the adapted request.
    public func intercept(_ request: Request, next: Next) async throws -> Reply { try await next(adapt(request)) }

    /// Returns true.
    public var waitsOnlyInNext: Bool { true }
}

/// The rest of the way of a request after an interceptor, as `InterceptorPassage` goes it. A protocol, because its steps
/// send the request, and a request refers to its interceptors.
protocol InterceptorChain: AnyObject, Sendable {
    /// The running task.
    var control: any TaskControl { get }

    /// Returns the reply to a request, from the interceptor of an index on.
    func reply(to first: Request, from firstIndex: Int) async throws(NetworkError) -> Reply
}

/// Calls the rest of the chain after an interceptor: the other interceptors, and the network.
public struct Next: Sendable {
    let chain: any InterceptorChain
    /// The index of the next interceptor.
    let index: Int

    /// The running task, with its identity, label, priority and cancellation.
    public var task: AnySessionTask { AnySessionTask(chain.control) }

    /// The time that is left of the limit `Timeouts.total`, at least zero; nil without a limit. An interceptor that
    /// waits can give up earlier, with a better error than that of the limit.
    public var timeLeft: Duration? { chain.control.timeLeft }

    /// Sends a request and returns its reply after its head was accepted. If the response is collected in memory, its
    /// body is complete, too.
    ///
    /// A second call sends the request again and discards the previous response.
    ///
    /// - Throws: The errors of the interceptors after this one, or the error of the request.
    @concurrent
    public func callAsFunction(_ request: Request) async throws(NetworkError) -> Reply {
        try await chain.reply(to: request, from: index)
    }
}

extension Next {
    /// Waits for a time. The wait ends early when the session's task, or the calling Swift task, is cancelled, and at
    /// the limit `Timeouts.total`.
    ///
    /// - Throws: `CancellationError` after a cancellation; a ``NetworkError`` of kind `.totalTimedOut` at the limit.
    @concurrent
    public func sleep(for duration: Duration, on clock: any Clock<Duration> = ContinuousClock()) async throws {
        try await cancellable { try await clock.sleepWithoutDescriptor(for: duration) }
    }

    /// Does work that waits for something, such as a token, and returns its value. The work runs in a Swift task of its
    /// own, which is cancelled when the session's task, or the calling Swift task, is cancelled, and at the limit
    /// `Timeouts.total`.
    ///
    /// - Throws: The error of the work; a ``NetworkError`` of kind `.totalTimedOut` if the limit has ended it.
    @concurrent
    public func cancellable<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await chain.control.cancellable(work)
    }
}

extension Next: CustomReflectable {
    /// The task only. Without this mirror, `dump` would show the session's configuration.
    public var customMirror: Mirror { Mirror(self, children: ["task": task]) }
}

/// The reply that an interceptor receives from `next` and returns: the head of an accepted response, and its body if it
/// is in memory.
public struct Reply: Sendable {
    /// The status, header fields and URL.
    public var head: ResponseHead
    /// The response of the server, an `IncomingResponse`; nil for a reply made by an interceptor. Without its type,
    /// because a response refers to its task.
    let response: (any Sendable)?
    /// The end of the response of the server; nil while its body is still to be read.
    private let outcome: AttemptOutcome?
    /// The body that an interceptor has set; nil for that of the response.
    private(set) var given: Data?

    /// Creates the reply of a response.
    init(_ response: any Sendable, head: ResponseHead, outcome: AttemptOutcome?) {
        self.response = response
        self.head = head
        self.outcome = outcome
    }

    /// Creates a reply that shares the response of another task.
    init(sharing other: Reply) {
        head = other.head
        response = nil
        outcome = nil
        given = other.body ?? Data()
    }

    /// Creates a reply without a server, for example from a cache or for a test.
    public init(to request: Request, status: Int = 200, headers: Headers = [:], body: Data = Data()) {
        head = ResponseHead(status: status, version: .http11, target: request.target, headers: headers)
        response = nil
        outcome = nil
        given = body
    }

    /// The whole body of a response that is collected in memory; nil for a download or a stream, whose body is read
    /// after the interceptors. Setting it replaces the body for every kind of task.
    public var body: Data? {
        get { given ?? outcome?.body }
        set { given = newValue }
    }

    /// The status code.
    public var status: Int { head.status }

    /// The header fields.
    public var headers: Headers { head.headers }

    /// The metrics of a response that is collected in memory.
    public var metrics: TaskMetrics? { outcome?.metrics }
}

extension Reply: CustomStringConvertible, CustomReflectable {
    /// The status and the URL, without secrets and without the body.
    public var description: String { "\(head)" }

    /// The head without secrets. Without this mirror, `dump` would show the body.
    public var customMirror: Mirror { Mirror(self, children: ["head": head]) }
}
