#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct ResumeTests {
    static let pattern = LoopbackServer.Pattern(count: 1_000_000, seed: 1)
    static let other = LoopbackServer.Pattern(count: 900_000, seed: 2)
    static let half = 500_000
    static let resumable = Download.Options(isResumable: true)

    /// The fields of a request that continue a download.
    struct RangeFields: Sendable, Equatable {
        var range: String?
        var condition: String?

        init(_ range: String?, _ condition: String?) {
            self.range = range
            self.condition = condition
        }

        init(_ request: LoopbackServer.Request) { self.init(request["Range"], request["If-Range"]) }
    }

    /// Sends the head of the whole and its first half, and returns once both are on their way to the client.
    static func sendHalf(_ exchange: LoopbackServer.Exchange, headers: LoopbackServer.Fields) throws {
        try exchange.writeHead(headers: headers + [("Content-Length", String(pattern.count))])
        try exchange.streamPattern(pattern, in: 0..<half)
        try exchange.waitUntilReceived()
    }

    /// Returns the token of a download that the server cuts off after its first half.
    func token(
        headers: LoopbackServer.Fields = [("ETag", pattern.etag)], folder: TestFolder,
        options: Download.Options = resumable
    ) async throws -> ResumeData? {
        var token: ResumeData?
        try await withServer { exchange in
            try Self.sendHalf(exchange, headers: headers)
            exchange.close()
        } test: { _, client in
            let task = client.download("file", to: folder.url("file"), options: options)
            let error = try await failure { try await task.value }
            // A body that is declared as compressed, but is not, fails as malformed.
            #expect([.truncatedBody, .connectionLost, .malformedResponse].contains(error.kind))
            #expect(error.resumeData == task.resumeData)
            token = error.resumeData
        }
        return token
    }

    /// Returns the same token for another server: each one has a port of its own.
    func moved(_ token: ResumeData, to server: LoopbackServer) -> ResumeData {
        ResumeData(
            url: server.url("file").absoluteString, validator: token.validator, offset: token.offset,
            partialFile: token.partialPath, totalBytes: token.totalBytes)
    }

    // MARK: The token

    @Test func aFailedDownloadGivesATokenThatSurvivesCoding() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            #expect(token.validator == Self.pattern.etag)
            #expect(token.offset == Int64(Self.half))
            #expect(token.totalBytes == Int64(Self.pattern.count))
            #expect(token.folder == folder.path)
            #expect(try folder.names == [token.partialFile])
            #expect(Self.pattern.matches(try Data(contentsOf: URL(filePath: token.partialPath))))
            let coded = try JSONDecoder().decode(ResumeData.self, from: JSONEncoder().encode(token))
            #expect(coded == token)
        }
    }

    @Test func cancelledDownloadContinuesAtItsOffset() async throws {
        let asked = Log<RangeFields>()
        try await inTestFolder { folder in
            try await withServer { exchange in
                asked.add(RangeFields(exchange.request))
                if exchange.request["Range"] != nil { return try exchange.serveFile(Self.pattern) }
                try Self.sendHalf(exchange, headers: [("ETag", Self.pattern.etag)])
                try exchange.waitForClientToClose()
            } test: { _, client in
                let first = client.download("file", to: folder.url("file"), options: Self.resumable)
                await first.wait(forBytes: Int64(Self.half))
                first.cancel()
                let error = try await failure { try await first.value }
                #expect(error.isCancelled)
                let token = try #require(error.resumeData)
                #expect(token.offset == Int64(Self.half))

                let second = client.download(resuming: token, to: folder.url("file"))
                #expect(try await second.value == folder.url("file"))
                #expect(second.resumeData == nil)
                #expect(asked.all == [RangeFields(nil, nil), RangeFields("bytes=\(token.offset)-", token.validator)])
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == Self.pattern.count)
                #expect(try folder.names == ["file"])
            }
        }
    }

    /// A killed process leaves the token it had stored, and a file with the bytes that arrived later.
    @Test func tokenOfARunningDownloadCanContinueIt() async throws {
        try await inTestFolder { folder in
            try await withServer { exchange in
                if exchange.request["Range"] != nil { return try exchange.serveFile(Self.pattern) }
                try Self.sendHalf(exchange, headers: [("ETag", Self.pattern.etag)])
                try exchange.waitForClientToClose()
            } test: { server, client in
                let first = client.download("file", to: folder.url("file"), options: Self.resumable)
                while first.resumeData?.offset != Int64(Self.half) { await Task.yield() }
                let token = try #require(first.resumeData)
                let left = folder.url(TemporaryName(for: "left", isPartial: true).text)
                let later = Data("what came after the token".utf8)
                try (Data(contentsOf: URL(filePath: token.partialPath)) + later).write(to: left)

                // Two downloads that write one file would damage it.
                let same = try await failure {
                    try await client.download(resuming: token, to: folder.url("same")).value
                }
                #expect(same.kind == .fileSystem && same.reason.contains(token.partialFile), "\(same)")
                #expect(first.resumeData == token && server.requests.count == 1)

                let copy = ResumeData(
                    url: token.url, validator: token.validator, offset: token.offset, partialFile: left.path,
                    totalBytes: token.totalBytes)
                _ = try await client.download(resuming: copy, to: folder.url("other")).value
                #expect(Self.pattern.matches(try folder.bytes("other")))
                #expect(try folder.bytes("other").count == Self.pattern.count)
                first.cancel()
                #expect(try await failure { try await first.value }.resumeData == token)
            }
        }
    }

    @Test func progressBeginsAtTheOffset() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer {
                try $0.serveFile(Self.pattern)
            } test: { server, client in
                let task = client.download(
                    resuming: moved(token, to: server), to: folder.url("file"), startsImmediately: false)
                var seen: [Session.Progress] = []
                for await value in task.progress {
                    if seen.isEmpty { task.resume() }
                    seen.append(value)
                }
                #expect(seen.first?.completedBytes == token.offset)
                #expect(seen.last?.completedBytes == Int64(Self.pattern.count))
                #expect(seen.last?.totalBytes == Int64(Self.pattern.count))
                #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.completedBytes <= $1.completedBytes })
                _ = try await task.value
            }
        }
    }

    /// Only a download that continues is reported, once, with the place where it continues.
    @Test(arguments: [true, false])
    func observersLearnThatADownloadContinues(isSame: Bool) async throws {
        final class Watcher: SessionObserver {
            let log = Log<String>()
            func didResumeDownload(at offset: Int64, of total: Int64, of task: AnySessionTask) {
                log.add("\(offset) of \(total), \(task.progressNow.completedBytes >= offset)")
            }
        }
        let watcher = Watcher()
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer(configuration: .test { $0.observers = [watcher] }) {
                try $0.serveFile(isSame ? Self.pattern : Self.other)
            } test: { server, client in
                _ = try await client.download(resuming: moved(token, to: server), to: folder.url("file")).value
                _ = try await client.download("file", to: folder.url("whole")).value
            }
        }
        #expect(watcher.log.all == (isSame ? ["500000 of 1000000, true"] : []))
    }

    @Test(
        arguments: [
            [("ETag", "W/\"weak\"")], [], [("ETag", "\"a\""), ("Content-Encoding", "gzip")],
            [("ETag", "\"a\""), ("Accept-Ranges", "none")],
            [("ETag", "W/\"weak\""), ("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")],
        ] as [LoopbackServer.Fields])
    func downloadWithoutAValidatorHasNoTokenAndNoFile(headers: LoopbackServer.Fields) async throws {
        try await inTestFolder { folder in
            let token = try await token(headers: headers, folder: folder)
            #expect(token == nil)
            #expect(try folder.names == [])
        }
    }

    @Test func aDownloadThatIsNotResumableGivesNoToken() async throws {
        try await inTestFolder { folder in
            let token = try await token(folder: folder, options: Download.Options())
            #expect(token == nil)
            #expect(try folder.names == [])
        }
    }

    @Test func aResumableDownloadAsksForNoCompression() async throws {
        try await inTestFolder { folder in
            let encodings = Log<String?>()
            try await withServer { exchange in
                encodings.add(exchange.request["Accept-Encoding"])
                try exchange.respond(text: "x")
            } test: { _, client in
                _ = try await client.download("file", to: folder.url("file"), options: Self.resumable).value
            }
            #expect(encodings.all == ["identity"])
        }
    }

    @Test func dateIsAValidator() async throws {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT"
        try await inTestFolder { folder in
            let token = try #require(try await token(headers: [("Last-Modified", date)], folder: folder))
            #expect(token.validator == date)
            let asked = Log<RangeFields>()
            try await withServer { exchange in
                asked.add(RangeFields(exchange.request))
                try exchange.serveFile(Self.pattern, etag: "", lastModified: date)
            } test: { server, client in
                _ = try await client.download(resuming: moved(token, to: server), to: folder.url("file")).value
                #expect(asked.all == [RangeFields("bytes=\(Self.half)-", date)])
                #expect(Self.pattern.matches(try folder.bytes("file")))
            }
        }
    }
}
#endif
