#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernHTTPCache
import TernTesting
import Testing

/// Stores the responses of nginx, whose lifetimes pass by the clock of the cache.
@Suite("nginx: HTTP cache", .serialized, .enabled(if: Nginx.isExpected, Nginx.absence), .timeLimit(.minutes(1)))
struct NginxCacheTests {
    private let nginx: Nginx
    private static let text = String(repeating: "hello, compressed world; ", count: 4_000)
    private static let pattern = LoopbackServer.Pattern(count: 100_000, seed: 3)

    init() async throws {
        nginx = try await Nginx()
        try nginx.makeFile("text", Array(Self.text.utf8))
        try nginx.makeFile("pattern", Self.pattern.bytes())
    }

    /// The ways to reach nginx, each with a cache in memory or on the disk.
    enum Access: String, CaseIterable, Sendable {
        case plain, http2, disk
    }

    private func cached(_ access: Access = .plain) throws -> CachedClient {
        let disk = access == .disk ? nginx.folder.appending(path: "cache") : nil
        return try CachedClient(folder: disk) { change in
            access == .http2 ? try nginx.secureClient(change) : try nginx.plainClient(change)
        }
    }

    /// Returns the requests and their statuses in the order of nginx. The request at the end ensures that those before
    /// it are in the log.
    private func log(_ client: CachedClient) async throws -> [String] {
        _ = try await client.client.get("hello")
        return try nginx.accessLog().filter { !$0.contains("/hello") }.map {
            $0.split(separator: " ").enumerated().filter { $0.offset != 2 }.map { String($0.element) }
                .joined(separator: " ")
        }
    }

