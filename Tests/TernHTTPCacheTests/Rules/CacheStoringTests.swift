import Tern
import Testing

@testable import TernHTTPCache

/// Tests which responses are stored, and which of their fields (RFC 9111 §3).
@Suite struct CacheStoringTests {
    private let cache = CacheSimulator()

    private func outcome(_ status: Int = 200, _ headers: Headers, method: String = "GET") throws -> CacheReason? {
        try CacheSimulator().send(try cache.request(method)) { _ in OriginAnswer(status, headers) }.outcome
    }

    @Test(arguments: 200...599)
    func everyFinalStatusWithALifetimeIsStoredUnlessItIsForbidden(_ status: Int) throws {
        let reason = try outcome(status, ["Cache-Control": "max-age=60", "ETag": "\"a\""])
        switch status {
        case 304: #expect(reason == .ownCondition)
        case 206: #expect(reason == .malformedRange)
        // About one exchange, connection, condition or range, or forbidden by RFC 6585.
        case 401, 407, 408, 412, 416, 417, 421, 428, 429, 431, 511: #expect(reason == .statusNotStored)
        default: #expect(reason == .stored)
        }
    }

    @Test(arguments: [
        ("no-store", CacheReason.noStore), ("max-age=60, No-Store", .noStore), ("no-store=\"x\"", .noStore),
        ("max-age=0", .notUsable), ("no-cache, max-age=60", .notUsable), ("public", .notUsable),
        ("max-age=x", .notUsable),
        ("max-age=60", .stored), ("private, max-age=60", .stored), ("private=\"X\", max-age=60", .stored),
        ("public, max-age=60", .stored), ("max-age=0, stale-while-revalidate=9", .stored),
        ("max-age=0, stale-if-error=9", .stored), ("max-age=0, stale-if-error=9, must-revalidate", .notUsable),
        ("must-understand, no-store, max-age=60", .stored), ("must-understand, max-age=60", .stored),
    ])
    func theDirectivesDecide(_ control: String, expected: CacheReason) throws {
        #expect(try outcome(200, ["Cache-Control": control]) == expected)
    }

    @Test func mustUnderstandKeepsUnknownStatusesOut() throws {
        #expect(try outcome(299, ["Cache-Control": "must-understand, max-age=60"]) == .statusNotUnderstood)
        #expect(try outcome(299, ["Cache-Control": "must-understand, no-store, max-age=60"]) == .statusNotUnderstood)
        #expect(try outcome(299, ["Cache-Control": "max-age=60"]) == .stored)
        #expect(try outcome(404, ["Cache-Control": "must-understand, no-store, max-age=60"]) == .stored)
    }

    @Test func aResponseNeedsAValidatorOrALifetime() throws {
        #expect(try outcome(200, [:]) == .notUsable)
        #expect(try outcome(200, ["ETag": "\"a\""]) == .stored)
        #expect(try outcome(200, ["Last-Modified": cache.date(-100)]) == .stored)
        #expect(try outcome(200, ["Last-Modified": "invalid"]) == .notUsable)
        #expect(try outcome(200, ["Expires": cache.date(60)]) == .stored)
        #expect(try outcome(200, ["Expires": "0"]) == .notUsable)
        #expect(try outcome(502, ["Cache-Control": "max-age=60"]) == .stored)
    }

    @Test func varyStarIsNotStored() throws {
        #expect(try outcome(200, ["Cache-Control": "max-age=60", "Vary": "*"]) == .varyEverything)
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"])
    func onlyGetAndHeadAreStored(_ method: String) throws {
        let reason = try outcome(200, ["Cache-Control": "max-age=60", "ETag": "\"a\""], method: method)
        #expect(reason == (["OPTIONS", "TRACE"].contains(method) ? .method : .unsafeMethod))
    }

    @Test func largeHeadsAndLongURLsAreNotStored() throws {
        var headers: Headers = ["Cache-Control": "max-age=60", "X": String(repeating: "x", count: 50_000)]
        #expect(try outcome(200, headers) == .headTooLarge)
        headers["X"] = nil
        for index in 0..<600 { headers.append(name: "X\(index)", value: "") }
        #expect(try outcome(200, headers) == .headTooLarge)
        let url = "http://example.com/" + String(repeating: "a", count: 9_000)
        let long = try cache.send(try cache.request("GET", url)) { _ in
            OriginAnswer(200, ["Cache-Control": "max-age=60"])
        }
        #expect(long.outcome == .urlTooLong)
    }

    @Test func fieldsOfOneConnectionOrExchangeAreNotStored() throws {
        let headers: Headers = [
            "Cache-Control": "max-age=60", "Connection": "close, A, b", "A": "1", "B": "2", "C": "3",
            "Keep-Alive": "x", "Proxy-Connection": "x", "TE": "x", "Transfer-Encoding": "x", "Upgrade": "x",
            "Trailer": "x", "Proxy-Authenticate": "x", "Proxy-Authentication-Info": "x", "Proxy-Authorization": "x",
            "Authentication-Info": "x", "Set-Cookie": "a=b", "Set-Cookie2": "a=b", "WWW-Authenticate": "kept",
            "Content-Type": "kept", "X-Frame-Options": "kept",
        ]
        try cache.get(OriginAnswer(200, headers))
        let stored = try cache.get(OriginAnswer()).headers
        #expect(
            Set(stored.map { $0.name.lowercased() }) == [
                "cache-control", "c", "www-authenticate", "content-type", "x-frame-options", "date", "age",
                "set-cookie",
                "set-cookie2",
            ])
        #expect(stored["C"] == "3")
    }

