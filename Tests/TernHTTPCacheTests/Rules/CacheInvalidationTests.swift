import Tern
import Testing

@testable import TernHTTPCache

/// Tests unsafe methods, cache groups and HEAD (RFC 9111 §4.3.5, §4.4, RFC 9875).
@Suite struct CacheInvalidationTests {
    private let cache = CacheSimulator()

    private func store(_ url: String = "http://example.com/a", _ headers: Headers = [:]) throws {
        let headers = headers.overriding(with: ["Cache-Control": "max-age=60"])
        try cache.get(url: url, OriginAnswer(200, headers, "stored"))
    }

    private func isStored(_ url: String = "http://example.com/a") throws -> Bool {
        let request = try cache.request("GET", url, choice: .onlyStored)
        return (try? cache.send(request) { _ in OriginAnswer() }) != nil
    }

    private func send(_ method: String, _ answer: OriginAnswer, url: String = "http://example.com/a") throws {
        try cache.send(try cache.request(method, url)) { _ in answer }
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "UNKNOWN"])
    func anUnsafeMethodInvalidatesItsURL(_ method: String) throws {
        for status in [200, 201, 204, 303, 399] {
            try store()
            try send(method, OriginAnswer(status))
            #expect(!(try isStored()), "\(status)")
        }
    }

    @Test(arguments: [400, 404, 412, 500, 503])
    func aFailedRequestInvalidatesNothing(_ status: Int) throws {
        try store()
        try send("POST", OriginAnswer(status, ["Location": "/a", "Cache-Group-Invalidation": "\"g\""]))
        #expect(try isStored())
    }

    @Test(arguments: ["OPTIONS", "TRACE"])
    func aSafeMethodInvalidatesNothing(_ method: String) throws {
        try store("http://example.com/a", ["Cache-Groups": "\"g\""])
        try send(method, OriginAnswer(200, ["Location": "/a", "Cache-Group-Invalidation": "\"g\""]))
        #expect(try isStored())
    }

    @Test func allVariantsOfAURLAreInvalidated() throws {
        for value in ["1", "2"] {
            try cache.get(["Foo": value], OriginAnswer(200, ["Cache-Control": "max-age=60", "Vary": "Foo"]))
        }
        try send("POST", OriginAnswer(200))
        #expect(cache.store.count == 0)
    }

    @Test(arguments: ["Location", "Content-Location"])
    func urlsOfTheSameOriginAreInvalidated(_ field: String) throws {
        for reference in ["/b", "b", "http://example.com/b", "http://EXAMPLE.com:80/b"] {
            try store("http://example.com/b")
            try send("POST", OriginAnswer(201, [field: reference]))
            #expect(!(try isStored("http://example.com/b")), "\(reference)")
        }
    }

    @Test(arguments: ["Location", "Content-Location"])
    func urlsOfAnotherOriginAreNotInvalidated(_ field: String) throws {
        for url in [
            "http://example.org/b", "https://example.com/b", "http://example.com:81/b", "http://a.example.com/b",
        ] {
            try store(url)
            try send("POST", OriginAnswer(201, [field: url]))
            #expect(try isStored(url), "\(url)")
        }
        try store("http://example.com/b")
        for reference in ["", "http://", "//[", "\u{0}", "b c"] {
            try send("PUT", OriginAnswer(200, [field: reference]))
        }
        #expect(try isStored("http://example.com/b"))
    }

    @Test func equivalentURLsAreInvalidatedTogether() throws {
        try store("http://example.com/p?a=1&utm=2", ["No-Vary-Search": "params=(\"utm\")"])
        try send("POST", OriginAnswer(200), url: "http://example.com/p?a=1")
        #expect(!(try isStored("http://example.com/p?a=1&utm=2")))
    }

    @Test func anotherUsersResponsesStay() throws {
        let own = try cache.request(partition: "one")
        try cache.send(own) { _ in OriginAnswer(200, ["Cache-Control": "max-age=60"]) }
        try send("POST", OriginAnswer(200))
        #expect(try cache.send(own) { _ in OriginAnswer() }.isCached)
    }

    @Test func aResponseThatWasRequestedBeforeAnInvalidationIsNotStored() throws {
        try cache.send(try cache.request()) { _ in
            try send("POST", OriginAnswer(200))
            return OriginAnswer(200, ["Cache-Control": "max-age=60"], "outdated")
        }
        #expect(!(try isStored()))
        try cache.get(url: "http://example.com/b", OriginAnswer(200, ["Cache-Control": "max-age=60"]))
        #expect(try isStored("http://example.com/b"))
    }

    // MARK: Groups (RFC 9875)

    @Test func aGroupIsInvalidatedWithinItsOrigin() throws {
        try store("http://example.com/a", ["Cache-Groups": "\"g\", \"h\""])
        try store("http://example.com/b", ["Cache-Groups": "\"h\""])
        try store("http://example.com/c", ["Cache-Groups": "\"G\""])
        try store("http://example.org/a", ["Cache-Groups": "\"g\""])
        try send("POST", OriginAnswer(200, ["Cache-Group-Invalidation": "\"g\", \"x\""]), url: "http://example.com/z")
        #expect(!(try isStored("http://example.com/a")))
        #expect(try isStored("http://example.com/b"))
        #expect(try isStored("http://example.com/c"))
        #expect(try isStored("http://example.org/a"))
    }

    @Test func malformedGroupsInvalidateNothing() throws {
        try store("http://example.com/a", ["Cache-Groups": "\"g\""])
        for field in ["g", "\"g", "\"g\" \"h\""] {
            try send("POST", OriginAnswer(200, ["Cache-Group-Invalidation": field]), url: "http://example.com/z")
        }
        #expect(try isStored())
    }

    @Test func aMemberThatWasRequestedBeforeIsNotStored() throws {
        try cache.send(try cache.request()) { _ in
            try send("POST", OriginAnswer(200, ["Cache-Group-Invalidation": "\"g\""]), url: "http://example.com/z")
            return OriginAnswer(200, ["Cache-Control": "max-age=60", "Cache-Groups": "\"g\""], "outdated")
        }
        #expect(!(try isStored()))
    }

    // MARK: HEAD

    @Test func headIsAnsweredFromAStoredGet() throws {
        try store("http://example.com/a", ["Content-Length": "6", "X": "y"])
        let response = try cache.send(try cache.request("HEAD")) { _ in OriginAnswer() }
        #expect(response.isCached)
        #expect(response.body.isEmpty)
        #expect(response.headers["Content-Length"] == "6")
        #expect(response.headers["X"] == "y")
    }

    @Test func aStoredHeadAnswersHeadAlone() throws {
        let head = OriginAnswer(200, ["Cache-Control": "max-age=60", "Content-Length": "99"], "")
        try cache.send(try cache.request("HEAD")) { _ in head }
        let second = try cache.send(try cache.request("HEAD")) { _ in OriginAnswer() }
        #expect(second.isCached)
        #expect(second.headers["Content-Length"] == "99")
        #expect(!(try cache.get(OriginAnswer()).isCached))
    }

    @Test func headUpdatesAStoredGetThatIsCurrent() throws {
        try store("http://example.com/a", ["ETag": "\"a\"", "X": "1", "Y": "1"])
        cache.advance(100)
        let head = OriginAnswer(
            200, ["ETag": "\"a\"", "X": "2", "Content-Length": "6", "Cache-Control": "max-age=100"])
        let response = try cache.send(try cache.request("HEAD")) { _ in head }
        #expect(response.outcome == .updatedByHead)
        let get = try cache.get(OriginAnswer())
        #expect(get.isCached)
        #expect(get.body == "stored")
        #expect(get.headers["X"] == "2")
        #expect(get.headers["Y"] == "1")
        #expect(get.headers["Age"] == "0")
    }

    @Test(
        arguments: [
            ["ETag": "\"b\""], ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], ["Content-Length": "7"],
            ["ETag": "\"a\"", "Cache-Control": "no-store"],
        ] as [Headers])
    func headMarksAStoredGetThatIsOutdated(_ headers: Headers) throws {
        try store("http://example.com/a", ["ETag": "\"a\""])
        let response = try cache.send(try cache.request("HEAD", choice: .reload)) { _ in OriginAnswer(200, headers) }
        #expect(response.outcome == .changedByHead)
        let get = try cache.get(OriginAnswer(200, [:], "new"))
        #expect(get.reason == .mustValidate)
        #expect(get.body == "new")
    }

    @Test(arguments: ["no-store", "no-cache"], [Request.CacheChoice.noStore, .useProtocol])
    func headWithNoStoreAddsNoFieldToAStoredGet(_ directive: String, choice: Request.CacheChoice) throws {
        try store("http://example.com/a", ["ETag": "\"a\"", "X": "1"])
        let own = try cache.request("HEAD", "http://example.com/a", ["Cache-Control": directive], choice: choice)
        let control = directive == "no-store" || choice == .noStore ? "max-age=60" : "no-store"
        try cache.send(own) { _ in OriginAnswer(200, ["ETag": "\"a\"", "X": "2", "Cache-Control": control]) }
        let get = try cache.get(OriginAnswer(304, ["ETag": "\"a\""]))
        #expect(get.headers["X"] == "1")
        #expect(get.headers["Cache-Control"] == "max-age=60")
        #expect(get.body == "stored")
    }

    @Test func headWithNoStoreStillShowsThatAStoredGetIsOutdated() throws {
        try store("http://example.com/a", ["ETag": "\"a\""])
        try cache.send(try cache.request("HEAD", choice: .noStore)) { _ in OriginAnswer(200, ["ETag": "\"b\""]) }
        #expect(try cache.get(OriginAnswer(200, [:], "new")).reason == .mustValidate)
    }

    @Test(arguments: [301, 400, 401, 403, 405, 407, 408, 421, 425, 428, 429, 431, 500, 503])
    func aStatusOfHeadThatSaysNothingAboutTheContentLeavesAStoredGet(_ status: Int) throws {
        try store("http://example.com/a", ["ETag": "\"a\"", "X": "1"])
        let head = OriginAnswer(status, ["ETag": "\"b\"", "X": "2", "Cache-Control": "max-age=60"])
        let response = try cache.send(try cache.request("HEAD", choice: .reload)) { _ in head }
        #expect(response.status == status)
        let get = try cache.get(OriginAnswer())
        #expect(get.isCached)
        #expect(get.headers["X"] == "1")
    }

    @Test func headWithoutAValidatorAndLengthLeavesAStoredGet() throws {
        try store("http://example.com/a", ["X": "1"])
        cache.advance(60)
        let head = OriginAnswer(200, ["Cache-Control": "max-age=100", "X": "2"])
        #expect(try cache.send(try cache.request("HEAD")) { _ in head }.outcome == .stored)
        let get = try cache.get(OriginAnswer(200, [:], "new"))
        #expect(get.reason == .stale)
        #expect(get.body == "new")
    }

    @Test(arguments: [404, 410])
    func aMissingResourceOfHeadMarksAStoredGet(_ status: Int) throws {
        try store("http://example.com/a", ["ETag": "\"a\""])
        try cache.send(try cache.request("HEAD", choice: .reload)) { _ in OriginAnswer(status) }
        #expect(!(try isStored()))
        #expect(try cache.get(OriginAnswer(status, [:], "gone")).status == status)
    }

    @Test func a304ToHeadUpdatesTheStoredGet() throws {
        try store("http://example.com/a", ["ETag": "\"a\""])
        cache.advance(60)
        let answer = OriginAnswer(304, ["ETag": "\"a\"", "Cache-Control": "max-age=100"])
        let head = try cache.send(try cache.request("HEAD")) { _ in answer }
        #expect(head.isValidated)
        #expect(head.body.isEmpty)
        #expect(try cache.get(OriginAnswer()).isCached)
    }
}
