import Tern

@testable import TernHTTPCache

// The cases of validation, variants, keys, fields, invalidation, ranges and staleness.
extension PublicCacheSuiteTests {
    static let fresh: Headers = ["Cache-Control": "max-age=100000"]

    static func freshWith(_ headers: Headers) -> Headers { fresh.overriding(with: headers) }

    /// A case of a stored tag and a caller's condition.
    static func tag(_ name: String, _ tag: String, _ condition: String, status: Int) -> Case {
        Case(
            name, Step(response: freshWith(["ETag": tag])),
            Step(request: ["If-None-Match": condition], expected: .cached, expectedStatus: status))
    }

    static let conditions: [Case] = [
        tag("conditional-etag-strong-respond", "\"abcdef\"", "\"abcdef\"", status: 304),
        tag("conditional-etag-strong-respond-obs-text", "\"abcdefü\"", "\"abcdefü\"", status: 304),
        tag("conditional-etag-weak-respond", "W/\"abcdef\"", "W/\"abcdef\"", status: 304),
        tag("conditional-etag-unquoted-respond-unquoted", "abcdef", "abcdef", status: 304),
        tag("conditional-etag-quoted-respond-unquoted", "\"abcdef\"", "abcdef", status: 200),
        tag("conditional-etag-strong-respond-multiple-first", "\"a\"", "\"a\", \"1\", \"2\"", status: 304),
        tag("conditional-etag-strong-respond-multiple-second", "\"a\"", "\"1\", \"a\", \"2\"", status: 304),
        tag("conditional-etag-strong-respond-multiple-last", "\"a\"", "\"1\", \"2\", \"a\"", status: 304),
        Case(
            "conditional-304-etag", Step(response: freshWith(["ETag": "\"a\""])),
            Step(
                request: ["If-None-Match": "\"a\""], expected: .cached, expectedStatus: 304,
                expectedFields: ["ETag": "\"a\""])),
        Case(
            "conditional-etag-precedence",
            Step(response: freshWith(["ETag": "\"a\""]), dates: ["Last-Modified": -5_000]),
            Step(
                request: ["If-None-Match": "\"a\"", "If-Modified-Since": "Sat, 01 Jan 1994 00:00:00 GMT"],
                expected: .cached, expectedStatus: 304)),
        Case(
            "conditional-etag-strong-generate", Step(response: ["Cache-Control": "max-age=2", "ETag": "\"a\""]),
            Step(expected: .validated, sentFields: ["If-None-Match": "\"a\""])),
        Case(
            "conditional-etag-weak-generate-weak", Step(response: ["Cache-Control": "max-age=2", "ETag": "W/\"a\""]),
            Step(expected: .validated, sentFields: ["If-None-Match": "W/\"a\""])),
        Case(
            "conditional-etag-vary-headers",
            Step(
                request: ["Abc": "123"], response: ["ETag": "\"a\"", "Vary": "Abc", "Cache-Control": "max-age=1"]),
            Step(request: ["Abc": "123"], expected: .validated, sentFields: ["Abc": "123"])),
        Case(
            "conditional-etag-forward",
            Step(request: ["If-None-Match": "\"a\""], sentFields: ["If-None-Match": "\"a\""])),
        Case(
            "conditional-lm-fresh",
            Step(response: freshWith(["Last-Modified": "Sat, 01 Oct 1994 00:00:00 GMT"])),
            Step(
                request: ["If-Modified-Since": "Sat, 01 Oct 1994 00:00:00 GMT"], expected: .cached, expectedStatus: 304)
        ),
        Case(
            "conditional-lm-fresh-earlier",
            Step(response: freshWith(["Last-Modified": "Sat, 01 Oct 1994 00:00:00 GMT"])),
            Step(
                request: ["If-Modified-Since": "Sun, 02 Oct 1994 00:00:00 GMT"], expected: .cached, expectedStatus: 304)
        ),
        Case(
            "conditional-lm-fresh-rfc850",
            Step(response: freshWith(["Last-Modified": "Sat, 01 Oct 1994 00:00:00 GMT"])),
            Step(
                request: ["If-Modified-Since": "Saturday, 01-Oct-94 00:00:00 GMT"], expected: .cached,
                expectedStatus: 304)),
        Case(
            "conditional-lm-stale",
            Step(response: ["Cache-Control": "max-age=2", "Last-Modified": "Sat, 01 Oct 1994 00:00:00 GMT"]),
            Step(
                request: ["If-Modified-Since": "Sat, 01 Oct 1994 00:00:00 GMT"],
                response: ["Last-Modified": "Sat, 01 Oct 1994 00:00:00 GMT"], expected: .validated, expectedStatus: 304)
        ),
        Case(
            "conditional-lm-fresh-no-lm", Step(response: fresh, dates: ["Date": 0]),
            Step(
                request: ["If-Modified-Since": "Mon, 07 Nov 1994 00:00:00 GMT"], expected: .cached, expectedStatus: 304)
        ),
    ]

