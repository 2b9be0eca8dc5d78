import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Stores cookies as RFC 6265bis §5.7 defines, and retrieves them as §5.8 defines.
@Suite("Cookie jar")
struct CookieJarTests {
    private let now = Date(timeIntervalSince1970: 1_700_000_000)
    private static let list = PublicSuffixes(
        isSuffix: { ["com", "example", "co.uk", "uk", "github.io", "localhost"].contains($0) },
        registrable: { host in
            let labels = host.split(separator: ".")
            let isShort = host.hasSuffix(".co.uk") || host.hasSuffix(".github.io")
            return labels.count < (isShort ? 3 : 2) ? nil : labels.suffix(isShort ? 3 : 2).joined(separator: ".")
        })

    private func jar(_ limits: CookieJar.Limits = .init()) -> CookieJar {
        CookieJar(limits: limits, suffixes: Self.list)
    }

    private func refusal(_ outcome: CookieJar.Outcome) -> Cookie.Refusal? {
        if case .refused(let refusal) = outcome { refusal } else { nil }
    }

    private func names(
        _ jar: inout CookieJar, _ url: String, _ method: Request.Method = .get, isCrossSite: Bool = false
    )
        throws -> [String]
    {
        jar.cookies(for: try Target(absolute: url), method: method, isCrossSite: isCrossSite, now: now).map(\.name)
    }

    // MARK: Domains

    @Test(
        arguments: [
            ("a.example", "a.example", nil), ("www.a.example", "a.example", nil), ("www.a.example", ".a.example", nil),
            ("www.a.example", "A.EXAMPLE", nil), ("a.example", "www.a.example", .foreignDomain),
            ("a.example", "b.example", .foreignDomain), ("xa.example", "a.example", .foreignDomain),
            ("www.a.example", "example", .publicSuffix), ("www.a.co.uk", "co.uk", .publicSuffix),
            ("me.github.io", "github.io", .publicSuffix), ("github.io", "github.io", nil),
            ("localhost", "localhost", nil), ("127.0.0.1", "127.0.0.1", nil), ("127.0.0.1", "0.0.1", .foreignDomain),
            ("[::1]", "::1", nil), ("www.a.example", "ä.example", .nonASCIIDomain),
            ("a.example", "..example", .foreignDomain),
            ("a.example", "a.example.", .foreignDomain),
        ] as [(String, String, Cookie.Refusal?)])
    func domainMustCoverTheServer(host: String, domain: String, expected: Cookie.Refusal?) throws {
        var jar = jar()
        let outcome = jar.store("a=b; domain=\(domain)", from: try Target(absolute: "http://\(host)/"), now: now)
        #expect(refusal(outcome) == expected)
    }

    @Test(
        arguments: [
            ("", "http://www.a.example/", true), ("", "http://a.example/", false),
            ("", "http://x.www.a.example/", false),
            ("; domain=a.example", "http://www.a.example/", true), ("; domain=a.example", "http://a.example/", true),
            ("; domain=a.example", "http://x.y.a.example/", true), ("; domain=a.example", "http://ba.example/", false),
            ("; domain=a.example", "http://WWW.A.EXAMPLE:8080/", true), ("", "https://www.a.example:8443/x", true),
        ] as [(String, String, Bool)])
    func hostsReceiveTheirCookies(domain: String, url: String, isSent: Bool) throws {
        var jar = jar()
        _ = jar.store("a=b" + domain, from: try Target(absolute: "http://www.a.example/"), now: now)
        #expect(try names(&jar, url) == (isSent ? ["a"] : []))
    }

    @Test func hostOfASuffixKeepsItsCookiesForItself() throws {
        var jar = jar()
        _ = jar.store("a=b; domain=github.io", from: try Target(absolute: "https://github.io/"), now: now)
        #expect(try names(&jar, "https://github.io/") == ["a"])
        #expect(try names(&jar, "https://me.github.io/") == [])
    }

    @Test func addressesHaveNoParentDomain() throws {
        var jar = jar()
        _ = jar.store("a=b; domain=1.2.3.4", from: try Target(absolute: "http://1.2.3.4/"), now: now)
        #expect(try names(&jar, "http://1.2.3.4/") == ["a"])
        #expect(try names(&jar, "http://1.2.3.5/") == [])
        #expect(!CookieMatching.host("9.1.2.3.4", isWithin: "1.2.3.4"))
        #expect(!CookieMatching.host("1.2.3.4", isWithin: "3.4"))
        #expect(!CookieMatching.host("a.3.4", isWithin: "3.4"))
    }

