import Tern
import Testing

@testable import TernHTTPCache

/// Performs the cases of the public HTTP caching tests (cache-tests.fyi) that concern a private cache, written anew.
///
/// The names are those of the public suite. The steps of a case share one cache and one URL.
@Suite struct PublicCacheSuiteTests {
    /// The result that a step expects.
    enum Result: Sendable {
        case cached
        case notCached
        case validated
        /// The request fails.
        case failed
        /// No expectation.
        case any
    }

    /// One request and the response of the origin to it.
    struct Step: Sendable {
        var method = "GET"
        var path = "/a"
        var request: Headers = [:]
        var status = 200
        var response: Headers = [:]
        /// Fields with a date, as seconds from the present.
        var dates: [String: Int64] = [:]
        var body = "body"
        /// The seconds to wait after the step.
        var pause: Int64 = 3
        var disconnects = false
        var choice = Request.CacheChoice.useProtocol
        var expected = Result.any
        var expectedStatus: Int?
        var expectedBody: String?
        var expectedFields: Headers = [:]
        var missingFields: [String] = []
        /// The least value of `Age`.
        var leastAge: Int?
        var sentFields: Headers = [:]
        var missingSentFields: [String] = []

        /// Returns the response of the origin to the request with these fields; nil if it closes the connection.
        func answer(to sent: Headers, now: CacheTime) -> OriginAnswer? {
            if disconnects { return nil }
            var headers = response
            for (name, seconds) in dates {
                headers[name] = HTTPDate.text(from: CacheTime(milliseconds: now.milliseconds + seconds * 1_000).date)
            }
            guard expected == .validated, sent.contains("If-None-Match") || sent.contains("If-Modified-Since") else {
                return OriginAnswer(status, headers, body)
            }
            headers["ETag"] = headers["ETag"] ?? sent["If-None-Match"]
            return OriginAnswer(304, headers)
        }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let steps: [Step]

        init(_ name: String, _ steps: Step...) {
            self.name = name
            self.steps = steps
        }

        var testDescription: String { name }
    }

    private func run(_ test: Case) throws { Self.check(try Self.simulate(test), of: test, "simulator") }

    /// Returns the response to each step of a case; nil for a request that fails.
    static func simulate(_ test: Case) throws -> [SimulatedResponse?] {
        let cache = CacheSimulator()
        return try test.steps.map { step in
            defer { cache.advance(step.pause) }
            let request = try cache.request(
                step.method, "http://example.com" + step.path, step.request, choice: step.choice)
            do {
                return try cache.send(request) { sent in
                    guard let answer = step.answer(to: sent, now: cache.now) else {
                        throw CacheSimulator.Unreachable()
                    }
                    return answer
                }
            } catch is CacheSimulator.Unreachable {
                return nil
            } catch is CacheSimulator.NotStored {
                return nil
            }
        }
    }

    /// Checks the responses to the steps of a case.
    static func check(_ responses: [SimulatedResponse?], of test: Case, _ source: String) {
        for (index, (response, step)) in zip(responses, test.steps).enumerated() {
            let place: Comment = "\(source): \(test.name), step \(index)"
            if let response {
                check(response, step, place)
            } else {
                #expect(step.expected == .failed || step.disconnects && step.expected == .notCached, place)
            }
        }
    }

