#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decides where a session would otherwise take its defaults: redirects, the disposition of a response, a body that is
/// to be sent again, the place of a download.
///
/// Every method has a default implementation that answers nil: no opinion. The session's policy
/// (`Session.Configuration.policy`) is asked first; where it has no opinion, the request's (`Request.policy`) is; where
/// neither has, the documented default holds. To watch without deciding, attach a `SessionObserver`.
///
/// The methods run in the task's own Swift task, never on an actor or on the engine's loop. What they throw fails the
/// task: a `NetworkError` as it is, anything else as the `underlying` of an error of kind `.policy`.
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

    /// How a challenge of a server or proxy (401, 407) is answered. Asked before the credentials of the URL and of
    /// `credentials`.
    ///
    /// Default: by those.
    @concurrent func answer(
        to challenge: AuthenticationChallenge, for request: Request, of task: AnySessionTask
    ) async throws -> ChallengeDecision?

    /// Decides whether a response is wanted. Called when the head has arrived and before the body is read. While the
    /// policy decides, about 2 MiB of the body are buffered; then the socket waits.
    ///
    /// By default, a response is accepted if its status and content type are accepted.
    @concurrent func disposition(
        of response: ResponseHead, for task: AnySessionTask
    ) async throws -> ResponseDisposition?

    /// A new body for a request whose own can be sent only once and has been: a stream, after a redirect that keeps it
    /// or a challenge.
    ///
    /// Default: none, and the request fails.
    @concurrent func replacementBody(
        for request: Request, of task: AnySessionTask
    ) async throws -> Request.Body?

    /// Where a finished download goes. Asked after `Session.Configuration.destination` and before the task's own.
    ///
    /// Default: as the task says.
    @concurrent func destination(
        for temporaryURL: URL, response: ResponseHead, of task: AnySessionTask
    ) async throws -> URL?
}

extension SessionPolicy {
    /// No opinion.
    @concurrent public func redirect(
        to proposed: Request, after response: ResponseHead, of task: AnySessionTask
    ) async throws -> RedirectDecision? { nil }

    /// No opinion.
    @concurrent public func answer(
        to challenge: AuthenticationChallenge, for request: Request, of task: AnySessionTask
    ) async throws -> ChallengeDecision? { nil }

    /// No opinion.
    @concurrent public func disposition(
        of response: ResponseHead, for task: AnySessionTask
    ) async throws -> ResponseDisposition? { nil }

    /// No opinion.
    @concurrent public func replacementBody(
        for request: Request, of task: AnySessionTask
    ) async throws -> Request.Body? { nil }

    /// No opinion.
    @concurrent public func destination(
        for temporaryURL: URL, response: ResponseHead, of task: AnySessionTask
    ) async throws -> URL? { nil }
}

/// What becomes of a redirect.
public enum RedirectDecision: Sendable {
    /// This request is sent: the one proposed, or another.
    case follow(Request)
    /// The redirect itself is the response; a 3xx is then accepted by the default validation.
    case stop
}

/// What becomes of a response whose head is there.
public enum ResponseDisposition: Sendable, Hashable {
    /// It is taken, if its status and content type are accepted.
    case accept
    /// The transfer ends; the task fails with an error of kind `.cancelled`.
    case cancel
}
