import TernConcurrency

/// Puts a credential on every request and renews it when it is spent: once, however many requests find that out at the
/// same time, and each of them is then sent again, once, with the new one.
///
/// ```swift
/// let tokens = AuthenticationInterceptor(TokenAuthenticator(), credential: stored)
/// configuration.interceptors = [tokens]
/// ```
///
/// The requests that `Authenticator.refresh` itself makes are left alone. A failed refresh fails the requests that
/// waited for it with an error of kind `.authentication`; a request that is cancelled while it waits ends at once, and
/// the refresh goes on for the others.
public final class AuthenticationInterceptor<Scheme: Authenticator>: Interceptor {
    private typealias Issued = CredentialState<Scheme.Credential>.Issued
    private typealias Outcome = Result<Issued, any Error>

    private struct Shared {
        var state: CredentialState<Scheme.Credential>
        var waiters: [Waiter<Outcome>] = []
    }

    private let scheme: Scheme
    private let shared: Lock<Shared>

    /// - Parameters:
    ///   - scheme: How credentials are used and renewed.
    ///   - credential: The first one; nil: it is fetched before the first request.
    ///   - refreshLimit: Refreshes within `refreshWindow` beyond which requests fail. 5 by default.
    ///   - refreshWindow: 30 seconds by default.
    public init(
        _ scheme: Scheme, credential: Scheme.Credential? = nil, refreshLimit: Int = 5,
        refreshWindow: Duration = .seconds(30)
    ) {
        self.scheme = scheme
        shared = Lock(
            Shared(state: CredentialState(credential, limit: max(1, refreshLimit), window: refreshWindow)))
    }

    /// The current credential. Setting it, after a login or logout, counts as a renewal.
    public var credential: Scheme.Credential? {
        get { shared.withLock { $0.state.current?.credential } }
        set { shared.withLock { $0.state.replace(newValue) } }
    }

    /// Sends the request with the credential, and once more with a new one where it is refused.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        // A refresh makes requests of its own, and would wait for itself.
        if RefreshScope.current.contains(ObjectIdentifier(self)) { return try await next(request) }
        let issued = try await credential(for: request) { state, now in
            state.action(now: now, isSpent: scheme.needsRefresh)
        }
        do {
            return try await next(signed(request, issued))
        } catch {
            guard scheme.isRefused(issued.credential, by: error), request.body.isReplayable else { throw error }
            let renewed = try await credential(for: request) { state, now in
                state.action(afterRefusalOf: issued.generation, now: now)
            }
            return try await next(signed(request, renewed))
        }
    }

    private func signed(_ request: Request, _ issued: Issued) -> Request {
        var request = request
        scheme.apply(issued.credential, to: &request)
        return request
    }

    private func credential(
        for request: Request,
        _ decide: (inout CredentialState<Scheme.Credential>, UInt64) -> CredentialState<Scheme.Credential>.Action
    ) async throws(NetworkError) -> Issued {
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
        case .use(let issued):
            return issued
        case .tooMany:
            throw Self.failure("the credential was renewed too often in too short a time", nil, request)
        case .refresh(let spent):
            startRefresh(spent)
        case .wait:
            break
        }
        switch await waiter.wait(cancelled: .failure(CancellationError())) {
        case .success(let issued):
            return issued
        case .failure(let error):
            shared.withLock { shared in shared.waiters.removeAll { $0 === waiter } }
            if Task.isCancelled { throw NetworkError(.cancelled, request: request) }
            throw Self.failure("the credential could not be renewed: \(error)", error, request)
        }
    }

    /// In a Swift task of its own, which ends with the refresh: the request that found the credential spent may be
    /// cancelled, and the others still wait.
    private func startRefresh(_ spent: Scheme.Credential?) {
        Task {
            let outcome: Result<Scheme.Credential, any Error>
            do {
                var scope = RefreshScope.current
                scope.insert(ObjectIdentifier(self))
                outcome = .success(try await RefreshScope.$current.withValue(scope) { try await scheme.refresh(spent) })
            } catch {
                outcome = .failure(error)
            }
            finishRefresh(outcome)
        }
    }

    private func finishRefresh(_ outcome: Result<Scheme.Credential, any Error>) {
        let (waiters, result) = shared.withLock { shared -> ([Waiter<Outcome>], Outcome) in
            defer { shared.waiters = [] }
            switch outcome {
            case .success(let credential):
                return (shared.waiters, .success(shared.state.renewed(credential)))
            case .failure(let error):
                shared.state.refreshFailed()
                return (shared.waiters, .failure(error))
            }
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }

    private static func failure(_ reason: String, _ error: (any Error)?, _ request: Request) -> NetworkError {
        NetworkError(TransferFailure(.authentication, reason, underlying: error), request: request)
    }
}

/// The interceptors whose refresh the current Swift task is part of.
enum RefreshScope {
    @TaskLocal static var current: Set<ObjectIdentifier> = []
}

extension AuthenticationInterceptor: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show the credential.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