    // MARK: Paths

    @Test(arguments: [
        ("/", "/", true), ("/a", "/", true), ("/a", "/a", true), ("/a/b", "/a", true), ("/ab", "/a", false),
        ("/a/", "/a/", true), ("/a", "/a/", false), ("/a/b", "/a/", true), ("/A", "/a", false), ("/", "/a", false),
    ])
    func pathsMatch(path: String, cookiePath: String, isMatch: Bool) {
        #expect(CookieMatching.path(path, isWithin: cookiePath) == isMatch)
    }

    @Test(arguments: [
        ("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b/c.html", "/a/b"), ("", "/"), ("a", "/"),
    ])
    func defaultPathIsTheFolder(path: String, expected: String) {
        #expect(CookieMatching.defaultPath(of: path) == expected)
    }

    @Test func queryIsNotPartOfThePath() throws {
        var jar = jar()
        _ = jar.store("a=b", from: try Target(absolute: "http://a.example/x?y=/z/"), now: now)
        #expect(try names(&jar, "http://a.example/other?q") == ["a"])
    }

    // MARK: Security

    @Test func secureCookiesRequireHTTPS() throws {
        var jar = jar()
        let (plain, secure) = (try Target(absolute: "http://a.example/"), try Target(absolute: "https://a.example/"))
        #expect(refusal(jar.store("a=b; secure", from: plain, now: now)) == .insecureOrigin)
        #expect(refusal(jar.store("a=b; secure", from: secure, now: now)) == nil)
        #expect(try names(&jar, "https://a.example/") == ["a"])
        #expect(try names(&jar, "http://a.example/") == [])
    }

    @Test(
        arguments: [
            ("http://a.example/", "", true), ("http://a.example/login/x", "", true),
            ("http://a.example/", "; path=/", false),
            ("http://www.a.example/login/", "; domain=a.example", true), ("https://a.example/login/", "", false),
            ("http://b.example/login/", "", false), ("http://a.example/login/", "; path=/login/en", true),
        ] as [(String, String, Bool)])
    func plainHTTPDoesNotReplaceSecureCookies(url: String, attributes: String, isRefused: Bool) throws {
        var jar = jar()
        let path = url == "http://a.example/" && attributes.isEmpty ? "/" : "/login"
        _ = jar.store("sid=1; secure; path=\(path)", from: try Target(absolute: "https://a.example/"), now: now)
        let outcome = jar.store("sid=2" + attributes, from: try Target(absolute: url), now: now)
        #expect((refusal(outcome) == .overwritesSecure) == isRefused)
        let other = jar.store("other=2" + attributes, from: try Target(absolute: url), now: now)
        #expect(refusal(other) == nil)
    }

    @Test(
        arguments: [
            ("__Secure-a=b", .securePrefix), ("__Secure-a=b; secure", nil), ("__SECURE-a=b", .securePrefix),
            ("__Host-a=b; secure; path=/", nil), ("__Host-a=b; secure", .hostPrefix),
            ("__Host-a=b; path=/", .hostPrefix), ("__host-a=b; secure; path=/x", .hostPrefix),
            ("__Host-a=b; secure; path=/; domain=a.example", .hostPrefix), ("__Host-a=b; secure; path=/; domain=", nil),
            ("=__Host-a=b; secure; path=/", .hiddenPrefix), ("__Secure-a; secure", .hiddenPrefix),
            ("=x__Host-a=b", nil),
            ("a=b; samesite=none", .sameSiteNone), ("a=b; samesite=none; secure", nil),
        ] as [(String, Cookie.Refusal?)])
    func prefixesAreEnforced(field: String, expected: Cookie.Refusal?) throws {
        var jar = jar()
        #expect(refusal(jar.store(field, from: try Target(absolute: "https://a.example/"), now: now)) == expected)
    }

    @Test(
        arguments: [
            ("strict", "GET", false), ("strict", "POST", false), ("lax", "GET", true), ("lax", "POST", false),
            ("none; secure", "POST", true), ("bogus", "GET", true), ("bogus", "PUT", false), ("", "HEAD", true),
        ])
    func cookiesAreNotSentAcrossSites(sameSite: String, method: String, isSent: Bool) throws {
        var jar = jar()
        let url = "https://a.example/"
        _ = jar.store("a=b; samesite=\(sameSite)", from: try Target(absolute: url), now: now)
        #expect(try names(&jar, url, Request.Method(method), isCrossSite: true) == (isSent ? ["a"] : []))
        #expect(try names(&jar, url, Request.Method(method), isCrossSite: false) == ["a"])
    }

