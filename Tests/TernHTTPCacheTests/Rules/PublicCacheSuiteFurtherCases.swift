import Tern

@testable import TernHTTPCache

// The cases of the public suite with other spellings, several lines and further combinations.
extension PublicCacheSuiteTests {
    /// A case of two `Age` fields or spellings beside a lifetime of an hour.
    private static func age(_ name: String, _ values: [String], lifetime: Int = 3_600, _ expected: Result) -> Case {
        var headers: Headers = ["Cache-Control": "max-age=\(lifetime)"]
        for value in values { headers.append(name: "Age", value: value) }
        return pair("age-parse-" + name, headers, dates: ["Date": 0], expected)
    }

    static let furtherFreshness: [Case] =
        [
            pair(
                "freshness-max-age-s-maxage-private-multiple",
                ["Cache-Control": "s-maxage=3600", "Cache-Control": "max-age=1"], .notCached),
            pair(
                "freshness-max-age-two-fresh-stale-sepline",
                ["Cache-Control": "max-age=1800", "Cache-Control": "max-age=1"], .notCached),
            pair(
                "freshness-max-age-two-stale-fresh-sepline",
                ["Cache-Control": "max-age=1", "Cache-Control": "max-age=1800"], .notCached),
            control("freshness-max-age-decimal-zero", "max-age=3600.0", .notCached),
            pair("freshness-expires-invalid-date", ["Date": "foo"], dates: ["Expires": 10], .cached),
            pair(
                "freshness-expires-old-date, both fast", [:], dates: ["Expires": 300, "Date": 400], .notCached),
            pair(
                "freshness-expires-age-slow-date, old", ["Age": "25"], dates: ["Expires": 10, "Date": -10], .notCached),
            pair(
                "freshness-expires-age-fast-date, old", ["Age": "15"], dates: ["Expires": 20, "Date": 10], .notCached),
            pair("freshness-expires-ansi-c, one digit", ["Expires": "Thu Aug  8 02:01:18 2050"], .cached),
            pair(
                "freshness-expires-invalid-multiple-spaces", ["Expires": "Thu, 18  Aug  2050 02:01:18 GMT"], .notCached),
            pair(
                "freshness-expires-invalid-multiple-lines, two lines",
                ["Expires": "Thu, 18 Aug 2050 2:01:18 GMT", "Expires": "Thu, 18 Aug 2050 2:01:19 GMT"], .notCached),
            age("large-minus-one", ["2147483647"], .notCached),
            age("large, 2^31", ["2147483648"], .notCached),
            age("larger", ["2147483649"], .notCached),
            age("suffix, with a space", ["7200, 0"], .notCached),
            age("prefix, with a space", ["0, 7200"], .cached),
            age("suffix-twoline", ["7200", "0"], .notCached),
            age("prefix-twoline", ["0", "7200"], .cached),
            age("dup-0", ["0, 0"], .cached),
            age("dup-0-twoline", ["0", "0"], .cached),
            age("dup-old, fresh", ["3600", "3600"], lifetime: 10_000, .cached),
            age("numeric-parameter", ["7200;foo=111"], .cached),
            pair("pragma-request-extension", fresh, request: ["Pragma": "unrecognised-extension"], .cached),
            pair("pragma-response-extension", freshWith(["Pragma": "unrecognised-extension"]), .cached),
            pair(
                "pragma-response-no-cache-heuristic", ["Pragma": "no-cache"], dates: ["Last-Modified": -10_000], .cached
            ),
            pair("heuristic-200-cached", [:], dates: ["Last-Modified": -86_400, "Date": 0], .cached),
            Case(
                "heuristic-599-not_cached", Step(status: 599, dates: ["Last-Modified": -86_400, "Date": 0]),
                Step(status: 599, expected: .notCached)),
        ]
        + [201, 202, 502, 503, 504].map {
            pair(
                "heuristic-\($0)-not_cached", [:], dates: ["Last-Modified": -86_400, "Date": 0], status: $0,
                .notCached)
        }
        + [10, 30, 60, 300, 600, 1_200, 1_800, 43_200, 86_400].map {
            // A tenth of the time, against a pause of three seconds.
            pair(
                "heuristic-delta-\($0)", [:], dates: ["Last-Modified": -Int64($0), "Date": 0],
                $0 > 30 ? .cached : .notCached)
        }
        + [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599].map { status in
            Case(
                "status-\(status)-stale, Expires",
                Step(status: status, dates: ["Expires": -5_000, "Last-Modified": -100_000, "Date": 0]),
                Step(expected: .notCached))
        }

