import TernConcurrency

/// Adds a credential to every request and renews it when a server refuses it. Concurrent refusals share one renewal,
/// and each refused request is then sent once more with the new credential.
///
/// ```swift
/// let tokens = AuthenticationInterceptor(TokenAuthenticator(), credential: stored)
/// configuration.interceptors = [tokens]
/// ```
///
/// A ``CredentialProvider`` answers the challenge of a 401 or 407 instead, with Digest, Basic or Bearer, and the
/// session remembers the answer. This interceptor surrounds the request: it needs no challenge, can write any field,
/// and acts on the error of the final response. If it sets `Authorization`, the session leaves a 401 to it.
///
/// Requests that `Authenticator.refresh` makes are sent without the interceptor. A failed refresh fails the requests
/// that waited for it with an error of kind `.authentication`, or, if the refresh could not reach its server or got no
/// answer, with an error of that kind, such as `.connectionRefused`. A request that is cancelled while it waits ends at
/// once, and the refresh continues for the others.
public final class AuthenticationInterceptor<Scheme: Authenticator>: Interceptor {
    private typealias VersionedCredential = CredentialState<Scheme.Credential>.VersionedCredential
    /// The end of a refresh, for the requests that waited for it.
    private enum Outcome: Sendable {
        case use(VersionedCredential)
        case failed(any Error)
        /// Another credential was set during the refresh: decide again.
        case replaced
        /// The request was cancelled while it waited.
        case cancelled
    }

    private struct Shared {
        var state: CredentialState<Scheme.Credential>
        var waiters: [Waiter<Outcome>] = []
    }

    private let scheme: Scheme
    private let origins: OriginSet
    private let shared: Lock<Shared>

    /// - Parameters:
    ///   - scheme: The use and renewal of credentials.
    ///   - credential: The first credential; nil to fetch one before the first request.
    ///   - origins: The origins that receive the credential. A request to another one is sent without it. With a text
    ///     that is no URL, every request fails with an error of kind `.invalidRequest`. `.all`, the default, is right
    ///     only if no URL of a request comes from a server. In any case, the credential does not follow a server to
    ///     another origin: after a redirect, and in a durable transfer that the server moves.
    ///   - refreshLimit: The number of refreshes within `refreshWindow` beyond which requests fail. 5 by default.
    ///   - refreshWindow: The time in which refreshes are counted. 30 seconds by default.
    public init(
        _ scheme: Scheme, credential: Scheme.Credential? = nil,
        origins: Session.Configuration.HeaderOrigins = .all, refreshLimit: Int = 5,
        refreshWindow: Duration = .seconds(30)
    ) {
        self.scheme = scheme
        self.origins = OriginSet(origins)
        shared = Lock(
            Shared(state: CredentialState(credential, limit: max(1, refreshLimit), window: refreshWindow)))
    }

    /// The current credential. Setting it, for example after a login or logout, counts as a renewal: the result of a
    /// refresh that runs at that time is dropped.
    ///
    /// A request that is refused after that is sent once more with the new credential. Cancel the requests of one user,
    /// for example with `session.cancelAll()`, before you set the credential of another.
    public var credential: Scheme.Credential? {
        get { shared.withLock { $0.state.current?.credential } }
        set { shared.withLock { $0.state.replace(newValue) } }
    }

    /// Returns true.
    public var waitsOnlyInNext: Bool { true }