    private static func check(_ response: SimulatedResponse, _ step: Step, _ place: Comment) {
        switch step.expected {
        case .cached: #expect(response.isCached, place)
        case .notCached: #expect(!response.isCached && !response.isValidated, place)
        case .validated: #expect(response.isValidated || response.status == 304, place)
        case .failed: Issue.record("no failure: \(place)")
        case .any: break
        }
        if let status = step.expectedStatus { #expect(response.status == status, place) }
        if let body = step.expectedBody { #expect(response.body == body, place) }
        for name in Set(step.expectedFields.map(\.name)) {
            #expect(response.headers.values(for: name) == step.expectedFields.values(for: name), place)
        }
        for name in step.missingFields { #expect(!response.headers.contains(name), place) }
        if let age = step.leastAge { #expect(response.headers["Age"].flatMap { Int($0) } ?? -1 >= age, place) }
        let sent = response.forwarded.last ?? [:]
        for field in step.sentFields { #expect(sent[field.name] == field.value, place) }
        for name in step.missingSentFields { #expect(!sent.contains(name), place) }
    }

    /// All cases.
    static let all =
        freshness + expires + parsing + directives + statuses + heuristics + conditions + updates + heads + variants
        + others + storedFields + invalidations + ranges + stales + furtherFreshness + furtherFields + furtherOthers

    @Test func namesAreUnique() {
        var names: Set<String> = []
        for test in Self.all { #expect(names.insert(test.name).inserted, "\(test.name)") }
    }

    @Test(arguments: furtherFreshness + furtherFields + furtherOthers)
    func furtherCasesFollowTheRules(_ test: Case) throws { try run(test) }

    @Test(arguments: freshness + expires + parsing + directives)
    func freshnessFollowsTheDirectives(_ test: Case) throws { try run(test) }

    @Test(arguments: statuses + heuristics)
    func statusesAreStoredAsTheyMay(_ test: Case) throws { try run(test) }

    @Test(arguments: conditions + updates + heads)
    func validationFollowsTheRules(_ test: Case) throws { try run(test) }

    @Test(arguments: variants + others + storedFields)
    func variantsKeysAndFieldsAreKept(_ test: Case) throws { try run(test) }

    @Test(arguments: invalidations + ranges + stales)
    func invalidationRangesAndStalenessFollowTheRules(_ test: Case) throws { try run(test) }
}

extension PublicCacheSuiteTests {
    /// A case of two equal requests: the first response has these fields, and the second is cached or not.
    static func pair(
        _ name: String, _ response: Headers, dates: [String: Int64] = [:], status: Int = 200,
        request: Headers = [:], choice: Request.CacheChoice = .useProtocol, _ expected: Result
    ) -> Case {
        Case(
            name, Step(status: status, response: response, dates: dates),
            Step(request: request, status: status, choice: choice, expected: expected))
    }

    static func control(_ name: String, _ value: String, _ expected: Result) -> Case {
        pair(name, ["Cache-Control": value], expected)
    }

    static let freshness: [Case] = [
        pair("freshness-none", [:], .notCached),
        control("freshness-max-age", "max-age=3600", .cached),
        control("freshness-max-age-0", "max-age=0", .notCached),
        control("freshness-max-age-max-minus-1", "max-age=2147483647", .cached),
        control("freshness-max-age-max", "max-age=2147483648", .cached),
        control("freshness-max-age-max-plus-1", "max-age=2147483649", .cached),
        control("freshness-max-age-max-plus", "max-age=99999999999", .cached),
        control("freshness-max-age-stale", "max-age=2", .notCached),
        control("freshness-max-age-negative", "max-age=-3600", .notCached),
        control("freshness-max-age-extension", "foobar, max-age=3600", .cached),
        control("freshness-max-age-case-insenstive", "MaX-aGe=3600", .cached),
        control("freshness-max-age-s-maxage-private", "s-maxage=3600, max-age=1", .notCached),
        pair(
            "freshness-max-age-age", ["Cache-Control": "max-age=3600", "Age": "7200"], dates: ["Date": 0], .notCached),
        pair(
            "freshness-max-age-expires", ["Cache-Control": "max-age=3600"], dates: ["Expires": -7_200, "Date": 0],
            .cached),
        pair(
            "freshness-max-age-expires-invalid", ["Cache-Control": "max-age=3600", "Expires": "0"], dates: ["Date": 0],
            .cached),
        pair(
            "freshness-max-age-0-expires", ["Cache-Control": "max-age=0"], dates: ["Expires": 3_600, "Date": 0],
            .notCached),
        pair(
            "freshness-max-age-date", ["Cache-Control": "max-age=3600"], dates: ["Date": -7_200], .notCached),
    ]

    static let expires: [Case] = [
        pair("freshness-expires-future", [:], dates: ["Expires": 1_800_000, "Date": 0], .cached),
        pair("freshness-expires-past", [:], dates: ["Expires": -1_800_000, "Date": 0], .notCached),
        pair("freshness-expires-present", [:], dates: ["Expires": 0, "Date": 0], .notCached),
        pair("freshness-expires-old-date", [:], dates: ["Expires": -900, "Date": -1_800], .notCached),
        pair("freshness-expires-invalid", ["Expires": "0"], dates: ["Date": 0], .notCached),
        pair(
            "freshness-expires-invalid-multiple-lines", ["Expires": "0, 0"], dates: ["Date": 0], .notCached),
        pair("freshness-expires-age-slow-date", ["Age": "25"], dates: ["Expires": 20, "Date": -15], .cached),
        pair("freshness-expires-age-fast-date", ["Age": "25"], dates: ["Expires": 20, "Date": 10], .notCached),
        pair("freshness-expires-ansi-c", ["Expires": "Thu Aug 18 02:01:18 2050"], .cached),
        pair("freshness-expires-rfc850", ["Expires": "Thursday, 18-Aug-50 02:01:18 GMT"], .notCached),
        pair("freshness-expires-rfc850-near", ["Expires": "Wednesday, 18-Aug-99 02:01:18 GMT"], .cached),
        pair("freshness-expires-32bit", ["Expires": "Tue, 19 Jan 2038 14:14:08 GMT"], .cached),
        pair("freshness-expires-far-future", ["Expires": "Sun, 21 Nov 2286 04:46:39 GMT"], .cached),
        pair("freshness-expires-wrong-case-weekday", ["Expires": "THU, 18 Aug 2050 02:01:18 GMT"], .cached),
        pair("freshness-expires-wrong-case-month", ["Expires": "Thu, 18 AUG 2050 02:01:18 GMT"], .cached),
        pair("freshness-expires-wrong-case-tz", ["Expires": "Thu, 18 Aug 2050 02:01:18 gMT"], .cached),
        pair("freshness-expires-invalid-utc", ["Expires": "Thu, 18 Aug 2050 02:01:18 UTC"], .notCached),
        pair("freshness-expires-invalid-aest", ["Expires": "Thu, 18 Aug 2050 02:01:18 AEST"], .notCached),
        pair("freshness-expires-invalid-2-digit-year", ["Expires": "Thu, 18 Aug 50 02:01:18 GMT"], .notCached),
        pair("freshness-expires-invalid-no-comma", ["Expires": "Thu 18 Aug 2050 02:01:18 GMT"], .notCached),
        pair("freshness-expires-invalid-date-dashes", ["Expires": "Thu, 18-Aug-2050 02:01:18 GMT"], .notCached),
        pair("freshness-expires-invalid-time-periods", ["Expires": "Thu, 18 Aug 2050 02.01.18 GMT"], .notCached),
        pair("freshness-expires-invalid-1-digit-hour", ["Expires": "Thu, 18 Aug 2050 2:01:18 GMT"], .notCached),
    ]

    static let parsing: [Case] = [
        control("freshness-max-age-two-fresh-stale-sameline", "max-age=1800, max-age=1", .notCached),
        control("freshness-max-age-two-stale-fresh-sameline", "max-age=1, max-age=1800", .notCached),
        control("freshness-max-age-ignore-quoted", "extension=\"max-age=3600\", max-age=1", .notCached),
        control("freshness-max-age-ignore-quoted-rev", "max-age=1, extension=\"max-age=3600\"", .notCached),
        control("freshness-max-age-ignore-quoted-all", "extension=\"max-age=3600\", max-age=\"1\"", .notCached),
        control("freshness-max-age-quoted", "max-age=\"3600\"", .cached),
        control("freshness-max-age-single-quoted", "max-age='3600'", .notCached),
        control("freshness-max-age-space-before-equals", "max-age =3600", .notCached),
        control("freshness-max-age-space-after-equals", "max-age= 3600", .notCached),
        control("freshness-max-age-leading-zero", "max-age=003600", .cached),
        control("freshness-max-age-decimal-five", "max-age=3600.5", .notCached),
        control("freshness-max-age-a100", "max-age=a3600", .notCached),
        control("freshness-max-age-100a", "max-age=3600a", .notCached),
        pair("age-parse-nonnumeric", ["Cache-Control": "max-age=3600", "Age": "abc"], .cached),
        pair("age-parse-negative", ["Cache-Control": "max-age=3600", "Age": "-7200"], .cached),
        pair("age-parse-float", ["Cache-Control": "max-age=3600", "Age": "7200.0"], .cached),
        pair("age-parse-large", ["Cache-Control": "max-age=3600", "Age": "2147483649"], .notCached),
        pair("age-parse-parameter", ["Cache-Control": "max-age=3600", "Age": "7200;foo=bar"], .cached),
        pair("age-parse-suffix", ["Cache-Control": "max-age=3600", "Age": "7200,0"], .notCached),
        pair("age-parse-prefix", ["Cache-Control": "max-age=3600", "Age": "0,7200"], .cached),
        pair("age-parse-dup-old", ["Cache-Control": "max-age=3600", "Age": "7200, 7200"], .notCached),
        pair("pragma-response-no-cache", ["Cache-Control": "max-age=3600", "Pragma": "no-cache"], .cached),
        pair("pragma-request-no-cache", ["Cache-Control": "max-age=3600"], request: ["Pragma": "no-cache"], .notCached),
        pair("surrogate-ignored", ["Surrogate-Control": "max-age=3600"], .notCached),
        pair("cdn-cache-control-ignored", ["CDN-Cache-Control": "max-age=3600"], .notCached),
    ]

    static let directives: [Case] = [
        control("cc-resp-private-private", "private, max-age=3600", .cached),
        control("cc-resp-no-store", "no-store", .notCached),
        control("cc-resp-no-store-case-insensitive", "No-StOrE", .notCached),
        pair(
            "cc-resp-no-store-fresh", ["Cache-Control": "max-age=10000, no-store"],
            dates: ["Expires": 10_000, "Date": 0],
            .notCached),
        pair(
            "cc-resp-no-cache", ["Cache-Control": "max-age=10000, no-cache"], dates: ["Expires": 10_000, "Date": 0],
            .notCached),
        control("cc-resp-no-cache-case-insensitive", "max-age=10000, No-CaChE", .notCached),
        pair("cc-resp-no-cache-revalidate", ["Cache-Control": "no-cache", "ETag": "\"a\""], .validated),
        pair(
            "cc-resp-no-cache-revalidate-fresh", ["Cache-Control": "max-age=10000, no-cache", "ETag": "\"a\""],
            .validated),
        control("cc-resp-must-revalidate-fresh", "max-age=10000, must-revalidate", .cached),
        pair(
            "cc-resp-must-revalidate-stale", ["Cache-Control": "max-age=2, must-revalidate", "ETag": "\"a\""],
            .validated),
        pair(
            "cc-resp-immutable-fresh", ["Cache-Control": "max-age=10000, immutable", "ETag": "\"a\""],
            choice: .revalidate, .cached),
        pair(
            "cc-resp-immutable-stale", ["Cache-Control": "max-age=2, immutable", "ETag": "\"a\""], choice: .revalidate,
            .validated),
        pair("ccreq-ma0", ["Cache-Control": "max-age=3600"], request: ["Cache-Control": "max-age=0"], .notCached),
        pair("ccreq-ma1", ["Cache-Control": "max-age=3600"], request: ["Cache-Control": "max-age=1"], .notCached),
        pair(
            "ccreq-magreaterage", ["Cache-Control": "max-age=3600", "Age": "1800"],
            request: ["Cache-Control": "max-age=600"], .notCached),
        pair("ccreq-max-stale", ["Cache-Control": "max-age=1"], request: ["Cache-Control": "max-stale=1000"], .cached),
        pair(
            "ccreq-max-stale-age", ["Cache-Control": "max-age=1500", "Age": "2000"],
            request: ["Cache-Control": "max-stale=1000"], .cached),
        pair(
            "ccreq-min-fresh", ["Cache-Control": "max-age=1500"], request: ["Cache-Control": "min-fresh=2000"],
            .notCached),
        pair(
            "ccreq-min-fresh-age", ["Cache-Control": "max-age=1500", "Age": "1000"],
            request: ["Cache-Control": "min-fresh=1000"], .notCached),
        pair("ccreq-no-cache", ["Cache-Control": "max-age=3600"], request: ["Cache-Control": "no-cache"], .notCached),
        pair(
            "ccreq-no-cache-lm", ["Cache-Control": "max-age=3600"], dates: ["Last-Modified": -10_000, "Date": 0],
            request: ["Cache-Control": "no-cache"], .validated),
        pair(
            "ccreq-no-cache-etag", ["Cache-Control": "max-age=3600", "ETag": "\"a\""],
            request: ["Cache-Control": "no-cache"], .validated),
        pair("ccreq-no-store", ["Cache-Control": "max-age=3600"], request: ["Cache-Control": "no-store"], .notCached),
    ]

    static let statuses: [Case] =
        [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599].flatMap { status in
            [
                pair("status-\(status)-fresh", ["Cache-Control": "max-age=3600"], status: status, .cached),
                pair("status-\(status)-stale", ["Cache-Control": "max-age=2"], status: status, .notCached),
            ]
        } + [
            pair(
                "status-599-must-understand", ["Cache-Control": "max-age=3600, must-understand, no-store"], status: 599,
                .notCached),
            pair("status-200-must-understand", ["Cache-Control": "max-age=3600, must-understand, no-store"], .cached),
        ]

    static let heuristics: [Case] =
        [
            (200, true), (201, false), (202, false), (203, true), (204, true), (403, false), (404, true), (405, true),
            (410, true), (414, true), (501, true), (502, false), (503, false), (504, false), (599, false),
        ].map { status, isCached in
            pair(
                "heuristic-\(status)", [:], dates: ["Last-Modified": -86_400, "Date": 0], status: status,
                isCached ? .cached : .any)
        } + [
            pair(
                "heuristic-599-cached", ["Cache-Control": "public"], dates: ["Last-Modified": -86_400, "Date": 0],
                status: 599, .cached),
            pair("heuristic-delta-5", [:], dates: ["Last-Modified": -5, "Date": 0], .any),
            pair("heuristic-delta-3600", [:], dates: ["Last-Modified": -3_600, "Date": 0], .cached),
            Case(
                "heuristic-403-not_cached",
                Step(status: 403, dates: ["Last-Modified": -86_400, "Date": 0]),
                Step(status: 403, expected: .notCached, sentFields: [:])),
        ]
}
