import Tern
import Testing

@testable import TernHTTPCache

/// Tests that a response to one user changes no stored response that answers all users.
@Suite struct SharedEntryTests {
    private let cache = CacheSimulator()

    /// Stores a response to a request without credentials, and waits until it is stale.
    private func store(_ headers: Headers = [:], cutAfter: Int? = nil) throws {
        let own: Headers = ["Cache-Control": "max-age=10", "ETag": "\"v\"", "Date": cache.date()]
        try cache.get(OriginAnswer(200, own.overriding(with: headers), "0123456789", cutAfter: cutAfter))
        cache.advance(20)
    }

    private func send(
        _ method: String = "GET", by user: String?, fields: Headers = [:], answer: OriginAnswer
    ) throws -> SimulatedResponse {
        let request = try cache.request(method, "http://example.com/a", fields, credentials: user)
        return try cache.send(request) { _ in answer }
    }

    private func confirmation(_ headers: Headers) -> OriginAnswer {
        let own: Headers = ["ETag": "\"v\"", "Cache-Control": "max-age=60", "Date": cache.date()]
        return OriginAnswer(304, own.overriding(with: headers))
    }

    @Test func a304ToOneUserChangesNoSharedEntry() throws {
        try store()
        let own = try send(by: "ada", answer: confirmation(["X-Account": "ada"]))
        #expect(own.status == 200)
        #expect(own.body == "0123456789")
        #expect(own.isValidated)
        #expect(own.headers["X-Account"] == "ada")
        for user in ["bob", nil] {
            let other = try send(by: user, answer: OriginAnswer(304, ["ETag": "\"v\""]))
            #expect(other.forwarded.first?["If-None-Match"] == "\"v\"")
            #expect(other.headers["X-Account"] == nil)
        }
    }

    @Test func a304WithACookieChangesNoSharedEntry() throws {
        try store()
        let first = try send(by: nil, answer: confirmation(["Set-Cookie": "session=ada", "X-Account": "ada"]))
        #expect(first.isValidated)
        #expect(first.headers["Set-Cookie"] == "session=ada")
        let other = try send(by: nil, answer: OriginAnswer(304, ["ETag": "\"v\""]))
        #expect(!other.isCached)
        #expect(other.headers["Set-Cookie"] == nil)
        #expect(other.headers["X-Account"] == nil)
    }

    @Test func a304ToOneUserWithNoStoreKeepsTheSharedEntry() throws {
        try store()
        #expect(try send(by: "ada", answer: confirmation(["Cache-Control": "no-store"])).body == "0123456789")
        #expect(try send(by: nil, answer: OriginAnswer(304, ["ETag": "\"v\""])).body == "0123456789")
    }

    @Test func a304UpdatesTheEntryOfTheSameUser() throws {
        let answer = OriginAnswer(200, ["Cache-Control": "max-age=10", "ETag": "\"v\"", "Date": cache.date()], "own")
        _ = try send(by: "ada", answer: answer)
        cache.advance(20)
        _ = try send(by: "ada", answer: confirmation(["X-Account": "ada", "Set-Cookie": "a=b"]))
        let later = try send(by: "ada", answer: OriginAnswer())
        #expect(later.isCached)
        #expect(later.headers["X-Account"] == "ada")
    }

    @Test func headOfOneUserChangesNoSharedEntry() throws {
        try store()
        let current: Headers = [
            "ETag": "\"v\"", "Cache-Control": "max-age=60", "Content-Length": "10", "Date": cache.date(),
        ]
        _ = try send("HEAD", by: "ada", answer: OriginAnswer(200, current.overriding(with: ["X-Account": "ada"])))
        let cookie = OriginAnswer(200, current.overriding(with: ["Set-Cookie": "a=b", "X-Account": "ada"]))
        _ = try send("HEAD", by: nil, answer: cookie)
        let get = try send(by: "bob", answer: OriginAnswer(304, ["ETag": "\"v\""]))
        #expect(get.reason == .stale)
        #expect(get.headers["X-Account"] == nil)
        #expect(get.body == "0123456789")
    }

    @Test(arguments: ["\"v\"", "\"w\""])
    func headOfOneUserDoesNotMarkASharedEntry(_ tag: String) throws {
        try store(["Cache-Control": "max-age=100"])
        let request = try cache.request("HEAD", choice: .reload, credentials: "ada")
        for status in [200, 404] {
            try cache.send(request) { _ in OriginAnswer(status, ["ETag": tag, "X-Account": "ada"]) }
        }
        let get = try send(by: nil, answer: OriginAnswer())
        #expect(get.isCached)
        #expect(get.headers["X-Account"] == nil)
    }

    @Test func aPartOfOneUserIsCombinedForThatUserAlone() throws {
        try store(["Content-Length": "10"], cutAfter: 4)
        let rest: Headers = [
            "ETag": "\"v\"", "Content-Range": "bytes 4-9/10", "Content-Length": "6", "X-Account": "ada",
            "Cache-Control": "max-age=60", "Date": cache.date(),
        ]
        let own = try send(by: "ada", answer: OriginAnswer(206, rest, "456789"))
        #expect(own.body == "0123456789")
        #expect(try send(by: "ada", answer: OriginAnswer()).isCached)
        let other = try send(by: "bob", answer: OriginAnswer(200, [:], "for bob"))
        #expect(other.body == "for bob")
        #expect(other.headers["X-Account"] == nil)
    }

    @Test func aRangeOfOneUserIsCombinedForThatUserAlone() throws {
        try store(["Content-Length": "10"])
        let part: Headers = [
            "ETag": "\"v\"", "Content-Range": "bytes 4-9/10", "Content-Length": "6", "X-Account": "ada",
            "Cache-Control": "max-age=60", "Date": cache.date(),
        ]
        _ = try send(by: "ada", fields: ["Range": "bytes=4-"], answer: OriginAnswer(206, part, "456789"))
        #expect(try send(by: "ada", answer: OriginAnswer()).isCached)
        let other = try send(by: "bob", answer: OriginAnswer(200, [:], "for bob"))
        #expect(!other.isCached)
        #expect(other.headers["X-Account"] == nil)
    }

    @Test func aPartWithACookieIsNotCombinedWithASharedEntry() throws {
        try store(["Content-Length": "10"], cutAfter: 4)
        let rest: Headers = [
            "ETag": "\"v\"", "Content-Range": "bytes 4-9/10", "Content-Length": "6", "Set-Cookie": "a=b",
            "Cache-Control": "max-age=60", "Date": cache.date(),
        ]
        let response = try cache.send(try cache.request()) { sent in
            sent.contains("Range") ? OriginAnswer(206, rest, "456789") : OriginAnswer(200, [:], "whole")
        }
        #expect(response.body == "whole")
        #expect(response.forwarded.count == 2)
    }
}