    /// Sends the request with the credential, and once more with a new one if a server refuses it.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        // A refresh sends requests of its own, which must not wait for the refresh.
        if RefreshScope.current.contains(ObjectIdentifier(self)) { return try await next(request) }
        if let problem = origins.problem {
            throw NetworkError(FailureCause(.invalidRequest, "origins: \(problem)"), request: request)
        }
        guard !request.hasLeftOrigin, origins.contains(request.target) else { return try await next(request) }
        // Asked without the lock, because the caller's code may use this interceptor.
        let expiring = shared.withLock { $0.state.current }.flatMap { current in
            scheme.needsRefresh(current.credential) ? current.generation : nil
        }
        let versioned = try await credential(for: request, next) { state, now in
            state.action(now: now, expiring: expiring)
        }
        do {
            return try await next(signed(request, versioned))
        } catch {
            // The origin of a redirect never had the credential, so that its refusal says nothing about it.
            let isOwnOrigin = error.response.map { $0.target.origin == request.target.origin } ?? true
            guard isOwnOrigin, scheme.isRefused(versioned.credential, by: error), request.body.isReplayable else {
                throw error
            }
            let renewed = try await credential(for: request, next) { state, now in
                state.action(afterRefusalOf: versioned.generation, now: now)
            }
            return try await next(signed(request, renewed))
        }
    }

    private func signed(_ request: Request, _ versioned: VersionedCredential) -> Request {
        var request = request
        scheme.apply(versioned.credential, to: &request)
        return request
    }

    private func credential(
        for request: Request, _ next: Next,
        _ decide: (inout CredentialState<Scheme.Credential>, UInt64) -> CredentialState<Scheme.Credential>.Action
    ) async throws(NetworkError) -> VersionedCredential {
        let now = MonotonicClock.nanoseconds()
        let waiter = Waiter<Outcome>()
        let action = shared.withLock { shared in
            let action = decide(&shared.state, now)
            switch action {
            case .use, .tooMany: break
            case .refresh, .wait: shared.waiters.append(waiter)
            }
            return action
        }
        switch action {
        case .use(let versioned):
            return versioned
        case .tooMany:
            throw Self.failure("the credential was renewed too often in too short a time", underlying: nil, of: request)
        case .refresh(let oldCredential):
            startRefresh(oldCredential)
        case .wait:
            break
        }
        // `try?`: the work throws nothing.
        let outcome = try? await next.cancellable { await waiter.wait(cancelled: Outcome.cancelled) }
        switch outcome ?? .cancelled {
        case .use(let versioned):
            return versioned
        case .replaced:
            return try await credential(for: request, next, decide)
        case .cancelled:
            shared.withLock { shared in shared.waiters.removeAll { $0 === waiter } }
            throw NetworkError(.cancelled, request: request)
        case .failed(let error):
            throw Self.failure("the credential could not be renewed: \(error)", underlying: error, of: request)
        }
    }

    /// Renews the credential in a Swift task of its own, which ends with the refresh: the request that started it can
    /// be cancelled while others still wait.
    private func startRefresh(_ oldCredential: Scheme.Credential?) {
        Task {
            let outcome: Result<Scheme.Credential, any Error>
            do {
                var scope = RefreshScope.current
                scope.insert(ObjectIdentifier(self))
                outcome = .success(
                    try await RefreshScope.$current.withValue(scope) { try await scheme.refresh(oldCredential) })
            } catch {
                outcome = .failure(error)
            }
            finishRefresh(outcome)
        }
    }

    private func finishRefresh(_ outcome: Result<Scheme.Credential, any Error>) {
        let (waiters, end) = shared.withLock { shared -> ([Waiter<Outcome>], Outcome) in
            defer { shared.waiters = [] }
            let end: Outcome =
                switch outcome {
                case .success(let credential): shared.state.renewed(credential).map(Outcome.use) ?? .replaced
                case .failure(let error): shared.state.refreshFailed() ? .failed(error) : .replaced
                }
            return (shared.waiters, end)
        }
        for waiter in waiters { waiter.resume(returning: end) }
    }

    private static func failure(_ reason: String, underlying error: (any Error)?, of request: Request) -> NetworkError {
        // An outage says nothing about the credential.
        let outage = (error as? NetworkError).flatMap { NetworkError.Kind.outages.contains($0.kind) ? $0.kind : nil }
        return NetworkError(FailureCause(outage ?? .authentication, reason, underlying: error), request: request)
    }
}

/// The interceptors whose refresh the current Swift task belongs to.
enum RefreshScope {
    @TaskLocal static var current: Set<ObjectIdentifier> = []
}

extension AuthenticationInterceptor: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show the credential.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Applies, examines and renews one kind of credential, for example an access token with its refresh token.
public protocol Authenticator: Sendable {
    /// The type of the credential.
    associatedtype Credential: Sendable

