import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension PreparedRequest {
    /// The owner of the credentials that the request uses. The credentials of one owner are never sent for another.
    var credentialOwner: AuthenticationCache.Owner {
        if let own = Credential(of: request.target) { return .url(own) }
        return request.credentialOwner.map { .request($0) } ?? .session
    }

    /// Whether a proxy receives the request whole. A Unix socket replaces every proxy.
    var isForwarded: Bool {
        // A connection for another protocol passes every proxy through a tunnel.
        if upgrade != nil { return false }
        let socket = request.unixSocketPath ?? registry.configuration.unixSocketPath
        return socket == nil && registry.transport.forwardsToProxy(request.target)
    }

    /// Adds the authorization that the server or the proxy accepted before, unless the caller wrote the field.
    func addAuthorization(to message: inout WireRequest.Message, _ body: PreparedBody) throws(NetworkError) {
        for source in [AuthenticationChallenge.Source.server, .proxy] {
            // The nonce of this request's challenge, even if other requests have used it meanwhile.
            var own = challengeAnswer?.source == source ? challengeAnswer : nil
            guard !headers.contains(source.authorizationField) else { continue }
            let remembered = registry.authorizations.authorization(
                for: request.target, owner: credentialOwner, source: source)
            if own == nil, source == .server, let fields = sessionFields {
                guard let chosen = fields.authorization else { continue }
                if chosen.credential != remembered?.credential { own = chosen }
            }
            guard let known = own ?? remembered else { continue }
            let hash = try known.bodyDigest.map { algorithm throws(NetworkError) in
                try bodyHash(body, algorithm)
            }
            let field =
                own?.field(method: request.method, target: request.target, bodyHash: hash ?? [])
                ?? registry.authorizations.field(
                    for: request.target, owner: credentialOwner, source: source, method: request.method,
                    bodyHash: hash ?? [])
            if let field { message.headers[field.name] = field.value }
        }
    }

    /// Remembers the answer that was accepted, and the next nonce if the server names one (RFC 7616 §3.5).
    ///
    /// Called only after the response: a server may accept a nonce once, and another request could use it first.
    func rememberAuthorization(from head: ResponseHead) {
        let cache = registry.authorizations
        if let challengeAnswer, head.status != challengeAnswer.source.status {
            cache.remember(challengeAnswer.afterOneUse, for: request.target, owner: credentialOwner)
        }
        for source in [AuthenticationChallenge.Source.server, .proxy] {
            cache.update(
                from: head.headers[source.informationField], for: request.target, owner: credentialOwner,
                source: source)
        }
    }

    private func bodyHash(
        _ body: PreparedBody, _ algorithm: DigestFunction.Algorithm
    ) throws(NetworkError) -> [UInt8] {
        guard let bytes = body.bytesInMemory else {
            let reason =
                "the server wants the hash of the body in the head (auth-int), which is known only for a body in memory"
            throw NetworkError(FailureCause(.authentication, reason), request: request)
        }
        return DigestFunction.hash(Array(bytes), algorithm)
    }

    /// Asks the credential provider for a credential to send before a challenge, and remembers it. The credential of
    /// the URL goes before it.
    func prepareAuthorization(of task: TaskRecord) async throws(NetworkError) {
        guard let provider = request.credentials ?? registry.configuration.credentials,
            !headers.contains("Authorization"), Credential(of: request.target) == nil,
            registry.authorizations.authorization(for: request.target, owner: credentialOwner) == nil
        else { return }
        do {
            let given = try await withinTime(of: task) { [request] in
                try await provider.preemptiveCredential(for: request)
            }
            guard let credential = given else { return }
            let authorization = try Authorization(preemptive: credential)
            registry.authorizations.remember(authorization, for: request.target, owner: credentialOwner)
        } catch {
            throw authenticationError(error)
        }
    }

    /// Asks a credential provider. Its time counts for the time limits, and it is cancelled when one is reached, and
    /// together with the task.
    ///
    /// - Parameter attempt: The time of the attempt that was challenged.
    func withinTime(
        of task: TaskRecord, after attempt: Duration = .zero, _ ask: @escaping @Sendable () async throws -> Credential?
    ) async throws -> Credential? {
        var timeouts = timeouts(of: task)
        timeouts.spent += attempt
        guard let end = timeouts.end else { return try await task.cancellable(ask) }
        return try await task.cancellable { [self, timeouts] in
            try await firstCredential(within: end.after, else: timeouts.credentialTimedOut(end.limit), ask)
        }
    }

    private func firstCredential(
        within rest: Duration, else failure: FailureCause, _ ask: @escaping @Sendable () async throws -> Credential?
    ) async throws -> Credential? {
        try await withThrowingTaskGroup(of: Credential??.self) { group in
            group.addTask { .some(try await ask()) }
            group.addTask { [clock = registry.clock] in
                try await clock.sleepWithoutDescriptor(for: rest)
                return nil
            }
            defer { group.cancelAll() }
            if case .some(.some(let credential)) = try await group.next() { return credential }
            throw NetworkError(failure, request: request)
        }
    }

    /// Returns the public error of a credential that could not be obtained or sent.
    func authenticationError(_ error: any Error) -> NetworkError {
        if let error = error as? NetworkError { return error }
        if error is CancellationError { return NetworkError(.cancelled, request: request) }
        let reason = "no credential is available: \(error)"
        return NetworkError(FailureCause(.authentication, reason, underlying: error), request: request)
    }
}

extension Timeouts {
    /// The failure of a request for which no credential was available in time.
    fileprivate func credentialTimedOut(_ limit: Phase) -> FailureCause {
        let time = (limit == .attempt ? attempt : total).map { "\($0)" } ?? "its limit"
        return FailureCause(
            limit == .attempt ? .attemptTimedOut : .totalTimedOut,
            "not done within \(time): no credential was available")
    }
}
