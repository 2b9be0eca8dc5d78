import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Parses one `Set-Cookie` field into a `Cookie`, as the http-state suite and RFC 6265bis §5.6 define.
@Suite("Set-Cookie")
struct CookieParsingTests {
    private let now = Date(timeIntervalSince1970: 1_700_000_000)

    private func cookieHeader(
        after fields: [String], to url: String = "http://home.example.org/cookie-parser-result"
    )
        throws -> String?
    {
        var jar = CookieJar(suffixes: .singleLabels)
        let origin = try Target(absolute: "http://home.example.org/cookie-parser")
        for field in fields { _ = jar.store(field, from: origin, now: now) }
        return jar.header(for: try Target(absolute: url), method: .get, isCrossSite: false, now: now)
    }

    @Test(
        arguments: [
            ("foo=bar", "foo=bar"), ("foo=bar; Expires=Fri, 07 Aug 2007 08:04:19 GMT", nil),
            ("foo=bar; max-age=10000;", "foo=bar"), ("foo=bar; max-age=0;", nil), ("foo=bar; max-age=-1", nil),
            ("foo=bar; max-age=", "foo=bar"), ("foo=bar; max-age=1x", "foo=bar"), ("foo=bar; max-age=+1", "foo=bar"),
            ("foo=bar; max-age=-", "foo=bar"), ("foo=bar; max-age=--1", "foo=bar"), ("foo=bar; max-age=-0", nil),
            ("foo=bar; max-age=99999999999999999999", "foo=bar"),
            ("foo=bar; version=1;", "foo=bar"), ("foo=bar; customvalue=1000;", "foo=bar"), ("foo=bar; secure;", nil),
            ("foo=bar; secure=x", nil), ("foo=bar; SECURE", nil), ("foo=bar; customsec", "foo=bar"),
            ("foo=bar; secure bar", "foo=bar"), ("foo=bar; httponly", "foo=bar"), ("foo=bar; path", "foo=bar"),
            ("  foo  =  bar  ", "foo=bar"), ("foo=\"bar\"", "foo=\"bar\""), ("foo=\"  bar \"", "foo=\"  bar \""),
            ("foo=\"b;r\"", "foo=\"b"), ("foo=\"bar", "foo=\"bar"), ("foo=bar=baz", "foo=bar=baz"),
            ("foo==bar", "foo==bar"), ("foo=", "foo="), ("foo", "foo"), ("=foo", "foo"), ("=foo=bar", "foo=bar"),
            ("", nil), ("=", nil), (";", nil), (" ; foo=bar", nil), ("foo;bar=baz", "foo"),
            ("foo bar=baz", "foo bar=baz"),
            ("foo=bar, baz=qux", "foo=bar, baz=qux"), ("foo=bar; ; ;; max-age=0 ;", nil),
            ("foo=bar\t;\tmax-age\t=\t0\t", nil), ("f\to=b\tr", "f\to=b\tr"),
            ("foo=ü漢", "foo=ü漢"), ("foo=bar; domain=", "foo=bar"), ("foo=b\u{1}r", nil), ("foo=b\nr", nil),
            ("foo=b\rr", nil),
            ("foo=bar; path=/\r", nil), ("\rfoo=bar", nil), ("==", "="), ("==a", "=a"), ("= a", "a"), ("foo;", "foo"),
            ("foo=bar; x=\u{7F}", nil), ("foo=b\0r", nil), ("%66oo=b%61r", "%66oo=b%61r"), ("$Version=1", "$Version=1"),
        ] as [(String, String?)])
    func oneFieldGivesOneCookie(field: String, expected: String?) throws {
        #expect(try cookieHeader(after: [field]) == expected)
    }

    @Test(
        arguments: [
            (["foo=bar", "foo=qux"], "foo=qux"), (["foo1=bar", "foo2=qux"], "foo1=bar; foo2=qux"),
            (["a=b", "c=d", "a=e"], "a=e; c=d"), (["a=b", "a=; max-age=0"], nil), (["a=b", "A=c"], "a=b; A=c"),
            (["=a", "=b"], "b"), (["a=b", "a=c; max-age=0; max-age=100"], "a=c"),
            (["a=b; max-age=100; expires=Thu, 01 Jan 1970 00:00:00 GMT"], "a=b"),
            (["a=b; max-age=0; expires=Fri, 01 Jan 2100 00:00:00 GMT"], nil),
            (["a=b; expires=Thu, 01 Jan 1970 00:00:00 GMT; expires=nonsense"], nil),
            (["a=1; path=/", "b=2; path=/cookie-parser-result", "c=3; path=/"], "b=2; a=1; c=3"),
            (["a=1", "b=2; path=/x", "c=3; path=/cookie-parser"], "a=1"),
        ] as [([String], String?)])
    func laterFieldsReplaceEarlierOnes(fields: [String], expected: String?) throws {
        #expect(try cookieHeader(after: fields) == expected)
    }

