import Tern
import Testing

@Suite("ResumedDownloadRules")
struct ResumedDownloadRulesTests {
    typealias Decision = ResumedDownloadRules.Decision

    private static let date = "Wed, 21 Oct 2015 07:28:00 GMT"
    private static let tagged = ResumedDownloadRules(offset: 10, validator: "\"a\"", totalBytes: 20)
    private static let dated = ResumedDownloadRules(offset: 10, validator: date, totalBytes: 20)

    private func decision(
        _ rules: ResumedDownloadRules = tagged, status: Int = 206, isSameOrigin: Bool = true, headers: Headers
    ) -> Decision {
        rules.decision(on: status, headers: headers, isSameOrigin: isSameOrigin)
    }

    @Test func restIsRequestedByRangeAndValidator() {
        #expect(Self.tagged.fields == ["Range": "bytes=10-", "If-Range": "\"a\""])
    }

    @Test(
        arguments: [
            (200, .replace), (203, .replace), (204, .replace), (304, .replace), (404, .replace), (503, .replace),
            (416, .startOver), (206, .append(total: 20)),
        ] as [(Int, Decision)])
    func statusDecidesFirst(status: Int, expected: Decision) {
        #expect(decision(status: status, headers: ["Content-Range": "bytes 10-19/20", "ETag": "\"a\""]) == expected)
    }

    @Test(
        arguments: [
            ("bytes 10-19/20", 20, 20), ("bytes 10-19/*", 20, 20), ("bytes 10-19/20", nil, 20),
            ("bytes 10-19/*", nil, nil), ("bytes 10-18/20", 20, nil), ("bytes 10-18/*", 20, nil),
            ("bytes 10-18/20", nil, nil), ("bytes 10-18/19", 20, nil), ("bytes 10-20/21", 20, nil),
            ("bytes 10-20/21", nil, 21), ("bytes 9-19/20", 20, nil), ("bytes 11-19/20", 20, nil),
            ("bytes 0-19/20", 20, nil), ("bytes 10-20/20", 20, nil), ("bytes */20", 20, nil),
            ("items 10-19/20", 20, nil), ("nonsense", 20, nil), ("", 20, nil),
            ("bytes 10-9223372036854775807/*", 20, nil), ("bytes 10-9223372036854775807/*", nil, nil),
            ("bytes 10-9223372036854775806/9223372036854775807", nil, .max),
        ] as [(String, Int64?, Int64?)])
    func partMustBeTheCompleteRest(range: String, known: Int64?, total: Int64?) {
        let rules = ResumedDownloadRules(offset: 10, validator: "\"a\"", totalBytes: known)
        let expected = total.map { Decision.append(total: $0) } ?? .startOver
        #expect(decision(rules, headers: ["Content-Range": range, "ETag": "\"a\""]) == expected)
    }

    /// Two versions of a file can have entity tags that are equal by canonical equivalence only.
    @Test func entityTagIsComparedByItsBytes() {
        let rules = ResumedDownloadRules(offset: 10, validator: "\"\u{E9}\"", totalBytes: 20)
        let part: Headers = ["Content-Range": "bytes 10-19/20"]
        #expect(decision(rules, headers: part.overriding(with: ["ETag": "\"e\u{301}\""])) == .startOver)
        #expect(decision(rules, headers: part.overriding(with: ["ETag": "\"\u{E9}\""])) == .append(total: 20))
    }

    @Test func everyRangeOfASmallFileIsDecidedByItsEnds() {
        for first in 0...4 {
            for last in first...5 {
                for total in [nil, 3, 4, 5, 6] as [Int?] {
                    let field = "bytes \(first)-\(last)/\(total.map(String.init) ?? "*")"
                    let rules = ResumedDownloadRules(offset: 2, validator: "\"a\"", totalBytes: 5)
                    let isRest = first == 2 && last == 4 && (total ?? 5) == 5
                    let expected = isRest ? Decision.append(total: 5) : .startOver
                    #expect(
                        decision(rules, headers: ["Content-Range": field, "ETag": "\"a\""]) == expected,
                        "\(field)")
                }
            }
        }
    }

    @Test func missingAndMultipleRangesAreRefused() {
        #expect(decision(headers: ["ETag": "\"a\""]) == .startOver)
        var twice: Headers = ["Content-Range": "bytes 10-19/20", "ETag": "\"a\""]
        twice.append(name: "Content-Range", value: "bytes 10-19/20")
        #expect(decision(headers: twice) == .startOver)
    }

    @Test(
        arguments: [("\"a\"", true), ("W/\"a\"", false), ("\"b\"", false), ("a", false), (nil, false)]
            as [(String?, Bool)])
    func entityTagMustMatch(tag: String?, isSame: Bool) {
        var headers: Headers = ["Content-Range": "bytes 10-19/20", "Last-Modified": Self.date]
        if let tag { headers["ETag"] = tag }
        let expected = isSame ? Decision.append(total: 20) : .startOver
        for isSameOrigin in [true, false] {
            #expect(decision(isSameOrigin: isSameOrigin, headers: headers) == expected)
        }
    }

    @Test(
        arguments: [
            (date, "bytes 10-19/20", 20, true, true), (date, "bytes 10-19/20", 20, false, true),
            (date, "bytes 10-19/*", 20, true, true), (date, "bytes 10-19/20", nil, true, true),
            ("Thu, 22 Oct 2015 07:28:00 GMT", "bytes 10-19/20", 20, true, false),
            (nil, "bytes 10-19/20", 20, true, true), (nil, "bytes 10-19/20", 20, false, false),
            (nil, "bytes 10-19/*", 20, true, false), (nil, "bytes 10-19/20", nil, true, false),
        ] as [(String?, String, Int64?, Bool, Bool)])
    func dateIsOptionalWithAKnownLength(
        sent: String?, range: String, known: Int64?, isSameOrigin: Bool, isUsed: Bool
    ) {
        let rules = ResumedDownloadRules(offset: 10, validator: Self.date, totalBytes: known)
        var headers: Headers = ["Content-Range": range]
        if let sent { headers["Last-Modified"] = sent }
        let expected = isUsed ? Decision.append(total: 20) : .startOver
        #expect(decision(rules, isSameOrigin: isSameOrigin, headers: headers) == expected)
    }

    @Test(
        arguments: [
            ("Content-Length", "10", true), ("Content-Length", "9", false), ("Content-Length", "20", false),
            ("Content-Length", "x", false), ("Content-Encoding", "gzip", false),
        ])
    func contradictoryRangeIsNil(name: String, value: String, isUsed: Bool) {
        var headers: Headers = ["Content-Range": "bytes 10-19/20", "ETag": "\"a\""]
        headers[name] = value
        #expect(decision(headers: headers) == (isUsed ? .append(total: 20) : .startOver))
    }
}
