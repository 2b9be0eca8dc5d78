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
    @Test func repeatedlyKilledDownloadCompletes() async throws {
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
        "items 500000-999999/1000000", "nonsense", nil, "bytes 500000-749999/1000000", "bytes 500000-500999/501000",
    ])
    func mismatchedPartIsNotUsed(contentRange: String?) async throws {
        let asked = Log<RangeFields>()
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                asked.add(RangeFields(exchange.request))
                guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
                let fields = contentRange.map { [("Content-Range", $0)] } ?? []
                let body = [UInt8](repeating: 0xFF, count: 1_000)
                try exchange.respond(status: 206, headers: [("ETag", Self.pattern.etag)] + fields, body: body)
            } test: { server, client in
                _ = try await client.download(resuming: moved(token, to: server), to: folder.url("file")).value
                #expect(asked.all == [RangeFields("bytes=\(token.offset)-", token.validator), RangeFields(nil, nil)])
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

    // MARK: Parts

    /// Returns the fields for the rest of the pattern, without a length: the body is chunked.
    private static let rest: LoopbackServer.Fields = [
        ("ETag", pattern.etag), ("Content-Range", "bytes \(half)-\(pattern.count - 1)/\(pattern.count)"),
    ]

    @Test func aPartThatEndsEarlyIsTruncatedAndCanBeContinued() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                if exchange.request["Range"] != "bytes=\(Self.half)-" { return try exchange.serveFile(Self.pattern) }
                // The end of the message is correct: only the length of the part shows that bytes are missing.
                try exchange.writeChunkedHead(status: 206, headers: Self.rest)
                try exchange.writeChunk(Self.pattern.bytes()[Self.half..<Self.half + 1_000])
                try exchange.write("0\r\n\r\n")
            } test: { server, client in
                let task = client.download(resuming: moved(token, to: server), to: folder.url("file"))
                let error = try await task.failure()
                #expect(error.kind == .truncatedBody && error.reason.contains("501000 of 1000000"), "\(error)")
                let next = try #require(error.resumeData)
                #expect(next.offset == Int64(Self.half) + 1_000 && next.totalBytes == Int64(Self.pattern.count))
                _ = try await client.download(resuming: next, to: folder.url("file")).value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == Self.pattern.count)
                #expect(try folder.names == ["file"])
            }
        }
    }

    @Test func aPartWithMoreThanItsRangeIsRefused() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                try exchange.writeChunkedHead(status: 206, headers: Self.rest)
                try exchange.writeChunk(Self.pattern.bytes()[Self.half...])
                try exchange.writeChunk([1])
                try exchange.write("0\r\n\r\n")
            } test: { server, client in
                let error = try await client.download(resuming: moved(token, to: server), to: folder.url("file"))
                    .failure()
                #expect(error.kind == .malformedResponse && error.reason.contains("more bytes"), "\(error)")
                #expect(try !folder.names.contains("file"))
            }
        }
    }

    @Test(arguments: [true, false])
    func aPartWithoutItsValidatorIsNotUsed(isTag: Bool) async throws {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT"
        let asked = Log<RangeFields>()
        try await inTestFolder { folder in
            let fields = isTag ? ("ETag", Self.pattern.etag) : ("Last-Modified", date)
            let token = try #require(try await token(headers: [fields], folder: folder))
            try await withServer { exchange in
                asked.add(RangeFields(exchange.request))
                guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
                // A date can be omitted, but not together with the length.
                let total = isTag ? "\(Self.pattern.count)" : "*"
                let range = ("Content-Range", "bytes \(Self.half)-\(Self.pattern.count - 1)/\(total)")
                let body = [UInt8](repeating: 0xFF, count: Self.pattern.count - Self.half)
                try exchange.respond(status: 206, headers: [range], body: body)
            } test: { server, client in
                _ = try await client.download(resuming: moved(token, to: server), to: folder.url("file")).value
                #expect(asked.all.map(\.range) == ["bytes=\(Self.half)-", nil])
                #expect(Self.pattern.matches(try folder.bytes("file")))
            }
        }
    }

    @Test(arguments: [true, false])
    func aPartOfAnotherOriginNeedsTheValidator(repeatsIt: Bool) async throws {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT"
        try await inTestFolder { folder in
            let token = try #require(try await token(headers: [("Last-Modified", date)], folder: folder))
            let ranges = Log<String?>()
            let other = try LoopbackServer { exchange in
                ranges.add(exchange.request["Range"])
                guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
                let range = "bytes \(Self.half)-\(Self.pattern.count - 1)/\(Self.pattern.count)"
                let body = Array(Self.pattern.bytes()[Self.half...])
                let version = repeatsIt ? [("Last-Modified", date)] : []
                try exchange.respond(status: 206, headers: version + [("Content-Range", range)], body: body)
            }
            defer { other.stop() }
            try await withServer { exchange in
                try exchange.respond(status: 302, headers: [("Location", other.url("elsewhere").absoluteString)])
            } test: { server, client in
                _ = try await client.download(resuming: moved(token, to: server), to: folder.url("file")).value
                #expect(ranges.all == ["bytes=\(Self.half)-"] + (repeatsIt ? [] : [nil]))
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == Self.pattern.count)
            }
        }
    }

    @Test func unrequestedPartIsAnError() async throws {
        try await inTestFolder { folder in
            try await withServer { exchange in
                try exchange.respond(status: 206, headers: [("Content-Range", "bytes 0-2/9")], text: "abc")
            } test: { _, client in
                let errors = [
                    try await client.download("x", to: folder.url("x")).failure(),
                    try await failure { try await client.get("x") },
                    try await failure { try await client.stream("x").response },
                ]
                for error in errors {
                    #expect(error.kind == .malformedResponse && error.reason.contains("no Range"), "\(error)")
                }
                #expect(try folder.names == [])
                // A range that the caller requests is the value.
                let file = try await client.download("x", to: folder.url("x"), headers: ["Range": "bytes=0-2"]).value
                #expect(try String(contentsOf: file, encoding: .utf8) == "abc")
            }
        }
    }

    @Test func requestedPartHasItsLengthAndNoToken() async throws {
        try await inTestFolder { folder in
            try await withServer { exchange in
                let range = ("Content-Range", "bytes 10-19/100")
                try exchange.writeChunkedHead(status: 206, headers: [("ETag", "\"a\""), range])
                try exchange.writeChunk([UInt8](repeating: 1, count: 5))
                try exchange.write("0\r\n\r\n")
            } test: { _, client in
                let task = client.download(
                    "x", to: folder.url("x"), options: Self.resumable, headers: ["Range": "bytes=10-19"])
                let error = try await task.failure()
                #expect(error.kind == .truncatedBody && error.resumeData == nil, "\(error)")
                #expect(try folder.names == [])
            }
        }
    }

    @Test func continuedDownloadRefusesARangeOfTheCaller() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer {
                try $0.serveFile(Self.pattern)
            } test: { server, client in
                let task = client.download(
                    resuming: moved(token, to: server), to: folder.url("file"), headers: ["Range": "bytes=0-"])
                let error = try await task.failure()
                #expect(error.kind == .invalidRequest && error.reason.contains("Range"), "\(error)")
                #expect(server.requests.isEmpty)
            }
        }
    }

    // MARK: Compression

    #if os(Linux)
    @Test func aResumableDownloadIsDecompressedWhereTheServerCompresses() async throws {
        try await inTestFolder { folder in
            try await withServer { exchange in
                let fields = [("Content-Encoding", "gzip"), ("ETag", "\"a\"")]
                guard exchange.request.path == "/cut" else {
                    return try exchange.respond(headers: fields, body: Compressed.gzip)
                }
                try exchange.writeHead(headers: fields + [("Content-Length", "\(Compressed.gzip.count)")])
                try exchange.write(Compressed.gzip.dropLast(10))
                try exchange.waitUntilReceived()
                exchange.close()
            } test: { _, client in
                let task = client.download("whole", to: folder.url("file"), options: Self.resumable)
                _ = try await task.value
                #expect(try folder.text("file") == "hello, compressed world")
                let error = try await client.download("cut", to: folder.url("cut"), options: Self.resumable).failure()
                #expect(error.resumeData == nil)
                #expect(try folder.names == ["file"])
            }
        }
    }

    @Test func compressedContinuationIsTheCompleteBody() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                try exchange.respond(headers: [("Content-Encoding", "gzip")], body: Compressed.gzip)
            } test: { server, client in
                let task = client.download(resuming: moved(token, to: server), to: folder.url("file"))
                _ = try await task.value
                #expect(try folder.text("file") == "hello, compressed world")
                #expect(try folder.names == ["file"] && task.resumeData == nil)
            }
        }
    }
    #endif
}
#endif
