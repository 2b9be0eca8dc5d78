import Tern
import Testing

@testable import TernHTTPCache

/// Tests ranges of stored bodies, and 206 responses (RFC 9111 §3.3, §3.4, RFC 9110 §14).
@Suite struct CacheRangeTests {
    private let cache = CacheSimulator()
    private let whole = "0123456789"

    private func storeWhole(_ headers: Headers = ["ETag": "\"a\""]) throws {
        try cache.get(OriginAnswer(200, headers.overriding(with: ["Cache-Control": "max-age=60"]), whole))
    }

    private func part(_ range: String, _ body: String, _ headers: Headers = ["ETag": "\"a\""]) -> OriginAnswer {
        OriginAnswer(
            206,
            headers.overriding(with: [
                "Cache-Control": "max-age=60", "Content-Range": "bytes \(range)",
                "Content-Length": "\(body.utf8.count)",
            ]), body)
    }

    @Test(arguments: [
        ("bytes=0-1", "01", "bytes 0-1/10"), ("bytes=8-", "89", "bytes 8-9/10"), ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=0-99", "0123456789", "bytes 0-9/10"), ("bytes=-99", "0123456789", "bytes 0-9/10"),
    ])
    func aRangeIsServedFromAWholeBody(_ range: String, body: String, field: String) throws {
        try storeWhole([:])
        let response = try cache.get(["Range": range], OriginAnswer())
        #expect(response.isCached)
        #expect(response.status == 206)
        #expect(response.body == body)
        #expect(response.headers["Content-Range"] == field)
        #expect(response.headers["Content-Length"] == "\(body.utf8.count)")
    }

    @Test func aRangeBehindTheEndIsUnsatisfiable() throws {
        try storeWhole()
        let response = try cache.get(["Range": "bytes=10-"], OriginAnswer())
        #expect(response.status == 416)
        #expect(response.headers["Content-Range"] == "bytes */10")
        #expect(response.body.isEmpty)
    }

    @Test(arguments: ["bytes=0-1,3-4", "lines=1-2", "bytes=x"])
    func otherRangesPassThrough(_ range: String) throws {
        try storeWhole()
        let response = try cache.get(["Range": range], OriginAnswer(200, [:], "passed"))
        #expect(response.body == "passed")
        #expect(response.reason == .rangeNotSupported)
    }

    @Test(arguments: [("\"a\"", 206), ("\"b\"", 200), ("W/\"a\"", 200), ("x", 200)])
    func ifRangeNeedsTheSameStrongTag(_ tag: String, status: Int) throws {
        try storeWhole()
        #expect(try cache.get(["Range": "bytes=0-1", "If-Range": tag], OriginAnswer()).status == status)
    }

    @Test func ifRangeWithADateNeedsTheSameStrongDate() throws {
        let (old, now) = (cache.date(-100), cache.date())
        try storeWhole(["Last-Modified": old, "Date": now])
        #expect(try cache.get(["Range": "bytes=0-1", "If-Range": old], OriginAnswer()).status == 206)
        #expect(try cache.get(["Range": "bytes=0-1", "If-Range": now], OriginAnswer()).status == 200)
    }

    @Test func aConditionIsEvaluatedBeforeTheRange() throws {
        try storeWhole()
        #expect(try cache.get(["Range": "bytes=0-1", "If-None-Match": "\"a\""], OriginAnswer()).status == 304)
    }

    @Test func aRangeOfAStaleBodyIsValidatedWithItsRange() throws {
        try storeWhole()
        cache.advance(60)
        let response = try cache.get(["Range": "bytes=0-1"], OriginAnswer(304, ["ETag": "\"a\""]))
        #expect(response.forwarded == [["Range": "bytes=0-1", "If-None-Match": "\"a\""]])
        #expect(response.status == 206)
        #expect(response.body == "01")
    }

    @Test func errorsHaveNoRanges() throws {
        try cache.get(OriginAnswer(404, ["Cache-Control": "max-age=60"], "missing"))
        #expect(try cache.get(["Range": "bytes=0-1"], OriginAnswer()).status == 404)
    }

    // MARK: Stored parts

    @Test func aStoredPartServesRangesWithinIt() throws {
        try cache.get(["Range": "bytes=5-9"], part("5-9/10", "56789", [:]))
        #expect(try cache.get(["Range": "bytes=6-8"], OriginAnswer()).body == "678")
        #expect(try cache.get(["Range": "bytes=6-"], OriginAnswer()).body == "6789")
        #expect(try cache.get(["Range": "bytes=-1"], OriginAnswer()).body == "9")
        let other = try cache.get(["Range": "bytes=4-5"], part("4-5/10", "45", [:]))
        #expect(!other.isCached)
        #expect(other.reason == .partial)
    }

    @Test func aStoredPartNeverAnswersAWholeRequest() throws {
        try cache.get(["Range": "bytes=5-9"], part("5-9/10", "56789", [:]))
        let response = try cache.get(OriginAnswer(200, [:], whole))
        #expect(response.forwarded == [[:]])
        #expect(response.body == whole)
    }

    @Test func aPartThatIsEverythingIsAWholeResponse() throws {
        try cache.get(["Range": "bytes=0-"], part("0-9/10", whole))
        let response = try cache.get(OriginAnswer())
        #expect(response.status == 200)
        #expect(response.body == whole)
        #expect(response.headers["Content-Range"] == nil)
    }

    @Test func partsWithTheSameStrongValidatorAreCombined() throws {
        try cache.get(["Range": "bytes=0-3"], part("0-3/10", "0123"))
        #expect(try cache.get(["Range": "bytes=3-6"], part("3-6/10", "3456")).outcome == .combined)
        #expect(try cache.get(["Range": "bytes=1-6"], OriginAnswer()).body == "123456")
        #expect(try cache.get(["Range": "bytes=7-9"], part("7-9/10", "789")).outcome == .combined)
        #expect(try cache.get(OriginAnswer()).body == whole)
    }