    // MARK: Fields

    private static let lastModified = "Sat, 01 Oct 1994 00:00:00 GMT"

    static let furtherFields: [Case] = [
        Case(
            "headers-store-Cache-Control", Step(response: ["Cache-Control": "max-age=3600"], dates: ["Date": 0]),
            Step(expected: .cached, expectedFields: ["Cache-Control": "max-age=3600"])),
        Case(
            "headers-store-Content-Length", Step(response: freshWith(["Content-Length": "10"]), body: "0123456789"),
            Step(expected: .cached, expectedBody: "0123456789", expectedFields: ["Content-Length": "10"])),
        Case(
            "headers-store-Set-Cookie, two", Step(response: freshWith(["Set-Cookie": "a=c", "Set-Cookie": "b=d"])),
            Step(expected: .cached, expectedFields: ["Set-Cookie": "a=c", "Set-Cookie": "b=d"])),
        Case(
            "304-lm-use-stored-Test-Header, without Cache-Control",
            Step(
                response: ["Cache-Control": "max-age=2", "Last-Modified": lastModified, "Test-Header": "a"],
                dates: ["Date": 0]),
            Step(
                response: ["Last-Modified": lastModified], dates: ["Date": 0], expected: .validated,
                expectedFields: ["Test-Header": "a"])),
        Case(
            "304-etag-update-response-Cache-Control",
            Step(response: ["Cache-Control": "max-age=1", "ETag": "\"a\""], dates: ["Date": 0]),
            Step(
                response: ["Cache-Control": "max-age=3600", "ETag": "\"a\""], dates: ["Date": 0], pause: 0,
                expected: .validated, expectedFields: ["Cache-Control": "max-age=3600"]),
            Step(expected: .cached, expectedFields: ["Cache-Control": "max-age=3600"])),
        Case(
            "304-etag-update-response-Content-Length",
            Step(
                response: ["Cache-Control": "max-age=2", "Content-Length": "5", "ETag": "\"a\""], dates: ["Date": 0],
                body: "01234"),
            Step(
                response: ["Cache-Control": "max-age=2", "Content-Length": "10", "ETag": "\"a\""], dates: ["Date": 0],
                pause: 0, expected: .validated, expectedBody: "01234", expectedFields: ["Content-Length": "5"]),
            Step(expected: .cached, expectedBody: "01234", expectedFields: ["Content-Length": "5"])),
        Case(
            "304-etag-update-response-Content-Range",
            Step(
                response: ["Cache-Control": "max-age=2", "Content-Range": "a", "ETag": "\"a\""], dates: ["Date": 0]),
            Step(
                response: ["Cache-Control": "max-age=2", "Content-Range": "b", "ETag": "\"a\""], dates: ["Date": 0],
                expected: .validated, expectedFields: ["Content-Range": "a"])),
        Case(
            "304-etag-update-response-Set-Cookie",
            Step(
                response: ["Cache-Control": "max-age=2", "Set-Cookie": "a=b", "ETag": "\"a\""], dates: ["Date": 0]),
            Step(
                response: ["Cache-Control": "max-age=2", "Set-Cookie": "a=c", "ETag": "\"a\""], dates: ["Date": 0],
                pause: 0, expected: .validated, expectedFields: ["Set-Cookie": "a=c"])),
        // A 304 with another strong tag is about no stored response (§4.3.4): the request is sent again.
        Case(
            "304-etag-update-response-ETag",
            Step(response: ["Cache-Control": "max-age=2", "ETag": "\"a\""], dates: ["Date": 0], body: "old"),
            Step(
                response: ["Cache-Control": "max-age=3600", "ETag": "\"b\""], dates: ["Date": 0], body: "new",
                expected: .any, expectedStatus: 200, missingSentFields: [])),
        Case(
            "cc-resp-immutable-stale, sent",
            Step(response: ["Cache-Control": "max-age=2, immutable", "ETag": "\"a\""]),
            Step(
                choice: .revalidate, expected: .validated,
                sentFields: ["Cache-Control": "max-age=0", "If-None-Match": "\"a\""])),
        Case(
            "cc-resp-immutable-stale, own directive",
            Step(response: ["Cache-Control": "max-age=2, immutable", "ETag": "\"a\""]),
            Step(
                request: ["Cache-Control": "min-fresh=1"], choice: .revalidate, expected: .validated,
                sentFields: ["Cache-Control": "min-fresh=1"])),
        Case(
            "reload is told to the caches on the way", Step(response: fresh),
            Step(choice: .reload, expected: .notCached, sentFields: ["Cache-Control": "no-cache"]),
            Step(
                request: ["Cache-Control": "no-transform"], choice: .reload, expected: .notCached,
                sentFields: ["Cache-Control": "no-transform"])),
        Case(
            "a request without a choice has no directive",
            Step(response: ["Cache-Control": "max-age=2", "ETag": "\"a\""]),
            Step(expected: .validated, missingSentFields: ["Cache-Control"])),
    ]

