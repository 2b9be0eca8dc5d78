#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension RequestPlan {
    /// Whose credentials the request uses: what is remembered of one is never sent for another.
    var credentialOwner: AuthenticationCache.Owner {
        if let own = Credential(of: request.target) { return .url(own) }
        return request.credentialOwner.map { .request($0) } ?? .session
    }

    /// A Boolean value that indicates whether a proxy receives the request whole. A Unix socket replaces every proxy.
    var isForwarded: Bool {
        let socket = request.unixSocketPath ?? context.configuration.unixSocketPath
        return socket == nil && context.transport.forwardsToProxy(request.target)
    }

    /// Adds what this session's requests were let in with, as far as the caller has written nothing of the kind. One
    /// branch for a session that was never challenged.
    func addAuthorization(to order: inout TransferOrder, _ body: PreparedBody) throws(NetworkError) {
        for source in [AuthenticationChallenge.Source.server, .proxy] {
            // A nonce for this request, though others may have used it up meanwhile.
            var own = answer?.source == source ? answer : nil
            guard !headers.contains(source.authorizationField),
                let known = own
                    ?? context.authorizations.authorization(
                        for: request.target, owner: credentialOwner, source: source)
            else { continue }
            let hash = try known.bodyDigest.map { algorithm throws(NetworkError) in
                try bodyHash(body, algorithm)
            }
            let field =
                own?.field(method: request.method, target: request.target, bodyHash: hash ?? [])
                ?? context.authorizations.field(
                    for: request.target, owner: credentialOwner, source: source, method: request.method,
                    bodyHash: hash ?? [])
            if let field { order.headers[field.name] = field.value }
        }
    }

    /// Remembers the answer that a request was let in with, and the next nonce if the server names it (RFC 7616 §3.5).
    ///
    /// Not before: a server may take a nonce once, and another request would be let in with it in this one's place.
    func learnAuthorization(from head: ResponseHead) {
        let cache = context.authorizations
        if let answer, head.status != answer.source.status {
            cache.remember(answer.afterOneUse, for: request.target, owner: credentialOwner)
        }
        for source in [AuthenticationChallenge.Source.server, .proxy] {
            cache.take(
                information: head.headers[source.informationField], for: request.target, owner: credentialOwner,
                source: source)
        }
    }

    private func bodyHash(
        _ body: PreparedBody, _ algorithm: DigestFunction.Algorithm
    ) throws(NetworkError) -> [UInt8] {
        guard let bytes = body.bytesInMemory else {
            let reason = "the server wants the body's hash in the head (auth-int), which is there for data alone"
            throw NetworkError(TransferFailure(.authentication, reason), request: request)
        }
        return DigestFunction.hash(Array(bytes), algorithm)
    }

    /// What is sent before anybody asks, where the provider says so; remembered like what was asked for.
    func prepareAuthorization() async throws(NetworkError) {
        guard let provider = request.credentials ?? context.configuration.credentials,
            !headers.contains("Authorization"),
            context.authorizations.authorization(for: request.target, owner: credentialOwner) == nil
        else { return }
        do {
            guard let credential = try await provider.preemptiveCredential(for: request) else { return }
            let authorization = try Authorization(preemptive: credential)
            context.authorizations.remember(authorization, for: request.target, owner: credentialOwner)
        } catch {
            throw authenticationError(error)
        }
    }

    func authenticationError(_ error: any Error) -> NetworkError {
        if let error = error as? NetworkError { return error }
        if error is CancellationError { return NetworkError(.cancelled, request: request) }
        let reason = "no credential could be had: \(error)"
        return NetworkError(TransferFailure(.authentication, reason, underlying: error), request: request)
    }
}