    @Test(arguments: Access.allCases) func aLifetimeOfExpiresPassesAndIsRenewed(access: Access) async throws {
        defer { nginx.stop() }
        let client = try cached(access)
        let first = try await client.get("kept/text")
        #expect(first.text == Self.text && first.cacheTrace?.source == .network)
        #expect(first.headers["Cache-Control"] == "max-age=60" && first.headers.contains("Expires"))
        #expect(first.headers.contains("ETag") && first.headers.contains("Last-Modified"))
        #expect(try await client.get("kept/text").isStored(Self.text))
        client.clock.advance(61)
        let confirmed = try await client.get("kept/text")
        #expect(confirmed.text == Self.text && confirmed.status == 200)
        #expect(confirmed.cacheTrace?.source == .validated)
        #expect(try await client.get("kept/text").isStored(Self.text))
        client.clock.advance(61)
        try nginx.makeFile("text", Array("changed".utf8))
        let changed = try await client.get("kept/text")
        #expect(changed.text == "changed" && changed.cacheTrace?.source == .network)
        #expect(try await client.get("kept/text").isStored("changed"))
        #expect(
            try await log(client) == ["GET /kept/text 200", "GET /kept/text 304", "GET /kept/text 200"])
    }

    @Test func theDirectivesOfAddHeaderCount() async throws {
        defer { nginx.stop() }
        let client = try cached()
        for path in ["epoch/text", "no-cache/text"] {
            #expect(try await client.get(path).cacheTrace?.source == .network, "\(path)")
            #expect(try await client.get(path).cacheTrace?.source == .validated, "\(path)")
        }
        for _ in 0..<2 { #expect(try await client.get("no-store/text").cacheTrace?.source == .network) }
        _ = try await client.get("immutable/text")
        var request = try client.client.request(.get, "immutable/text")
        request.cache = .revalidate
        #expect(try await client.get(request).cacheTrace?.source == .stored)
        client.clock.advance(61)
        #expect(try await client.get(request).cacheTrace?.source == .validated)
        #expect(try await client.get("always/nothing").status == 404)
        #expect(try await client.get("always/nothing").cacheTrace?.source == .stored)
    }

    @Test func compressedVariantsAreKeptApart() async throws {
        defer { nginx.stop() }
        let client = try cached()
        let first = try await client.get("kept-packed/text")
        #expect(first.text == Self.text && first.headers["Vary"] == "Accept-Encoding")
        #expect(first.headers["ETag"]?.hasPrefix("W/") == true)
        let second = try await client.get("kept-packed/text")
        #expect(second.isStored(Self.text) && second.headers["Content-Encoding"] == "gzip")
        let plain = try await client.get("kept-packed/text", ["Accept-Encoding": "identity"])
        #expect(plain.text == Self.text && plain.cacheTrace?.source != .stored)
        #expect(try await client.get("kept-packed/text", ["Accept-Encoding": "identity"]).isStored(Self.text))
        #expect(try await client.get("kept-packed/text").isStored(Self.text))
        client.clock.advance(61)
        #expect(try await client.get("kept-packed/text").text == Self.text)
        #expect(try await client.get("kept-packed/text", ["Accept-Encoding": "identity"]).text == Self.text)
    }

    @Test(arguments: Access.allCases) func rangesAreServedCombinedAndCompleted(access: Access) async throws {
        defer { nginx.stop() }
        let client = try cached(access)
        func range(_ first: Int, _ last: Int) async throws -> Response<Data> {
            let response = try await client.get("kept/pattern", ["Range": "bytes=\(first)-\(last)"])
            #expect(response.status == 206 && response.value.count == last - first + 1)
            #expect(Self.pattern.matches(response.value, at: first))
            #expect(response.headers["Content-Range"] == "bytes \(first)-\(last)/\(Self.pattern.count)")
            return response
        }
        #expect(try await range(0, 9_999).cacheTrace?.source == .network)
        #expect(try await range(100, 199).cacheTrace?.source == .stored)
        #expect(try await range(10_000, 19_999).cacheTrace?.source == .network)
        #expect(try await range(9_000, 11_000).cacheTrace?.source == .stored)
        // The rest is requested and combined with the stored part.
        let whole = try await client.get("kept/pattern")
        #expect(whole.status == 200 && whole.value.count == Self.pattern.count && Self.pattern.matches(whole.value))
        #expect(whole.headers["Content-Length"] == "\(Self.pattern.count)" && !whole.headers.contains("Content-Range"))
        #expect(try await client.get("kept/pattern").cacheTrace?.source == .stored)
        #expect(try await range(50_000, 99_999).cacheTrace?.source == .stored)
        #expect(try await log(client).allSatisfy { $0 == "GET /kept/pattern 206" })
        #expect(try await log(client).count == 3)
    }

    @Test func aPartOfAChangedFileIsNotCombined() async throws {
        defer { nginx.stop() }
        let client = try cached()
        _ = try await client.get("kept/pattern", ["Range": "bytes=0-9999"])
        let changed = LoopbackServer.Pattern(count: 50_000, seed: 4)
        try nginx.makeFile("pattern", changed.bytes())
        let whole = try await client.get("kept/pattern")
        #expect(whole.status == 200 && whole.value.count == changed.count && changed.matches(whole.value))
        #expect(try await client.get("kept/pattern").cacheTrace?.source == .stored)
    }

    @Test func aHeadIsAnsweredByAStoredResponseAndRenewsIt() async throws {
        defer { nginx.stop() }
        let client = try cached()
        _ = try await client.get("kept/text")
        let head = try client.client.request(.head, "kept/text")
        let stored = try await client.get(head)
        #expect(stored.cacheTrace?.source == .stored && stored.headers["Content-Length"] == "\(Self.text.utf8.count)")
        client.clock.advance(61)
        _ = try await client.get(head)
        #expect(try await client.get("kept/text").isStored(Self.text))
        client.clock.advance(61)
        try nginx.makeFile("text", Array("changed".utf8))
        _ = try await client.get(head)
        #expect(try await client.get("kept/text").text == "changed")
    }

    @Test func anUploadInvalidatesItsURL() async throws {
        defer { nginx.stop() }
        let client = try cached()
        try await client.client.put("written/file", body: .text("one"))
        #expect(try await client.get("written/file").text == "one")
        #expect(try await client.get("written/file").isStored("one"))
        try await client.client.put("written/file", body: .text("two"))
        let second = try await client.get("written/file")
        #expect(second.text == "two" && second.cacheTrace?.source == .network)
    }

    @Test func aStoppedServerIsReplacedByAStaleResponse() async throws {
        defer { nginx.stop() }
        let client = try cached()
        _ = try await client.get("if-error/text")
        _ = try await client.get("must-revalidate/text")
        nginx.stop()
        client.clock.advance(61)
        let stale = try await client.get("if-error/text")
        #expect(stale.text == Self.text && stale.cacheTrace?.source == .stale)
        let error = try await failure { try await client.get("must-revalidate/text") }
        #expect(error.kind == .connectionRefused || error.kind == .connectionLost)
        client.clock.advance(600)
        _ = try await failure { try await client.get("if-error/text") }
    }
}
#endif
