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

    /// The statuses that can be due to the fields of the request alone.
    static let conditionStatuses: Set = [304, 400, 406, 412, 416, 417, 428, 431, 501]

    /// The table of Documentation/Reference/ResumedDownloads.md: every status, after few and after many refusals.
    @Test(arguments: 100...599) func everyStatusHasItsRow(status: Int) throws {
        let request = try Request(.get, "https://a.example/f")
        let headers: Headers = ["Content-Range": "bytes 10-19/20", "ETag": "\"a\"", "Content-Length": "10"]
        for refusals in 0...4 {
            let rules = ResumedDownloadRules(
                offset: 10, validator: "\"a\"", totalBytes: 20, counts: PartCounts(refusals: refusals))
            let expected: Decision =
                switch status {
                case 200, 206: .append(until: 20, total: 20)
                case _ where Self.conditionStatuses.contains(status): .askForWhole
                default: refusals < 3 ? .refuse : .askForWhole
                }
            #expect(decision(rules, status: status, headers: headers) == expected)
            // A validation can refuse every status.
            let head = ResponseHead(status: status, version: .http11, target: request.target, headers: headers)
            let error = NetworkError(FailureCause(.status, "no"), request: request, response: head)
            let isCondition = Self.conditionStatuses.contains(status)
            #expect(rules.decision(after: error) == (isCondition || refusals >= 3 ? .askForWhole : .refuse))
        }
    }

    @Test(
        arguments: [
            (.malformedResponse, true), (.redirectLoop, true), (.contentType, true), (.validation, true),
            (.connectionLost, false), (.idleTimedOut, false), (.cancelled, false), (.dns, false),
            (.truncatedBody, false),
        ] as [(NetworkError.Kind, Bool)])
    func failuresOfTheNetworkAreNoRefusals(kind: NetworkError.Kind, isRefusal: Bool) {
        let error = NetworkError(kind, reason: "x")
        #expect(error.refusesPart == isRefusal)
        let rules = ResumedDownloadRules(
            offset: 10, validator: "\"a\"", totalBytes: 20, counts: PartCounts(refusals: 3))
        #expect(rules.decision(after: error) == (isRefusal ? .askForWhole : .refuse))
        #expect(Self.tagged.decision(after: error) == .refuse)
    }

    /// A request that was sent and got no answer counts like a refusal, and so does a body that is not the rest.
    @Test(
        arguments: [
            (.rest, .status, 403, 0, PartCounts(refusals: 3)),
            (.rest, .malformedResponse, nil, 9, PartCounts(refusals: 3)),
            (.rest, .connectionLost, nil, 9, PartCounts(refusals: 3)),
            (.rest, .idleTimedOut, nil, 9, PartCounts(refusals: 3)),
            (.rest, .totalTimedOut, nil, 9, PartCounts(refusals: 3, failures: 2)),
            (.rest, .totalTimedOut, nil, 0, PartCounts(refusals: 2, failures: 1)),
            (.rest, .connectionRefused, nil, 0, PartCounts(refusals: 2, failures: 1)),
            (.rest, .connectTimedOut, nil, 0, PartCounts(refusals: 2, failures: 1)),
            (.rest, .dns, nil, 0, PartCounts(refusals: 2, failures: 1)),
            (.rest, .tls, nil, 0, PartCounts(refusals: 2, failures: 1)),
            (.rest, .cancelled, nil, 9, PartCounts(refusals: 2, failures: 1)),
            (.body, .malformedResponse, 206, 9, PartCounts(refusals: 3, failures: 2)),
            (.body, .connectionLost, 206, 9, PartCounts(refusals: 3, failures: 2)),
            (.body, .truncatedBody, 206, 9, PartCounts(refusals: 3, failures: 2)),
            (.body, .fileSystem, 206, 9, PartCounts(refusals: 2, failures: 1)),
            (.body, .cancelled, 206, 9, PartCounts(refusals: 2, failures: 1)),
            (.whole, .status, 503, 9, PartCounts(refusals: 3)), (.whole, .connectionLost, nil, 9, PartCounts()),
            (.whole, .dns, nil, 0, PartCounts(refusals: 2, failures: 1)),
            (.whole, .cancelled, nil, 9, PartCounts(refusals: 2, failures: 1)),
        ] as [(PartCounts.Stage, NetworkError.Kind, Int?, Int64, PartCounts)])
    func requestsThatBringNothingAreCounted(
        stage: PartCounts.Stage, kind: NetworkError.Kind, status: Int?, sent: Int64, expected: PartCounts
    ) throws {
        let request = try Request(.get, "https://a.example/f")
        let head = status.map { ResponseHead(status: $0, version: .http11, target: request.target, headers: [:]) }
        var metrics = TaskMetrics()
        metrics.sentBytes = sent
        let error = NetworkError(
            FailureCause(kind, "x"), request: request, response: head, metrics: metrics)
        #expect(PartCounts(refusals: 2, failures: 1).after(error, at: stage) == expected)
    }

    @Test func thirdFailureInARowAsksForTheWhole() {
        let lost = NetworkError(.truncatedBody, reason: "x")
        let refused = NetworkError(.status, reason: "x")
        var counts = PartCounts()
        for _ in 0..<2 { counts = counts.after(lost, at: .body) }
        #expect(!counts.asksForWhole && !counts.refusesRest)
        // An answer between two failures. Both count like refusals.
        #expect(!counts.after(refused, at: .rest).after(lost, at: .body).asksForWhole)
        #expect(counts.after(refused, at: .rest).refusesRest)
        counts = counts.after(lost, at: .body)
        #expect(counts.asksForWhole && counts.refusesRest)
        // The response to the request for the whole was refused. The rest is asked for again.
        counts = counts.after(refused, at: .whole)
        #expect(counts == PartCounts(refusals: 4) && !counts.asksForWhole)
    }

    @Test func countsHaveABound() {
        var counts = PartCounts(refusals: 1_000, failures: 1_000)
        counts = counts.after(NetworkError(.truncatedBody, reason: "x"), at: .body)
        #expect(counts == PartCounts(refusals: 1_000, failures: 1_000) && counts.isValid)
        for other in [PartCounts(refusals: -1), PartCounts(failures: -1), PartCounts(refusals: 1_001)] {
            #expect(!other.isValid)
        }
    }

    /// A 200 is the whole if its length is that of the whole, or if it is of another version. With a range, it is the
    /// rest if it states everything.
    @Test(
        arguments: [
            (20, "\"a\"", "20", nil, .replace), (20, "\"a\"", "10", nil, .askForWhole),
            (20, "\"a\"", "5", nil, .askForWhole), (20, "\"a\"", nil, nil, .askForWhole),
            (20, "\"b\"", "10", nil, .replace), (20, "\"b\"", nil, nil, .replace),
            (20, nil, "20", nil, .replace), (20, nil, "10", nil, .askForWhole), (20, nil, nil, nil, .askForWhole),
            (20, "W/\"a\"", "20", nil, .replace), (20, "W/\"a\"", "10", nil, .askForWhole),
            (20, "\"a\"", "10", "bytes 10-19/20", .append(until: 20, total: 20)),
            (nil, "\"a\"", "10", "bytes 10-19/20", .append(until: 20, total: 20)),
            (20, "\"a\"", nil, "bytes 10-19/20", .askForWhole), (20, "\"a\"", "20", "bytes 10-19/20", .askForWhole),
            (20, "\"a\"", "10", "bytes 10-19/*", .askForWhole), (20, "\"a\"", "11", "bytes 10-20/21", .askForWhole),
            (20, "\"a\"", "11", "bytes 9-19/20", .askForWhole), (20, "\"a\"", "20", "bytes 0-19/20", .askForWhole),
            (20, "\"b\"", "10", "bytes 10-19/20", .askForWhole), (20, nil, "10", "bytes 10-19/20", .askForWhole),
            (20, "W/\"a\"", "10", "bytes 10-19/20", .askForWhole), (20, "\"a\"", "10", "nonsense", .askForWhole),
            (nil, "\"a\"", "20", nil, .replace), (nil, "\"a\"", nil, nil, .replace),
            (nil, "\"a\"", "9", nil, .askForWhole), (nil, nil, "9", nil, .askForWhole), (nil, nil, nil, nil, .replace),
        ] as [(Int64?, String?, String?, String?, Decision)])
    func wholeIsToldFromTheRest(known: Int64?, tag: String?, length: String?, range: String?, expected: Decision) {
        let rules = ResumedDownloadRules(offset: 10, validator: "\"a\"", totalBytes: known)
        var headers = Headers()
        for (name, value) in [("ETag", tag), ("Content-Length", length), ("Content-Range", range)] {
            if let value { headers[name] = value }
        }
        #expect(decision(rules, status: 200, headers: headers) == expected)
    }

    /// A date does not prove that the rest under 200 is of the same bytes.
    @Test func wholeOfADateIsToldByItsLength() {
        let date: Headers = ["Last-Modified": Self.date]
        func decision(_ headers: Headers) -> Decision {
            self.decision(Self.dated, status: 200, headers: date.overriding(with: headers))
        }
        #expect(decision(["Content-Length": "20"]) == .replace)
        #expect(decision(["Content-Length": "10"]) == .askForWhole)
        #expect(decision(["Content-Length": "10", "Content-Range": "bytes 10-19/20"]) == .askForWhole)
        #expect(decision(["Content-Length": "10", "Last-Modified": "Thu, 22 Oct 2015 07:28:00 GMT"]) == .replace)
        #expect(decision(["Content-Length": "20", "Content-Encoding": "gzip"]) == .askForWhole)
    }

    @Test(
        arguments: [
            (200, "\"a\"", "20", nil, .use(length: 20)), (200, "\"a\"", nil, nil, .use(length: 20)),
            (203, "\"a\"", "20", nil, .use(length: 20)), (200, "\"a\"", "10", nil, .fail),
            (200, "\"b\"", "10", nil, .use(length: nil)), (200, nil, "10", nil, .use(length: nil)),
            (200, "\"a\"", "10", "bytes 10-19/20", .fail), (200, "\"b\"", "10", "bytes 10-19/20", .fail),
            (200, "\"a\"", "20", "bytes 0-19/20", .use(length: 20)), (202, "\"b\"", "10", nil, .fail),
            (204, nil, nil, nil, .fail), (206, "\"a\"", "10", "bytes 10-19/20", .fail), (304, nil, nil, nil, .fail),
        ] as [(Int, String?, String?, String?, ResumedDownloadRules.WholeDecision)])
    func wholeThatContradictsThePartFails(
        status: Int, tag: String?, length: String?, range: String?, expected: ResumedDownloadRules.WholeDecision
    ) {
        var headers = Headers()
        for (name, value) in [("ETag", tag), ("Content-Length", length), ("Content-Range", range)] {
            if let value { headers[name] = value }
        }
        #expect(Self.tagged.decision(onWholeFile: status, headers: headers) == expected)
    }

    @Test(
        arguments: [
            ("bytes 10-19/20", 20, 20), ("bytes 10-19/*", 20, 20), ("bytes 10-19/20", nil, 20),
            ("bytes 10-19/*", nil, nil), ("bytes 10-18/*", nil, nil), ("bytes 10-18/19", 20, nil),
            ("bytes 10-20/21", 20, nil),
            ("bytes 10-20/21", nil, 21), ("bytes 9-19/20", 20, nil), ("bytes 11-19/20", 20, nil),
            ("bytes 0-19/20", 20, nil), ("bytes 10-20/20", 20, nil), ("bytes */20", 20, nil),
            ("items 10-19/20", 20, nil), ("nonsense", 20, nil), ("", 20, nil),
            ("bytes 10-9223372036854775807/*", 20, nil), ("bytes 10-9223372036854775807/*", nil, nil),
            ("bytes 10-9223372036854775806/9223372036854775807", nil, .max),
        ] as [(String, Int64?, Int64?)])
    func partMustBeTheCompleteRest(range: String, known: Int64?, total: Int64?) {
        let rules = ResumedDownloadRules(offset: 10, validator: "\"a\"", totalBytes: known)
        let expected = total.map { Decision.append(until: $0, total: $0) } ?? .askForWhole
        #expect(decision(rules, headers: ["Content-Range": range, "ETag": "\"a\""]) == expected)
    }

    /// A server can send less than it was asked for.
    @Test(
        arguments: [
            ("bytes 10-18/20", 20, nil, 19), ("bytes 10-18/*", 20, nil, 19), ("bytes 10-18/20", nil, nil, 19),
            ("bytes 10-10/20", 20, nil, 11), ("bytes 10-12/20", 20, 15, 13), ("bytes 10-14/20", 20, 15, 15),
            ("bytes 10-15/20", 20, 15, nil), ("bytes 10-19/20", 20, 15, nil),
        ] as [(String, Int64?, Int64?, Int64?)])
    func beginningOfTheRestIsAppended(range: String, known: Int64?, end: Int64?, until: Int64?) {
        let rules = ResumedDownloadRules(offset: 10, validator: "\"a\"", totalBytes: known, end: end)
        let expected = until.map { Decision.append(until: $0, total: 20) } ?? .askForWhole
        #expect(decision(rules, headers: ["Content-Range": range, "ETag": "\"a\""]) == expected)
    }

    /// Two versions of a file can have entity tags that are equal by canonical equivalence only.
    @Test func entityTagIsComparedByItsBytes() {
        let rules = ResumedDownloadRules(offset: 10, validator: "\"\u{E9}\"", totalBytes: 20)
        let part: Headers = ["Content-Range": "bytes 10-19/20"]
        #expect(decision(rules, headers: part.overriding(with: ["ETag": "\"e\u{301}\""])) == .askForWhole)
        #expect(
            decision(rules, headers: part.overriding(with: ["ETag": "\"\u{E9}\""])) == .append(until: 20, total: 20))
    }

    @Test func everyRangeOfASmallFileIsDecidedByItsEnds() {
        for first in 0...4 {
            for last in first...5 {
                for total in [nil, 3, 4, 5, 6] as [Int?] {
                    let field = "bytes \(first)-\(last)/\(total.map(String.init) ?? "*")"
                    let rules = ResumedDownloadRules(offset: 2, validator: "\"a\"", totalBytes: 5)
                    let isRest = first == 2 && last <= 4 && (total ?? 5) == 5
                    let expected = isRest ? Decision.append(until: Int64(last) + 1, total: 5) : .askForWhole
                    #expect(
                        decision(rules, headers: ["Content-Range": field, "ETag": "\"a\""]) == expected,
                        "\(field)")
                }
            }
        }
    }

    @Test func missingAndMultipleRangesAreRefused() {
        #expect(decision(headers: ["ETag": "\"a\""]) == .askForWhole)
        var twice: Headers = ["Content-Range": "bytes 10-19/20", "ETag": "\"a\""]
        twice.append(name: "Content-Range", value: "bytes 10-19/20")
        #expect(decision(headers: twice) == .askForWhole)
    }

    @Test(
        arguments: [("\"a\"", true), ("W/\"a\"", false), ("\"b\"", false), ("a", false), (nil, false)]
            as [(String?, Bool)])
    func entityTagMustMatch(tag: String?, isSame: Bool) {
        var headers: Headers = ["Content-Range": "bytes 10-19/20", "Last-Modified": Self.date]
        if let tag { headers["ETag"] = tag }
        let expected = isSame ? Decision.append(until: 20, total: 20) : .askForWhole
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
        let expected = isUsed ? Decision.append(until: 20, total: 20) : .askForWhole
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
        #expect(decision(headers: headers) == (isUsed ? .append(until: 20, total: 20) : .askForWhole))
    }
}
