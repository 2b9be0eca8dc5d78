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

/// The decision of a session policy about a challenge.
public enum ChallengeDecision: Sendable {
    /// Sends this request in place of the one that was challenged.
    case send(Request)
    /// Fails the task with this error. An error other than a `NetworkError` becomes the `underlying` error of one of
    /// kind `.authentication`.
    case cancel(any Error)
    /// Answers the challenge with this credential.
    case use(Credential)
    /// Answers as if no policy existed: with the URL's own credential, then with the provider's.
    case performDefault
    /// Leaves the challenge unanswered. The 401 or 407 is the response.
    case reject
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
