#if TERN_URLSESSION || !os(Linux)
@testable import Tern
import Foundation
import TernStreaming
import TernTesting
import Testing

/// The wire tests that URLSession can run on every system. On Linux `make test-urlsession` runs them, over
/// FoundationNetworking.
@Suite("URLSession over the wire", .timeLimit(.minutes(1)))
struct URLSessionWireTests {
    private struct User: Codable, Equatable {
        var id: Int
        var name: String
        var languages: [String]
    }

    @Test func getReturnsBodyStatusAndHeaders() async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("X-Answer", "42")], text: "hello")
        } test: { _, client in
            let response = try await client.response(for: client.request(.get, "a?b=c"))
            #expect(response.status == 200)
            #expect(String(decoding: response.value, as: UTF8.self) == "hello")
            #expect(response.headers["x-answer"] == "42")
            #expect(response.metrics.decodedBodyBytes == 5)
            #expect(response.metrics.total != nil)
        }
    }

    @Test func aWebSocketIsNotSupported() async throws {
        let error = await #expect(throws: NetworkError.self) { _ = try await Session().webSocket("ws://127.0.0.1:1/") }
        #expect(error?.kind == .unsupported)
    }

    @Test func aTypedGetIsDecoded() async throws {
        try await withDemoServer { _, client in
            let user: User = try await client.get("json")
            #expect(user == User(id: 1, name: "Ada", languages: ["Swift", "C"]))
        }
    }

    @Test(arguments: ["", "hello", String(repeating: "x", count: 300_000)])
    func aPostSendsItsBodyAndItsType(_ text: String) async throws {
        try await withDemoServer { _, client in
            let response = try await client.response(
                for: client.request(.post, "echo", body: .text(text, contentType: "text/x-test")))
            #expect(String(decoding: response.value, as: UTF8.self) == text)
            #expect(response.headers["Content-Type"] == "text/x-test")
        }
    }

    @Test(arguments: [Request.Method.put, .patch, .delete])
    func otherMethodsArrive(_ method: Request.Method) async throws {
        try await withServer { exchange in
            try exchange.respond(text: exchange.request.method)
        } test: { _, client in
            let answer: String = try await client.send(method, "x")
            #expect(answer == method.rawValue)
        }
    }

    @Test func theCallersHeadersReachTheServer() async throws {
        try await withServer { exchange in
            let names = ["User-Agent", "X-One", "X-Empty"]
            try exchange.respond(text: names.map { exchange.request[$0] ?? "none" }.joined(separator: "|"))
        } test: { _, client in
            let answer: String = try await client.get(
                "x", headers: ["User-Agent": "test/1", "X-One": "a", "X-One": "b"])
            #expect(answer == "test/1|a, b|none")
        }
    }

    @Test func aHeadRequestHasAHeadAndNoBody() async throws {
        try await withDemoServer { _, client in
            let head = try await client.head("bytes/1000")
            #expect(head.status == 200)
            #expect(head.headers["Content-Length"] == "1000")
        }
    }

    @Test(arguments: [400, 401, 404, 500])
    func aRefusedStatusIsAnErrorWithTheBody(_ status: Int) async throws {
        try await withServer { exchange in
            try exchange.respond(
                status: status, headers: [("WWW-Authenticate", "Basic realm=\"test\"")], text: "no such thing")
        } test: { _, client in
            let error = try await failure { try await client.get("x") as Data }
            #expect(error.kind == .status)
            #expect(error.status == status)
            #expect(String(decoding: error.body, as: UTF8.self) == "no such thing")
        }
    }

    private struct Stop: SessionPolicy {
        @concurrent func redirect(
            to proposed: Request, after response: ResponseHead, of task: AnySessionTask
        ) async throws -> RedirectDecision? { .stop }
    }

    /// The transport delivers every redirect unchanged.
    @Test(arguments: [301, 302, 303, 307, 308])
    func transportFollowsNoRedirect(_ status: Int) async throws {
        let handler: LoopbackServer.Handler = { exchange in
            if exchange.request.path == "/elsewhere" { return try exchange.respond(text: "here") }
            try exchange.respond(status: status, headers: [("Location", "/elsewhere")], text: "moved")
        }
        try await withServer(handler) { server, client in
            let text: String = try await client.get("x")
            #expect(text == "here" && server.counts.requestsReceived == 2)
        }
        try await withServer(configuration: .test { $0.policy = Stop() }, handler) { server, client in
            let response = try await client.session.response(for: client.request(.get, "x"), decode: .string)
            #expect(response.status == status && response.headers["Location"] == "/elsewhere")
            #expect(response.value == "moved" && server.counts.requestsReceived == 1)
        }
    }

    /// The cookie store of the system is not used.
    @Test func cookiesComeFromTheStoreOfTheSession() async throws {
        for (use, expected) in [(CookieUse.none, ["none", "none"]), (.separate, ["none", "a=b"])] {
            try await withServer(configuration: .test { $0.cookies = use }) { exchange in
                try exchange.respond(headers: [("Set-Cookie", "a=b")], text: exchange.request["Cookie"] ?? "none")
            } test: { _, client in
                var cookies: [String] = []
                for _ in 0..<2 { cookies.append(try await client.get("x")) }
                #expect(cookies == expected)
            }
        }
    }

    @Test func refusedConnectionOverURLSessionIsItsOwnKind() async throws {
        let port = try LoopbackServer.refusingPort()
        let session = Session(configuration: .test())
        let request = try Request(.get, "http://127.0.0.1:\(port)/")
        let error = try await failure { try await session.response(for: request) }
        #expect(error.kind == .connectionRefused)
    }

    @Test func aBodyOverTheLimitIsRefused() async throws {
        try await withDemoServer { _, client in
            var request = try client.request(.get, "bytes/100000")
            request.maximumBodySize = 1_000
            let error = try await failure { try await client.response(for: request) }
            #expect(error.kind == .tooLarge)
        }
    }

    @Test func aTruncatedBodyIsAnError() async throws {
        try await withScript("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort") { _, client in
            let error = try await failure { try await client.get("x") as Data }
            #expect([.truncatedBody, .connectionLost].contains(error.kind))
        }
    }

    @Test func aConnectionClosedWithoutAnAnswerIsLost() async throws {
        try await withScript("") { _, client in
            let error = try await failure { try await client.post("x", body: .text("a")) as Data }
            #expect(error.kind == .connectionLost)
        }
    }

    @Test func anIdleServerTimesOut() async throws {
        try await withDemoServer(
            configuration: .test { $0.timeouts = Timeouts(connect: nil, idle: .milliseconds(200)) }
        ) {
            _, client in
            let error = try await failure { try await client.get("stall") as Data }
            #expect(error.kind == .idleTimedOut)
        }
    }

    @Test func slowDripExceedsTheTotalTimeout() async throws {
        try await withDemoServer(configuration: .test { $0.timeouts = Timeouts(total: .milliseconds(300)) }) {
            _, client in
            let error = try await failure { try await client.get("slow?count=1000&interval=20") as Data }
            #expect(error.kind == .totalTimedOut)
        }
    }

    @Test func cancellingTheCallerCancelsTheTransfer() async throws {
        try await withDemoServer { server, client in
            let call = Task { try await client.get("stall") as Data }
            try await server.wait { $0.requestsReceived == 1 }
            call.cancel()
            let error = try await failure { try await call.value }
            #expect(error.isCancelled)
        }
    }

    @Test func cancellingTheHandleCancelsTheTransfer() async throws {
        try await withDemoServer { server, client in
            let task = client.task(.get, "stall")
            try await server.wait { $0.requestsReceived == 1 }
            task.cancel()
            let error = try await failure { try await task.value }
            #expect(error.isCancelled)
            try await server.wait { $0.openConnections == 0 }
        }
    }

    @Test func aRedirectThatIsCancelledEndsQuietly() async throws {
        try await withServer { exchange in
            try exchange.respond(status: 302, headers: [("Location", "/elsewhere")], text: "moved")
        } test: { _, client in
            for _ in 0..<50 {
                let task = client.task(.get, "x")
                task.cancel()
                let error = try await failure { try await task.value }
                #expect(error.isCancelled || error.status == 302)
            }
        }
    }

    @Test func hundredConcurrentRequestsReceiveTheirOwnResponses() async throws {
        try await withServer { exchange in
            try exchange.respond(text: exchange.request.target)
        } test: { _, client in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<100 {
                    group.addTask { try await client.get("n/\(number)", as: String.self) == "/n/\(number)" }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }
}

/// Checks files and streams over URLSession.
@Suite("URLSession transfers", .timeLimit(.minutes(1)))
struct URLSessionTransferTests {
    private static let size = 3_000_000

    @Test func downloadOverURLSessionWritesItsFile() async throws {
        try await withTestFolder { folder in
            try await withDemoServer { _, client in
                let file = folder.appending(path: "a.bin")
                let task = client.download("bytes/\(Self.size)", to: file)
                let progress = await task.lastProgress(task.progress)
                let value = try await task.value
                #expect(value == file)
                let bytes = try Data(contentsOf: file)
                #expect(LoopbackServer.Pattern(count: Self.size).matches(bytes))
                #expect(progress?.completedBytes == Int64(Self.size))
                #expect(progress?.isFinished == true)
                let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
                #expect(names == ["a.bin"])
            }
        }
    }

    @Test func aRefusedDownloadLeavesNothingBehind() async throws {
        try await withTestFolder { folder in
            try await withDemoServer { _, client in
                let task = client.download("status/404", to: folder.appending(path: "a.bin"))
                let error = try await failure { try await task.value }
                #expect(error.status == 404)
                let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
                #expect(names.isEmpty)
            }
        }
    }

    @Test func downloadOverURLSessionContinuesAtItsOffset() async throws {
        try await withTestFolder { folder in
            let pattern = LoopbackServer.Pattern(count: Self.size)
            try await withServer { exchange in
                if exchange.request["Range"] != nil { return try exchange.serveFile(pattern) }
                // The rest of the first response never comes.
                try exchange.writeHead(headers: [("ETag", pattern.etag), ("Content-Length", "\(Self.size)")])
                try exchange.streamPattern(pattern, in: 0..<Self.size / 2)
                try exchange.waitForClientToClose()
            } test: { _, client in
                let file = folder.appending(path: "a.bin")
                let first = client.download("a", to: file, options: Download.Options(isResumable: true))
                await first.untilReceived(500_000)
                first.cancel()
                let error = try await failure { try await first.value }
                let resumeData = try #require(error.resumeData)
                #expect(resumeData.offset >= 500_000)
                let place = try await client.download(resuming: resumeData, to: file).value
                #expect(place == file)
                let bytes = try Data(contentsOf: file)
                #expect(pattern.matches(bytes) && bytes.count == Self.size)
            }
        }
    }

    @Test func dataIsUploadedWithProgress() async throws {
        try await withDemoServer { _, client in
            let task = client.upload("upload", body: .data(Data(repeating: 7, count: Self.size)))
            let progress = await task.lastProgress(task.uploadProgress)
            let value = try await task.value
            #expect(String(decoding: value, as: UTF8.self).contains("\(Self.size)"))
            #expect(progress?.completedBytes == Int64(Self.size))
            #expect(progress?.totalBytes == Int64(Self.size))
        }
    }

    @Test func aFileIsUploaded() async throws {
        try await withTestFolder { folder in
            let file = folder.appending(path: "a.bin")
            let bytes = Data(LoopbackServer.Pattern(count: Self.size).bytes())
            try bytes.write(to: file)
            try await withServer { exchange in
                let received = try exchange.readBody()
                let length = exchange.request.contentLength ?? -1
                try exchange.respond(text: "\(LoopbackServer.Pattern(count: Self.size).matches(received)) \(length)")
            } test: { _, client in
                let answer: String = try await client.upload("x", file: file).value
                #expect(answer == "true \(Self.size)")
            }
        }
    }

    @Test func aStreamOfUnknownLengthIsUploaded() async throws {
        try await withServer { exchange in
            try exchange.respond(text: "\(try exchange.readBody().count)")
        } test: { _, client in
            let chunks = AsyncStream<Data> { continuation in
                for _ in 0..<10 { continuation.yield(Data(repeating: 1, count: 10_000)) }
                continuation.finish()
            }
            let answer: String = try await client.post("x", body: .stream(chunks))
            #expect(answer == "100000")
        }
    }

    @Test func aStreamedResponseIsReadInLines() async throws {
        try await withDemoServer { _, client in
            var count = 0
            for try await line in client.stream("lines/1000").lines {
                #expect(line == "line \(count)")
                count += 1
            }
            #expect(count == 1_000)
        }
    }

    @Test func slowReaderReceivesEveryByte() async throws {
        try await withDemoServer { _, client in
            let pattern = LoopbackServer.Pattern(count: 8 << 20)
            var offset = 0
            for try await chunk in client.stream("bytes/\(pattern.count)").chunks {
                #expect(pattern.matches(chunk, at: offset))
                offset += chunk.count
                for _ in 0..<100 { await Task.yield() }
            }
            #expect(offset == pattern.count)
        }
    }

    @Test func aPausedTaskMovesNoByteUntilItIsResumed() async throws {
        try await withDemoServer { _, client in
            let task = client.task(.get, "bytes/\(Self.size)?rate=3000000")
            await task.untilReceived(100_000)
            task.pause()
            // Commands are queued: after round trips through the same queue, the pause is in force.
            try await roundTrips(client)
            let before = await task.receivedBytes
            try await roundTrips(client)
            let after = await task.receivedBytes
            #expect(after == before)
            task.resume()
            let value = try await task.value
            #expect(LoopbackServer.Pattern(count: Self.size).matches(value))
        }
    }

    /// Simulates a background session in this process: the system writes the body to a file of its own.
    @Test func transferThroughSystemFilesIsDelivered() async throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let configuration = Session.Configuration.test()
        let hub = URLSessionHub(URLSessionSettings(configuration), mode: URLSessionHub.Mode(usesFiles: true))
        let session = Session(configuration: configuration, transport: BackgroundTransport(hub))
        let client = Client(baseURL: server.url, session: session)
        let pattern = LoopbackServer.Pattern(count: Self.size)
        let body = try await client.get("bytes/\(Self.size)") as Data
        #expect(pattern.matches(body))
        try await withTestFolder { folder in
            let file = folder.appending(path: "a.bin")
            let task = client.download("bytes/\(Self.size)", to: file)
            let progress = await task.lastProgress(task.progress)
            let value = try await task.value
            #expect(value == file)
            let bytes = try Data(contentsOf: file)
            #expect(pattern.matches(bytes))
            #expect(progress?.completedBytes == Int64(Self.size))
        }
        let echo: String = try await client.post("echo", body: .text("hello"))
        #expect(echo == "hello")
        let error = try await failure { try await client.get("status/404") as Data }
        #expect(error.status == 404)
    }
}

/// Runs a server of the demo routes, and a client whose session is its own.
private func withDemoServer(
    configuration: Session.Configuration = .test(), test: (LoopbackServer, Client) async throws -> Void
) async throws {
    try await withServer(configuration: configuration) { exchange in
        try LoopbackServer.answerDemo(exchange)
    } test: { server, client in
        try await test(server, client)
    }
}

/// Makes a folder for the files of a test, and removes it after the test.
private func withTestFolder(_ test: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }  // Only this test uses the folder.
    try await test(folder)
}

/// Sends requests to the server: earlier commands have taken effect after them.
private func roundTrips(_ client: Client) async throws {
    for _ in 0..<20 { try await client.get("json") }
}

extension TaskHandle {
    /// Returns the last element of a progress stream.
    fileprivate func lastProgress(_ stream: AsyncStream<Session.Progress>) async -> Session.Progress? {
        var last: Session.Progress?
        for await progress in stream { last = progress }
        return last
    }
}
#endif
