/// Stands between a task and the wire: changes a request, answers in place of a server, looks at the answer, or asks
/// again.
///
/// ```swift
/// struct Signed: Interceptor {
///     func intercept(_ request: Request, next: Next) async throws -> Reply {
///         var request = request
///         request.headers["X-Signature"] = sign(request)
///         return try await next(request)
///     }
/// }
/// ```
///
/// The session's interceptors (`Session.Configuration.interceptors`) stand around the request's own
/// (`Request.interceptors`), in the order of the lists; below them come redirects, authentication and cookies, and the
/// check of status and content type. Whatever is thrown below, a refused status too, is thrown by `next`.
///
/// An interceptor runs in the task's own Swift task, never on an actor or on the engine's loop. Cancelling the task
/// cancels it. What it throws fails the task: a `NetworkError` as it is, anything else as the `underlying` of an error
/// of kind `.interceptor`.
public protocol Interceptor: Sendable {
    /// Gives the reply to a request, most often that of `next`, which may be called any number of times, one call after
    /// the other.
    @concurrent func intercept(_ request: Request, next: Next) async throws -> Reply
}

/// What is behind an interceptor: the other interceptors, and the wire.
public struct Next: Sendable {
    /// The task that is being carried out: identity, label, priority, cancellation.
    public let task: AnySessionTask
    /// What the task was made with: its session, and how its response is delivered.
    let plan: RequestPlan
    let run: @Sendable (Request) async throws(NetworkError) -> Reply

    /// Sends a request and returns its reply, once its head has come and was accepted; of a response that is collected in
    /// memory, once its body has come.
    ///
    /// A second call starts a new attempt and gives up what is left of the one before.
    ///
    /// - Throws: What the interceptors behind threw, or the error of the attempt.
    @concurrent
    public func callAsFunction(_ request: Request) async throws(NetworkError) -> Reply {
        try await run(request)
    }
}

extension Next: CustomReflectable {
    /// The task alone. Without this mirror, `dump` would show the session's configuration.
    public var customMirror: Mirror { Mirror(self, children: ["task": task]) }
}
