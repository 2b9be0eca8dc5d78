import Tern
import Testing

@testable import TernStreaming

@Suite("Reconnection: decisions")
struct ReconnectionStateTests {
    private let lost = NetworkError(.connectionLost, reason: "lost")

    private func state(
        method: Request.Method = .get, isReplayable: Bool = true, _ change: (inout EventReconnection) -> Void = { _ in }
    ) -> ReconnectionState {
        var rules = EventReconnection()
        change(&rules)
        return ReconnectionState(rules, method: method, isReplayable: isReplayable)
    }

    private func delay(_ action: ReconnectionState.Action) -> Duration? {
        if case .connect(let delay) = action { delay } else { nil }
    }

    private func failure(_ action: ReconnectionState.Action) -> NetworkError? {
        if case .end(.failed(let error)) = action { error } else { nil }
    }

    @Test func delayIsTheMinimumPlusABoundThatDoubles() {
        for (random, expected) in [(0.0, [3.0, 3, 3, 3, 3, 3]), (1.0, [9.0, 15, 27, 33, 33, 33])] {
            var state = state()
            for seconds in expected {
                let action = state.decide(.init(failure: lost), hasNetwork: true, random: random)
                #expect(delay(action) == .seconds(seconds))
            }
        }
    }

    @Test func requestIsRepeatedOnlyBeforeItsFirstEvent() {
        var state = state(method: .post) {
            $0.methodsBeforeFirstEvent = [.post]
            $0.limit = 3
        }
        for _ in 0..<2 { #expect(delay(state.decide(.init(failure: lost), hasNetwork: true, random: 0)) != nil) }
        state.receiveEvents()
        #expect(failure(state.decide(.init(failure: lost), hasNetwork: true, random: 0))?.kind == .connectionLost)
        // Nothing is repeated after that, although no further event has arrived.
        #expect(failure(state.decide(.init(failure: lost), hasNetwork: true, random: 0))?.kind == .connectionLost)

        var never = self.state(method: .post) {
            $0.methodsBeforeFirstEvent = [.post]
            $0 = .never
        }
        #expect(failure(never.decide(.init(failure: lost), hasNetwork: true, random: 0)) != nil)
        var once = self.state(method: .post, isReplayable: false) { $0.methodsBeforeFirstEvent = [.post] }
        #expect(failure(once.decide(.init(failure: lost), hasNetwork: true, random: 0)) != nil)
    }

    @Test func requestForAnAnswerIsRepeatedALimitedNumberOfTimes() {
        var state = state(method: .post) {
            $0.methodsBeforeFirstEvent = [.post]
            $0.limit = 3
        }
        // A gateway that sends comments, and loses each connection after a minute.
        let long = ReconnectionState.End(failure: lost, openTime: .seconds(60))
        for _ in 0..<3 { #expect(delay(state.decide(long, hasNetwork: true, random: 0)) != nil) }
        #expect(failure(state.decide(long, hasNetwork: true, random: 0))?.kind == .connectionLost)

        var empty = self.state(method: .post) { $0.methodsBeforeFirstEvent = [.post] }
        guard case .end(.server) = empty.decide(.init(openTime: .seconds(60)), hasNetwork: true, random: 0) else {
            Issue.record("a POST is sent again after the end of its response")
            return
        }
        // A method that is repeated after events is not limited so.
        var both = self.state(method: .post) {
            $0.methods = [.post]
            $0.methodsBeforeFirstEvent = [.post]
            $0.limit = 0
        }
        for _ in 0..<3 { #expect(delay(both.decide(long, hasNetwork: true, random: 0)) != nil) }
        #expect(delay(both.decide(.init(openTime: .seconds(60)), hasNetwork: true, random: 0)) != nil)
    }

    @Test func eventsResetTheBound() {
        var state = state()
        for _ in 0..<5 { _ = state.decide(.init(failure: lost), hasNetwork: true, random: 1) }
        state.receiveEvents()
        let end = ReconnectionState.End(openTime: .zero)
        #expect(delay(state.decide(end, hasNetwork: true, random: 1)) == .seconds(6))
        #expect(delay(state.decide(end, hasNetwork: true, random: 1)) == .seconds(9))
    }

    @Test func longConnectionCountsAsProgress() {
        var state = state { $0.limit = 1 }
        let short = ReconnectionState.End(openTime: .seconds(29))
        let long = ReconnectionState.End(openTime: .seconds(30))
        for _ in 0..<3 {
            #expect(delay(state.decide(short, hasNetwork: true, random: 0)) != nil)
            #expect(delay(state.decide(long, hasNetwork: true, random: 0)) != nil)
        }
        _ = state.decide(short, hasNetwork: true, random: 0)
        #expect(failure(state.decide(short, hasNetwork: true, random: 0))?.kind == .noEvents)
    }

    @Test func delayOfTheServerReplacesTheFirst() {
        var state = state()
        state.receiveEvents()
        state.setServerDelay(.seconds(1))
        #expect(delay(state.decide(.init(), hasNetwork: true, random: 0)) == .seconds(1))
        state.receiveEvents()
        state.setServerDelay(.zero)
        #expect(delay(state.decide(.init(), hasNetwork: true, random: 0)) == ReconnectionState.shortestDelay)
        state.receiveEvents()
        state.setServerDelay(.seconds(1_000_000))
        #expect(delay(state.decide(.init(), hasNetwork: true, random: 1)) == .seconds(3_630))
    }

    @Test func retryAfterOfAYearIsBounded() {
        var state = state { $0.statuses = [503] }
        let refusal = NetworkError(.connectionLost, reason: "")
        let end = ReconnectionState.End(failure: refusal, retryAfter: .seconds(365 * 86_400))
        #expect(delay(state.decide(end, hasNetwork: true, random: 0)) == .seconds(3_600))
    }

    /// Each row: the seconds in the field, and the shortest and the longest delay in milliseconds.
    @Test(arguments: [(0, 100, 600), (1, 1_000, 1_500), (7, 7_000, 7_500), (-5, 100, 600)])
    func theServersTimeTakesThePlaceOfTheDelays(seconds: Int, shortest: Int, longest: Int) {
        var state = state { ($0.firstDelay, $0.maximumDelay) = (.seconds(3), .seconds(30)) }
        for _ in 0..<3 {
            let end = ReconnectionState.End(failure: lost, retryAfter: .seconds(seconds))
            #expect(delay(state.decide(end, hasNetwork: true, random: 0)) == .milliseconds(shortest))
            #expect(delay(state.decide(end, hasNetwork: true, random: 1)) == .milliseconds(longest))
        }
    }

    @Test func limitEndsWithTheLastFailure() throws {
        var state = state { $0.limit = 2 }
        for _ in 0..<2 { #expect(delay(state.decide(.init(failure: lost), hasNetwork: true, random: 0)) != nil) }
        let error = try #require(failure(state.decide(.init(failure: lost), hasNetwork: true, random: 0)))
        #expect(error.kind == .connectionLost && error.reason == "lost; 3 connections in a row brought no event")
    }

    @Test func idWithoutAnEventCountsAsLife() {
        var polled = state { $0.limit = 1 }
        for _ in 0..<5 {
            polled.receiveID()
            #expect(delay(polled.decide(.init(openTime: .zero), hasNetwork: true, random: 0)) != nil)
        }
        _ = polled.decide(.init(openTime: .zero), hasNetwork: true, random: 0)
        #expect(failure(polled.decide(.init(openTime: .zero), hasNetwork: true, random: 0))?.kind == .noEvents)
        // A request that asks for an answer has none yet.
        var asked = state(method: .post) {
            $0.methodsBeforeFirstEvent = [.post]
            $0.limit = 1
        }
        asked.receiveID()
        #expect(delay(asked.decide(.init(failure: lost), hasNetwork: true, random: 0)) != nil)
        asked.receiveID()
        #expect(failure(asked.decide(.init(failure: lost), hasNetwork: true, random: 0))?.kind == .connectionLost)
    }

    @Test func limitOfZeroConnectsAgainAfterEvents() {
        var state = state { $0.limit = 0 }
        state.receiveEvents()
        #expect(delay(state.decide(.init(), hasNetwork: true, random: 0)) != nil)
        #expect(failure(state.decide(.init(), hasNetwork: true, random: 0))?.kind == .noEvents)
    }

    @Test func attemptWithoutANetworkIsNotCounted() {
        var state = state { $0.limit = 0 }
        for kind in [NetworkError.Kind.dns, .connectionFailed, .connectTimedOut, .proxy] {
            let end = ReconnectionState.End(failure: NetworkError(kind, reason: ""))
            // A failure of a proxy is temporary only without a network.
            let action = state.decide(end, hasNetwork: false, random: 0)
            guard case .connectWithNetwork = action else {
                Issue.record("\(kind): \(action)")
                continue
            }
        }
        #expect(failure(state.decide(.init(failure: lost), hasNetwork: false, random: 0)) != nil, "it was connected")
    }

    @Test(arguments: [
        NetworkError.Kind.status, .contentType, .tooLarge, .untrustedServer, .cancelled, .proxy, .invalidRequest,
        .redirect, .interceptor, .sessionInvalidated,
    ])
    func otherFailuresEndTheStream(kind: NetworkError.Kind) {
        var state = state()
        let action = state.decide(.init(failure: NetworkError(kind, reason: "")), hasNetwork: true, random: 0)
        #expect(failure(action)?.kind == kind)
    }

    @Test(arguments: [
        NetworkError.Kind.dns, .connectionRefused, .connectionFailed, .connectTimedOut, .connectionLost, .truncatedBody,
        .malformedResponse, .firstByteTimedOut, .silenceTimedOut,
    ])
    func temporaryFailuresConnectAgain(kind: NetworkError.Kind) {
        var state = state()
        let end = ReconnectionState.End(failure: NetworkError(kind, reason: ""))
        #expect(delay(state.decide(end, hasNetwork: true, random: 0)) != nil)
    }

    @Test func postIsSentOnceUnlessTheRulesSayOtherwise() {
        var once = state(method: .post)
        guard case .end(.server) = once.decide(.init(openTime: .zero), hasNetwork: true, random: 0) else {
            Issue.record("a POST is sent again")
            return
        }
        #expect(failure(once.decide(.init(failure: lost), hasNetwork: true, random: 0))?.kind == .connectionLost)
        var again = state(method: .post) { $0.methods.insert(.post) }
        #expect(delay(again.decide(.init(failure: lost), hasNetwork: true, random: 0)) != nil)
        var spent = state(method: .post, isReplayable: false) { $0.methods.insert(.post) }
        #expect(failure(spent.decide(.init(failure: lost), hasNetwork: true, random: 0)) != nil)
    }
}
