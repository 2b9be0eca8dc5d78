import TernConcurrency

/// Sends a request, and then each one that follows it: after a redirect, a challenge (401, 407), a refused expectation
/// (417) or a misdirected request (421). Returns the final response.
final class FollowUpStage: Stage {
    private let next: any Stage

    init(next: any Stage) {
        self.next = next
    }

    @inline(__always)
    func response(to request: PreparedRequest, of task: TaskRecord) async throws(NetworkError) -> IncomingResponse {
        let registry = task.registry
        var first = request
        if registry.hasCredentials || request.request.credentials != nil {
            first = try await authorized(request, task)
        }
        let response = try await next.response(to: first, of: task)
        if !response.head.mayBeFollowed, !first.hasPolicy, registry.observers.isEmpty {
            return response
        }
        return try await followUp(response, to: first, of: task)
    }

    /// Asks for a credential to send before a challenge. Returns the request with the time that is left.
    @concurrent
    private func authorized(
        _ request: PreparedRequest, _ task: TaskRecord
    ) async throws(NetworkError) -> PreparedRequest {
        let start = MonotonicClock.nanoseconds()
        try await request.prepareAuthorization(of: task)
        let spent = Duration.nanoseconds(Int64(clamping: MonotonicClock.nanoseconds() &- start))
        return request.limitingTime(spent: request.timeSpent + spent)
    }

    /// Sends each request that follows the response to the first one. Returns the final response.
    @concurrent
    private func followUp(
        _ firstResponse: IncomingResponse, to first: PreparedRequest, of task: TaskRecord
    ) async throws(NetworkError) -> IncomingResponse {
        task.meter.publishWhole()
        let steps = FollowUpSteps(record: task)
        var (request, response) = (first, firstResponse)
        var rules = FollowUpRules(maximumRedirects: task.registry.configuration.maximumRedirects)
        var mayFollow = response.head.mayBeFollowed
        rules.addTime(first.timeSpent)
        while mayFollow {
            // The time of an attempt that is still open contains that of the caller's code.
            let start = response.outcome == nil ? nil : MonotonicClock.nanoseconds()
            guard let following = try await steps.nextRequest(after: &response, rules: &rules) else { break }
            if let start { rules.addTime(.nanoseconds(Int64(clamping: MonotonicClock.nanoseconds() &- start))) }
            rules.addTime(of: await response.readRest())
            // A request that waited in the cache for an equal one has spent that time.
            rules.addTime(response.request.timeSpent - request.timeSpent)
            request = following.limitingTime(spent: rules.timeSpent)
            response = try await next.response(to: request, of: task)
            mayFollow = response.head.mayBeFollowed
        }
        if mayFollow || !rules.history.isEmpty {
            response.head = response.head.redirected(by: rules.history)
            task.receive(response.head)
        }
        if let policies = first.policies { try await steps.applyDisposition(of: policies, to: &response) }
        if !task.registry.observers.isEmpty, let body = response.wholeBody, !body.isEmpty {
            task.registry.observe { $0.didReceive(bytes: body, of: AnySessionTask(task)) }
        }
        return response
    }
}

/// The steps between a response and the request that follows it. `FollowUpRules` decides. The steps ask the policies
/// and the credential provider, and create the request.
private struct FollowUpSteps: Sendable {
    let record: TaskRecord

    /// Asks the policies whether the task wants the body of its final response, and where.
    ///
    /// - Throws: An error of kind `.cancelled` if it does not want it.
    func applyDisposition(of policies: Policies, to response: inout IncomingResponse) async throws(NetworkError) {
        let head = response.head
        let disposition = try await policies.ask(about: response.request.request) { policy in
            try await policy.disposition(of: head, for: AnySessionTask(record))
        }
        switch disposition {
        case nil, .accept:
            break
        case .cancel:
            let failure = FailureCause(.cancelled, "the policy does not want the response")
            throw await response.error(failure, readsBody: false)
        case .becomeDownload(let file, let options):
            guard response.request.delivery == .collected, !response.isStoppedRedirect else { return }
            response = response.becomingDownload(DownloadPlace(file: file, options: options))
        }
    }