    @Test func sizesAreLimited() throws {
        let largest = "a=" + String(repeating: "x", count: 4_095)
        #expect(try cookieHeader(after: [largest]) == largest)
        #expect(try cookieHeader(after: [largest + "x"]) == nil)
        // An attribute that is too long is ignored, and its cookie is kept.
        #expect(try cookieHeader(after: ["a=b; path=/" + String(repeating: "x", count: 1_024)]) == "a=b")
        #expect(try cookieHeader(after: ["a=b; path=/" + String(repeating: "x", count: 1_023)]) == nil)
    }

    @Test func bytesThatAreNotUTF8AreCountedAndKeptOneByOne() throws {
        var jar = CookieJar(suffixes: .singleLabels)
        let origin = try Target(absolute: "http://home.example.org/")
        func header() -> [UInt8]? { jar.headerBytes(for: origin, method: .get, isCrossSite: false, now: now) }
        let largest = Array("a=".utf8) + [UInt8](repeating: 0xE9, count: 4_095)
        _ = jar.store(bytes: largest + [0xE9], from: origin, now: now)
        #expect(header() == nil)
        _ = jar.store(bytes: largest, from: origin, now: now)
        #expect(header() == largest)
        // A name in other bytes is another cookie; a name in the same bytes is the same cookie.
        jar.removeAll { _ in true }
        for pair in [
            [0xE9, 0x3D, 0x31], [0xC3, 0xA9, 0x3D, 0x32], [0x65, 0xCC, 0x81, 0x3D, 0x33], [0xE9, 0x3D, 0xFF],
        ] {
            _ = jar.store(bytes: pair.map { UInt8($0) }, from: origin, now: now)
        }
        #expect(
            header()
                == Array(
                    [[0xE9, 0x3D, 0xFF], [0xC3, 0xA9, 0x3D, 0x32], [0x65, 0xCC, 0x81, 0x3D, 0x33]]
                        .map { $0.map { UInt8($0) } }.joined(separator: "; ".utf8)))
    }

    @Test func bytesSurviveTheFile() throws {
        var jar = CookieJar(suffixes: .singleLabels)
        let origin = try Target(absolute: "http://home.example.org/")
        _ = jar.store(bytes: [0xE9, 0x3D, 0xFF], from: origin, now: now)
        let data = try JSONEncoder().encode(jar.all(now: now))
        var other = CookieJar(suffixes: .singleLabels)
        for cookie in try JSONDecoder().decode([Cookie].self, from: data) { _ = other.insertChecked(cookie, now: now) }
        #expect(other.headerBytes(for: origin, method: .get, isCrossSite: false, now: now) == [0xE9, 0x3D, 0xFF])
    }

    @Test func attributesAreAvailable() throws {
        let field = try SetCookieField(
            "id=7;Path=/a;DOMAIN=.Example.COM;Secure;HttpOnly;SameSite=lAx;Max-Age=60;Expires=Thu, 01 Jan 1970 00:00:09 GMT"
        )
        #expect((field.name, field.value, field.path, field.domain) == ("id", "7", "/a", "example.com"))
        #expect(field.isSecure && field.isHTTPOnly)
        #expect(field.sameSite == .lax)
        #expect((field.maxAge, field.expires) == (60, 9))
    }

    @Test(
        arguments: [
            ("path=/a; path=/b", "/b"), ("path=/a; path=b", nil), ("path=", nil), ("path=\"/a\"", nil),
            ("PATH = /a b ", "/a b"),
        ] as [(String, String?)])
    func lastPathAttributeCounts(attributes: String, expected: String?) throws {
        #expect(try SetCookieField("a=b; " + attributes).path == expected)
    }

    @Test func descriptionsKeepTheValue() {
        let cookie = Cookie(name: "sid", value: "s3cret", domain: "h.example")
        var dumped = ""
        dump(cookie, to: &dumped)
        for text in ["\(cookie)", String(reflecting: cookie), "\([cookie])", dumped] {
            #expect(!text.contains("s3cret"), "\(text)")
        }
    }
}
