import Testing

@testable import Tern

/// The rules of RFC 9110 §15.4 and of the HTTP-redirect fetch of the fetch standard, as a table.
@Suite("Redirect rules")
struct RedirectRulesTests {
    private func step(
        _ status: Int, to location: String?, method: Request.Method = .get,
        from url: String = "https://a.example/dir/x?q",
        headers: Headers = [:], limit: Int = 20
    ) throws -> RedirectRules.Action {
        var rules = RedirectRules(limit: limit)
        return rules.action(
            for: status, locations: location.map { [$0] } ?? [], method: method, target: try Target(absolute: url),
            headers: headers)
    }

    private func followed(_ action: RedirectRules.Action) throws -> RedirectRules.Step {
        guard case .follow(let step) = action else {
            Issue.record("not followed: \(action)")
            throw NotFollowed()
        }
        return step
    }

    private struct NotFollowed: Error {}

    @Test func userInformationOfALocationReplacesThatOfTheOrigin() throws {
        let from = "https://ada:old@a.example/x"
        let rows: [(location: String, user: String?, password: String?)] = [
            ("/y", "ada", "old"), ("https://a.example/y", "ada", "old"),
            ("https://b%40:p%3Aw@a.example/y", "b@", "p:w"),
            ("https://bob@a.example/y", "bob", nil), ("https://:only@a.example/y", "", "only"),
            ("//bob:new@a.example:443/y", "bob", "new"), ("https://b.example/y", nil, nil),
            ("https://bob:new@b.example/y", "bob", "new"),
        ]
        for row in rows {
            let target = try followed(step(302, to: row.location, from: from)).target
            #expect(target.user ?? "" == row.user ?? "" && target.password == row.password, "\(row.location)")
            #expect(!target.string.contains("@"))
        }
    }

    @Test func locationsThatDifferInTheirBytesAreSeveralPlaces() throws {
        var rules = RedirectRules(limit: 20)
        let action = rules.action(
            for: 302, locations: ["/\u{212A}", "/K"], method: .get, target: try Target(absolute: "https://a.example/"),
            headers: [:])
        guard case .fail(let failure) = action else { throw NotFollowed() }
        #expect(failure.reason.contains("several places"))
    }

    @Test(arguments: [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"), (308, "POST", "POST"),
        (301, "PUT", "PUT"), (302, "DELETE", "DELETE"), (303, "PUT", "GET"), (303, "HEAD", "HEAD"),
        (301, "HEAD", "HEAD"),
        (303, "DELETE", "GET"), (308, "PATCH", "PATCH"), (302, "GET", "GET"),
    ])
    func methodChangesByStatus(status: Int, method: String, expected: String) throws {
        let step = try followed(step(status, to: "/next", method: Request.Method(method)))
        #expect(step.method.rawValue == expected)
        #expect(step.keepsBody == (method == expected))
    }

    @Test(arguments: [
        ("next", "https://a.example/dir/next"), ("/next", "https://a.example/next"),
        ("?p", "https://a.example/dir/x?p"),
        ("../up", "https://a.example/up"), ("//b.example/y", "https://b.example/y"),
        ("https://b.example", "https://b.example/"), ("#part", "https://a.example/dir/x?q"),
        ("next#part", "https://a.example/dir/next"),
        ("./", "https://a.example/dir/"), ("ü", "https://a.example/dir/%C3%BC"),
        ("HTTPS://A.EXAMPLE:443/z", "https://a.example/z"),
    ])
    func locationIsResolvedAgainstTheUrlThatAnswered(location: String, expected: String) throws {
        #expect(try followed(step(302, to: location)).target.string == expected)
    }

    /// golang/go #17773 and Chromium: an empty Location is none. Followed, it would be requested until the limit.
    @Test(arguments: [301, 302, 303, 307, 308]) func anEmptyLocationIsNone(status: Int) throws {
        guard case .deliver = try step(status, to: "") else { throw NotFollowed() }
        var rules = RedirectRules(limit: 20)
        let action = rules.action(
            for: status, locations: ["", "/next", ""], method: .get,
            target: try Target(absolute: "https://a.example/x"),
            headers: [:])
        #expect(try followed(action).target.string == "https://a.example/next")
    }

    @Test(arguments: [200, 300, 304, 305, 306, 399, 404]) func otherStatusesAreReturned(status: Int) throws {
        guard case .deliver = try step(status, to: "/next") else { throw NotFollowed() }
    }

    @Test func redirectWithoutLocationIsReturned() throws {
        guard case .deliver = try step(302, to: nil) else { throw NotFollowed() }
    }

    @Test(arguments: [
        "ftp://a.example/", "javascript:alert(1)", "https://", "http://[::1", "/a\r\nb", "file:///etc/passwd",
    ])
    func locationThatIsNoHttpUrlFails(location: String) throws {
        guard case .fail(let failure) = try step(302, to: location) else { throw NotFollowed() }
        #expect(failure.kind == .redirect)
    }

