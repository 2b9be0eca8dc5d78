import Tern
import Testing

@testable import TernHTTPCache

/// Tests conditional requests, 304 responses, and the caller's own conditions (RFC 9111 §4.3).
@Suite struct CacheValidationTests {
    private let cache = CacheSimulator()

    private func store(_ headers: Headers, body: String = "stored") throws {
        var headers = headers
        if !headers.contains("Cache-Control") { headers["Cache-Control"] = "max-age=10" }
        headers["Date"] = headers["Date"] ?? cache.date()
        try cache.get(OriginAnswer(200, headers, body))
        cache.advance(20)
    }

    @Test func theConditionHasTheStoredValidators() throws {
        let modified = cache.date(-1_000)
        try store(["ETag": "W/\"a\"", "Last-Modified": modified])
        let sent = try #require(try cache.get(["X": "y"], OriginAnswer(304, ["ETag": "W/\"a\""])).forwarded.first)
        #expect(sent["If-None-Match"] == "W/\"a\"")
        #expect(sent["If-Modified-Since"] == modified)
        #expect(sent["X"] == "y")
    }

    @Test func withoutAValidatorTheRequestIsSentPlain() throws {
        try store([:])
        #expect(try cache.get(OriginAnswer(200, [:], "new")).forwarded == [[:]])
    }

    @Test func aConfirmedResponseIsServedWithItsUpdatedHead() throws {
        try store(["ETag": "\"a\"", "X": "1", "Y": "1", "Set-Cookie": "a=b"])
        let answer = OriginAnswer(
            304, ["ETag": "\"a\"", "X": "2", "Cache-Control": "max-age=100", "Date": cache.date(), "Set-Cookie": "c=d"])
        // The responses to requests with cookies belong to their store.
        let response = try cache.get(["Cookie": "a=b"], answer)
        #expect(response.isValidated)
        #expect(response.status == 200)
        #expect(response.body == "stored")
        #expect(response.headers["X"] == "2")
        #expect(response.headers["Y"] == "1")
        cache.advance(50)
        let later = try cache.get(OriginAnswer())
        #expect(later.isCached)
        #expect(later.headers["X"] == "2")
        #expect(later.headers["Age"] == "50")
        #expect(later.headers.values(for: "Set-Cookie") == ["c=d"])
    }

    @Test func theFieldsOfTheStoredBytesAreNotUpdated() throws {
        try store([
            "ETag": "\"a\"", "Content-Length": "6", "Content-Encoding": "x", "Content-Type": "a/b", "Expires": "0",
        ])
        let response = try cache.get(
            OriginAnswer(
                304,
                [
                    "ETag": "\"a\"", "Content-Length": "0", "Content-Encoding": "y", "Content-Range": "bytes 0-1/2",
                    "Content-Type": "c/d", "Connection": "Z", "Z": "1", "Cache-Control": "max-age=9",
                ]))
        #expect(response.headers["Content-Length"] == "6")
        #expect(response.headers["Content-Encoding"] == "x")
        #expect(response.headers["Content-Range"] == nil)
        #expect(response.headers["Content-Type"] == "c/d")
        #expect(response.headers["Z"] == nil)
        #expect(response.headers["Connection"] == nil)
    }

    @Test func severalValuesAreReplacedTogether() throws {
        var two: Headers = ["ETag": "\"a\"", "X": "1"]
        two.append(name: "X", value: "2")
        try store(two)
        var three: Headers = ["ETag": "\"a\"", "X": "3"]
        three.append(name: "x", value: "4")
        three.append(name: "x", value: "5")
        #expect(try cache.get(OriginAnswer(304, three)).headers.values(for: "X") == ["3", "4", "5"])
    }

    @Test func theAgeOfTheStoredResponseEndsWithItsValidation() throws {
        try store(["ETag": "\"a\"", "Age": "5"])
        let response = try cache.get(
            OriginAnswer(304, ["ETag": "\"a\"", "Cache-Control": "max-age=100", "Date": cache.date()]))
        #expect(response.headers["Age"] == "0")
    }

