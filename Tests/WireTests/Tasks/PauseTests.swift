import Dispatch
import Tern
import TernConcurrency
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
@Suite("Pause and resume", .timeLimit(.minutes(1)))
struct PauseTests {
    private static let size = 24 << 20

    @Test func newTaskMovesNoByteUntilResumed() async throws {
        try await withDemo { server, client in
            let session = client.session
            let task = session.task(for: try client.request(.get, "json"))
            #expect(task.state == .suspended)
            task.pause()
            #expect(task.state == .suspended)
            try await fence(server, of: client.session)
            #expect(server.requestCount("/json") == 0)
            #expect(await session.tasks.snapshot.map(\.state) == [.suspended])
            task.resume()
            #expect(try await task.value.status == 200)
            #expect(server.requestCount("/json") == 1)
        }
    }

    @Test func immediateStartIsSetBySessionAndByCall() async throws {
        try await withDemo(configuration: .test { $0.startsImmediately = true }) { _, client in
            let request = try client.request(.get, "json")
            let task = client.session.task(for: request)
            #expect(try await task.value.status == 200)
            #expect(client.session.task(for: request, startsImmediately: false).state == .suspended)
            #expect(client.task(.get, "json", startsImmediately: false).state == .suspended)
            let download = client.session.download(request, startsImmediately: false, destination: nil)
            #expect(download.state == .suspended)
        }
        try await withDemo { _, client in
            let request = try client.request(.get, "json")
            #expect(client.session.task(for: request).state == .suspended)
            let task = client.session.task(for: request, startsImmediately: true)
            #expect(try await task.value.status == 200)
        }
    }

    /// The pause comes while the body is made: the attempt is ready only after it, and must not begin.
    @Test(arguments: [true, false])
    func aTaskPausedBeforeItsAttemptSendsNothing(resumes: Bool) async throws {
        try await withDemo { server, _ in
            let disk = SlowDisk()
            let session = Session(
                configuration: .test(), transport: Session(configuration: .test()).tasks.transport,
                files: FileStore(disk, executor: QueueExecutor("slow disk")))
            let client = Client(baseURL: server.url, session: session)
            _ = try await client.get("json")
            let task = client.upload("echo", file: URL(filePath: "/one"))
            try await disk.isAsked.wait()
            task.pause()
            disk.mayAnswer.signal()
            try await fence(server, of: client.session)
            #expect(server.requestCount("/echo") == 0)
            #expect(await session.tasks.snapshot.map(\.state) == [.suspended])
            task.priority = .high
            if resumes {
                task.resume()
                #expect(try await task.value == Data("1".utf8))
            } else {
                task.cancel()
                #expect(try await task.failure().isCancelled)
                await session.drained()
            }
            #expect(server.requestCount("/echo") == (resumes ? 1 : 0))
        }
    }

    /// One file of one byte, whose length takes a long time to read.
    private final class SlowDisk: FileSystem {
        let isAsked = LoopbackServer.Gate()
        let mayAnswer = DispatchSemaphore(value: 0)

        func length(of path: String) -> Int64 {
            isAsked.open()
            mayAnswer.wait()
            return 1
        }

        func read(_ descriptor: Int32, at offset: Int64, count: Int) -> Data { Data("1".utf8.dropFirst(Int(offset))) }
        func open(_ path: String, _ mode: FileMode) -> Int32 { -1 }
        func exists(_ path: String) -> Bool { true }
        func close(_ descriptor: Int32) {}
        func write(_ bytes: Data, to descriptor: Int32) {}
        func truncate(_ descriptor: Int32, to length: Int64) {}
        func makeFolders(_ path: String) {}
        func rename(_ path: String, to destination: String) {}
        func renameIfAbsent(_ path: String, to destination: String) {}
        func remove(_ path: String) {}
    }

    @Test func aTaskPausedBeforeItsAttemptCanBeCancelled() async throws {
        // A response that is never complete cannot end before the pause.
        try await withHalf(of: 1_000) { _, client, _ in
            for _ in 0..<50 {
                let task = client.session.task(for: try client.request(.get, "half"))
                task.resume()
                task.pause()
                for _ in 0..<Int.random(in: 0..<5) { await Task.yield() }
                task.cancel()
                #expect(try await task.failure().isCancelled)
            }
            await client.session.drained()
        }
    }