    @Test func redirectNeverLeavesTLS() throws {
        guard case .fail(let failure) = try step(302, to: "http://a.example/") else { throw NotFollowed() }
        #expect(failure.kind == .redirect && failure.reason.contains("TLS"))
        _ = try followed(step(302, to: "https://a.example/", from: "http://a.example/"))
    }

    @Test(arguments: [
        ("https://b.example/", false), ("https://a.example:8443/", false), ("https://sub.a.example/", false),
        ("https://a.example/other", true),
    ])
    func secretsStayWithTheirOrigin(location: String, areKept: Bool) throws {
        let headers: Headers = [
            "Authorization": "Bearer s", "cookie": "a=b", "Proxy-Authorization": "x", "Accept": "text/html",
            "Origin": "https://a.example", "Host": "a.example", "X-API-Key": "s", "X-Session": "s",
            "X-Functions-Key": "s", "X-Ms-Client-Principal": "s", "Idempotency-Key": "1",
        ]
        let step = try followed(step(307, to: location, headers: headers))
        let bound = [
            "Authorization", "Cookie", "Proxy-Authorization", "Origin", "Host", "X-API-Key", "X-Session",
            "X-Functions-Key", "X-Ms-Client-Principal",
        ]
        for name in bound {
            #expect(step.headers.contains(name) == areKept, "\(name)")
        }
        #expect(step.headers["Accept"] == "text/html" && step.headers["Idempotency-Key"] == "1")
    }

    @Test func fieldsOfTheBodyGoWithTheBody() throws {
        let headers: Headers = [
            "Content-Type": "text/plain", "Content-Length": "3", "Content-Language": "en", "Accept": "*/*",
            "Content-Range": "bytes 0-2/9", "Content-Disposition": "inline", "Content-MD5": "x", "Repr-Digest": "a=:b:",
            "Transfer-Encoding": "chunked", "Trailer": "X-Sum", "Expect": "100-continue",
        ]
        let dropped = try followed(step(303, to: "/", method: .post, headers: headers))
        #expect(dropped.headers.map(\.name) == ["Accept"])
        let kept = try followed(step(307, to: "/", method: .post, headers: headers))
        #expect(kept.headers.count == headers.count)
    }

    @Test func limitCountsRedirectsAndReportsLoops() throws {
        var rules = RedirectRules(limit: 3)
        var target = try Target(absolute: "https://a.example/0")
        for number in 1...3 {
            let action = rules.action(for: 302, locations: ["/\(number)"], method: .get, target: target, headers: [:])
            target = try followed(action).target
        }
        guard
            case .fail(let endless) = rules.action(
                for: 302, locations: ["/4"], method: .get, target: target, headers: [:])
        else { throw NotFollowed() }
        #expect(endless.kind == .tooManyRedirects)
        guard
            case .fail(let loop) = rules.action(for: 302, locations: ["/2"], method: .get, target: target, headers: [:])
        else { throw NotFollowed() }
        #expect(loop.kind == .redirectLoop && loop.reason.contains("the last one to https://a.example/2"))
        #expect(loop.reason.hasSuffix("which was requested 2 redirects before"))
    }

    @Test func urlCanOccurAgain() throws {
        var rules = RedirectRules(limit: 20)
        let target = try Target(absolute: "https://a.example/")
        for _ in 0..<5 {
            _ = try followed(rules.action(for: 302, locations: ["/"], method: .get, target: target, headers: [:]))
        }
    }
}

@Suite("Redirect rules: content of Location")
struct RedirectLocationTests {
    private func followed(_ url: String, _ locations: [String]) throws -> RedirectRules.Action {
        var rules = RedirectRules(limit: 20)
        return rules.action(
            for: 302, locations: locations, method: .get, target: try Target(absolute: url), headers: [:])
    }

    @Test(arguments: [
        ("http://a/x#old", "/y", "http://a/y", "old"), ("http://a/x#old", "/y#new", "http://a/y", "new"),
        ("http://a/x#old", "http://b/y", "http://b/y", "old"), ("http://a/x", "http://b/y#new", "http://b/y", "new"),
        ("http://a/x#old", "#", "http://a/x", ""), ("http://a/x", "/y", "http://a/y", nil),
        ("http://a/x#a b", "//b", "http://b/", "a%20b"),
    ])
    func fragmentIsInherited(url: String, location: String, expected: String, fragment: String?) throws {
        guard case .follow(let step) = try followed(url, [location]) else {
            Issue.record("not followed")
            return
        }
        #expect(step.target.string == expected)
        #expect(step.target.fragment == fragment)
    }

    @Test func differentLocationsFailAndEqualOnesCountOnce() throws {
        guard case .fail(let failure) = try followed("http://a/x", ["/y", "/z"]) else {
            Issue.record("not refused")
            return
        }
        #expect(failure.kind == .redirect && failure.reason.contains("several"))
        guard case .follow = try followed("http://a/x", ["/y", "/y"]) else {
            Issue.record("not followed")
            return
        }
    }
}
