import Tern
import Testing

@testable import TernTransfers

@Suite("Durable downloads: continuation")
struct ContinuationRuleTests {
    private let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    private func head(_ status: Int, _ headers: Headers, url: String = "https://a.example/f") throws -> ResponseHead {
        ResponseHead(status: status, version: .http11, target: try Request(.get, url).target, headers: headers)
    }

    private func rule(_ validators: StrongValidators, offset: Int64 = 400, size: Int64? = 1_000) -> ContinuationRule {
        ContinuationRule(offset: offset, validators: validators, size: size, origin: "https://a.example:443")
    }

    private var tagged: ContinuationRule { rule(StrongValidators(etag: "\"a\"")) }
    private var dated: ContinuationRule { rule(StrongValidators(lastModified: date)) }
    private var both: ContinuationRule { rule(StrongValidators(etag: "\"a\"", lastModified: date)) }

    private let part: Headers = ["Content-Range": "bytes 400-999/1000", "ETag": "\"a\""]

    @Test func dateIsStrongOnlyIfItIsOldEnough() throws {
        let old: Headers = ["Last-Modified": date, "Date": "Sun, 06 Nov 1994 08:50:37 GMT"]
        let new: Headers = ["Last-Modified": date, "Date": "Sun, 06 Nov 1994 08:50:36 GMT"]
        #expect(StrongValidators(try head(200, old)).lastModified == date)
        #expect(StrongValidators(try head(200, new)).isEmpty)
        #expect(StrongValidators(try head(200, ["Last-Modified": date])).isEmpty)
    }

    @Test func weakTagAndCodedBodyHaveNoValidator() throws {
        let weak: Headers = ["ETag": "W/\"a\"", "Last-Modified": date, "Date": "Mon, 07 Nov 1994 08:49:37 GMT"]
        #expect(StrongValidators(try head(200, weak)).isEmpty)
        #expect(StrongValidators(try head(200, ["ETag": "\"a\"", "Content-Encoding": "gzip"])).isEmpty)
        #expect(StrongValidators(try head(200, ["ETag": "\"a\"", "Accept-Ranges": "none"])).isEmpty)
        #expect(StrongValidators(try head(200, ["ETag": "\"a\""])).etag == "\"a\"")
    }

    @Test func tagsAreComparedByTheirBytes() throws {
        let rule = rule(StrongValidators(etag: "\"\u{E9}\""))
        let complete: Headers = ["Content-Range": "bytes */400"]
        let (same, other): (Headers, Headers) = (["ETag": "\"\u{E9}\""], ["ETag": "\"e\u{301}\""])
        var whole = rule
        whole.size = 400
        #expect(whole.decision(on: try head(416, complete.overriding(with: same))) == .complete)
        #expect(whole.decision(on: try head(416, complete.overriding(with: other))) == .askForWhole(.fileChanged))
        #expect(rule.decision(on: try head(206, part.overriding(with: other))) == .askForWhole(.fileChanged))
        #expect(rule.decision(on: try head(200, other)) == .replace(.fileChanged))
    }

    @Test func tagIsSentBeforeTheDate() {
        #expect(both.fields == ["Range": "bytes=400-", "If-Range": "\"a\""])
        var dateOnly = both
        dateOnly.prefersDate = true
        #expect(dateOnly.fields == ["Range": "bytes=400-", "If-Range": date])
        #expect(rule(StrongValidators()).fields == nil)
        #expect(rule(StrongValidators(etag: "\"a\""), offset: 0).fields == nil)
    }

    @Test func wholeRestIsAppended() throws {
        #expect(tagged.decision(on: try head(206, part)) == .append(until: 1_000, total: 1_000))
    }

    @Test func segmentEndsWhereItWasAskedTo() throws {
        var segment = tagged
        segment.end = 600
        #expect(segment.fields?["Range"] == "bytes=400-599")
        let range: Headers = ["Content-Range": "bytes 400-599/1000", "ETag": "\"a\"", "Content-Length": "200"]
        #expect(segment.decision(on: try head(206, range)) == .append(until: 600, total: 1_000))
        #expect(segment.decision(on: try head(206, part)) == .askForWhole(.wrongRange))
    }

    @Test(arguments: [
        "bytes 399-999/1000", "bytes 401-999/1000", "bytes 400-998/999", "bytes 400-999/1001", "bytes 400-1000/1001",
        "items 400-999/1000", "bytes */1000", "bytes 999-400/1000", "",
    ])
    func wrongRangeStartsOver(range: String) throws {
        let headers: Headers = ["Content-Range": range, "ETag": "\"a\""]
        #expect(tagged.decision(on: try head(206, headers)) == .askForWhole(.wrongRange))
    }

