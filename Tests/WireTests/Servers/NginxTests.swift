#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Calls a server of another author over HTTP/1.1.
@Suite("nginx: HTTP/1.1", .serialized, .enabled(if: Nginx.isExpected, Nginx.absence), .timeLimit(.minutes(1)))
struct NginxTests {
    private let nginx: Nginx
    private let client: Client

    init() async throws {
        nginx = try await Nginx()
        client = try nginx.plainClient()
    }

    private struct Point: Codable, Sendable, Equatable {
        var x: Int
        var y: Int
    }

    @Test func getsAndPostsReturnTheirBodies() async throws {
        defer { nginx.stop() }
        let response = try await client.response(for: client.request(.get, "hello"), as: String.self)
        #expect(response.value == "hello" && response.status == 200)
        #expect(response.headers["Server"]?.hasPrefix("nginx") == true)
        #expect(response.metrics.httpVersion == .http11)
        #expect(response.metrics.remoteAddress == "127.0.0.1")
        #expect(response.metrics.tls == nil)
        let echo = try await client.post("echo", body: .json(Point(x: 3, y: 4)), as: String.self)
        #expect(echo == #"POST application/json {"x":3,"y":4}"#)
        let error = try await failure { try await client.get("nothing") }
        #expect(error.kind == .status && error.status == 404)
        #expect(String(decoding: error.body, as: UTF8.self).contains("404 Not Found"))
    }

    @Test func connectionIsKeptAliveForTheNextRequest() async throws {
        defer { nginx.stop() }
        let first = try await client.response(for: client.request(.get, "connection"), as: String.self)
        let second = try await client.response(for: client.request(.get, "connection"), as: String.self)
        #expect(first.value == second.value)
        #expect(!first.metrics.isReusedConnection && second.metrics.isReusedConnection)
    }

    @Test func gzipIsDecoded() async throws {
        defer { nginx.stop() }
        let text = String(repeating: "hello, compressed world; ", count: 40_000)
        try nginx.makeFile("text", Array(text.utf8))
        let response = try await client.response(for: client.request(.get, "packed/text"), as: String.self)
        #expect(response.value == text)
        #expect(response.headers["Content-Encoding"] == "gzip")
        #expect(response.metrics.decodedBodyBytes == 1_000_000)
        #expect(response.metrics.receivedBytes < 100_000)
    }

    @Test func fileIsUploadedWithItsLengthAndAStreamInChunks() async throws {
        defer { nginx.stop() }
        let pattern = LoopbackServer.Pattern(count: 3 << 20, seed: 5)
        let source = nginx.folder.appending(path: "source")
        try Data(pattern.bytes()).write(to: source)
        try await client.put("put/file", body: .file(source))
        let parts = AsyncStream { continuation in
            for start in stride(from: 0, to: pattern.count, by: 100_000) {
                continuation.yield(Data(pattern.bytes(in: start..<min(start + 100_000, pattern.count))))
            }
            continuation.finish()
        }
        try await client.put("put/stream", body: .stream(parts))
        for name in ["file", "stream"] {
            let stored = try Data(contentsOf: nginx.folder.appending(path: "put/\(name)"))
            #expect(stored.count == pattern.count && pattern.matches(stored))
        }
    }

    @Test func rangeIsServed() async throws {
        defer { nginx.stop() }
        let pattern = LoopbackServer.Pattern(count: 100_000)
        try nginx.makeFile("pattern", pattern.bytes())
        let request = try client.request(.get, "files/pattern", headers: ["Range": "bytes=1000-1999"])
        let response = try await client.response(for: request)
        #expect(response.status == 206 && response.value.count == 1_000)
        #expect(pattern.matches(response.value, at: 1_000))
    }
}

/// Checks interrupted downloads over both versions.
@Suite("nginx: resumed downloads", .serialized, .enabled(if: Nginx.isExpected, Nginx.absence), .timeLimit(.minutes(1)))
struct NginxResumeTests {
    private let nginx: Nginx
    private let goal: URL
    private static let pattern = LoopbackServer.Pattern(count: 24 << 20, seed: 1)

    init() async throws {
        nginx = try await Nginx()
        goal = nginx.folder.appending(path: "goal")
        try nginx.makeFile("big", Self.pattern.bytes())
    }

    /// Cancels a download after a part of it has arrived, and returns the token to continue it.
    private func interrupt(_ client: Client) async throws -> ResumeData {
        let task = client.download("trickle/big", to: goal, options: Download.Options(isResumable: true))
        for await progress in task.progress where progress.completedBytes > 1 << 20 {
            task.pause()
            break
        }
        task.cancel()
        let error = try await failure { try await task.value }
        #expect(error.isCancelled)
        return try #require(task.resumeData)
    }

    @Test(arguments: [true, false]) func downloadContinuesAtItsOffset(http2: Bool) async throws {
        defer { nginx.stop() }
        let client = try nginx.secureClient { $0.allowsHTTP2 = http2 }
        let resumeData = try await interrupt(client)
        #expect(resumeData.offset > 0 && resumeData.offset < Self.pattern.count)
        #expect(resumeData.totalBytes == Int64(Self.pattern.count))
        let task = client.download(resuming: resumeData, to: goal)
        let bytes = try Data(contentsOf: try await task.value)
        #expect(bytes.count == Self.pattern.count && Self.pattern.matches(bytes))
        #expect(await task.response?.status == 206)
        // nginx has written its log of ended requests when it answers again.
        _ = try await client.get("hello")
        #expect(try nginx.accessLog().contains { $0.hasSuffix(" 206") })
    }

    @Test func changedFileIsDownloadedFromItsBeginning() async throws {
        defer { nginx.stop() }
        let client = try nginx.secureClient()
        let resumeData = try await interrupt(client)
        // Another length, and therefore another ETag.
        let changed = LoopbackServer.Pattern(count: 4 << 20, seed: 2)
        try nginx.makeFile("big", changed.bytes())
        let task = client.download(resuming: resumeData, to: goal)
        let bytes = try Data(contentsOf: try await task.value)
        #expect(bytes.count == changed.count && changed.matches(bytes))
        #expect(await task.response?.status == 200)
    }
}
#endif