    @Test func a304AboutAnotherVersionIsNotUsed() throws {
        try store(["ETag": "\"a\""])
        var count = 0
        let response = try cache.send(try cache.request()) { _ in
            count += 1
            return count == 1 ? OriginAnswer(304, ["ETag": "\"b\""]) : OriginAnswer(200, [:], "new")
        }
        #expect(response.body == "new")
        #expect(response.forwarded.count == 2)
        #expect(response.forwarded.last == [:])
    }

    @Test func aStrongTagNeedsAStrongMatch() throws {
        try store(["ETag": "W/\"a\""])
        var count = 0
        let response = try cache.send(try cache.request()) { _ in
            count += 1
            return count == 1 ? OriginAnswer(304, ["ETag": "\"a\""]) : OriginAnswer(200, [:], "new")
        }
        #expect(response.body == "new")
    }

    @Test func aWeakTagOrADateUpdatesTheNewestMatch() throws {
        let modified = cache.date(-1_000)
        try store(["ETag": "\"a\"", "Last-Modified": modified])
        #expect(try cache.get(OriginAnswer(304, ["ETag": "W/\"a\""])).isValidated)
        cache.advance(100)
        #expect(try cache.get(OriginAnswer(304, ["Last-Modified": modified])).isValidated)
        cache.advance(100)
        // Without any validator, there is one response that it can be about.
        #expect(try cache.get(OriginAnswer(304, [:])).isValidated)
    }

    @Test func a304WithNoStoreIsUsedOnce() throws {
        try store(["ETag": "\"a\""])
        let response = try cache.get(OriginAnswer(304, ["ETag": "\"a\"", "Cache-Control": "no-store"]))
        #expect(response.body == "stored")
        #expect(try cache.get(OriginAnswer(200, [:], "new")).forwarded == [[:]])
    }

    @Test func theHeadOfA304WithNoStoreIsNeverStored() throws {
        try store(["ETag": "\"a\"", "X": "1"])
        let request = try cache.request()
        let entries = cache.store.found(for: request.key)
        let condition = try #require(CacheCondition(validating: entries, for: request))
        let response = CacheResponse(
            status: 304, headers: ["ETag": "\"a\"", "X": "2", "Cache-Control": "no-store"], requestTime: cache.now,
            responseTime: cache.now)
        let decision = cache.policy.decide(
            after: response, to: request, sent: (entries, condition), entries: entries, id: 9)
        guard case .answer(let answer, let removed) = decision.action else {
            Issue.record("\(decision)")
            return
        }
        #expect(answer.headers["X"] == "2")
        #expect(removed.map(\.id) == entries.map(\.id))
        #expect(removed.first?.headers["X"] == "1")
        #expect(!answer.isStored)
        #expect(decision.reason == .noStore)
    }

    @Test func aNewResponseReplacesTheStoredOne() throws {
        try store(["ETag": "\"a\""])
        try cache.get(OriginAnswer(200, ["ETag": "\"b\"", "Cache-Control": "max-age=100"], "new"))
        #expect(try cache.get(OriginAnswer()).body == "new")
        #expect(cache.store.found(for: try cache.request().key).count == 1)
    }

    @Test func fieldsThatNoCacheListsAreServedAfterValidation() throws {
        try store(["ETag": "\"a\"", "Cache-Control": "max-age=10, no-cache=\"X\"", "X": "1"])
        #expect(try cache.get(OriginAnswer(304, ["ETag": "\"a\""])).headers["X"] == "1")
    }

