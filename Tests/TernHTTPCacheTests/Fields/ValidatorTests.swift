import Tern
import Testing

@testable import TernHTTPCache

/// Tests entity tags, dates as validators, and ranges (RFC 9110 §8.8, §13, §14).
@Suite struct ValidatorTests {
    private let now = CacheTime(milliseconds: 784_111_777_000)  // Sun, 06 Nov 1994 08:49:37 GMT

    @Test(arguments: [
        ("\"a\"", "\"a\"", true, true), ("W/\"a\"", "\"a\"", true, false), ("W/\"a\"", "W/\"a\"", true, false),
        ("\"a\"", "\"b\"", false, false), ("\"a\"", "\"A\"", false, false), ("\"\"", "\"\"", true, true),
        ("w/\"a\"", "\"a\"", false, false), ("abc", "abc", true, false), ("abc", "\"abc\"", false, false),
        ("\"\u{212A}\"", "\"K\"", false, false), ("\"\u{E9}\"", "\"e\u{301}\"", false, false),
        ("\u{E9}", "e\u{301}", false, false), ("\"\u{E9}\"", "\"\u{E9}\"", true, true),
        ("\"a\\\"", "\"a\\\"", true, true), ("\"a\"b\"", "\"a\"b\"", true, false), ("W/abc", "W/abc", true, false),
    ])
    func tagsAreComparedWeaklyAndStrongly(_ left: String, _ right: String, weak: Bool, strong: Bool) throws {
        let (left, right) = (try #require(EntityTag(left)), try #require(EntityTag(right)))
        #expect(left.matchesWeakly(right) == weak)
        #expect(left.matchesStrongly(right) == strong)
    }

    @Test func tagsThatCannotBeSentAreIgnored() {
        #expect(EntityTag("") == nil)
        #expect(EntityTag("\"" + String(repeating: "x", count: 2_000) + "\"") == nil)
        #expect(EntityTag("\"a\u{7F}\"") == nil)
        #expect(EntityTag("\"a\r\nX: y\"") == nil)
        var two: Headers = ["ETag": "\"a\""]
        two.append(name: "ETag", value: "\"a\"")
        #expect(EntityTag(of: two)?.text == "\"a\"")
        two.append(name: "ETag", value: "\"b\"")
        #expect(EntityTag(of: two) == nil)
    }

    @Test func listsAreSplitOutsideOfQuotes() throws {
        let tag = try #require(EntityTag("\"a,b\""))
        #expect(EntityTagList(["If-None-Match": "\"x\", \"a,b\" , W/\"y\""])?.contains(tag) == true)
        #expect(EntityTagList(["If-None-Match": "\"x\\\", \"a,b\""])?.contains(tag) == true)
        #expect(EntityTagList(["If-None-Match": "\"x\""])?.contains(tag) == false)
        #expect(EntityTagList(["If-None-Match": "*"])?.contains(nil) == true)
        #expect(EntityTagList(["If-None-Match": "\"x\""])?.contains(nil) == false)
        #expect(EntityTagList([:]) == nil)
    }

    @Test func aDateIsStrongIfItIsAMinuteBeforeTheResponse() {
        func validators(_ date: String?) -> Validators {
            var headers: Headers = ["Last-Modified": "Sun, 06 Nov 1994 08:48:37 GMT"]
            headers["Date"] = date
            return Validators(headers, responseTime: now)
        }
        #expect(validators("Sun, 06 Nov 1994 08:49:37 GMT").isDateStrong)
        #expect(!validators("Sun, 06 Nov 1994 08:49:36 GMT").isDateStrong)
        #expect(!validators(nil).isDateStrong)
        #expect(validators("Sun, 06 Nov 1994 08:49:37 GMT").strongText == "Sun, 06 Nov 1994 08:48:37 GMT")
        #expect(Validators(["ETag": "W/\"a\""], responseTime: now).strongText == nil)
        #expect(Validators(["Last-Modified": "x"], responseTime: now).isEmpty)
    }

    @Test func onlyStrongValidatorsCombine() {
        func validators(_ headers: Headers) -> Validators {
            Validators(headers.overriding(with: ["Date": "Sun, 06 Nov 1994 08:49:37 GMT"]), responseTime: now)
        }
        let date: Headers = ["Last-Modified": "Sun, 06 Nov 1994 07:00:00 GMT"]
        #expect(validators(["ETag": "\"a\""]).isSameStrongly(as: validators(["ETag": "\"a\""])))
        #expect(!validators(["ETag": "W/\"a\""]).isSameStrongly(as: validators(["ETag": "W/\"a\""])))
        #expect(!validators(["ETag": "\"a\""]).isSameStrongly(as: validators(["ETag": "\"b\""])))
        #expect(!validators(["ETag": "\"a\""]).isSameStrongly(as: validators(date)))
        #expect(validators(date).isSameStrongly(as: validators(date)))
        #expect(!validators([:]).isSameStrongly(as: validators([:])))
    }

    @Test(
        arguments: [
            ("bytes=0-1", .bytes(first: 0, last: 1)), ("BYTES=5-", .bytes(first: 5, last: nil)),
            ("bytes=-3", .suffix(3)),
            ("bytes= 0-1 ", .bytes(first: 0, last: 1)), ("bytes=0-1,3-4", .other), ("bytes=1-0", .other),
            ("bytes=-", .other),
            ("bytes=", .other), ("bytes=a-b", .other), ("lines=0-1", .other), ("bytes=0--1", .other), ("bytes", .other),
            ("bytes=99999999999999999999999-", .bytes(first: ByteRange.limit, last: nil)),
        ] as [(String, RangeRequest)])
    func rangesAreRead(_ text: String, expected: RangeRequest) {
        #expect(RangeRequest(["Range": text]) == expected)
    }

    @Test func numbersSaturateAtEveryLimit() {
        let digits = String(repeating: "9", count: 40)
        for limit in [1, 1 << 31, ByteRange.limit, Int64.max] {
            #expect(FieldText.number(digits.utf8, limit: limit) == limit)
            #expect(FieldText.number("9223372036854775808".utf8, limit: limit) == limit)
        }
        #expect(FieldText.number("9223372036854775807".utf8, limit: .max) == .max)
        #expect(FieldText.number((digits + "x").utf8, limit: 5) == nil)
    }

    @Test func rangesAreResolved() {
        func range(_ first: Int64, _ count: Int64) -> RangeRequest.Resolution {
            .range(ByteRange(first: first, count: count))
        }
        #expect(RangeRequest.bytes(first: 0, last: 99).resolved(total: 10) == range(0, 10))
        #expect(RangeRequest.bytes(first: 9, last: nil).resolved(total: 10) == range(9, 1))
        #expect(RangeRequest.bytes(first: 10, last: nil).resolved(total: 10) == .unsatisfiable)
        #expect(RangeRequest.bytes(first: 0, last: nil).resolved(total: 0) == .unsatisfiable)
        #expect(RangeRequest.suffix(3).resolved(total: 10) == range(7, 3))
        #expect(RangeRequest.suffix(30).resolved(total: 10) == range(0, 10))
        #expect(RangeRequest.suffix(0).resolved(total: 10) == .unsatisfiable)
        #expect(RangeRequest.suffix(3).resolved(total: nil) == .unknown)
        #expect(RangeRequest.bytes(first: 2, last: 3).resolved(total: nil) == range(2, 2))
        #expect(RangeRequest.bytes(first: ByteRange.limit, last: ByteRange.limit).resolved(total: nil) != .unknown)
    }

    @Test(arguments: [
        "bytes 0-4", "bytes 4-0/10", "bytes 0-9/9", "bytes */10", "lines 0-1/2", "bytes 0-1/x", "bytes -1/2", "0-1/2",
        "bytes 0-1/2/3", "bytes  0-1/2", "",
    ])
    func contradictoryContentRangesAreNone(_ text: String) {
        #expect(ByteContentRange(["Content-Range": text]) == nil)
    }

    @Test func contentRangesAreRead() {
        #expect(ByteContentRange(["Content-Range": "bytes 5-9/10"])?.range == ByteRange(first: 5, count: 5))
        #expect(ByteContentRange(["Content-Range": "Bytes 5-9/*"])?.total == .some(nil))
        #expect(ByteContentRange.text(ByteRange(first: 5, count: 5), total: 10) == "bytes 5-9/10")
        var two: Headers = ["Content-Range": "bytes 5-9/10"]
        two.append(name: "Content-Range", value: "bytes 5-9/10")
        #expect(ByteContentRange(two) == nil)
    }
}
