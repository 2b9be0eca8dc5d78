#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ResumeTests {
    @Test func killedAgainAndAgainItComesToItsEnd() async throws {
        let rounds = Counter()
        try await inTestFolder { folder in
            try await withServer { exchange in
                rounds.add()
                let start = exchange.request["Range"].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
                let end = min(Self.pattern.count, start + 150_000)
                let last = Self.pattern.count - 1
                let range = ("Content-Range", "bytes \(start)-\(last)/\(Self.pattern.count)")
                try exchange.writeHead(
                    status: start > 0 ? 206 : 200,
                    headers: [("ETag", Self.pattern.etag), ("Content-Length", String(Self.pattern.count - start))]
                        + (start > 0 ? [range] : []))
                try exchange.streamPattern(Self.pattern, in: start..<end)
                try exchange.waitUntilReceived()
                if rounds.value.isMultiple(of: 2) { exchange.reset() } else { exchange.close() }
            } test: { _, client in
                var task = client.download("file", to: folder.url("file"), options: Self.resumable)
                var isDone = false
                while !isDone {
                    do throws(NetworkError) {
                        _ = try await task.value
                        isDone = true
                    } catch {
                        let token = try #require(error.resumeData)
                        task = client.download(resuming: token, to: folder.url("file"))
                    }
                }
                #expect(rounds.value == 7)
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == Self.pattern.count)
                #expect(try folder.names == ["file"])
            }
        }
    }

    @Test(arguments: [
        "bytes 499999-999999/1000000", "bytes 500001-999999/1000000", "bytes 500000-999999/1000001",
        "items 500000-999999/1000000", "nonsense", nil,
    ])
    func aPartThatDoesNotFitIsNotUsed(contentRange: String?) async throws {
        let asked = Log<Asked>()
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                asked.add(Asked(exchange.request))
                guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
                let fields = contentRange.map { [("Content-Range", $0)] } ?? []
                let body = [UInt8](repeating: 0xFF, count: 1_000)
                try exchange.respond(status: 206, headers: [("ETag", Self.pattern.etag)] + fields, body: body)
            } test: { server, client in
                _ = try await client.download(resuming: moved(token, to: server), to: folder.url("file")).value
                #expect(asked.all == [Asked("bytes=\(token.offset)-", token.validator), Asked(nil, nil)])
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == Self.pattern.count)
                #expect(try folder.names == ["file"])
            }
        }
    }

    @Test(arguments: [("ETag", other.etag), ("Last-Modified", "Thu, 22 Oct 2015 07:28:00 GMT")])
    func aPartOfAnotherVersionIsNotUsed(name: String, value: String) async throws {
        let isTag = name == "ETag"
        let first = isTag ? Self.pattern.etag : "Wed, 21 Oct 2015 07:28:00 GMT"
        try await inTestFolder { folder in
            let token = try #require(try await token(headers: [(name, first)], folder: folder))
            try await withServer { exchange in
                guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
                // A server that does not know If-Range.
                let range = "bytes \(Self.half)-\(Self.pattern.count - 1)/\(Self.pattern.count)"
                let body = [UInt8](repeating: 0xFF, count: Self.pattern.count - Self.half)
                try exchange.respond(status: 206, headers: [(name, value), ("Content-Range", range)], body: body)
            } test: { server, client in
                _ = try await client.download(resuming: moved(token, to: server), to: folder.url("file")).value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == Self.pattern.count)
            }
        }
    }

    @Test(arguments: [true, false])
    func aChangedFileOrAServerWithoutRangesStartsOver(isChanged: Bool) async throws {
        let pattern = isChanged ? Self.other : Self.pattern
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer {
                try $0.serveFile(pattern, supportsRanges: isChanged)
            } test: { server, client in
                let task = client.download(resuming: moved(token, to: server), to: folder.url("file"))
                _ = try await task.value
                #expect(server.requests.count == 1)
                #expect(pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == pattern.count)
                let last = await task.progress.collected().last
                #expect(last?.completedBytes == Int64(pattern.count))
                #expect(last?.totalBytes == Int64(pattern.count))
            }
        }
    }

    @Test func aRangeThatIsNotThereStartsOver() async throws {
        let small = LoopbackServer.Pattern(count: 1_000, seed: 3)
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                if exchange.request["Range"] != nil {
                    return try exchange.respond(status: 416, headers: [("Content-Range", "bytes */1000")])
                }
                try exchange.serveFile(small)
            } test: { server, client in
                _ = try await client.download(resuming: moved(token, to: server), to: folder.url("file")).value
                #expect(try folder.bytes("file").count == 1_000)
                #expect(small.matches(try folder.bytes("file")))
                #expect(try folder.names == ["file"])
            }
        }
    }
}
#endif
