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
///     func intercept(_ request: Request, next: Next) async throws -> Reply {
///         var request = request
///         request.headers["X-Signature"] = sign(request)
///         return try await next(request)
/// }
/// }
/// ```
///
/// The session's interceptors (`Session.Configuration.interceptors`) surround those of the request
/// (`Request.interceptors`), in the order of the lists. Redirects, authentication, cookies, and the check of status and
/// content type happen below them. `next` throws every error from below, including that of a refused status.
///
/// An interceptor runs in the task's own Swift task, never on an actor, and on an event loop only if the calling task
/// prefers `Session.executor`. Cancelling the task cancels it. An error that it throws fails the task: a `NetworkError`
/// unchanged, any other error as the `underlying` error of one of kind `.interceptor`.
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
}

extension Interceptor {
    /// Returns true.
    public var changesRequests: Bool { true }
}

/// Calls the rest of the chain after an interceptor: the other interceptors, and the network.
public struct Next: Sendable {
    /// The running task, with its identity, label, priority and cancellation.
    public let task: AnySessionTask
    /// The request that the task was created with.
    let prepared: PreparedRequest
    let run: @Sendable (Request) async throws(NetworkError) -> Reply

    /// Sends a request and returns its reply after its head was accepted. If the response is collected in memory, its
    /// body is complete, too.
    ///
    /// A second call starts a new attempt and discards the response of the one before.
    ///
    /// - Throws: The errors of the interceptors behind, or the error of the attempt.
    @concurrent
    public func callAsFunction(_ request: Request) async throws(NetworkError) -> Reply {
        try await run(request)
    }
}

extension Next: CustomReflectable {
    /// The task only. Without this mirror, `dump` would show the session's configuration.
    public var customMirror: Mirror { Mirror(self, children: ["task": task]) }
}

/// Runs the interceptors of one task, outermost first, around the function that sends its requests.
struct InterceptorChain: Sendable {
    typealias Innermost = @Sendable (PreparedRequest) async throws(NetworkError) -> IncomingResponse

    let prepared: PreparedRequest
    let record: TaskRecord
    let innermost: Innermost

    func run() async throws(NetworkError) -> IncomingResponse {
        let interceptors = prepared.registry.configuration.interceptors + prepared.request.interceptors
        let latest = LatestResponse()
        let reply: Reply
        do throws(NetworkError) {
            reply = try await call(interceptors[...], with: prepared.request, latest: latest)
        } catch {
            await latest.take()?.discard()
            throw error
        }
        if reply.response == nil { await latest.take()?.discard() }
        return await reply.incomingResponse(for: prepared)
    }

    private func call(
        _ interceptors: ArraySlice<any Interceptor>, with request: Request, latest: LatestResponse
    ) async throws(NetworkError) -> Reply {
        guard let first = interceptors.first else { return try await send(request, latest: latest) }
        let rest = interceptors.dropFirst()
        let next = Next(task: AnySessionTask(record), prepared: prepared) { request throws(NetworkError) in
            try await call(rest, with: request, latest: latest)
        }
        do {
            return try await first.intercept(request, next: next)
        } catch let error as NetworkError {
            throw error
        } catch is CancellationError {
            throw NetworkError(.cancelled, request: request)
        } catch {
            let reason = "the interceptor \(type(of: first)) failed: \(error)"
            throw NetworkError(TransferFailure(.interceptor, reason, underlying: error), request: request)
        }
    }

    private func send(_ request: Request, latest: LatestResponse) async throws(NetworkError) -> Reply {
        await latest.take()?.discard()
        let prepared = try prepared.replacing(request)
        if let previous = latest.begin() {
            record.registry.observe { $0.willRetry(request, after: previous.error, of: AnySessionTask(record)) }
        }
        do throws(NetworkError) {
            let response = try await innermost(prepared)
            latest.keep(response)
            return Reply(response)
        } catch {
            latest.fail(error)
            throw error
        }
    }
}

/// The latest response, whose body can still be arriving when an interceptor sends the request again.
private final class LatestResponse: Sendable {
    /// The end of an attempt.
    struct Attempt: Sendable {
        /// nil for an accepted response.
        var error: NetworkError?
    }

    private struct State {
        var response: IncomingResponse?
        /// The last attempt; nil before the first.
        var attempt: Attempt?
    }

    private let state = Lock(State())

    func take() -> IncomingResponse? { state.withLock { $0.response.take() } }
    func keep(_ response: IncomingResponse) { state.withLock { $0.response = response } }
    func fail(_ error: NetworkError) { state.withLock { $0.attempt = Attempt(error: error) } }

    /// Begins an attempt. Returns the end of the one before; nil for the first.
    func begin() -> Attempt? {
        state.withLock { state in
            defer { state.attempt = Attempt() }
            return state.attempt
        }
    }
}

/// The reply that an interceptor receives from `next` and returns: the head of an accepted response, and its body if it
/// is in memory.
public struct Reply: Sendable {
    /// The status, header fields and URL.
    public var head: ResponseHead
    /// The response of the server; nil for a reply made by an interceptor.
    var response: IncomingResponse?
    private var given: Data?

    init(_ response: IncomingResponse) {
        self.response = response
        head = response.head
    }

    /// Creates a reply that shares the response of another task.
    init(sharing other: Reply) {
        head = other.head
        given = other.body ?? Data()
    }

    /// Creates a reply without a server, for example from a cache or for a test.
    public init(to request: Request, status: Int = 200, headers: Headers = [:], body: Data = Data()) {
        head = ResponseHead(status: status, version: .http11, target: request.target, headers: headers)
        given = body
    }

    /// The whole body of a response that is collected in memory; nil for a download or a stream, whose body is read
    /// after the interceptors. Setting it replaces the body for every kind of task.
    public var body: Data? {
        get { given ?? response?.outcome?.body }
        set { given = newValue }
    }

    /// The status code.
    public var status: Int { head.status }

    /// The header fields.
    public var headers: Headers { head.headers }

    /// The metrics of a response that is collected in memory.
    public var metrics: TaskMetrics? { response?.outcome?.metrics }

    /// Returns the response with which the task continues.
    func incomingResponse(for prepared: PreparedRequest) async -> IncomingResponse {
        if let given {
            let metrics = response?.outcome?.metrics ?? TaskMetrics()
            let prepared = response?.request ?? prepared
            await response?.discard()
            return IncomingResponse(customBody: given, request: prepared, head: head, metrics: metrics)
        }
        guard var response else {
            return IncomingResponse(customBody: Data(), request: prepared, head: head, metrics: TaskMetrics())
        }
        response.head = head
        return response
    }
}

extension Reply: CustomStringConvertible, CustomReflectable {
    /// The status and the URL, without secrets and without the body.
    public var description: String { "\(head)" }

    /// The head without secrets. Without this mirror, `dump` would show the body.
    public var customMirror: Mirror { Mirror(self, children: ["head": head]) }
}