    @Test func beginningOfTheRestIsAppended() throws {
        let headers: Headers = ["Content-Range": "bytes 400-998/1000", "ETag": "\"a\""]
        #expect(tagged.decision(on: try head(206, headers)) == .append(until: 999, total: 1_000))
    }

    /// The table of Documentation/Reference/ResumedDownloads.md, for durable downloads and the queue.
    @Test(arguments: 201...599) func everyStatusHasItsRow(status: Int) throws {
        guard status != 206 else { return }
        let isCondition = [304, 400, 406, 412, 416, 417, 428, 431, 501].contains(status)
        for refusals in 0...4 {
            var rule = tagged
            rule.counts.refusals = refusals
            let head = try head(status, [:])
            let reason = status == 416 ? StartOverReason.rangeNotSatisfiable : .rangeRefused
            let expected: ContinuationRule.Decision =
                isCondition || refusals >= 3 ? .askForWhole(reason) : .refuse
            #expect(rule.decision(on: head) == expected)
            let error = NetworkError(
                FailureCause(.status, "no"), request: try Request(.get, "https://a.example/f"), response: head)
            #expect(rule.decision(after: error) == expected)
        }
    }

    @Test func changedTagStartsOver() throws {
        let headers: Headers = ["Content-Range": "bytes 400-999/1000", "ETag": "\"b\""]
        #expect(tagged.decision(on: try head(206, headers)) == .askForWhole(.fileChanged))
        #expect(tagged.decision(on: try head(200, ["ETag": "\"b\""])) == .replace(.fileChanged))
    }

    @Test func missingTagStartsOver() throws {
        let headers: Headers = ["Content-Range": "bytes 400-999/1000"]
        #expect(tagged.decision(on: try head(206, headers)) == .askForWhole(.wrongRange))
    }

    @Test func ignoredTagIsFollowedByTheDate() throws {
        let whole: Headers = ["ETag": "\"a\"", "Last-Modified": date, "Content-Length": "1000"]
        #expect(both.decision(on: try head(200, whole)) == .askWithDate)
        #expect(tagged.decision(on: try head(200, whole)) == .replace(.rangeIgnored))
        var second = both
        second.prefersDate = true
        #expect(second.decision(on: try head(200, whole)) == .replace(.rangeIgnored))
        let range: Headers = ["Content-Range": "bytes 400-999/1000", "Last-Modified": date]
        #expect(second.decision(on: try head(206, range)) == .append(until: 1_000, total: 1_000))
        var other = range
        other["ETag"] = "\"b\""
        #expect(second.decision(on: try head(206, other)) == .askForWhole(.fileChanged))
    }

    @Test func dateWithoutRepetitionNeedsTheSameOriginAndSize() throws {
        let headers: Headers = ["Content-Range": "bytes 400-999/1000"]
        #expect(dated.decision(on: try head(206, headers)) == .append(until: 1_000, total: 1_000))
        let elsewhere = try head(206, headers, url: "https://b.example/f")
        #expect(dated.decision(on: elsewhere) == .askForWhole(.wrongRange))
    }

    @Test func codedPartIsNeverAppended() throws {
        var headers = part
        headers["Content-Encoding"] = "gzip"
        #expect(tagged.decision(on: try head(206, headers)) == .askForWhole(.encoded))
        // Its length does not tell that it is the whole.
        #expect(tagged.decision(on: try head(200, ["Content-Encoding": "gzip"])) == .askForWhole(.encoded))
        let changed: Headers = ["Content-Encoding": "gzip", "ETag": "\"b\""]
        #expect(tagged.decision(on: try head(200, changed)) == .replace(.encoded))
    }

    @Test func unsatisfiableRangeOfTheSameVersionIsTheEnd() throws {
        let whole = rule(StrongValidators(etag: "\"a\""), offset: 1_000, size: nil)
        let headers: Headers = ["Content-Range": "bytes */1000", "ETag": "\"a\""]
        #expect(whole.decision(on: try head(416, headers)) == .complete)
        #expect(
            whole.decision(on: try head(416, ["Content-Range": "bytes */1000"])) == .askForWhole(.rangeNotSatisfiable))
        let changed: Headers = ["Content-Range": "bytes */1000", "ETag": "\"b\""]
        #expect(whole.decision(on: try head(416, changed)) == .askForWhole(.fileChanged))
        let shorter: Headers = ["Content-Range": "bytes */999", "ETag": "\"a\""]
        #expect(whole.decision(on: try head(416, shorter)) == .askForWhole(.rangeNotSatisfiable))
    }
}
