#if !TERN_URLSESSION
import TernConcurrency
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ResumeTests {
    @Test func aRefusedResumeKeepsItsToken() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer {
                try $0.respond(status: 503)
            } test: { server, client in
                let current = moved(token, to: server)
                let task = client.download(resuming: current, to: folder.url("file"))
                let error = try await failure { try await task.value }
                #expect(error.status == 503)
                // The same part, and one more refusal.
                #expect(error.resumeData == current.counting(PartCounts(refusals: 1)))
                #expect(task.resumeData == current.counting(PartCounts(refusals: 1)))
                #expect(try folder.names == [token.partialFile])
            }
        }
    }

    @Test(arguments: [200, 206, 503]) func anyStatedLengthOfTheRestIsShown(status: Int) async throws {
        // The largest one that the engine takes.
        let stated: Int64 = 999_999_999_999_999_999
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                try exchange.writeHead(
                    status: status,
                    headers: [
                        ("Content-Length", "\(stated)"), ("ETag", Self.pattern.etag),
                        ("Content-Range", "bytes \(token.offset)-\(stated - 1)/\(stated)"),
                    ])
                try exchange.write("some")
                exchange.close()
            } test: { server, client in
                let task = client.download(resuming: moved(token, to: server), to: folder.url("file"))
                for await progress in task.progress {
                    #expect((progress.totalBytes ?? .max) > token.offset && !progress.description.isEmpty)
                    _ = progress.estimatedTimeRemaining?.components
                }
                _ = try await failure { try await task.value }
            }
        }
    }

    @Test func unreachableResumeKeepsItsToken() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            let server = try LoopbackServer { try $0.respond(status: 200) }
            let current = moved(token, to: server)
            server.stop()
            let client = Client(session: Session(configuration: .test()))
            let error = try await failure {
                try await client.download(resuming: current, to: folder.url("file")).value
            }
            #expect(error.resumeData == current)
        }
    }

    @Test(arguments: [true, false])
    func missingOrShortPartialFileStartsOver(isGone: Bool) async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            if isGone {
                try FileManager.default.removeItem(atPath: token.partialPath)
            } else {
                try Data("cut".utf8).write(to: URL(filePath: token.partialPath))
            }
            let asked = Log<RangeFields>()
            try await withServer { exchange in
                asked.add(RangeFields(exchange.request))
                try exchange.serveFile(Self.pattern)
            } test: { server, client in
                let task = client.download(resuming: moved(token, to: server), to: folder.url("file"))
                _ = try await task.value
                #expect(asked.all == [RangeFields(nil, nil)])
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.names == ["file"])
                #expect(task.resumeData == nil)
            }
        }
    }

    @Test func aTokenIsContinuedByOneDownloadAtATime() async throws {
        let gate = LoopbackServer.Gate()
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                try exchange.wait(for: gate)
                try exchange.serveFile(Self.pattern)
            } test: { server, client in
                let current = moved(token, to: server)
                let first = client.download(resuming: current, to: folder.url("file"))
                try await server.wait { $0.requestsReceived == 1 }
                let error = try await client.download(resuming: current, to: folder.url("other")).failure()
                #expect(error.kind == .fileSystem && error.reason.contains("another download continues"), "\(error)")
                #expect(error.resumeData == current && server.requests.count == 1)
                gate.open()
                _ = try await first.value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                // The token is free again; its file has moved to the destination.
                _ = try await client.download(resuming: current, to: folder.url("other")).value
                #expect(Self.pattern.matches(try folder.bytes("other")))
                #expect(try folder.names == ["file", "other"])
            }
        }
    }

    @Test func fullDiskKeepsReceivedBytes() async throws {
        try await inTestFolder { folder in
            let writes = Counter()
            let isFull: @Sendable (String, String) -> Int32? = { call, _ in
                guard call == "write" else { return nil }
                writes.add()
                return writes.value > 2 ? 28 : nil
            }
            let files = FileStore(FaultyFiles(fault: isFull), executor: QueueExecutor("tern.test"))
            let answer = StubTransport.Answer.data(Data(Self.pattern.bytes()), headers: ["ETag": Self.pattern.etag])
            let session = Session(
                configuration: .test(), transport: StubTransport(["GET /file": answer]), files: files)
            let client = try Client(baseURL: "http://stub.test", session: session)
            let error = try await failure {
                try await client.download("file", to: folder.url("file"), options: Self.resumable).value
            }
            #expect((error.underlying as? FileFailure)?.code == 28)
            let token = try #require(error.resumeData)
            let partial = try Data(contentsOf: URL(filePath: token.partialPath))
            #expect(Int64(partial.count) == token.offset)
            #expect(Self.pattern.matches(partial))
        }
    }
}
#endif