    @Test func theStoredVariantsAreOfferedWhenNoneMatches() throws {
        let headers: Headers = ["Vary": "Foo", "Cache-Control": "max-age=100"]
        try cache.get(["Foo": "1"], OriginAnswer(200, headers.overriding(with: ["ETag": "\"one\""]), "one"))
        cache.advance(1)
        try cache.get(["Foo": "2"], OriginAnswer(200, headers.overriding(with: ["ETag": "\"two\""]), "two"))
        let third = try cache.get(["Foo": "3"], OriginAnswer(304, headers.overriding(with: ["ETag": "\"one\""])))
        #expect(third.forwarded.first?["If-None-Match"] == "\"two\", \"one\"")
        #expect(third.body == "one")
        // From now on, both select it.
        #expect(try cache.get(["Foo": "3"], OriginAnswer()).body == "one")
        #expect(try cache.get(["Foo": "1"], OriginAnswer()).body == "one")
        #expect(try cache.get(["Foo": "2"], OriginAnswer()).body == "two")
    }

    @Test func aChangeOfVaryForgetsTheOldSelections() throws {
        let headers: Headers = ["ETag": "\"a\"", "Cache-Control": "max-age=10"]
        try cache.get(["A": "1", "B": "1"], OriginAnswer(200, headers.overriding(with: ["Vary": "A"])))
        cache.advance(20)
        try cache.get(["A": "1", "B": "2"], OriginAnswer(304, headers.overriding(with: ["Vary": "A, B"])))
        #expect(try cache.get(["A": "1", "B": "2"], OriginAnswer()).isCached)
        #expect(!(try cache.get(["A": "1", "B": "1"], OriginAnswer()).isCached))
    }

    @Test func variantsOfOtherCredentialsAreNotOffered() throws {
        let headers: Headers = ["Vary": "Foo", "Cache-Control": "max-age=100", "ETag": "\"one\""]
        try cache.send(try cache.request("GET", "http://example.com/a", ["Foo": "1"], credentials: "ada")) { _ in
            OriginAnswer(200, headers)
        }
        #expect(try cache.get(["Foo": "2"], OriginAnswer(200, [:], "new")).forwarded == [["Foo": "2"]])
    }

    // MARK: The caller's own conditions (§4.3.2)

    @Test(arguments: [
        ("\"a\"", 304), ("\"x\", \"a\", \"y\"", 304), ("W/\"a\"", 304), ("*", 304), ("\"b\"", 200), ("", 200),
    ])
    func ifNoneMatchIsEvaluatedOnAFreshResponse(_ tags: String, status: Int) throws {
        try cache.get(OriginAnswer(200, ["Cache-Control": "max-age=60", "ETag": "\"a\"", "X": "y"]))
        let response = try cache.get(["If-None-Match": tags], OriginAnswer())
        #expect(response.isCached)
        #expect(response.status == status)
        if status == 304 {
            #expect(response.headers["ETag"] == "\"a\"")
            #expect(response.headers["Cache-Control"] == "max-age=60")
            #expect(response.headers["X"] == nil)
            #expect(response.body.isEmpty)
        }
    }

    @Test(arguments: [(0, 304), (10, 304), (-10, 200)])
    func ifModifiedSinceIsEvaluatedOnAFreshResponse(_ offset: Int64, status: Int) throws {
        let modified = cache.date(-1_000)
        try cache.get(OriginAnswer(200, ["Cache-Control": "max-age=60", "Last-Modified": modified]))
        let since = cache.date(-1_000 + offset)
        #expect(try cache.get(["If-Modified-Since": since], OriginAnswer()).status == status)
        // Invalid dates, and a tag, take its effect.
        #expect(try cache.get(["If-Modified-Since": "x"], OriginAnswer()).status == 200)
        #expect(try cache.get(["If-Modified-Since": since, "If-None-Match": "\"x\""], OriginAnswer()).status == 200)
    }

    @Test func withoutLastModifiedTheDateCounts() throws {
        try cache.get(OriginAnswer(200, ["Cache-Control": "max-age=60", "Date": cache.date(-5)]))
        #expect(try cache.get(["If-Modified-Since": cache.date(-5)], OriginAnswer()).status == 304)
        #expect(try cache.get(["If-Modified-Since": cache.date(-6)], OriginAnswer()).status == 200)
    }

