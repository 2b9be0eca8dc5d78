#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decides in place of a session's defaults: about redirects, challenges, the disposition of a response, a body to send
/// again, and the destination of a download.
///
/// Every method has a default implementation that returns nil, which means no decision. The session's policy
/// (`Session.Configuration.policy`) is asked first, then the request's (`Request.policy`); if both return nil, the
/// documented default applies. To observe without deciding, use a `SessionObserver`.
///
/// The methods run in the task's own Swift task, never on an actor, and on an event loop only if the calling task
/// prefers `Session.executor`. An error that they throw fails the task: a `NetworkError` unchanged, any other error as
/// the `underlying` error of one of kind `.policy`.
public protocol SessionPolicy: Sendable {
    /// Decides whether a redirect is followed, and with which request. Called after the rules of RFC 9110 §15.4 have
    /// produced `proposed`.
    ///
    /// Also called for a redirect that the rules refuse: to a scheme other than http and https, from https to http, to
    /// several locations, beyond `Session.Configuration.maximumRedirects`, or with a body that can be sent only once
    /// and for which ``replacementBody(for:of:)`` gives no other. `proposed` is then the request that was answered.
    /// With `.stop`, such a redirect is the response; with `.follow`, the task fails.
    ///
    /// By default, `Session.Configuration.redirects` decides.
    @concurrent func redirect(
        to proposed: Request, after response: ResponseHead, of task: AnySessionTask
    ) async throws -> RedirectDecision?

    /// Decides how a challenge of a server or proxy (401, 407) is answered. Called before the credentials of the URL
    /// and of `credentials` are used.
    ///
    /// By default, those credentials are used.
    @concurrent func answer(
        to challenge: AuthenticationChallenge, for request: Request, of task: AnySessionTask
    ) async throws -> ChallengeDecision?

    /// Decides whether a response is wanted. Called when the head has arrived and before the body is read. While the
    /// policy decides, about 2 MiB of the body are buffered; then the socket waits.
    ///
    /// A large response can be written to a file instead of memory:
    ///
    /// ```swift
    /// (response.contentLength ?? 0) > 10_000_000 ? .becomeDownload(to: file) : nil
    /// ```
    ///
    /// By default, a response is accepted if its status and content type are accepted.
    @concurrent func disposition(
        of response: ResponseHead, for task: AnySessionTask
    ) async throws -> ResponseDisposition?

    /// Decides whether the session's cache stores a response, and for how long it is fresh. Called when the head of a
    /// response has arrived that the rules of RFC 9111 allow to be stored, including redirects and responses to
    /// background refreshes. A policy never makes a response storable that the rules forbid.
    ///
    /// By default, the response is stored by the rules.
    @concurrent func storing(
        of response: ResponseHead, for task: AnySessionTask
    ) async throws -> ResponseStoring?

    /// Returns a new body for a request whose body can be sent only once and was sent: a stream, after a redirect that
    /// keeps it or a challenge.
    ///
    /// By default there is none, and the request fails.
    @concurrent func replacementBody(
        for request: Request, of task: AnySessionTask
    ) async throws -> Request.Body?

    /// Returns the destination of a finished download. Called after `Session.Configuration.destination` and before the
    /// task's own destination is used.
    ///
    /// By default, the task's own destination applies.
    @concurrent func destination(
        for temporaryURL: URL, response: ResponseHead, of task: AnySessionTask
    ) async throws -> URL?
}

extension SessionPolicy {
    /// Returns nil.
    @concurrent public func redirect(
        to proposed: Request, after response: ResponseHead, of task: AnySessionTask
    ) async throws -> RedirectDecision? { nil }

    /// Returns nil.
    @concurrent public func answer(
        to challenge: AuthenticationChallenge, for request: Request, of task: AnySessionTask
    ) async throws -> ChallengeDecision? { nil }

    /// Returns nil.
    @concurrent public func disposition(
        of response: ResponseHead, for task: AnySessionTask
    ) async throws -> ResponseDisposition? { nil }

    /// Returns nil.
    @concurrent public func storing(
        of response: ResponseHead, for task: AnySessionTask
    ) async throws -> ResponseStoring? { nil }

    /// Returns nil.
    @concurrent public func replacementBody(
        for request: Request, of task: AnySessionTask
    ) async throws -> Request.Body? { nil }

    /// Returns nil.
    @concurrent public func destination(
        for temporaryURL: URL, response: ResponseHead, of task: AnySessionTask
    ) async throws -> URL? { nil }
}