    /// Returns the request that follows a response; nil if the response is final.
    func nextRequest(
        after response: inout IncomingResponse, rules: inout FollowUpRules
    ) async throws(NetworkError) -> PreparedRequest? {
        switch action(after: response, rules: &rules) {
        case .deliver:
            return nil
        case .redirect(let step):
            guard let next = try await redirect(to: step, after: &response) else { return nil }
            rules.recordRedirect(response.head)
            record.registry.observe { [head = response.head] in
                $0.didRedirect(to: next, after: head, of: AnySessionTask(record))
            }
            return try response.request.following(next)
        case .refuse(let failure):
            let stops = redirects(of: response.request.request).stops(atRefused: failure.kind)
            try await deliverRedirect(&response, otherwiseFailWith: failure, sessionStops: stops)
            return nil
        case .renew(let authorization):
            return try await sendAgain(response.request, with: authorization)
        case .reconnect:
            return try await sendAgainOnNewConnection(response.request)
        case .dropExpectation(let request):
            return try await sendAgain(request)
        case .ask(let challenge):
            // The attempt that was challenged counts, once it has ended.
            let attempt = Duration.nanoseconds(Int64(clamping: response.outcome?.metrics.activeTime ?? 0))
            return try await answer(challenge, to: response.request, after: attempt, rules: &rules)
        }
    }

    private func action(after response: IncomingResponse, rules: inout FollowUpRules) -> FollowUpRules.Action {
        let (request, head) = (response.request, response.head)
        if head.status == 421 { return rules.misdirected() }
        if head.status == 417 { return request.withoutExpectation().map { .dropExpectation($0) } ?? .deliver }
        guard let source = AuthenticationChallenge.Source(status: head.status) else {
            return rules.redirect(
                after: head, to: request.upgrade?.locations(head.headers.values(for: "Location")), of: request.request,
                headers: request.headers)
        }
        // A 407 comes from the proxy only if the proxy received the request whole. Any other server that sends a 407
        // asks for credentials that are not meant for it.
        if source == .proxy, !request.isForwarded { return .deliver }
        // The caller wrote the field and handles the challenge.
        if request.headers.contains(source.authorizationField) { return .deliver }
        let (cache, owner, target) = (record.registry.authorizations, request.credentialOwner, request.request.target)
        let sent = cache.authorization(for: target, owner: owner, source: source)
        let action = rules.challenge(head, sent: sent, target: target)
        if case .renew = action { return action }
        if let sent { cache.forget(sent.credential, for: target, owner: owner, source: source) }
        return action
    }

    // MARK: Redirects

    private func redirects(of request: Request) -> Session.Configuration.Redirects {
        request.redirects ?? record.registry.configuration.redirects
    }

    /// Returns the request to follow a redirect with; nil if the redirect is delivered as the final response.
    private func redirect(
        to step: RedirectRules.Step, after response: inout IncomingResponse
    ) async throws(NetworkError) -> Request? {
        let stops = redirects(of: response.request.request).stops(at: step.target, response.request.request)
        guard let proposed = try await proposedRequest(for: step, after: response) else {
            let reason = "the redirect to \(step.target) keeps the body, which can be sent only once"
            try await deliverRedirect(
                &response, otherwiseFailWith: FailureCause(.redirect, reason), sessionStops: stops)
            return nil
        }
        switch try await decision(on: proposed, after: response) {
        case .follow(let other)?: return other
        case nil where !stops: return proposed
        case .stop?, nil:
            response.stopRedirect()
            return nil
        }
    }

    /// Delivers a redirect that cannot be followed as the final response if a policy or, without one, the session
    /// decides so. Otherwise, fails.
    private func deliverRedirect(
        _ response: inout IncomingResponse, otherwiseFailWith failure: FailureCause, sessionStops stops: Bool
    ) async throws(NetworkError) {
        switch try await decision(on: response.request.request, after: response) {
        case nil where stops: response.stopRedirect()
        case .stop?: response.stopRedirect()
        case .follow?, nil: throw await response.error(failure)
        }
    }

    private func decision(
        on proposed: Request, after response: IncomingResponse
    ) async throws(NetworkError) -> RedirectDecision? {
        try await response.request.policies?.ask(about: response.request.request) { [head = response.head] policy in
            try await policy.redirect(to: proposed, after: head, of: AnySessionTask(record))
        }
    }

    /// Returns the request that the rules propose: the answered request with their changes; nil if it has a body that
    /// can be sent only once and has no replacement.
    private func proposedRequest(
        for step: RedirectRules.Step, after response: IncomingResponse
    ) async throws(NetworkError) -> Request? {
        var request = response.request.request
        request.method = step.method
        request.updateTrust(forRedirectTo: step.target)
        request.target = step.target
        request.headers = step.headers
        if let own = request.clientHeaders, own.origin != step.target.origin {
            request.headers = own.removed(
                from: step.headers, standard: record.registry.headers.fields(for: step.target))
        }
        if !step.keepsBody {
            request.body = .none
        } else if !request.body.isReplayable {
            guard let body = try await replacementBody(for: request, policies: response.request.policies) else {
                return nil
            }
            request.body = body
        }
        return request
    }