    @Test func aConditionOnAStaleResponseIsCombinedWithTheStoredValidators() throws {
        try store(["ETag": "\"a\""])
        let mine = try cache.get(["If-None-Match": "\"b\""], OriginAnswer(304, ["ETag": "\"b\""]))
        #expect(mine.forwarded.first?["If-None-Match"] == "\"b\", \"a\"")
        #expect(mine.status == 304)
        let stored = try cache.get(["If-None-Match": "\"b\""], OriginAnswer(304, ["ETag": "\"a\""]))
        #expect(stored.status == 200)
        #expect(stored.body == "stored")
        cache.advance(20)
        let both = try cache.get(["If-None-Match": "\"a\""], OriginAnswer(304, ["ETag": "\"a\""]))
        #expect(both.status == 304)
        #expect(both.isValidated)
    }

    /// The server may have found the caller's tag or the stored one: the request is sent again with the caller's alone.
    @Test(
        arguments: [["If-None-Match": "\"new\""], ["If-Modified-Since": "Sun, 06 Nov 1994 08:00:00 GMT"]] as [Headers])
    func a304WithoutAValidatorConfirmsNoStoredResponseBesideAnOwnCondition(_ condition: Headers) throws {
        try store(["ETag": "\"old\""])
        let response = try cache.get(condition, OriginAnswer(304, ["Cache-Control": "max-age=60"]))
        #expect(response.status == 304)
        #expect(response.body.isEmpty)
        #expect(response.outcome == .ownCondition)
        #expect(response.forwarded.first?["If-None-Match"]?.hasSuffix("\"old\"") == true)
        #expect(response.forwarded.last == condition)
        #expect(try cache.get(OriginAnswer(200, [:], "new")).reason == .stale)
    }

    @Test func aNewResponseFollowsA304ThatDoesNotTellWhatItConfirms() throws {
        try store(["ETag": "\"old\""])
        let response = try cache.send(try cache.request("GET", "http://example.com/a", ["If-None-Match": "\"older\""]))
        {
            $0["If-None-Match"] == "\"older\"" ? OriginAnswer(200, [:], "current") : OriginAnswer(304)
        }
        #expect(response.status == 200)
        #expect(response.body == "current")
    }

    @Test(arguments: ["tag", "date", "both"])
    func theCallersConditionThatIsTheCachesOwnCostsOneRequest(_ kind: String) throws {
        let modified = cache.date(-1_000)
        let stored: Headers =
            kind == "date" ? ["Last-Modified": modified] : ["ETag": "\"a\"", "Last-Modified": modified]
        try store(stored)
        var condition: Headers = kind == "date" ? [:] : ["If-None-Match": "\"a\""]
        if kind != "tag" { condition["If-Modified-Since"] = modified }
        // Against RFC 9110 §15.4.5, without a validator.
        let response = try cache.get(condition, OriginAnswer(304, ["Cache-Control": "max-age=100"]))
        #expect(response.forwarded.count == 1)
        #expect(response.status == 304 && response.body.isEmpty)
        #expect(response.outcome == .validated)
        // It has answered both: the entry is fresh.
        let later = try cache.get(OriginAnswer(200, [:], "new"))
        #expect(later.isCached && later.body == "stored")
    }

    @Test func anEarlierDateOfTheCallerGetsTheConfirmedResponse() throws {
        try store(["Last-Modified": cache.date(-1_000)])
        let response = try cache.get(["If-Modified-Since": cache.date(-5_000)], OriginAnswer(304))
        #expect(response.forwarded.count == 1)
        #expect(response.status == 200 && response.body == "stored")
    }

    @Test(arguments: ["\"b\"", "W/\"a\"", "\"a\", \"b\""])
    func anotherConditionOfTheCallerLeavesADoubt(_ tags: String) throws {
        try store(["ETag": "\"a\""])
        let response = try cache.get(["If-None-Match": tags], OriginAnswer(304))
        #expect(response.forwarded.count == 2)
    }