    @Test func pausedQueuedTaskDoesNotDelayOthers() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: .test { $0.maximumConnectionsPerHost = 1 }) { exchange in
            if exchange.request.path == "/first" { try exchange.wait(for: gate) }
            try exchange.respond(text: exchange.request.path)
        } test: { server, client in
            let first = client.task(.get, "first", as: String.self)
            try await server.wait { $0.requestsReceived == 1 }
            let second = client.task(.get, "second", as: String.self)
            second.pause()
            #expect(await client.session.tasks.snapshot.map(\.state) == [.running, .suspended])
            gate.open()
            #expect(try await first.value == "/first")
            #expect(try await client.get("third", as: String.self) == "/third")
            #expect(server.requestCount("/second") == 0)
            second.resume()
            #expect(try await second.value == "/second")
        }
    }

    @Test func aPausedTaskDoesNotTimeOutWhileItConnects() async throws {
        try await withGrowingLimit { limit in
            let silent = try LoopbackServer(acceptsConnections: false) { _ in }
            let session = Session(configuration: .test { $0.timeouts = Timeouts(connect: limit) })
            let request = try Request(.get, url: silent.url("json"))
            let paused = session.task(for: request, startsImmediately: true)
            _ = await paused.wait(for: .running)
            paused.pause()
            // Another task, which starts later, reaches the same limit first.
            let error = try await session.task(for: request, startsImmediately: true).failure()
            #expect(error.kind == .connectTimedOut)
            guard paused.state == .suspended else { return false }
            let port = silent.port
            silent.stop()
            let server = try LoopbackServer(port: port) { try LoopbackServer.answerDemo($0) }
            defer { server.stop() }
            #expect(server.counts.acceptedConnections == 0)
            paused.resume()
            return await paused.wait(for: .completed)
        }
    }

    @Test func noBytesMoveWhileADownloadIsPaused() async throws {
        try await withHalf(of: Self.size) { server, client, gate in
            let task = client.task(.get, "half", as: Data.self)
            await task.wait(forBytes: 1)
            for round in 0..<3 {
                task.pause()
                #expect(task.state == .suspended)
                if round == 2 { gate.open() }
                try await assertStandsStill(server, client) { $0.progress.completedBytes }
                task.resume()
                if round < 2 { #expect(task.state == .running) }
            }
            let body = try await task.value
            #expect(body.count == Self.size)
            #expect(LoopbackServer.Pattern(count: Self.size).matches(body))
            // The connection was kept: nothing was requested again.
            #expect(server.requestCount("/half") == 1)
        }
    }

    @Test func noBytesMoveWhileAFileDownloadIsPaused() async throws {
        try await withHalf(of: Self.size) { server, client, gate in
            try await withFolder { folder in
                let file = folder.appending(path: "file")
                let task = client.download("half", to: file)
                await task.wait(forBytes: 1)
                task.pause()
                gate.open()
                try await assertStandsStill(server, client) { $0.progress.completedBytes }
                task.resume()
                let place = try await task.value
                #expect(place.path == file.path)
                let body = try Data(contentsOf: file)
                #expect(body.count == Self.size && LoopbackServer.Pattern(count: Self.size).matches(body))
            }
        }
    }

    @Test func noBytesMoveWhileAnUploadIsPaused() async throws {
        let received = Counter()
        let isPaused = LoopbackServer.Gate()
        let isRight = LoopbackServer.Gate()
        let pattern = LoopbackServer.Pattern(count: Self.size)
        try await withServer { exchange in
            var offset = 0
            var matches = true
            while let chunk = try exchange.readChunk() {
                matches = matches && pattern.matches(chunk, at: offset)
                offset += chunk.count
                received.add(chunk.count)
                // The sockets hold far less than the upload: most of it is not sent when the pause comes.
                if exchange.request.path == "/upload" { try exchange.wait(for: isPaused) }
            }
            if matches, offset == pattern.count { isRight.open() }
            try exchange.respond(text: "\(offset)")
        } test: { server, client in
            let body = Data(pattern.bytes())
            let task = client.upload("upload", body: .data(body), as: String.self)
            await task.wait(forSentBytes: 1)
            task.pause()
            isPaused.open()
            try await assertStandsStill(server, client) { $0.uploadProgress.completedBytes }
            // Bytes in flight arrive, and no others.
            let sent = try #require(await client.session.tasks.snapshot.first).uploadProgress.completedBytes
            while received.value < sent, !Task.isCancelled { await Task.yield() }
            try await fence(server, of: client.session)
            #expect(received.value == sent)
            task.resume()
            #expect(try await task.value == "\(Self.size)")
            #expect(isRight.isOpen)
        }
    }

    @Test func noBytesMoveWhileAStreamedUploadIsPaused() async throws {
        let isPaused = LoopbackServer.Gate()
        try await withServer { exchange in
            if exchange.request.path == "/echo" { try exchange.wait(for: isPaused) }
            try LoopbackServer.answerDemo(exchange)
        } test: { server, client in
            let pattern = LoopbackServer.Pattern(count: Self.size)
            let chunks = AsyncStream<Data> { continuation in
                for start in stride(from: 0, to: pattern.count, by: 1 << 20) {
                    continuation.yield(Data(pattern.bytes(in: start..<min(start + (1 << 20), pattern.count))))
                }
                continuation.finish()
            }
            let task = client.task(.post, "echo", body: .stream(chunks), as: Data.self)
            await task.wait(forSentBytes: 1)
            task.pause()
            isPaused.open()
            try await assertStandsStill(server, client) { $0.uploadProgress.completedBytes }
            task.resume()
            #expect(pattern.matches(try await task.value))
        }
    }

    @Test func pauseLongerThanTheIdleTimeoutDoesNotExpire() async throws {
        try await withGrowingLimit { limit in
            let timeouts = Timeouts(connect: nil, idle: limit, total: .seconds(50))
            var isWhole = false
            try await withHalf(of: Self.size, configuration: .test { $0.timeouts = timeouts }) { server, client, gate in
                let task = client.task(.get, "half", as: Data.self)
                await task.wait(forBytes: 1)
                task.pause()
                gate.open()
                // Another transfer, which starts later, reaches the same limit first.
                let error = try await client.task(.get, "stall").failure()
                #expect(error.kind == .idleTimedOut)
                guard task.state == .suspended else { return }
                task.resume()
                isWhole = await task.wait(for: .completed)
                if isWhole {
                    let body = try await task.value
                    #expect(body.count == Self.size)
                }
            }
            return isWhole
        }
    }

    @Test func aPausedTaskCanBeCancelled() async throws {
        try await withHalf(of: Self.size) { _, client, _ in
            let task = client.task(.get, "half", as: Data.self)
            await task.wait(forBytes: 1)
            task.pause()
            task.cancel()
            let error = try await task.failure()
            #expect(error.isCancelled)
            task.resume()
            #expect(task.state == .cancelled)
        }
    }

    @Test func concurrentPausesAndResumesKeepTheBodyComplete() async throws {
        try await withHalf(of: Self.size) { _, client, gate in
            let task = client.task(.get, "half", as: Data.self)
            await withTaskGroup { group in
                for side in 0..<4 {
                    group.addTask {
                        for round in 0..<50 {
                            task.pause()
                            await Task.yield()
                            if side == 3, round == 25 { gate.open() }
                            task.resume()
                        }
                    }
                }
            }
            task.resume()
            let body = try await task.value
            #expect(LoopbackServer.Pattern(count: Self.size).matches(body) && body.count == Self.size)
        }
    }

    private struct Broken: Error {}

    @Test func aSequenceThatThrowsDuringThePauseEndsTheResumedUpload() async throws {
        try await withServer { exchange in
            if exchange.request.method == "GET" { return try exchange.respond() }
            try exchange.waitForClientToClose()
        } test: { server, client in
            for round in 0..<40 {
                let (parts, source) = AsyncThrowingStream.makeStream(of: Data.self)
                let task = client.upload("a", body: .stream(parts))
                source.yield(Data(count: 10))
                try await server.wait { $0.requestsReceived == 6 * round + 1 }
                task.pause()
                source.finish(throwing: Broken())
                try await fence(server, of: client.session, roundTrips: 5)
                task.resume()
                let error = try await failure { try await task.value }
                #expect(error.kind == .requestBody && error.underlying is Broken, "\(error)")
            }
        }
    }

    /// Expects that the count no longer changes after the bytes in flight have arrived.
    private func assertStandsStill(
        _ server: LoopbackServer, _ client: Client, count: (TaskRegistry.Snapshot) -> Int64
    ) async throws {
        try await fence(server, of: client.session)
        let before = try #require(await client.session.tasks.snapshot.first)
        #expect(before.state == .suspended)
        try await fence(server, of: client.session)
        let after = try #require(await client.session.tasks.snapshot.first)
        #expect(count(after) == count(before))
        #expect(count(after) < Int64(Self.size))
    }
}
#endif
