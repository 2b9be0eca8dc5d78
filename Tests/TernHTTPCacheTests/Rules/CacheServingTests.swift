import Tern
import Testing

@testable import TernHTTPCache

/// Tests when a stored response answers a request without validation (RFC 9111 §4, §5.2.1).
@Suite struct CacheServingTests {
    private let cache = CacheSimulator()

    /// Stores a response, and waits.
    private func store(_ headers: Headers, age: Int64 = 0, status: Int = 200) throws {
        try cache.get(OriginAnswer(status, headers.overriding(with: ["Date": cache.date()]), "stored"))
        cache.advance(age)
    }

    private func get(_ headers: Headers = [:], choice: Request.CacheChoice = .useProtocol) throws -> SimulatedResponse {
        try cache.send(try cache.request("GET", "http://example.com/a", headers, choice: choice)) { _ in
            OriginAnswer(200, ["Cache-Control": "max-age=60"], "new")
        }
    }

    @Test func aFreshResponseIsServedWithItsAge() throws {
        try store(["Cache-Control": "max-age=60", "Age": "7", "X": "y"], age: 10)
        let response = try get()
        #expect(response.isCached)
        #expect(response.body == "stored")
        #expect(response.headers["Age"] == "17")
        #expect(response.headers["X"] == "y")
        #expect(response.reason == .fresh)
    }

    @Test func theDateOfAServedResponseStays() throws {
        let date = cache.date()
        try store(["Cache-Control": "max-age=60"], age: 10)
        #expect(try get().headers["Date"] == date)
        #expect(try get().headers.values(for: "Age").count == 1)
    }

    @Test func aMissingDateBecomesTheTimeOfTheResponse() throws {
        let date = cache.date()
        try cache.get(OriginAnswer(200, ["Cache-Control": "max-age=60"]))
        cache.advance(10)
        #expect(try get().headers["Date"] == date)
        #expect(try get().headers["Age"] == "10")
    }

    @Test func aStaleResponseWithoutPermissionIsNotServed() throws {
        try store(["Cache-Control": "max-age=60"], age: 60)
        let response = try get()
        #expect(!response.isCached)
        #expect(response.body == "new")
        #expect(response.reason == .stale)
    }

    @Test func noCacheIsValidatedBeforeEachUse() throws {
        try store(["Cache-Control": "max-age=60, no-cache", "ETag": "\"a\""])
        let response = try get()
        #expect(response.forwarded.first?["If-None-Match"] == "\"a\"")
        #expect(response.reason == .mustValidate)
    }

    @Test func fieldsThatNoCacheListsAreNotServedWithoutValidation() throws {
        try store(["Cache-Control": "max-age=60, no-cache=\"a, B\"", "A": "1", "B": "2", "C": "3"])
        let response = try get()
        #expect(response.isCached)
        #expect(response.headers["A"] == nil)
        #expect(response.headers["B"] == nil)
        #expect(response.headers["C"] == "3")
    }

    @Test(arguments: [
        ("no-cache", CacheReason.requestNoCache), ("max-age=0", .requestMaxAge), ("max-age=9", .requestMaxAge),
        ("max-age=x", .requestMaxAge), ("min-fresh=51", .requestMinFresh), ("min-fresh=x", .requestMinFresh),
        ("no-store", .requestNoStore),
    ])
    func aRequestCanRefuseAFreshResponse(_ directive: String, reason: CacheReason) throws {
        try store(["Cache-Control": "max-age=60"], age: 10)
        let response = try get(["Cache-Control": directive])
        #expect(!response.isCached)
        #expect(response.reason == reason)
    }

    @Test(arguments: ["max-age=10", "min-fresh=50", "max-age=3600", "foo", "max-stale", "no-transform"])
    func otherDirectivesOfARequestDoNotRefuseAFreshResponse(_ directive: String) throws {
        try store(["Cache-Control": "max-age=60"], age: 10)
        #expect(try get(["Cache-Control": directive]).isCached)
    }

