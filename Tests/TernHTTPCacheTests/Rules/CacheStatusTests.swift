import Tern
import Testing

@testable import TernHTTPCache

/// Tests the text of the `Cache-Status` field (RFC 9211).
@Suite struct CacheStatusTests {
    @Test func aHitStatesItsRemainingLifetime() {
        let hit = CacheHandling(result: .hit(.fresh), timeToLive: .seconds(376))
        #expect(hit.text(name: "Tern") == "Tern; hit; ttl=376")
        let stale = CacheHandling(result: .hit(.staleWhileRevalidate), timeToLive: .seconds(-5))
        #expect(stale.text(name: "Tern") == "Tern; hit; ttl=-5; detail=stale-while-revalidate")
    }

    @Test func aForwardedRequestStatesItsReasonAndResult() {
        var miss = CacheHandling(result: .forwarded(.nothingStored))
        #expect(miss.text(name: "Tern") == "Tern; fwd=uri-miss")
        miss.forwardedStatus = 200
        miss.isStored = true
        miss.outcome = .stored
        miss.isCollapsed = true
        #expect(miss.text(name: "Tern") == "Tern; fwd=uri-miss; fwd-status=200; stored; collapsed")
        let validated = CacheHandling(
            result: .forwarded(.stale), forwardedStatus: 304, outcome: .validated, timeToLive: .seconds(60))
        #expect(validated.text(name: "Tern") == "Tern; fwd=stale; fwd-status=304; ttl=60; detail=validated")
    }

    /// `hit` is only for requests that were not forwarded (RFC 9211 §2.1).
    @Test func aStaleResponseAfterAnErrorIsNoHit() {
        var stale = CacheHandling(result: .staleAfterError(.staleIfError, forwarded: .stale), forwardedStatus: 503)
        stale.outcome = .staleIfError
        stale.isStored = true
        #expect(stale.text(name: "Tern") == "Tern; fwd=stale; fwd-status=503; detail=stale-if-error")
        let lost = CacheHandling(
            result: .staleAfterError(.disconnected, forwarded: .requestMaxAge), timeToLive: .seconds(-5))
        #expect(lost.text(name: "Tern") == "Tern; fwd=request; ttl=-5; detail=disconnected")
    }

    @Test(arguments: CacheReason.allCases)
    func eachReasonHasAKnownTokenAndAText(_ reason: CacheReason) {
        let text = CacheHandling(result: .forwarded(reason)).text(name: "Tern")
        let known = ["bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial"]
        #expect(known.contains { text == "Tern; fwd=\($0)" })
        #expect(!reason.text.isEmpty)
        let isToken = reason.rawValue.utf8.allSatisfy { ByteSet.token.contains($0) }
        #expect(isToken)
    }

    @Test func namesThatAreNoTokensAreQuoted() {
        let hit = CacheHandling(result: .hit(.fresh))
        #expect(hit.text(name: "My Cache") == "\"My Cache\"; hit")
        #expect(hit.text(name: "a\"\\\r\nX: y") == "\"a\\\"\\\\X: y\"; hit")
        #expect(hit.text(name: "1") == "\"1\"; hit")
    }
}