    @Test func plainHTTPCannotImitateASecureCookieWithANamelessOne() throws {
        var jar = jar()
        let (plain, secure) = (try Target(absolute: "http://a.example/"), try Target(absolute: "https://a.example/"))
        _ = jar.store("sid=1; secure; path=/", from: secure, now: now)
        #expect(refusal(jar.store("=sid=2; path=/", from: plain, now: now)) == .overwritesSecure)
        for space in [" ", "\t", " \t ", "\u{A0}", "\u{2003}"] {
            let fields = ["=sid\(space)=evil; path=/", "=\(space)sid=evil; path=/"]
            for field in fields {
                #expect(refusal(jar.store(field, from: plain, now: now)) == .overwritesSecure, "\(field)")
            }
        }
        #expect(refusal(jar.store("=other=2; path=/", from: plain, now: now)) == nil)
    }

    // MARK: Lifetime

    @Test func noCookieLivesLongerThan400Days() throws {
        var jar = jar()
        let origin = try Target(absolute: "https://a.example/")
        let latest = now.addingTimeInterval(400 * 86_400)
        for field in ["a=b; max-age=99999999999", "a=b; expires=Fri, 01 Jan 2100 00:00:00 GMT"] {
            guard case .stored(let cookie) = jar.store(field, from: origin, now: now) else {
                Issue.record("not stored")
                continue
            }
            #expect(cookie.expires == latest)
        }
        guard case .stored(let cookie) = jar.store("a=b; max-age=60", from: origin, now: now) else { return }
        #expect(cookie.expires == now.addingTimeInterval(60))
        guard case .stored(let session) = jar.store("a=b", from: origin, now: now) else { return }
        #expect(session.expires == nil)
    }

    @Test func expiredCookiesAreNotSent() throws {
        var jar = jar()
        let target = try Target(absolute: "https://a.example/")
        _ = jar.store("a=b; max-age=60", from: target, now: now)
        #expect(jar.header(for: target, method: .get, isCrossSite: false, now: now.addingTimeInterval(59)) == "a=b")
        #expect(jar.header(for: target, method: .get, isCrossSite: false, now: now.addingTimeInterval(60)) == nil)
        #expect(jar.all(now: now.addingTimeInterval(60)).isEmpty)
    }

    @Test func replacingKeepsTheCreation() throws {
        var jar = jar()
        let target = try Target(absolute: "https://a.example/")
        _ = jar.store("a=1", from: target, now: now)
        _ = jar.store("b=1", from: target, now: now.addingTimeInterval(1))
        _ = jar.store("a=2", from: target, now: now.addingTimeInterval(2))
        #expect(jar.all(now: now).map(\.value) == ["2", "1"])
        #expect(jar.all(now: now).first?.creation == now)
        #expect(jar.header(for: target, method: .get, isCrossSite: false, now: now) == "a=2; b=1")
        #expect(jar.count == 2)
    }

    // MARK: Limits

    @Test func fullDomainLosesInsecureAndLeastUsedCookiesFirst() throws {
        var limits = CookieJar.Limits()
        limits.perDomain = 3
        var jar = jar(limits)
        let target = try Target(absolute: "https://a.example/")
        for field in ["s1=; secure", "p1=; path=/p", "p2=", "s2=; secure"] {
            _ = jar.store(field, from: target, now: now)
        }
        #expect(jar.all(now: now).map(\.name) == ["s1", "p2", "s2"])
        _ = jar.store("s3=; secure", from: target, now: now)
        #expect(jar.all(now: now).map(\.name) == ["s1", "s2", "s3"])
        // A look-up of another path uses s1 only.
        _ = jar.store("s1=x; secure", from: target, now: now)
        _ = jar.store("s4=; secure", from: target, now: now)
        #expect(jar.all(now: now).map(\.name) == ["s1", "s3", "s4"])
        #expect(jar.count == 3)
    }

