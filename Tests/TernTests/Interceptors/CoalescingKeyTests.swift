import Testing

@testable import Tern

@Suite("Coalescing keys")
struct CoalescingKeyTests {
    private func key(
        _ method: Request.Method = .get, _ url: String = "https://a.example/x?y", _ headers: Headers = [:],
        ignoring: [String] = [], change: (inout Request) -> Void = { _ in }
    ) throws -> CoalescingKey? {
        var request = try Request(method, url)
        change(&request)
        return CoalescingKey(request, headers: headers, ignoring: ignoring)
    }

    @Test func equalRequestsShareAKey() throws {
        let headers: Headers = ["Accept": "image/*", "Authorization": "Bearer t"]
        #expect(try key(.get, "HTTPS://A.example:443/x?y", headers) == key(.get, "https://a.example/x?y", headers))
        #expect(try key()?.hashValue == key()?.hashValue)
        // The order of different names and their case do not count.
        #expect(
            try key(.get, "https://a.example/", ["A": "1", "b": "2"])
                == key(.get, "https://a.example/", ["B": "2", "a": "1"]))
    }

    @Test func relevantHeadersKeepRequestsApart() throws {
        let keys = [
            try key(), try key(.head), try key(.options), try key(.get, "https://a.example/x?z"),
            try key(.get, "https://a.example/X?y"), try key(.get, "http://a.example/x?y"),
            try key(.get, "https://a.example:8443/x?y"), try key(.get, "https://ada:1@a.example/x?y"),
            try key(.get, "https://ada:2@a.example/x?y"), try key(.get, "https://a.example/x?y", ["Accept": "a/b"]),
            try key(.get, "https://a.example/x?y", ["Range": "bytes=0-1"]),
            try key(.get, "https://a.example/x?y", ["Authorization": "Bearer 1"]),
            try key(.get, "https://a.example/x?y", ["Authorization": "Bearer 2"]),
            try key(.get, "https://a.example/x?y", ["Cookie": "a=1"]),
            try key(.get, "https://a.example/x?y", ["Proxy-Authorization": "Basic x"]),
            try key { $0.unixSocketPath = "/run/x" }, try key { $0.maximumBodySize = 7 },
            try key { $0.cache = .reload }, try key { $0.timeouts.total = .seconds(2) },
            // Texts that are equal by canonical equivalence only.
            try key(.get, "https://a.example/x?y", ["Authorization": "Bearer K"]),
            try key(.get, "https://a.example/x?y", ["Authorization": "Bearer \u{212A}"]),
            try key(.get, "https://\u{212A}:1@a.example/x?y"), try key(.get, "https://K:1@a.example/x?y"),
            try key { $0.unixSocketPath = "/run/\u{E9}" }, try key { $0.unixSocketPath = "/run/e\u{301}" },
        ]
        #expect(!keys.contains(nil))
        #expect(Set(keys).count == keys.count)
    }

    @Test func namesOfSingleRequestsDoNotMatter() throws {
        let url = "https://a.example/x?y"
        #expect(
            try key(.get, url, ["traceparent": "00-1", "x-request-id": "1"]) == key(.get, url, ["traceparent": "00-2"]))
        #expect(try key(.get, url, ["X-Own": "1"]) != key(.get, url, ["X-Own": "2"]))
        #expect(
            try key(.get, url, ["X-Own": "1"], ignoring: ["x-own"])
                == key(.get, url, ["X-Own": "2"], ignoring: ["x-own"]))
    }

    @Test(arguments: ["Authorization", "cookie", "Proxy-Authorization", "X-Functions-Key"])
    func credentialsCannotBeIgnored(name: String) throws {
        let url = "https://a.example/"
        #expect(
            try key(.get, url, [name: "1"], ignoring: [name]) != key(.get, url, [name: "2"], ignoring: [name]))
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "get", "PURGE"])
    func unsafeMethodsShareNothing(method: String) throws {
        #expect(try key(Request.Method(method)) == nil)
    }

    @Test func requestsWithTheirOwnBehaviorShareNothing() throws {
        struct Policy: SessionPolicy {}
        #expect(try key { $0.policy = Policy() } == nil)
        #expect(try key { $0.interceptors = [RetryInterceptor()] } == nil)
        #expect(try key { $0.cookies = CookieUse.none } == nil)
        #expect(try key { $0.validation = ResponseValidation(contentTypes: .any) } == nil)
        #expect(try key(.options) { $0.body = .text("x") } == nil)
        #expect(try key { $0.label = "images" } == key())
        #expect(try key { $0.priority = .high } == key())
    }

    @Test func descriptionKeepsSecrets() throws {
        let key = try #require(try key(.get, "https://ada:s3cret@a.example/x?t=s3cret", ["Authorization": "s3cret"]))
        #expect(!"\(key)".contains("s3cret"))
    }
}