    /// Asks the policies for a body in place of one that can be sent only once and was sent.
    private func replacementBody(
        for request: Request, policies: Policies?
    ) async throws(NetworkError) -> Request.Body? {
        try await policies?.ask(about: request) { policy in
            try await policy.replacementBody(for: request, of: AnySessionTask(record))
        }
    }

    // MARK: New connections

    /// Returns the same request for a new connection; nil if its body cannot be sent again, and the response is final.
    private func sendAgainOnNewConnection(
        _ request: PreparedRequest
    ) async throws(NetworkError) -> PreparedRequest? {
        if request.request.body.isReplayable { return request.onNewConnection() }
        guard let body = try await replacementBody(for: request.request, policies: request.policies) else {
            return nil
        }
        return request.sending(body).onNewConnection()
    }

    // MARK: Challenges

    /// Asks the policies, the URL and the credential provider, in this order, for the answer to a challenge. Returns
    /// nil if the challenge is delivered as the final response.
    private func answer(
        _ challenge: AuthenticationChallenge, to request: PreparedRequest, after attempt: Duration,
        rules: inout FollowUpRules
    ) async throws(NetworkError) -> PreparedRequest? {
        record.registry.observe { $0.didReceive(challenge, of: AnySessionTask(record)) }
        let decision = try await request.policies?.ask(about: request.request) { policy in
            try await policy.answer(to: challenge, for: request.request, of: AnySessionTask(record))
        }
        let credential: Credential?
        switch decision {
        case .reject?: return nil
        case .cancel(let error)?: throw request.authenticationError(error)
        case .send(let other)?:
            rules.recordAnswer(to: challenge)
            return try request.answeringChallenge(with: other)
        case .use(let chosen)?: credential = chosen
        case .performDefault?, nil: credential = try await defaultCredential(for: challenge, request, after: attempt)
        }
        guard let credential else { return nil }
        let authorization: Authorization?
        do {
            authorization = try rules.answer(challenge, with: credential)
        } catch {
            throw request.authenticationError(error)
        }
        guard let authorization else { return nil }
        return try await sendAgain(request, with: authorization)
    }

    /// Returns the credential of the proxy's or the request's URL, which answers one challenge only, or that of the
    /// provider.
    private func defaultCredential(
        for challenge: AuthenticationChallenge, _ request: PreparedRequest, after attempt: Duration
    ) async throws(NetworkError) -> Credential? {
        if let own = proxyCredential(for: challenge, request) { return own }
        if let own = Credential(of: request.request.target) { return challenge.source == .server ? own : nil }
        guard let provider = request.request.credentials ?? record.registry.configuration.credentials else {
            return nil
        }
        do {
            return try await request.withinTime(of: record, after: attempt) {
                try await provider.credential(for: challenge, of: request.request)
            }
        } catch {
            throw request.authenticationError(error)
        }
    }

    /// Returns the credential of the proxy's own URL if it can answer a challenge with Digest; nil otherwise. Basic
    /// needs no answer, because the transport has already sent it.
    private func proxyCredential(
        for challenge: AuthenticationChallenge, _ request: PreparedRequest
    ) -> Credential? {
        guard challenge.source == .proxy, challenge.previousFailures == 0,
            challenge.offers.contains(where: { DigestChallenge($0) != nil })
        else { return nil }
        return record.registry.transport.proxyCredential(for: request.request.target)
    }

    /// Returns the same request with an answer to its challenge; nil if its body cannot be sent again, and the
    /// challenge is delivered as the final response.
    private func sendAgain(
        _ request: PreparedRequest, with authorization: Authorization
    ) async throws(NetworkError) -> PreparedRequest? {
        try await sendAgain(request)?.answering(authorization)
    }

    /// Returns the same request, with a new body if its own can be sent only once; nil if there is none.
    private func sendAgain(_ request: PreparedRequest) async throws(NetworkError) -> PreparedRequest? {
        if request.request.body.isReplayable { return request }
        let body = try await replacementBody(for: request.request, policies: request.policies)
        return body.map { request.sending($0) }
    }
}