/// The decision about a redirect.
public enum RedirectDecision: Sendable {
    /// Send this request: the proposed one, or another.
    case follow(Request)
    /// Return the redirect as the response. The default validation then accepts its 3xx status.
    case stop
}

/// The decision about a response whose head has arrived.
public enum ResponseDisposition: Sendable, Hashable {
    /// Accept the response, if its status and content type are accepted.
    case accept
    /// End the transfer. The task fails with an error of kind `.cancelled`.
    case cancel
    /// Write the body of a task that collects it in memory to a file instead, if the status and content type are
    /// accepted.
    ///
    /// The file is written and moved as that of a download with these options: `Session.Configuration.destination` and
    /// ``SessionPolicy/destination(for:response:of:)`` are asked first, and `.fileMoved` is published. Then the body
    /// counts as empty: a task for data gives no bytes, an optional is nil, and another type fails with an error of
    /// kind `.decoding`; the file stays. `Response.file` and `ResponseHead.file` name the file. Limits of bodies in
    /// memory do not apply. The decision has no effect on downloads and streams, which hold no body in memory.
    case becomeDownload(to: URL, options: Download.Options = Download.Options())
}

/// The decision about storing a response in the session's cache.
public struct ResponseStoring: Sendable, Hashable {
    /// A Boolean value that indicates whether the response is stored.
    public var isAllowed: Bool
    /// The greatest time for which the stored response is fresh after its arrival; nil for that of the rules.
    public var maximumLifetime: Duration?
    /// Texts that are stored with the response, for the caller's own use (`HTTPCache.Entry.userInfo`).
    public var userInfo: [String: String]

    /// Creates a decision.
    public init(isAllowed: Bool = true, maximumLifetime: Duration? = nil, userInfo: [String: String] = [:]) {
        self.isAllowed = isAllowed
        self.maximumLifetime = maximumLifetime
        self.userInfo = userInfo
    }

    /// The response is not stored.
    public static let forbid = ResponseStoring(isAllowed: false)
}

/// Observes the stages of a session's requests without changing them, except for the fields that it can add on the
/// wire. A session can have several observers (`Session.Configuration.observers`).
///
/// For one task the stages are: `willSend`, `fields`, `didReceive(interim:)`, `didReceive(_:of:)`, then for a redirect
/// or a challenge its own call and `willSend` again, otherwise `didReceive(bytes:)`, `didValidate` and `didDecode`;
/// `willRetry` comes before the `willSend` of a request that an interceptor sends again. `didFail` takes the place of
/// the stages that a request does not reach.
///
/// Every method has an empty default implementation. Observers are called synchronously, where the event happens: in
/// the task's own Swift task, or in that of the caller that caused the event. They run on the session's event loop only
/// if that Swift task prefers `Session.executor`. An observer must return soon and never block. The invalidation is
/// observed last, before `Session.finishTasksAndInvalidate()` and `invalidateAndCancel()` return. Each call follows the
/// task's own handling of the stage. For one task, calls come in the order of its stages.
public protocol SessionObserver: Sendable {
    /// Called before a request is sent: the first one of a task, one after a redirect or a challenge, or one that an
    /// interceptor sends again.
    func willSend(_ request: Request, of task: AnySessionTask)

    /// Returns header fields to add to one request on the wire, such as the `traceparent` of a trace. Called after
    /// `willSend`, for each request that it is called for.
    ///
    /// The fields replace those of the request with the same names, and those of observers earlier in the list. They
    /// are not part of the request: they follow no redirect, no cache distinguishes requests by them, and no error has
    /// them. Do not return secrets, because a redirect can lead to any host. A field that cannot be sent fails the task
    /// with `.invalidRequest`. Empty by default.
    func fields(for request: Request, of task: AnySessionTask) -> Headers

    /// Called when a request that `willSend` was called for failed: before its response has arrived, or while the body
    /// was collected in memory. The task fails, unless an interceptor sends the request again.
    ///
    /// Not called for a response that the validation refuses, which `didValidate` reports, and not for a stream or a
    /// download that fails after its head, which ends its task.
    func didFail(_ error: NetworkError, of task: AnySessionTask)

    /// Called for each interim response: 102, 103 (Early Hints, RFC 8297) and others with a status of 1xx, in the order
    /// in which they arrive and before `didReceive(_:of:)`. Use the `Link` fields of a 103 to fetch other resources
    /// early.
    ///
    /// 100 (Continue) and 101 are not reported. A server can send at most 100 interim responses before a response; more
    /// are a malformed response. Their fields do not become part of the response, and their cookies are not stored.
    /// URLSession does not report interim responses. Each attempt of a task reports its own. The call comes in the
    /// task's own Swift task, and the response waits for its return.
    func didReceive(interim response: ResponseHead, of task: AnySessionTask)