    // MARK: The rest

    private static func language(_ name: String, _ second: Headers, _ expected: Result) -> Case {
        Case(
            "vary-normalise-" + name,
            Step(
                request: ["Accept-Language": "en, de"],
                response: freshWith(["Vary": "Accept-Language", "Content-Language": "de"])),
            Step(request: second, expected: expected))
    }

    /// A case of a part whose length is not that of its `Content-Range`, as in the public suite. It is not stored.
    private static func unequal(_ name: String, _ range: String) -> Case {
        Case(
            name + ", of another length",
            Step(
                request: ["Range": "bytes=-5"], status: 206, response: freshWith(["Content-Range": "bytes 4-9/10"]),
                body: "01234"),
            Step(request: ["Range": range], body: "new", expected: .notCached))
    }

    static let furtherOthers: [Case] =
        [
            Case(
                "cc-resp-no-store-old-new",
                Step(response: ["Cache-Control": "max-age=10000", "A": "1"], dates: ["Expires": 10_000, "Date": 0]),
                Step(response: ["Cache-Control": "no-store", "A": "2"], dates: ["Date": 0]),
                Step(expected: .cached, expectedFields: ["A": "1"])),
            Case(
                "cc-resp-no-store-old-max-age",
                Step(response: ["Cache-Control": "max-age=10000", "A": "1"], dates: ["Expires": 10_000, "Date": 0]),
                Step(response: ["Cache-Control": "no-store, max-age=0", "A": "2"], dates: ["Date": 0]),
                Step(expected: .cached, expectedFields: ["A": "1"])),
            Case(
                "cc-resp-must-revalidate-stale, used before",
                Step(response: ["Cache-Control": "max-age=2, must-revalidate", "ETag": "\"a\""], pause: 0),
                Step(expected: .cached),
                Step(response: ["ETag": "\"a\""], expected: .validated, sentFields: ["If-None-Match": "\"a\""])),
            // RFC 9111 §5.2.1.7 has 504 here. A cache inside the client fails the request.
            Case("ccreq-oic", Step(request: ["Cache-Control": "only-if-cached"], expected: .failed)),
            vary("vary-3-match", "Foo, Bar, Baz", three, three, .cached),
            vary("vary-3-no-match", "Foo, Bar, Baz", three, ["Foo": "2", "Bar": "abc", "Baz": "789"], .notCached),
            vary(
                "vary-3-order, of the request", "Foo, Bar, Baz", three, ["Foo": "1", "Baz": "789", "Bar": "abcde"],
                .notCached),
            vary("vary-2-match-omit, both", "Foo, Bar", ["Foo": "1", "Bar": "abc"], [:], .notCached),
            vary("vary-normalise-combine", "Foo", ["Foo": "1, 2"], ["Foo": "1", "Foo": "2"], .cached),
            language("lang-space, more", ["Accept-Language": " en ,   de"], .cached),
            language("lang-case, both", ["Accept-Language": "eN, De"], .cached),
            language("lang-order", ["Accept-Language": "de, en"], .notCached),
            language("lang-select", ["Accept-Language": "fr;q=0.5, de;q=1.0"], .notCached),
            tag("conditional-etag-unquoted-respond-quoted", "abcdef", "\"abcdef\"", status: 200),
            tag("conditional-etag-weak-respond-lowercase", "w/\"abcdef\"", "w/\"abcdef\"", status: 304),
            tag("conditional-etag-weak-respond-backslash", "W\\\"abcdef\"", "W\\\"abcdef\"", status: 304),
            tag("conditional-etag-weak-respond-omit-slash", "W\"abcdef\"", "W\"abcdef\"", status: 304),
            Case(
                "conditional-etag-vary-headers-mismatch",
                Step(
                    request: ["Abc": "123"], response: ["ETag": "\"a\"", "Vary": "Abc", "Cache-Control": "max-age=99"]),
                Step(request: ["Abc": "456"], sentFields: ["If-None-Match": "\"a\"", "Abc": "456"])),
            Case(
                "conditional-etag-strong-generate-unquoted",
                Step(response: ["Cache-Control": "max-age=2", "ETag": "abcdef"]),
                Step(response: ["ETag": "abcdef"], expected: .validated, sentFields: ["If-None-Match": "abcdef"])),
            Case(
                "conditional-etag-forward-unquoted",
                Step(request: ["If-None-Match": "abcdef"], sentFields: ["If-None-Match": "abcdef"])),
            Case(
                "head-200-update, with a validator",
                Step(response: ["Cache-Control": "max-age=2", "Template-A": "1", "ETag": "\"a\""]),
                Step(
                    method: "HEAD", response: ["Cache-Control": "max-age=1000", "Template-A": "2", "ETag": "\"a\""],
                    expected: .notCached, expectedFields: ["Template-A": "2"]),
                Step(expected: .cached, expectedFields: ["Template-A": "2"])),
            Case(
                "head-410-update", Step(response: ["Cache-Control": "max-age=2", "Template-A": "1"]),
                Step(
                    method: "HEAD", status: 410, response: ["Cache-Control": "max-age=1000", "Template-A": "2"],
                    expected: .notCached),
                Step(expected: .notCached)),
            Case(
                "partial-use-headers", Step(response: freshWith(["A": "1"]), body: "01234567890"),
                Step(
                    request: ["Range": "bytes=0-1"], response: ["A": "2"], expected: .cached, expectedStatus: 206,
                    expectedBody: "01", expectedFields: ["A": "1"])),
            Case(
                "partial-use-stored-headers", Step(response: freshWith(["A": "1"]), body: "01234567890"),
                Step(
                    request: ["Range": "bytes=0-1"], expected: .cached, expectedStatus: 206, expectedBody: "01",
                    expectedFields: ["A": "1", "Content-Range": "bytes 0-1/11", "Content-Length": "2"])),
            Case(
                "adjacent parts are combined",
                Step(
                    request: ["Range": "bytes=0-4"], status: 206,
                    response: freshWith(["Content-Range": "bytes 0-4/10", "ETag": "\"a\""]), body: "01234"),
                Step(
                    request: ["Range": "bytes=5-9"], status: 206,
                    response: freshWith(["Content-Range": "bytes 5-9/10", "ETag": "\"a\""]), body: "56789",
                    expected: .notCached, expectedStatus: 206, expectedBody: "56789"),
                Step(request: ["Range": "bytes=3-6"], expected: .cached, expectedStatus: 206, expectedBody: "3456"),
                Step(expected: .cached, expectedStatus: 200, expectedBody: "0123456789")),
            // Parts are combined with the same strong validator alone (§3.4).
            Case(
                "partial-store-partial-complete, without a validator",
                Step(
                    request: ["Range": "bytes=-5"], status: 206, response: freshWith(["Content-Range": "bytes 0-4/10"]),
                    body: "01234"),
                Step(expected: .notCached, expectedBody: "body", missingSentFields: ["Range"])),
            unequal("partial-store-partial-reuse-partial", "bytes=-5"),
            unequal("partial-store-partial-reuse-partial-byterange", "bytes=6-8"),
            unequal("partial-store-partial-reuse-partial-absent", "bytes=6-"),
            unequal("partial-store-partial-reuse-partial-suffix", "bytes=-1"),
            Case(
                "stale-close", Step(response: ["Cache-Control": "max-age=2"]),
                Step(disconnects: true, expected: .failed)),
            stale("stale-sie-close, served", "stale-if-error=60", .any),
            Case(
                "stale-sie-503, without an error", Step(response: ["Cache-Control": "max-age=2, stale-if-error=60"]),
                Step(disconnects: true, expectedStatus: 200, expectedBody: "body")),
            Case(
                "stale-warning-become", Step(response: ["Cache-Control": "max-age=2, stale-if-error=60"]),
                Step(disconnects: true, expectedStatus: 200, missingFields: ["Warning"])),
            Case(
                "stale-while-revalidate-window, used before",
                Step(response: ["Cache-Control": "max-age=1, stale-while-revalidate=4", "ETag": "\"a\""]),
                Step(response: ["Cache-Control": "no-cache", "ETag": "\"b\""], body: "new", expected: .cached),
                Step(response: ["ETag": "\"c\""], body: "newest", expected: .notCached, expectedBody: "newest")),
            Case(
                "other-date-update-expires", Step(response: ["Date": start], dates: ["Expires": 2_592_000]),
                Step(expected: .cached, expectedFields: ["Date": start])),
            Case(
                "other-date-update-expires-update",
                Step(response: ["Expires": "Fri, 01 Jan 2038 01:01:01 GMT"], dates: ["Date": 0]),
                Step(expected: .cached, expectedFields: ["Expires": "Fri, 01 Jan 2038 01:01:01 GMT"])),
            pair(
                "other-heuristic-content-disposition-attachment",
                ["Content-Disposition": "attachment; filename=example.txt"],
                dates: ["Last-Modified": -100_000, "Date": 0], .cached),
            Case(
                "other-age-gen, max-age", Step(response: fresh, dates: ["Date": 0]),
                Step(expected: .cached, leastAge: 3)),
        ]
        + ["POST", "PUT", "DELETE", "M-SEARCH"].flatMap { method in
            [("location", "/target"), ("content", "/content")].map { kind, path in
                Case(
                    "invalidate-\(method)-\(kind), both fields", Step(path: path, response: fresh),
                    Step(method: method, response: ["Location": "/target", "Content-Location": "/content"]),
                    Step(path: path, expected: .notCached))
            }
        }
        + [("star-star-lines", ["*", "*"]), ("empty-star-lines", ["", "*"])].map { name, values in
            var headers = fresh
            for value in values { headers.append(name: "Vary", value: value) }
            return Case(
                "vary-syntax-" + name, Step(request: three, response: headers),
                Step(request: three, expected: .notCached))
        }

    private static let three: Headers = ["Foo": "1", "Bar": "abc", "Baz": "789"]
    private static let start = "Sun, 06 Nov 1994 08:49:37 GMT"
}