    @Test func pragmaAsksForValidation() throws {
        try store(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        #expect(try get(["Pragma": "no-cache"]).forwarded.first?["If-None-Match"] == "\"a\"")
    }

    @Test func aResponseToNoStoreIsNotStored() throws {
        try cache.get(["Cache-Control": "no-store"], OriginAnswer(200, ["Cache-Control": "max-age=60"]))
        #expect(cache.store.count == 0)
        #expect(!(try get().isCached))
    }

    @Test func maxStaleAcceptsAStaleResponseWithinItsLimit() throws {
        try store(["Cache-Control": "max-age=60"], age: 70)
        #expect(try get(["Cache-Control": "max-stale"]).reason == .maxStale)
        #expect(try get(["Cache-Control": "max-stale=10"]).isCached)
        #expect(try get(["Cache-Control": "max-stale=10, max-age=70"]).isCached)
        #expect(!(try get(["Cache-Control": "max-stale=10, max-age=69"]).isCached))
    }

    @Test func maxStaleBelowTheStalenessIsNotEnough() throws {
        try store(["Cache-Control": "max-age=60"], age: 70)
        #expect(!(try get(["Cache-Control": "max-stale=9"]).isCached))
    }

    @Test(arguments: ["must-revalidate", "no-cache"])
    func noPermissionOvercomesAProhibition(_ directive: String) throws {
        try store(
            ["Cache-Control": "max-age=60, \(directive), stale-while-revalidate=100, stale-if-error=100"], age: 70)
        #expect(!(try get(["Cache-Control": "max-stale"]).isCached))
    }

    @Test func onlyIfCachedFailsWithoutAUsableResponse() throws {
        #expect(throws: CacheSimulator.NotStored.self) { try get(["Cache-Control": "only-if-cached"]) }
        try store(["Cache-Control": "max-age=60"], age: 10)
        #expect(try get(["Cache-Control": "only-if-cached"]).isCached)
        cache.advance(60)
        #expect(throws: CacheSimulator.NotStored.self) { try get(["Cache-Control": "only-if-cached"]) }
        #expect(try get(["Cache-Control": "only-if-cached, max-stale=30"]).isCached)
    }

    // MARK: The choice of a request

    @Test func reloadAndNoStoreGoToTheNetwork() throws {
        try store(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        let reloaded = try get(choice: .reload)
        #expect(reloaded.forwarded == [["Cache-Control": "no-cache"]])
        #expect(try get().body == "new")
        #expect(try get(choice: .noStore).forwarded == [[:]])
        #expect(try get().isCached)
    }

    @Test func theChoiceNoStoreStoresNothing() throws {
        _ = try get(choice: .noStore)
        #expect(cache.store.count == 0)
    }

    @Test func revalidateAsksTheServerUnlessTheResponseIsImmutable() throws {
        try store(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        #expect(try get(choice: .revalidate).forwarded.first?["If-None-Match"] == "\"a\"")
        try store(["Cache-Control": "max-age=60, immutable", "ETag": "\"a\""])
        cache.advance(1)
        _ = try get(choice: .reload)
        try store(["Cache-Control": "no-store"])
        let other = CacheSimulator()
        try other.get(OriginAnswer(200, ["Cache-Control": "max-age=60, immutable", "ETag": "\"a\""]))
        let fresh = try other.send(try other.request(choice: .revalidate)) { _ in OriginAnswer() }
        #expect(fresh.reason == .immutable)
        #expect(fresh.isCached)
        other.advance(60)
        let stale = try other.send(try other.request(choice: .revalidate)) { _ in OriginAnswer() }
        #expect(stale.forwarded.first?["If-None-Match"] == "\"a\"")
    }

    @Test(arguments: ["max-age=60", "max-age=60, must-revalidate", "max-age=60, no-cache", "max-age=0"])
    func preferStoredAndOnlyStoredTakeAnyAge(_ control: String) throws {
        try store(["Cache-Control": control, "ETag": "\"a\""], age: 5_000)
        #expect(try get(choice: .preferStored).isCached)
        #expect(try get(choice: .onlyStored).isCached)
    }

    @Test(arguments: ["no-cache", "max-age=0", "min-fresh=5000", "max-stale=1"])
    func preferStoredAndOnlyStoredAreAboveTheDirectivesOfTheRequest(_ directive: String) throws {
        try store(["Cache-Control": "max-age=60", "ETag": "\"a\""], age: 70)
        #expect(try get(["Cache-Control": directive], choice: .preferStored).isCached)
        #expect(try get(["Cache-Control": directive], choice: .onlyStored).isCached)
    }

    @Test func noStoreAndOnlyIfCachedCountBesidePreferStoredAndOnlyStored() throws {
        let missing: Headers = ["Cache-Control": "only-if-cached"]
        #expect(throws: CacheSimulator.NotStored.self) { try get(missing, choice: .preferStored) }
        try store(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        #expect(!(try get(["Cache-Control": "no-store"], choice: .preferStored).isCached))
        #expect(throws: CacheSimulator.NotStored.self) { try get(["Cache-Control": "no-store"], choice: .onlyStored) }
    }

    @Test func withoutAStoredResponsePreferStoredSendsAndOnlyStoredFails() throws {
        #expect(throws: CacheSimulator.NotStored.self) { try get(choice: .onlyStored) }
        #expect(!(try get(choice: .preferStored).isCached))
        #expect(try get(choice: .onlyStored).reason == .fresh)
        #expect(throws: CacheSimulator.NotStored.self) {
            try cache.send(try cache.request("POST", choice: .onlyStored)) { _ in OriginAnswer() }
        }
    }

    // MARK: Stale while revalidate (RFC 5861 §3)

    @Test func aStaleResponseIsServedWhileItIsRefreshed() throws {
        try store(["Cache-Control": "max-age=60, stale-while-revalidate=30"], age: 90)
        let response = try get()
        #expect(response.isCached)
        #expect(response.refreshes)
        #expect(response.reason == .staleWhileRevalidate)
        cache.advance(1)
        #expect(!(try get().isCached))
    }

    @Test(arguments: ["max-age=500", "min-fresh=0", "no-cache"])
    func aRequestThatLimitsTheAgeIsNotServedStale(_ directive: String) throws {
        try store(["Cache-Control": "max-age=60, stale-while-revalidate=30"], age: 70)
        #expect(!(try get(["Cache-Control": directive]).isCached))
    }

    // MARK: Clocks (§4.2.3)

    @Test func aClockThatIsSetBackMakesResponsesStale() throws {
        try store(["Cache-Control": "max-age=60, stale-while-revalidate=30, stale-if-error=30"])
        cache.advance(-3_600)
        let response = try get()
        #expect(!response.isCached)
        #expect(response.reason == .stale)
    }

    @Test func aClockThatIsSetForwardMakesResponsesOlder() throws {
        try store(["Cache-Control": "max-age=60"])
        cache.advance(1 << 40)
        #expect(!(try get().isCached))
    }

    // MARK: Variants (§4.1)

    @Test func variantsAreKeptSideBySide() throws {
        let answer = { (body: String) in OriginAnswer(200, ["Cache-Control": "max-age=60", "Vary": "Foo"], body) }
        try cache.get(["Foo": "1"], answer("one"))
        let second = try cache.get(["Foo": "2"], answer("two"))
        #expect(second.reason == .noVariant)
        #expect(try cache.get(["Foo": "1"], answer("x")).body == "one")
        #expect(try cache.get(["Foo": "2"], answer("x")).body == "two")
        #expect(!(try cache.get([:], answer("none")).isCached))
        #expect(try cache.get([:], answer("x")).body == "none")
    }

    @Test func theNewestMatchingResponseIsServed() throws {
        try cache.get(["A": "1"], OriginAnswer(200, ["Cache-Control": "max-age=60", "Vary": "A"], "old"))
        cache.advance(1)
        // Without Vary it matches each request, and takes the place of the response that it outdates.
        try cache.get(["A": "2"], OriginAnswer(200, ["Cache-Control": "max-age=60"], "new"))
        #expect(try cache.get(["A": "1"], OriginAnswer()).body == "new")
        #expect(try cache.get(["A": "2"], OriginAnswer()).body == "new")
    }

    @Test func equivalentURLsShareAResponse() throws {
        let headers: Headers = ["Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"utm\")"]
        try cache.get(url: "http://example.com/p?a=1&utm=2", OriginAnswer(200, headers, "shared"))
        #expect(try cache.get(url: "http://example.com/p?utm=9&a=1", OriginAnswer()).body == "shared")
        #expect(!(try cache.get(url: "http://example.com/p?a=2", OriginAnswer()).isCached))
    }

    // MARK: Users and trust

    @Test func nothingCrossesAKey() throws {
        let answer = OriginAnswer(200, ["Cache-Control": "max-age=60"])
        let first = try cache.request("GET", "https://example.com/a?q=1", partition: "one", trust: "pinned")
        try cache.send(first) { _ in answer }
        #expect(try cache.send(first) { _ in answer }.isCached)
        for other in [
            try cache.request("GET", "https://example.com/a?q=1", partition: "two", trust: "pinned"),
            try cache.request("GET", "https://example.com/a?q=1", partition: "one", trust: "any"),
            try cache.request("GET", "https://example.com/a?q=2", partition: "one", trust: "pinned"),
            try cache.request("GET", "https://example.com/a", partition: "one", trust: "pinned"),
            try cache.request("GET", "http://example.com/a?q=1", partition: "one", trust: "pinned"),
            try cache.request("GET", "https://example.com:444/a?q=1", partition: "one", trust: "pinned"),
            try cache.request("GET", "https://example.org/a?q=1", partition: "one", trust: "pinned"),
            try cache.request("GET", "https://example.com/A?q=1", partition: "one", trust: "pinned"),
        ] {
            #expect(!(try cache.send(other) { _ in OriginAnswer(200, ["Cache-Control": "no-store"]) }.isCached))
        }
        #expect(try cache.send(first) { _ in answer }.isCached)
    }

    @Test func anEntryOfAnotherKeyIsIgnored() throws {
        try store(["Cache-Control": "max-age=60"])
        let entries = cache.store.found(for: try cache.request().key)
        #expect(entries.count == 1)
        for other in [
            try cache.request(partition: "one"), try cache.request(trust: "pinned"),
            try cache.request("GET", "http://b.c/a"),
        ] {
            #expect(cache.policy.decide(other, entries: entries, now: cache.now).reason == .nothingStored)
        }
    }

    @Test func aResponseToCredentialsAnswersTheSameCredentialsAlone() throws {
        let answer = OriginAnswer(200, ["Cache-Control": "public, max-age=60"], "for ada")
        try cache.send(try cache.request(credentials: "ada")) { _ in answer }
        #expect(try cache.send(try cache.request(credentials: "ada")) { _ in answer }.isCached)
        #expect(
            !(try cache.send(try cache.request(credentials: "bob", partition: "")) { _ in
                OriginAnswer(200, ["Cache-Control": "no-store"])
            }.isCached))
        #expect(
            !(try cache.send(try cache.request()) { _ in OriginAnswer(200, ["Cache-Control": "no-store"]) }.isCached))
        #expect(try cache.send(try cache.request(credentials: "ada")) { _ in answer }.isCached)
    }

    @Test func aResponseWithoutCredentialsAnswersAllRequests() throws {
        let answer = OriginAnswer(200, ["Cache-Control": "max-age=60"])
        try cache.send(try cache.request()) { _ in answer }
        #expect(try cache.send(try cache.request(credentials: "ada")) { _ in answer }.isCached)
    }
}