    /// Adds a credential to a request, most often as `Authorization`.
    func apply(_ credential: Credential, to request: inout Request)

    /// Returns a new credential in place of a refused or expiring one; the argument is nil if there is none yet.
    ///
    /// Calls never overlap. Requests made here bypass the interceptor in every session, so that no refresh waits for
    /// itself.
    @concurrent func refresh(_ credential: Credential?) async throws -> Credential

    /// Returns whether a credential is about to expire and must be renewed before its use. False by default.
    func needsRefresh(_ credential: Credential) -> Bool

    /// Returns whether an error means that the server refused the credential. True for status 401 by default.
    func isRefused(_ credential: Credential, by error: NetworkError) -> Bool
}

extension Authenticator {
    /// Returns false: a credential is used until a server refuses it.
    public func needsRefresh(_ credential: Credential) -> Bool { false }

    /// Returns whether the status is 401 (RFC 9110 §15.5.2).
    public func isRefused(_ credential: Credential, by error: NetworkError) -> Bool { error.status == 401 }
}

/// Decides which credential is current, and when it is renewed.
struct CredentialState<Credential: Sendable>: Sendable {
    /// A credential with its generation. A refusal of an older generation renews nothing.
    struct VersionedCredential: Sendable {
        let credential: Credential
        let generation: Int
    }

    enum Action: Sendable {
        case use(VersionedCredential)
        /// Renew the credential. Other requests wait.
        case refresh(Credential?)
        case wait
        /// Fail: the number of refreshes in the window shows that they do not help.
        case tooMany
    }

    private enum Refresh {
        case none
        /// The current credential is being renewed.
        case running
        /// Another credential was set during the refresh, whose result is dropped.
        case outdated
    }

    private(set) var current: VersionedCredential?
    private var refresh = Refresh.none
    private var generation = 0
    /// The start times of the last refreshes, in nanoseconds.
    private var starts: [UInt64] = []
    private let limit: Int
    private let window: UInt64

    init(_ credential: Credential?, limit: Int, window: Duration) {
        current = credential.map { VersionedCredential(credential: $0, generation: 0) }
        self.limit = limit
        self.window = window.wholeNanoseconds
    }

    /// Returns the action for a request that is about to be sent.
    ///
    /// - Parameter expiring: The generation of a credential that is about to expire; nil if the current one is not.
    mutating func action(now: UInt64, expiring: Int?) -> Action {
        if let current, refresh != .running, current.generation != expiring { return .use(current) }
        return refresh == .none ? start(now) : .wait
    }

    /// Returns the action for a request whose credential was refused.
    mutating func action(afterRefusalOf refused: Int, now: UInt64) -> Action {
        if let current, refresh != .running, current.generation > refused { return .use(current) }
        return refresh == .none ? start(now) : .wait
    }

    private mutating func start(_ now: UInt64) -> Action {
        starts.removeAll { [window] start in now >= start && now - start >= window }
        guard starts.count < limit else { return .tooMany }
        starts.append(now)
        refresh = .running
        return .refresh(current?.credential)
    }

    /// Ends the refresh with its credential. Returns nil, and drops it, if another one was set meanwhile: it can be
    /// that of another user.
    mutating func renewed(_ credential: Credential) -> VersionedCredential? {
        guard endRefresh() else { return nil }
        generation += 1
        let versioned = VersionedCredential(credential: credential, generation: generation)
        current = versioned
        return versioned
    }

    /// Ends the refresh, and keeps the old credential. The next request tries again. Returns false if another
    /// credential was set meanwhile, so that the failure says nothing about it.
    @discardableResult
    mutating func refreshFailed() -> Bool { endRefresh() }

    private mutating func endRefresh() -> Bool {
        defer { refresh = .none }
        return refresh != .outdated
    }

    /// Sets a credential from outside: after a login, or nil after a logout.
    mutating func replace(_ credential: Credential?) {
        generation += 1
        current = credential.map { VersionedCredential(credential: $0, generation: generation) }
        if refresh == .running { refresh = .outdated }
    }
}
