/// The way of a request past answers that ask for another one: redirects and challenges.
struct Course {
    private let record: TaskRecord
    private var redirects: RedirectRules
    private var challenges = ChallengeCourse()
    /// The redirects so far, oldest first.
    private var history: [ResponseHead] = []

    private init(_ plan: RequestPlan, _ record: TaskRecord) {
        self.record = record
        redirects = RedirectRules(limit: plan.context.configuration.maximumRedirects)
    }

    /// Whether an answer may be other than the last. One comparison for most.
    static func mayGoOn(_ head: ResponseHead) -> Bool {
        head.status >= 300 && (head.status < 400 || head.status == 401 || head.status == 407)
    }

    /// Goes on from an answer to the one that stands.
    static func lastArrival(from first: Arrival, _ record: TaskRecord) async throws(NetworkError) -> Arrival {
        var arrival = first
        var course = Course(first.plan, record)
        var spent: UInt64 = 0
        while let next = try await course.next(after: &arrival) {
            let outcome = await arrival.discard() ?? arrival.outcome
            spent += outcome?.metrics.activeTime ?? 0
            arrival = try await next.having(spent: .nanoseconds(spent)).sent(record)
        }
        arrival.head.redirects = course.history
        record.receive(arrival.head)
        return arrival
    }

    /// What is to be sent after an answer; nil when it stands.
    private mutating func next(after arrival: inout Arrival) async throws(NetworkError) -> RequestPlan? {
        if arrival.head.status >= 400 { return try await challenges.next(after: arrival, record) }
        return try await redirect(after: &arrival)
    }

    private mutating func redirect(after arrival: inout Arrival) async throws(NetworkError) -> RequestPlan? {
        let (plan, head) = (arrival.plan, arrival.head)
        let configured = plan.context.configuration.redirects
        let action = redirects.action(
            for: head.status, locations: head.headers.values(for: "Location"), method: plan.request.method,
            target: plan.request.target, headers: plan.headers)
        switch action {
        case .stand:
            return nil
        case .fail(let failure):
            try await stop(&arrival, elseFail: failure, byDefault: configured.stops(atRefused: failure.kind))
            return nil
        case .follow(let step):
            let stopsByDefault = configured.stops(at: step.target, plan.request)
            guard let proposed = try await request(for: step, after: arrival) else {
                let reason = "the redirect to \(step.target) keeps the body, which can be sent only once"
                let failure = TransferFailure(.redirect, reason)
                try await stop(&arrival, elseFail: failure, byDefault: stopsByDefault)
                return nil
            }
            let decision = try await decision(on: proposed, after: arrival)
            if Self.isStop(decision, byDefault: stopsByDefault) {
                arrival.isWanted = true
                return nil
            }
            let chosen = if case .follow(let other)? = decision { other } else { proposed }
            history.append(head)
            plan.context.observe { [record] in
                $0.didRedirect(to: chosen, after: head, of: AnySessionTask(record))
            }
            return try plan.following(chosen)
        }
    }

    private func decision(
        on proposed: Request, after arrival: Arrival
    ) async throws(NetworkError) -> RedirectDecision? {
        let head = arrival.head
        return try await arrival.plan.policies?.ask(about: arrival.plan.request) { [record] policy in
            try await policy.redirect(to: proposed, after: head, of: AnySessionTask(record))
        }
    }

    private static func isStop(_ decision: RedirectDecision?, byDefault: Bool) -> Bool {
        switch decision {
        case .stop?: true
        case .follow?: false
        case nil: byDefault
        }
    }

    /// Makes a redirect that cannot be followed the response, if a policy or, without one, the session decides so.
    private func stop(
        _ arrival: inout Arrival, elseFail failure: TransferFailure, byDefault: Bool
    ) async throws(NetworkError) {
        let decision = try await decision(on: arrival.plan.request, after: arrival)
        guard Self.isStop(decision, byDefault: byDefault) else { throw await arrival.error(failure) }
        arrival.isWanted = true
    }

    /// Returns the request that the rules propose: the answered request with their changes; nil if it has a body that
    /// can be sent only once and has no replacement.
    private func request(
        for step: RedirectRules.Step, after arrival: Arrival
    ) async throws(NetworkError) -> Request? {
        let plan = arrival.plan
        var request = plan.request
        request.method = step.method
        if step.target.origin != request.target.origin, request.trust != nil { request.trust = nil }
        request.target = step.target
        request.headers = step.headers
        if let own = request.clientHeaders, own.origin != step.target.origin {
            request.headers = own.removed(
                from: step.headers, standard: plan.context.headers.fields(for: step.target))
        }
        if !step.keepsBody {
            request.body = .none
        } else if !request.body.isReplayable {
            guard let body = try await arrival.plan.replacementBody(for: request, record) else { return nil }
            request.body = body
        }
        return request
    }
}

extension RequestPlan {
    /// A body in the place of one that can be sent only once, and was.
    func replacementBody(for request: Request, _ record: TaskRecord) async throws(NetworkError) -> Request.Body? {
        try await policies?.ask(about: request) { policy in
            try await policy.replacementBody(for: request, of: AnySessionTask(record))
        }
    }
}
