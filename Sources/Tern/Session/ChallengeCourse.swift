/// The way of a request past challenges: who is asked for a credential, and in which order.
struct ChallengeCourse {
    private var rules = AuthenticationRules()
    private var hasBegun = false

    /// What is to be sent after a 401 or 407; nil when it stands.
    mutating func next(after arrival: Arrival, _ record: TaskRecord) async throws(NetworkError) -> RequestPlan? {
        let (plan, head) = (arrival.plan, arrival.head)
        let source: AuthenticationChallenge.Source = head.status == 401 ? .server : .proxy
        // A 407 is the proxy's only if the proxy received the request. Any other server that sends a 407 asks for
        // credentials that are not meant for it.
        if source == .proxy, !plan.isForwarded { return nil }
        // Who writes the field answers for it.
        if plan.headers.contains(source.authorizationField) { return nil }
        let (cache, owner) = (plan.context.authorizations, plan.credentialOwner)
        let known = cache.authorization(for: plan.request.target, owner: owner, source: source)
        if !hasBegun, let known { rules.sent(known, to: plan.request.target) }
        hasBegun = true
        let action = rules.action(for: head)
        if case .renew(let authorization) = action {
            return try await again(authorization, plan, record)
        }
        if let known { cache.forget(known.credential, for: plan.request.target, owner: owner, source: source) }
        guard case .ask(let challenge) = action else { return nil }
        plan.context.observe { $0.didReceive(challenge, of: AnySessionTask(record)) }
        return try await answer(challenge, plan, record)
    }

    private mutating func answer(
        _ challenge: AuthenticationChallenge, _ plan: RequestPlan, _ record: TaskRecord
    ) async throws(NetworkError) -> RequestPlan? {
        let request = plan.request
        let decision = try await plan.policies?.ask(about: request) { policy in
            try await policy.answer(to: challenge, for: request, of: AnySessionTask(record))
        }
        let credential: Credential?
        switch decision {
        case .reject?: return nil
        case .cancel(let error)?: throw plan.authenticationError(error)
        case .send(let other)?: return try plan.replacing(other)
        case .use(let chosen)?: credential = chosen
        case .performDefault?, nil: credential = try await defaultCredential(for: challenge, plan)
        }
        guard let credential else { return nil }
        let authorization: Authorization?
        do {
            authorization = try rules.answer(challenge, with: credential)
        } catch {
            throw plan.authenticationError(error)
        }
        guard let authorization else { return nil }
        return try await again(authorization, plan, record)
    }

    /// That of the URL, once, then the provider's.
    private func defaultCredential(
        for challenge: AuthenticationChallenge, _ plan: RequestPlan
    ) async throws(NetworkError) -> Credential? {
        if let own = Credential(of: plan.request.target) { return challenge.source == .server ? own : nil }
        guard let provider = plan.request.credentials ?? plan.context.configuration.credentials else { return nil }
        do {
            return try await provider.credential(for: challenge, of: plan.request)
        } catch {
            throw plan.authenticationError(error)
        }
    }

    /// The same request with its answer; nil when its body is gone, and the challenge is the response.
    private func again(
        _ authorization: Authorization, _ plan: RequestPlan, _ record: TaskRecord
    ) async throws(NetworkError) -> RequestPlan? {
        let request = plan.request
        if request.body.isReplayable { return plan.answering(authorization) }
        guard let body = try await plan.replacementBody(for: request, record) else { return nil }
        return plan.sending(body).answering(authorization)
    }
}