    /// A server without TLS, or another host of the domain, cannot displace a Secure cookie of the host itself.
    @Test(arguments: ["http://x.example/", "https://b.x.example/"])
    func othersDoNotFillTheField(stranger: String) throws {
        var jar = jar()
        let target = try Target(absolute: "https://x.example/")
        for field in ["__Host-csrf=1; secure; path=/", "session=2; secure", "own=3; secure"] {
            _ = jar.store(field, from: target, now: now)
        }
        let isSecure = stranger.hasPrefix("https")
        for name in ["a", "b", "c"] {
            let value = String(repeating: "x", count: 4_000)
            let field = "\(name)=\(value); domain=x.example; path=/" + (isSecure ? "; secure" : "")
            _ = jar.store(field, from: try Target(absolute: stranger), now: now)
        }
        let sent = try names(&jar, "https://x.example/")
        #expect(sent.prefix(3) == ["__Host-csrf", "session", "own"] && sent.count == 5)
    }

    @Test func expiredCookiesAreRemovedFirst() throws {
        var limits = CookieJar.Limits()
        limits.perDomain = 2
        var jar = jar(limits)
        let target = try Target(absolute: "https://a.example/")
        _ = jar.store("old=1", from: target, now: now)
        _ = jar.store("short=1; max-age=5; secure", from: target, now: now)
        _ = jar.store("new=1", from: target, now: now.addingTimeInterval(10))
        #expect(jar.all(now: now).map(\.name) == ["old", "new"])
    }

    @Test func fullJarLosesTheLeastUsedCookie() throws {
        var limits = CookieJar.Limits()
        limits.total = 3
        var jar = jar(limits)
        for host in ["a", "b", "c"] {
            _ = jar.store("n=\(host)", from: try Target(absolute: "https://\(host).example/"), now: now)
        }
        #expect(try names(&jar, "https://a.example/") == ["n"])
        _ = jar.store("n=d", from: try Target(absolute: "https://d.example/"), now: now)
        #expect(jar.all(now: now).map(\.value) == ["a", "c", "d"])
        #expect(jar.count == 3)
    }

    @Test func standardLimitsHold() throws {
        var jar = jar()
        for host in 0..<20 {
            let target = try Target(absolute: "https://h\(host).example/")
            for number in 0..<200 { _ = jar.store("n\(number)=", from: target, now: now) }
        }
        #expect(jar.count == 3_000)
        #expect(jar.all(now: now).filter { $0.domain == "h19.example" }.map(\.name) == (20..<200).map { "n\($0)" })
    }

    // MARK: Cookies made by the caller

    @Test(
        arguments: [
            (Cookie(name: "a", value: "b", domain: "A.Example"), nil),
            (Cookie(name: "a", value: "b\r\nX: y", domain: "a.example"), .malformed),
            (Cookie(name: "a", value: "b; c=d", domain: "a.example"), .malformed),
            (Cookie(name: "a=b", value: "c", domain: "a.example"), .malformed),
            (Cookie(name: "a", value: "b", domain: ""), .malformed),
            (Cookie(name: "a", value: "b", domain: "a.example", path: "x"), .malformed),
            (Cookie(name: "", value: "", domain: "a.example"), .empty),
            (Cookie(name: "a", value: String(repeating: "x", count: 4_096), domain: "a.example"), .tooLarge),
            (Cookie(name: "a", value: "b", domain: "co.uk", isHostOnly: false), .publicSuffix),
            (Cookie(name: "a", value: "b", domain: "co.uk", isHostOnly: true), nil),
            (Cookie(name: "__Host-a", value: "b", domain: "a.example"), .hostPrefix),
            (Cookie(name: "a", value: "b", domain: "a.example", sameSite: Cookie.SameSite.none), .sameSiteNone),
        ] as [(Cookie, Cookie.Refusal?)])
    func manualCookiesFollowTheRules(cookie: Cookie, expected: Cookie.Refusal?) {
        var jar = jar()
        #expect(refusal(jar.insertChecked(cookie, now: now)) == expected)
    }

    @Test func anExpiredSecureCookieProtectsNoName() throws {
        var jar = jar()
        let (plain, secure) = (try Target(absolute: "http://a.example/"), try Target(absolute: "https://a.example/"))
        _ = jar.store("sid=1; secure; path=/; max-age=1", from: secure, now: now)
        #expect(refusal(jar.store("sid=2; path=/", from: plain, now: now)) == .overwritesSecure)
        #expect(refusal(jar.store("sid=2; path=/", from: plain, now: now + 2)) == nil)
    }
}