    @Test func theFirstDeliveryHasAllFields() throws {
        let first = try cache.get(OriginAnswer(200, ["Cache-Control": "max-age=60", "Set-Cookie": "a=b"]))
        #expect(first.headers["Set-Cookie"] == "a=b")
    }

    @Test func aNewerResponseThatIsNotStoredRemovesTheOlder() throws {
        try cache.get(OriginAnswer(200, ["Cache-Control": "max-age=60"], "old"))
        try cache.send(try cache.request(choice: .reload)) { _ in
            OriginAnswer(200, ["Cache-Control": "no-store"], "new")
        }
        #expect(try cache.get(OriginAnswer(200, [:], "third")).body == "third")
    }

    @Test func anErrorDoesNotRemoveAStoredResponse() throws {
        try cache.get(OriginAnswer(200, ["Cache-Control": "max-age=60"], "old"))
        try cache.send(try cache.request(choice: .reload)) { _ in OriginAnswer(500, [:], "error") }
        #expect(try cache.get(OriginAnswer()).body == "old")
    }

    @Test(arguments: [("If-Match", "\"b\"", 412), ("Range", "bytes=99-", 416)])
    func aRefusedConditionOrRangeDoesNotReplaceAStoredResponse(_ name: String, value: String, status: Int) throws {
        try cache.get(OriginAnswer(200, ["Cache-Control": "max-age=60"], "old"))
        let request = try cache.request("GET", "http://example.com/a", [name: value], choice: .reload)
        let refusal = try cache.send(request) { _ in OriginAnswer(status, ["Cache-Control": "max-age=60"], "refused") }
        #expect(refusal.status == status)
        let response = try cache.get(OriginAnswer())
        #expect(response.isCached)
        #expect(response.status == 200)
        #expect(response.body == "old")
    }

    @Test func aStoredErrorIsServedWithItsStatus() throws {
        try cache.get(OriginAnswer(404, ["Cache-Control": "max-age=60"], "missing"))
        let response = try cache.get(OriginAnswer())
        #expect(response.isCached)
        #expect(response.status == 404)
        #expect(response.body == "missing")
    }

    // MARK: Incomplete responses (§3.3)

    @Test func anIncompleteResponseIsNeverServedAsWhole() throws {
        let cut = OriginAnswer(200, ["Cache-Control": "max-age=60", "Content-Length": "10"], "0123456789", cutAfter: 4)
        #expect(try cache.get(cut).outcome == .incomplete)
        #expect(!(try cache.get(OriginAnswer(200, ["Cache-Control": "no-store"])).isCached))
    }

    @Test func aBodyOfAnotherLengthThanStatedIsIncomplete() throws {
        let short = OriginAnswer(200, ["Cache-Control": "max-age=60", "Content-Length": "10"], "0123")
        #expect(try cache.get(short).outcome == .incomplete)
        #expect(cache.store.count == 0)
    }

    @Test func anIncompleteResponseWithAStrongValidatorIsCompleted() throws {
        let headers: Headers = ["Cache-Control": "max-age=60", "ETag": "\"a\"", "Content-Length": "10"]
        try cache.get(OriginAnswer(200, headers, "0123456789", cutAfter: 4))
        let response = try cache.get(
            OriginAnswer(206, ["ETag": "\"a\"", "Content-Range": "bytes 4-9/10", "Content-Length": "6"], "456789"))
        #expect(response.forwarded.first?["Range"] == "bytes=4-")
        #expect(response.forwarded.first?["If-Range"] == "\"a\"")
        #expect(response.status == 200)
        #expect(response.body == "0123456789")
        #expect(response.headers["Content-Length"] == "10")
        #expect(response.headers["Content-Range"] == nil)
        #expect(try cache.get(OriginAnswer()).body == "0123456789")
    }

    @Test func aWeakValidatorDoesNotKeepAnIncompleteResponse() throws {
        let headers: Headers = ["Cache-Control": "max-age=60", "ETag": "W/\"a\"", "Content-Length": "10"]
        #expect(try cache.get(OriginAnswer(200, headers, "0123456789", cutAfter: 4)).outcome == .incomplete)
    }
}