    @Test func aConditionWithoutAStoredResponsePassesThrough() throws {
        let response = try cache.get(["If-None-Match": "\"a\""], OriginAnswer(304, ["ETag": "\"a\""]))
        #expect(response.status == 304)
        #expect(response.forwarded == [["If-None-Match": "\"a\""]])
        #expect(response.outcome == .ownCondition)
        #expect(cache.store.count == 0)
    }

    @Test func aStarOnAStaleResponsePassesThrough() throws {
        try store(["ETag": "\"a\""])
        #expect(try cache.get(["If-None-Match": "*"], OriginAnswer(304, [:])).forwarded == [["If-None-Match": "*"]])
    }

    @Test(arguments: ["If-Match", "If-Unmodified-Since"])
    func conditionsForTheOriginAreNotEvaluated(_ name: String) throws {
        try cache.get(OriginAnswer(200, ["Cache-Control": "max-age=60", "ETag": "\"a\""]))
        let response = try cache.get([name: "\"a\""], OriginAnswer(412, [:], "failed"))
        #expect(response.status == 412)
        #expect(response.reason == .originCondition)
    }

    @Test func errorsAreNotModifiedByNoCondition() throws {
        try cache.get(OriginAnswer(404, ["Cache-Control": "max-age=60", "ETag": "\"a\""]))
        #expect(try cache.get(["If-None-Match": "\"a\""], OriginAnswer()).status == 404)
    }

    // MARK: Errors while validating (RFC 5861 §4)

    @Test(arguments: [500, 502, 503, 504])
    func aStaleResponseIsServedAfterAnError(_ status: Int) throws {
        try store(["Cache-Control": "max-age=10, stale-if-error=20"])
        let response = try cache.get(OriginAnswer(status, [:], "error"))
        #expect(response.body == "stored")
        #expect(response.outcome == .staleIfError)
        cache.advance(11)
        #expect(try cache.get(OriginAnswer(status, [:], "error")).body == "error")
    }

    @Test func otherErrorsAndRefusalsAreDelivered() throws {
        try store(["Cache-Control": "max-age=10, stale-if-error=20"])
        #expect(try cache.get(OriginAnswer(501, [:], "error")).body == "error")
        #expect(try cache.get(["Cache-Control": "no-cache"], OriginAnswer(500, [:], "error")).body == "error")
        #expect(
            try cache.get(["Cache-Control": "no-cache, stale-if-error=50"], OriginAnswer(500, [:], "e")).body
                == "stored")
        #expect(try cache.get(OriginAnswer(404, [:], "error")).body == "error")
    }

    @Test(arguments: ["must-revalidate", "no-cache"])
    func aProhibitionAlsoCountsAfterErrors(_ directive: String) throws {
        try store(["Cache-Control": "max-age=10, stale-if-error=500, \(directive)", "ETag": "\"a\""])
        #expect(try cache.get(OriginAnswer(503, [:], "error")).body == "error")
        #expect(throws: CacheSimulator.Unreachable.self) {
            try cache.send(try cache.request()) { _ in throw CacheSimulator.Unreachable() }
        }
    }

    @Test func aRequestCanAcceptAStaleResponseAfterErrors() throws {
        try store([:])
        #expect(try cache.get(["Cache-Control": "stale-if-error=10"], OriginAnswer(503, [:], "error")).body == "stored")
        #expect(try cache.get(OriginAnswer(503, [:], "error")).body == "error")
    }

    @Test func withoutAConnectionTheSettingDecides() throws {
        try store([:])
        #expect(throws: CacheSimulator.Unreachable.self) {
            try cache.send(try cache.request()) { _ in throw CacheSimulator.Unreachable() }
        }
        cache.policy.staleWhenDisconnected = .seconds(3_600)
        let response = try cache.send(try cache.request()) { _ in throw CacheSimulator.Unreachable() }
        #expect(response.body == "stored")
        #expect(response.outcome == .disconnected)
        // An error of the server is no lost connection.
        #expect(try cache.get(OriginAnswer(503, [:], "error")).body == "error")
    }
}