    /// Called when the head of a response has arrived, with any status, including redirects and challenges.
    func didReceive(_ response: ResponseHead, of task: AnySessionTask)

    /// Called when bytes of the final response's body have arrived, after decompression: for each portion that a
    /// stream, a download or a task with a policy reads, and otherwise once for the whole body. Not called for the
    /// bodies of redirects and challenges, which are discarded. The call comes in the Swift task that reads the body.
    func didReceive(bytes: Data, of task: AnySessionTask)

    /// Called when the final response was checked by `ResponseValidation`: before the body of a download or a stream is
    /// read, and after the body was collected in memory.
    ///
    /// - Parameter error: The error that the task, or the interceptor around the request, receives; nil for an accepted
    ///   response.
    func didValidate(_ response: ResponseHead, error: NetworkError?, of task: AnySessionTask)

    /// Called when the body of a task that collects it in memory was decoded.
    ///
    /// - Parameters:
    ///   - result: The decoded value, or the error of the task.
    ///   - body: The bytes that the decoder received.
    func didDecode(_ result: Result<any Sendable, NetworkError>, from body: Data, of task: AnySessionTask)

    /// Called before an interceptor sends a request again, such as `RetryInterceptor` after its delay.
    ///
    /// A request that Tern itself sends again on a new connection is not reported; `TaskMetrics.transactions` counts
    /// it.
    ///
    /// - Parameter error: The failure of the attempt before; nil if its response was accepted.
    func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask)

    /// Called when a redirect is followed.
    func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask)

    /// Called when a server or proxy asks for credentials, before a policy or provider is asked.
    func didReceive(_ challenge: AuthenticationChallenge, of task: AnySessionTask)

    /// Called when no pin of a trust policy that is `isReportOnly` matches the certificates of a new connection. The
    /// report names the expected and the found ones.
    func didFindUnpinned(_ report: String, of task: AnySessionTask)

    /// Called for each event of a task or of the session: the events of `TaskRegistry.events`, without a bound and
    /// without loss. The `TaskRegistry.Completion` of a task that has a value contains it.
    func didObserve(_ event: TaskRegistry.Event)
}

extension SessionObserver {
    /// Does nothing.
    public func willSend(_ request: Request, of task: AnySessionTask) {}
    /// Returns no fields.
    public func fields(for request: Request, of task: AnySessionTask) -> Headers { [:] }
    /// Does nothing.
    public func didFail(_ error: NetworkError, of task: AnySessionTask) {}
    /// Does nothing.
    public func didReceive(interim response: ResponseHead, of task: AnySessionTask) {}
    /// Does nothing.
    public func didReceive(_ response: ResponseHead, of task: AnySessionTask) {}
    /// Does nothing.
    public func didReceive(bytes: Data, of task: AnySessionTask) {}
    /// Does nothing.
    public func didValidate(_ response: ResponseHead, error: NetworkError?, of task: AnySessionTask) {}
    /// Does nothing.
    public func didDecode(_ result: Result<any Sendable, NetworkError>, from body: Data, of task: AnySessionTask) {}
    /// Does nothing.
    public func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask) {}
    /// Does nothing.
    public func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {}
    /// Does nothing.
    public func didReceive(_ challenge: AuthenticationChallenge, of task: AnySessionTask) {}
    /// Does nothing.
    public func didFindUnpinned(_ report: String, of task: AnySessionTask) {}
    /// Does nothing.
    public func didObserve(_ event: TaskRegistry.Event) {}
}

/// The policies of a request, in the order in which they are asked.
struct Policies: Sendable {
    private let list: [any SessionPolicy]

    init?(_ session: (any SessionPolicy)?, _ request: (any SessionPolicy)?) {
        list = [session, request].compactMap { $0 }
        if list.isEmpty { return nil }
    }

    /// Returns the first decision.
    func ask<Answer: Sendable>(
        about request: Request, _ question: @Sendable (any SessionPolicy) async throws -> Answer?
    ) async throws(NetworkError) -> Answer? {
        for policy in list {
            do {
                if let answer = try await question(policy) { return answer }
            } catch let error as NetworkError {
                throw error
            } catch is CancellationError {
                throw NetworkError(.cancelled, request: request)
            } catch {
                let reason = "the policy \(type(of: policy)) failed: \(error)"
                throw NetworkError(FailureCause(.policy, reason, underlying: error), request: request)
            }
        }
        return nil
    }
}
