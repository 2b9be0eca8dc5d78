import Testing

@testable import Tern

@Suite("Follow-up rules")
struct FollowUpRulesTests {
    private func head(_ status: Int, _ headers: Headers = [:]) throws -> ResponseHead {
        try ResponseHead(
            status: status, version: .http11, target: Target(absolute: "https://a.example/x"), headers: headers)
    }

    @Test(arguments: [(200, false), (299, false), (300, true), (304, true), (399, true), (400, false), (401, true)])
    func onlyRedirectsAndChallengesCanLeadToAnotherRequest(status: Int, mayFollow: Bool) throws {
        #expect(try head(status).mayBeFollowed == mayFollow)
    }

    @Test(arguments: [(403, false), (407, true), (408, false), (417, true), (500, false)])
    func onlyAProxysChallengeAndARefusedExpectationCanFollowAmongOtherErrors(status: Int, mayFollow: Bool) throws {
        #expect(try head(status).mayBeFollowed == mayFollow)
    }

    @Test func aRedirectIsFollowedRefusedOrDelivered() throws {
        var rules = FollowUpRules(maximumRedirects: 1)
        let request = try Request(.get, "https://a.example/x")
        guard case .deliver = rules.redirect(after: try head(304), of: request, headers: [:]) else {
            Issue.record("304 is followed")
            return
        }
        let moved = try head(302, ["Location": "/next"])
        guard case .redirect(let step) = rules.redirect(after: moved, of: request, headers: [:]) else {
            Issue.record("302 is not followed")
            return
        }
        #expect(step.target.string == "https://a.example/next")
        rules.recordRedirect(moved)
        #expect(rules.history.map(\.status) == [302])
        guard case .refuse(let failure) = rules.redirect(after: moved, of: request, headers: [:]) else {
            Issue.record("a second redirect is followed")
            return
        }
        #expect(failure.kind == .redirectLoop)
    }

    @Test func aRefusedCredentialMakesTheChallengeTheResponse() throws {
        var rules = FollowUpRules(maximumRedirects: 1)
        let target = try Target(absolute: "https://a.example/x")
        let challenge = try head(401, ["WWW-Authenticate": "Basic realm=\"a\""])
        guard case .ask(let asked) = rules.challenge(challenge, sent: nil, target: target) else {
            Issue.record("nobody is asked")
            return
        }
        let credential = Credential.user("ada", password: "x")
        #expect(try rules.answer(asked, with: credential) != nil)
        guard case .ask(let again) = rules.challenge(challenge, sent: nil, target: target) else {
            Issue.record("nobody is asked again")
            return
        }
        #expect(again.previousFailures == 1)
        #expect(try rules.answer(again, with: credential) == nil)
    }

    @Test func theTimeOfEarlierAttemptsAddsUp() {
        var rules = FollowUpRules(maximumRedirects: 1)
        var metrics = TaskMetrics()
        metrics.activeTime = 2_000
        rules.addTime(of: AttemptOutcome(metrics: metrics))
        rules.addTime(of: nil)
        rules.addTime(of: AttemptOutcome(metrics: metrics))
        #expect(rules.timeSpent == .nanoseconds(4_000))
    }
}
