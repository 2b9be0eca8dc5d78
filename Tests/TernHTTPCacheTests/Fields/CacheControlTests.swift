import Tern
import Testing

@testable import TernHTTPCache

/// Tests the directives of requests and responses (RFC 9111 §5.2), with every byte that a server can send.
@Suite struct CacheControlTests {
    private func response(_ values: String...) -> ResponseDirectives {
        var headers = Headers()
        for value in values { headers.append(name: "Cache-Control", value: value) }
        return ResponseDirectives(headers)
    }

    private func request(_ value: String) -> RequestDirectives { RequestDirectives(["Cache-Control": value]) }

    @Test(arguments: [
        ("max-age=60", 60), ("MAX-age=60", 60), ("max-age=\"60\"", 60), ("max-age=\"6\\0\"", 60), ("max-age=0060", 60),
        ("public,max-age=60", 60), (" , ,\tmax-age=60 , ", 60), ("foo=\"a, max-age=5\", max-age=60", 60),
        ("max-age=2147483648", 1 << 31), ("max-age=99999999999", 1 << 31),
        ("max-age=99999999999999999999999999999999999999", 1 << 31),
        // Unparsable values count as stale (§4.2.1).
        ("max-age", 0), ("max-age=", 0), ("max-age=-1", 0), ("max-age=+1", 0), ("max-age=1.0", 0), ("max-age=a60", 0),
        ("max-age=60a", 0), ("max-age='60'", 0), ("max-age =60", 0), ("max-age= 60", 0), ("max-age=6 0", 0),
        ("max-age=\"60", 0), ("max-age=\"60\"x", 0), ("max-age=\"\"", 0), ("max-age=٦٠", 0), ("max-age==60", 0),
        ("foo=\"x, max-age=60", 0),
    ])
    func theLifetimeIsTheNumberOfMaxAge(_ value: String, seconds: Int64) {
        #expect(response(value).maxAge == seconds)
    }

    @Test func theStrictestDuplicateCounts() {
        #expect(response("max-age=1800, max-age=1").maxAge == 1)
        #expect(response("max-age=1", "max-age=1800").maxAge == 1)
        #expect(response("max-age=1800, max-age=x").maxAge == 0)
        #expect(response("stale-while-revalidate=9, stale-while-revalidate=5").staleWhileRevalidate == 5)
        #expect(response("stale-if-error=9, stale-if-error=x").staleIfError == nil)
        #expect(request("max-age=9, max-age=3").maxAge == 3)
        #expect(request("min-fresh=9, min-fresh=30").minFresh == 30)
        #expect(request("max-stale=9, max-stale=3").maxStale == .seconds(3))
        #expect(request("max-stale, max-stale=3").maxStale == .seconds(3))
        #expect(response("no-cache, no-cache=\"a\"").noCache)
    }

    @Test func onlyWholeNamesOutsideOfQuotesAreDirectives() {
        #expect(response("foo=\"no-store\"").noStore == false)
        #expect(response("foo=\"a\\\", no-store\"").noStore == false)
        #expect(response("x-no-store, no-storey").noStore == false)
        #expect(response("foo=\"x\", No-StOrE").noStore)
        #expect(response("s-maxage=60").maxAge == nil)
    }

    @Test func aRestrictionCountsWithAnyArgumentAndAfterDamage() {
        for value in [
            "no-store=1", "no-store foo", "no-store=\"", "foo=\"x, no-store", "foo=\", no-store", "@, no-store",
        ] {
            #expect(response(value).noStore, "\(value)")
        }
        #expect(response("must-revalidate=x").mustRevalidate)
        #expect(response("no-cache=\"").noCache)
        #expect(response("no-cache=").noCache)
        #expect(response("no-cache=\"\"").noCache)
        #expect(response("no-cache=\" , \"").noCache)
    }

    @Test func aPermissionWithoutAReadableArgumentHasNoEffect() {
        #expect(response("public x").isPublic == false)
        #expect(response("foo=\"x, public, immutable").isPublic == false)
        #expect(response("foo=\"x, public, immutable").isImmutable == false)
        #expect(response("public").isPublic)
        #expect(response("immutable=\"").isImmutable == false)
        #expect(response("immutable").isImmutable)
        #expect(response("stale-while-revalidate").staleWhileRevalidate == nil)
        #expect(response("stale-if-error=-1").staleIfError == nil)
        #expect(request("max-stale=x").maxStale == nil)
        #expect(request("max-stale").maxStale == .any)
        #expect(request("min-fresh=x").minFresh == 1 << 31)
        #expect(request("max-age=x").maxAge == 0)
    }

    @Test func noCacheWithFieldsNamesTheFields() {
        let directives = response("no-cache=\"Set-Cookie, X-Foo\", no-cache=Bar")
        #expect(directives.noCache == false)
        #expect(directives.noCacheFields == ["set-cookie", "x-foo", "bar"])
        #expect(response("private=\"X-Foo\"").isPrivate)
    }

    @Test func pragmaCountsInRequestsWithoutCacheControlAlone() {
        #expect(RequestDirectives(["Pragma": "foo, No-Cache"]).noCache)
        #expect(!RequestDirectives(["Pragma": "no-cache", "Cache-Control": "max-age=5"]).noCache)
        #expect(!RequestDirectives(["Pragma": "no-cachex"]).noCache)
        #expect(!ResponseDirectives(["Pragma": "no-cache"]).noCache)
    }

    @Test func fieldsBeyondTheLimitsForbidStoring() {
        #expect(response(String(repeating: "a,", count: 200)).noStore)
        #expect(response(String(repeating: "x", count: 20_000)).noStore)
        #expect(request(String(repeating: "x", count: 20_000)).noStore)
        #expect(!response(String(repeating: "a,", count: 100)).noStore)
    }

    @Test func hostileBytesTakeLinearTime() {
        // Quotes that do not end, escapes, and separators: 200 KiB each.
        for unit in ["\"", "\\\"", "\"\\", ",", "=\"", "a=\",", " "] {
            let text = String(repeating: unit, count: 200_000 / unit.utf8.count)
            _ = response(text)
            #expect(FieldText.members(text).count <= 200_000)
            #expect(EntityTagList(["If-None-Match": text]) != nil)
        }
    }
}