    @Test func anEarlierPartIsPutBefore() throws {
        try cache.get(["Range": "bytes=5-9"], part("5-9/10", "56789"))
        try cache.get(["Range": "bytes=2-6"], part("2-6/10", "23456"))
        #expect(try cache.get(["Range": "bytes=2-9"], OriginAnswer()).body == "23456789")
    }

    @Test(arguments: ["W/\"a\"", "\"b\""])
    func otherValidatorsReplaceAPart(_ tag: String) throws {
        try cache.get(["Range": "bytes=0-3"], part("0-3/10", "0123", ["ETag": "W/\"a\""]))
        #expect(try cache.get(["Range": "bytes=4-6"], part("4-6/10", "XYZ", ["ETag": tag])).outcome == .stored)
        #expect(try cache.get(["Range": "bytes=4-5"], OriginAnswer()).body == "XY")
        #expect(!(try cache.get(["Range": "bytes=0-1"], OriginAnswer(200, [:], "new")).isCached))
    }

    @Test func partsWithAGapOrAnotherLengthAreNotCombined() throws {
        try cache.get(["Range": "bytes=0-3"], part("0-3/10", "0123"))
        #expect(try cache.get(["Range": "bytes=6-9"], part("6-9/10", "6789")).outcome == .stored)
        #expect(try cache.get(["Range": "bytes=4-5"], part("4-5/11", "45")).outcome == .stored)
    }

    @Test func aMissingStartOrEndIsRequested() throws {
        try cache.get(["Range": "bytes=5-9"], part("5-9/10", "56789"))
        let response = try cache.get(part("0-4/10", "01234"))
        #expect(response.forwarded == [["Range": "bytes=0-4", "If-Range": "\"a\""]])
        #expect(response.body == whole)
        #expect(try cache.get(OriginAnswer()).body == whole)
    }

    @Test func aChangedResponseAnswersTheRequestForTheRest() throws {
        try cache.get(["Range": "bytes=0-3"], part("0-3/10", "0123"))
        let response = try cache.get(OriginAnswer(200, ["ETag": "\"b\"", "Cache-Control": "max-age=60"], "changed"))
        #expect(response.body == "changed")
        #expect(try cache.get(OriginAnswer()).body == "changed")
    }

    @Test(arguments: [
        OriginAnswer(416, ["Content-Range": "bytes */3"], ""),
        OriginAnswer(206, ["ETag": "\"b\"", "Content-Range": "bytes 4-9/10"], "456789"),
        OriginAnswer(206, ["ETag": "\"a\"", "Content-Range": "bytes 5-9/10"], "56789"),
        OriginAnswer(206, ["ETag": "\"a\"", "Content-Range": "bytes 4-8/10"], "45678"),
        OriginAnswer(206, ["ETag": "\"a\""], "456789"), OriginAnswer(304, ["ETag": "\"a\""], ""),
    ])
    func aRestThatDoesNotFitIsNeverDelivered(_ answer: OriginAnswer) throws {
        try cache.get(["Range": "bytes=0-3"], part("0-3/10", "0123"))
        var count = 0
        let response = try cache.send(try cache.request()) { _ in
            count += 1
            return count == 1 ? answer : OriginAnswer(200, [:], "whole")
        }
        #expect(response.body == "whole")
        #expect(response.forwarded.last == [:])
    }

    @Test func aPartInTheMiddleIsNotCompleted() throws {
        try cache.get(["Range": "bytes=3-5"], part("3-5/10", "345"))
        #expect(try cache.get(OriginAnswer(200, [:], whole)).forwarded == [[:]])
    }

    @Test func aPartWithAFalseLengthIsNotStored() throws {
        // Six bytes are stated, and five arrive.
        #expect(try cache.get(["Range": "bytes=4-9"], part("4-9/10", "45678", [:])).outcome == .incomplete)
        #expect(!(try cache.get(["Range": "bytes=4-5"], OriginAnswer()).isCached))
    }

    @Test func aPartThatNobodyRequestedPassesThrough() throws {
        #expect(try cache.get(part("0-3/10", "0123")).outcome == .malformedRange)
        #expect(cache.store.count == 0)
    }

    @Test func aPartOfAWholeResponseKeepsIt() throws {
        try storeWhole()
        let response = try cache.send(
            try cache.request("GET", "http://example.com/a", ["Range": "bytes=2-3"], choice: .reload)
        ) { _ in part("2-3/10", "23") }
        #expect(response.outcome == .combined)
        #expect(try cache.get(OriginAnswer()).body == whole)
    }

    @Test(arguments: [CacheReason.noStore, .varyEverything, .headTooLarge])
    func aRestThatForbidsStoringIsDeliveredAndNotStored(_ reason: CacheReason) throws {
        try cache.get(["Range": "bytes=0-3"], part("0-3/10", "0123"))
        var headers: Headers = ["ETag": "\"a\"", "Content-Range": "bytes 4-9/10"]
        switch reason {
        case .noStore: headers["Cache-Control"] = "no-store"
        case .varyEverything: headers["Vary"] = "*"
        default: headers["X"] = String(repeating: "x", count: 50_000)
        }
        let response = try cache.get(OriginAnswer(206, headers, "456789"))
        #expect(response.status == 200)
        #expect(response.body == whole)
        #expect(response.outcome == reason)
        #expect(cache.store.count == 0)
        #expect(try cache.get(OriginAnswer(200, [:], "new")).forwarded == [[:]])
    }
}