    /// The cases of one field that a 304 changes.
    static func update(_ name: String, _ old: String, _ new: String, isUpdated: Bool = true) -> [Case] {
        [(["ETag": "\"v\""], "etag"), (["Last-Modified": "Sat, 01 Oct 1994 00:00:00 GMT"], "lm")].map {
            (validator: Headers, kind: String) in
            var first = validator.overriding(with: ["Cache-Control": "max-age=2", name: old])
            var second = validator.overriding(with: ["Cache-Control": "max-age=3600", name: new])
            if name == "Cache-Control" {
                first["Cache-Control"] = old
                second["Cache-Control"] = new
            }
            let expected: Headers = [name: isUpdated ? new : old]
            return Case(
                "304-\(kind)-update-response-and-stored-\(name)", Step(response: first, dates: ["Date": 0]),
                Step(response: second, dates: ["Date": 0], expected: .validated, expectedFields: expected),
                Step(expected: .cached, expectedFields: expected))
        }
    }

    static let updates: [Case] =
        [
            ("Test-Header", "a", "b"), ("X-Test-Header", "a", "b"), ("Content-Foo", "a", "b"),
            ("X-Content-Foo", "a", "b"), ("Cache-Control", "max-age=1", "max-age=3600"),
            ("Content-Location", "/foo", "/bar"),
            ("Content-MD5", "rL0Y20zC+Fzt72VPzMSk2A==", "N7UdGUp1E+RbVvZSTy1R8g=="),
            ("Content-Security-Policy", "default-src 'self'", "default-src 'none'"),
            ("Content-Type", "text/plain", "text/plain;charset=utf-8"), ("Clear-Site-Data", "cache", "cookies"),
            ("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
            ("Public-Key-Pins", "a", "b"), ("X-Frame-Options", "deny", "sameorigin"),
            ("X-XSS-Protection", "1", "1; mode=block"),
        ].flatMap { update($0.0, $0.1, $0.2) }
        + update("Content-Length", "4", "10", isUpdated: false)
        + update("Content-Encoding", "a", "b", isUpdated: false)
        + [
            Case(
                "304-lm-use-stored-Test-Header",
                Step(
                    response: [
                        "Cache-Control": "max-age=1", "Last-Modified": "Sat, 01 Oct 1994 00:00:00 GMT",
                        "Test-Header": "a",
                    ]),
                Step(
                    response: ["Cache-Control": "max-age=3600", "Last-Modified": "Sat, 01 Oct 1994 00:00:00 GMT"],
                    expected: .validated, expectedFields: ["Test-Header": "a"]))
        ]

    static let heads: [Case] = [
        Case(
            "head-writethrough", Step(response: ["Cache-Control": "max-age=2"]),
            Step(method: "HEAD", expected: .notCached)),
        Case(
            "head-200-freshness-update, with a validator",
            Step(response: ["Cache-Control": "max-age=2", "Template-A": "1", "ETag": "\"a\""]),
            Step(
                method: "HEAD", response: ["Cache-Control": "max-age=1000", "Template-A": "2", "ETag": "\"a\""],
                expected: .notCached),
            Step(expected: .cached, expectedFields: ["Template-A": "2"])),
        Case(
            "head-200-retain, with a validator",
            Step(response: ["Cache-Control": "max-age=2", "Template-A": "1", "ETag": "\"a\""]),
            Step(method: "HEAD", response: ["Cache-Control": "max-age=1000", "ETag": "\"a\""]),
            Step(expected: .cached, expectedFields: ["Template-A": "1"])),
        Case("method-POST", Step(method: "POST", response: fresh), Step(method: "POST", expected: .notCached)),
    ]

    static func vary(
        _ name: String, _ fields: String, _ first: Headers, _ second: Headers, _ expected: Result
    ) -> Case {
        Case(
            name,
            Step(
                request: first, response: ["Vary": fields],
                dates: ["Expires": 5_000, "Last-Modified": -3_000, "Date": 0]),
            Step(request: second, expected: expected))
    }

    static let variants: [Case] =
        [
            vary("vary-match", "Foo", ["Foo": "1"], ["Foo": "1"], .cached),
            vary("vary-no-match", "Foo", ["Foo": "1"], ["Foo": "2"], .notCached),
            vary("vary-omit-stored", "Foo", [:], ["Foo": "1"], .notCached),
            vary("vary-omit", "Foo", ["Foo": "1"], [:], .notCached),
            vary("vary-cache-key", "Foo", ["Foo": "1", "Other": "2"], ["Foo": "1", "Other": "3"], .cached),
            vary("vary-2-match", "Foo, Bar", ["Foo": "1", "Bar": "a"], ["Foo": "1", "Bar": "a"], .cached),
            vary("vary-2-no-match", "Foo, Bar", ["Foo": "1", "Bar": "a"], ["Foo": "2", "Bar": "a"], .notCached),
            vary("vary-2-match-omit", "Foo, Bar", ["Foo": "1"], ["Foo": "1", "Bar": "a"], .notCached),
            vary(
                "vary-3-order", "Foo, Bar, Baz", ["Foo": "1", "Bar": "abc4", "Baz": "789"],
                ["Foo": "1", "Bar": "abc", "Baz": "789"], .notCached),
            vary("vary-3-omit", "Foo, Bar, Baz", ["Foo": "1", "Baz": "7"], ["Foo": "1", "Baz": "7"], .cached),
            vary("vary-star", "*", ["Foo": "1"], ["Foo": "1"], .notCached),
            vary("vary-normalise-space", "Foo", ["Foo": "1,2"], ["Foo": " 1, 2 "], .cached),
            vary(
                "vary-normalise-lang-case", "Accept-Language", ["Accept-Language": "en"], ["Accept-Language": "EN"],
                .cached),
            vary(
                "vary-normalise-lang-space", "Accept-Language", ["Accept-Language": "en, de"],
                ["Accept-Language": "en,de"], .cached),
            Case(
                "vary-invalidate",
                Step(request: ["Foo": "1"], response: freshWith(["Vary": "Foo"]), body: "one"),
                Step(request: ["Foo": "2"], response: freshWith(["Vary": "Foo"]), body: "two", expected: .notCached),
                Step(request: ["Foo": "1"], expected: .cached, expectedBody: "one")),
        ]
        + ["*", "*, *", ", *", "*, Foo", "Foo, *"].map {
            vary("vary-syntax \($0)", $0, ["Foo": "1", "Baz": "789"], ["Foo": "1", "Baz": "789"], .notCached)
        }

    static let others: [Case] = [
        Case(
            "other-age-gen", Step(dates: ["Expires": 2_592_000, "Date": 0]),
            Step(expected: .cached, leastAge: 3)),
        Case(
            "other-age-update-expires", Step(response: ["Age": "30"], dates: ["Expires": 2_592_000, "Date": 0]),
            Step(expected: .cached, leastAge: 33)),
        Case(
            "other-age-update-max-age", Step(response: freshWith(["Age": "30"]), dates: ["Date": 0]),
            Step(expected: .cached, leastAge: 33)),
        Case(
            "other-date-update", Step(response: freshWith(["Date": "Sun, 06 Nov 1994 08:49:37 GMT"])),
            Step(expected: .cached, expectedFields: ["Date": "Sun, 06 Nov 1994 08:49:37 GMT"])),
        Case(
            "query-args-different", Step(path: "/a?test=1", response: fresh),
            Step(path: "/a?test=2", expected: .notCached)),
        Case("query-args-same", Step(path: "/a?test=1", response: fresh), Step(path: "/a?test=1", expected: .cached)),
        Case(
            "other-fresh-content-disposition-attachment",
            Step(response: freshWith(["Content-Disposition": "attachment; filename=example.txt"])),
            Step(expected: .cached)),
        Case("other-set-cookie", Step(response: freshWith(["Set-Cookie": "a=b"])), Step(expected: .cached)),
        Case("other-cookie", Step(response: fresh), Step(request: ["Cookie": "a=b"], expected: .cached)),
        Case(
            "other-authorization", Step(request: ["Authorization": "x"], response: fresh),
            Step(request: ["Authorization": "x"], expected: .cached)),
    ]

    static let storedFields: [Case] =
        [
            "Test-Header", "X-Test-Header", "Content-Foo", "Content-Location", "Content-Security-Policy",
            "Content-Type",
            "Clear-Site-Data", "Public-Key-Pins", "X-Frame-Options", "X-XSS-Protection", "ETag", "Content-Encoding",
            "Content-MD5", "Content-Range", "Expires", "Set-Cookie", "Set-Cookie2", "X-Content-Foo", "WWW-Authenticate",
            "Strict-Transport-Security",
        ].map { name in
            Case(
                "headers-store-\(name)", Step(response: freshWith([name: "value"])),
                Step(expected: .cached, expectedFields: [name: "value"]))
        }
        + [
            "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
            "Proxy-Connection", "TE", "Transfer-Encoding", "Upgrade", "Trailer",
        ].map { name in
            Case(
                "headers-store-\(name)", Step(response: freshWith([name: "value"])),
                Step(expected: .cached, missingFields: [name]))
        }
        + [
            Case(
                "headers-omit-headers-listed-in-Connection",
                Step(response: freshWith(["Connection": "a, b", "A": "1", "B": "2", "C": "3"])),
                Step(expected: .cached, expectedFields: ["C": "3"], missingFields: ["A", "B", "Connection"])),
            Case(
                "headers-omit-headers-listed-in-Cache-Control-no-cache",
                Step(
                    response: ["Cache-Control": "max-age=3600, no-cache=\"a, b\"", "A": "1", "B": "2", "C": "3"]),
                Step(expected: .cached, expectedFields: ["C": "3"], missingFields: ["A", "B"])),
            Case(
                "headers-omit-headers-listed-in-Cache-Control-no-cache-single",
                Step(response: ["Cache-Control": "max-age=3600, no-cache=\"a\"", "A": "1", "B": "2"]),
                Step(expected: .cached, expectedFields: ["B": "2"], missingFields: ["A"])),
        ]

    static let invalidations: [Case] = ["POST", "PUT", "DELETE", "M-SEARCH"].flatMap { method in
        [
            Case(
                "invalidate-\(method)", Step(response: fresh), Step(method: method), Step(expected: .notCached)),
            Case(
                "invalidate-\(method)-failed", Step(response: fresh), Step(method: method, status: 500),
                Step(expected: .cached)),
            Case(
                "invalidate-\(method)-location", Step(path: "/b", response: fresh),
                Step(method: method, response: ["Location": "/b"]), Step(path: "/b", expected: .notCached)),
            Case(
                "invalidate-\(method)-cl", Step(path: "/b", response: fresh),
                Step(method: method, response: ["Content-Location": "/b"]), Step(path: "/b", expected: .notCached)),
        ]
    }

    static func partial(_ name: String, _ range: String, _ body: String) -> Case {
        Case(
            name,
            Step(
                request: ["Range": "bytes=-5"], status: 206, response: freshWith(["Content-Range": "bytes 5-9/10"]),
                body: "56789"),
            Step(request: ["Range": range], expected: .cached, expectedStatus: 206, expectedBody: body))
    }

    static func complete(_ name: String, _ range: String, _ body: String) -> Case {
        Case(
            name, Step(response: fresh, body: "01234567890"),
            Step(request: ["Range": range], expected: .cached, expectedStatus: 206, expectedBody: body))
    }

    static let ranges: [Case] = [
        partial("partial-store-partial-reuse-partial", "bytes=-5", "56789"),
        partial("partial-store-partial-reuse-partial-byterange", "bytes=6-8", "678"),
        partial("partial-store-partial-reuse-partial-absent", "bytes=6-", "6789"),
        partial("partial-store-partial-reuse-partial-suffix", "bytes=-1", "9"),
        complete("partial-store-complete-reuse-partial", "bytes=0-1", "01"),
        complete("partial-store-complete-reuse-partial-no-last", "bytes=1-", "1234567890"),
        complete("partial-store-complete-reuse-partial-suffix", "bytes=-1", "0"),
        Case(
            "partial-store-partial-complete",
            Step(
                request: ["Range": "bytes=0-4"], status: 206,
                response: freshWith(["Content-Range": "bytes 0-4/10", "ETag": "\"a\""]), body: "01234"),
            Step(sentFields: ["Range": "bytes=5-"])),
    ]

    static func stale(_ name: String, _ directives: String, _ expected: Result) -> Case {
        Case(
            name, Step(response: ["Cache-Control": "max-age=2, \(directives)"]),
            Step(disconnects: true, expected: expected))
    }

    static let stales: [Case] = [
        stale("stale-close-must-revalidate", "must-revalidate", .notCached),
        stale("stale-close-no-cache", "no-cache", .notCached),
        stale("stale-sie-close", "stale-if-error=60", .any),
        Case(
            "stale-sie-503", Step(response: ["Cache-Control": "max-age=2, stale-if-error=60"], body: "stored"),
            Step(status: 503, body: "error", expectedStatus: 200, expectedBody: "stored")),
        Case(
            "stale-while-revalidate", Step(response: ["Cache-Control": "max-age=2, stale-while-revalidate=60"]),
            Step(expected: .cached)),
        Case(
            "stale-while-revalidate-window",
            Step(response: ["Cache-Control": "max-age=1, stale-while-revalidate=1"]), Step(expected: .notCached)),
        Case("stale-503", Step(response: ["Cache-Control": "max-age=2"]), Step(status: 503, expectedStatus: 503)),
    ]
}
