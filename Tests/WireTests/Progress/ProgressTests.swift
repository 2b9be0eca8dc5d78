import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Progress", .timeLimit(.minutes(1)))
struct ProgressTests {
    private static let size = 12 << 20

    /// Expects the properties that every progress stream of a task has.
    private func expectSound(_ values: [Session.Progress], sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(!values.isEmpty, sourceLocation: sourceLocation)
        #expect(values.map(\.completedBytes) == values.map(\.completedBytes).sorted(), sourceLocation: sourceLocation)
        #expect(values.dropLast().allSatisfy { !$0.isFinished }, sourceLocation: sourceLocation)
        #expect(values.last?.isFinished == true, sourceLocation: sourceLocation)
    }

    @Test func downloadPublishesItsProgress() async throws {
        try await withSlowServer { _, client, gate in
            let task = client.task(.get, "half", startsImmediately: false)
            async let uploaded = task.uploadProgress.collected()
            var values: [Session.Progress] = []
            for await value in task.progress {
                values.append(value)
                // A slow reader receives only the newest value: each step waits until the one before was received.
                if values.count == 1 { task.resume() }
                if value.completedBytes == Int64(Self.size / 2) { gate.open() }
            }
            expectSound(values)
            #expect(values.first?.completedBytes == 0)
            #expect(values.contains { $0.completedBytes == Int64(Self.size / 2) && $0.fractionCompleted == 0.5 })
            #expect(values.last?.completedBytes == Int64(Self.size))
            #expect(values.last?.totalBytes == Int64(Self.size))
            #expect(values.last?.fractionCompleted == 1)
            let body = try await task.value
            #expect(body.count == Self.size)
            let uploads = await uploaded
            expectSound(uploads)
            #expect(uploads.last?.completedBytes == 0)
        }
    }

    @Test func combinedProgressIsThatOfAllTasks() async throws {
        try await withSlowServer { _, client, gate in
            let tasks = (0..<2).map { _ in client.task(.get, "half", startsImmediately: false) }
            var values: [Session.Progress] = []
            for await value in Session.Progress.combined(of: tasks) {
                values.append(value)
                if values.count == 1 { for task in tasks { task.resume() } }
                if value.completedBytes == Int64(Self.size) { gate.open() }
            }
            expectSound(values)
            #expect(values.first?.completedBytes == 0)
            #expect(values.last?.completedBytes == Int64(2 * Self.size))
            #expect(values.last?.totalBytes == Int64(2 * Self.size))
            #expect(tasks.allSatisfy { $0.progressNow.isFinished && $0.uploadProgressNow.isFinished })
            for await value in Session.Progress.combined(ofUploads: tasks) { #expect(value.isFinished) }
        }
    }

    @Test func uploadPublishesItsProgress() async throws {
        try await withSlowServer { _, client, gate in
            let task = client.upload("upload", body: .data(Data(count: Self.size)), startsImmediately: false)
            var values: [Session.Progress] = []
            for await value in task.uploadProgress {
                values.append(value)
                if values.count == 1 { task.resume() }
                if value.completedBytes > 0 { gate.open() }
            }
            expectSound(values)
            #expect(values.first?.completedBytes == 0)
            #expect(values.contains { $0.completedBytes > 0 && $0.completedBytes < Int64(Self.size) })
            #expect(values.last?.completedBytes == Int64(Self.size))
            #expect(values.last?.totalBytes == Int64(Self.size))
            _ = try await task.value
        }
    }

    @Test(arguments: [nil, 1_000_000] as [Int64?])
    func streamedUploadHasItsStatedTotal(length: Int64?) async throws {
        try await withDemo { _, client in
            let chunks = AsyncStream<Data> { continuation in
                for _ in 0..<10 { continuation.yield(Data(count: 100_000)) }
                continuation.finish()
            }
            let task = client.upload("upload", body: .stream(chunks, length: length), startsImmediately: false)
            let progress = task.uploadProgress
            async let all = progress.collected()
            task.resume()
            _ = try await task.value
            let values = await all
            expectSound(values)
            #expect(values.last?.completedBytes == 1_000_000)
            #expect(values.last?.totalBytes == length)
            #expect(values.last?.fractionCompleted == (length == nil ? nil : 1))
        }
    }

    @Test func aStatedContentLengthIsTheTotalOfABodyOfUnknownLength() async throws {
        try await withDemo { _, client in
            let chunks = AsyncStream<Data> { continuation in
                continuation.yield(Data(count: 500))
                continuation.finish()
            }
            let task = client.task(.post, "upload", headers: ["Content-Length": "500"], body: .stream(chunks))
            _ = try await task.value
            #expect(await task.uploadProgress.collected().last?.totalBytes == 500)
        }
    }

    @Test func bytesOfAnUnknownTotalArePublished() async throws {
        let gates = (0..<3).map { _ in LoopbackServer.Gate() }
        try await withServer { exchange in
            try exchange.writeChunkedHead()
            for gate in gates {
                try exchange.writeChunk([UInt8](repeating: 1, count: 1_000))
                try exchange.wait(for: gate)
            }
            try exchange.endChunks()
        } test: { _, client in
            let task = client.task(.get, "chunks")
            var next = 0
            var values: [Session.Progress] = []
            for await value in task.progress {
                values.append(value)
                #expect(value.totalBytes == nil)
                #expect(value.fractionCompleted == nil)
                if value.completedBytes == Int64(1_000 * (next + 1)), next < 3 {
                    gates[next].open()
                    next += 1
                }
            }
            expectSound(values)
            #expect(values.last?.completedBytes == 3_000)
            #expect(next == 3)
        }
    }

    @Test func aTotalIsPublishedBeforeAnyByteOfTheBodyCame() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "5")])
            try exchange.wait(for: gate)
            try exchange.write("hello")
        } test: { _, client in
            let task = client.task(.get, "late")
            for await value in task.progress where value.totalBytes != nil {
                #expect(value.totalBytes == 5)
                #expect(value.completedBytes == 0)
                break
            }
            gate.open()
            let body = try await task.value
            #expect(body == Data("hello".utf8))
        }
    }

    @Test func aFailureEndsTheStreams() async throws {
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "1000")])
            try exchange.write([UInt8](repeating: 1, count: 300))
            exchange.close()
        } test: { _, client in
            let task = client.task(.get, "short", startsImmediately: false)
            let streams = [task.progress, task.uploadProgress, task.progress]
            task.resume()
            for stream in streams { expectSound(await stream.collected()) }
            _ = try await task.failure()
        }
    }

    @Test func aTaskThatCouldNotBeMadeEndsItsStreams() async throws {
        let task = try Client(baseURL: "http://127.0.0.1").task(.get, "x", headers: ["Bad\n": "1"])
        for stream in [task.progress, task.uploadProgress] { expectSound(await stream.collected()) }
        #expect(await task.states.collected() == [.failed])
    }

    @Test func aTaskCancelledBeforeItsStartEndsItsStreams() async throws {
        try await withDemo { _, client in
            let task = client.task(.get, "json", startsImmediately: false)
            let (progress, states) = (task.progress, task.states)
            task.cancel()
            expectSound(await progress.collected())
            #expect(await states.collected().last == .cancelled)
        }
    }

    @Test func lateSubscriberReceivesTheLastValue() async throws {
        try await withDemo { _, client in
            let task = client.task(.post, "echo", body: .data(Data(count: 5_000)))
            _ = try await task.value
            for stream in [task.progress, task.uploadProgress] {
                let values = await stream.collected()
                #expect(values.map(\.completedBytes) == [5_000])
                expectSound(values)
            }
        }
    }

    @Test func eachAccessReturnsItsOwnStream() async throws {
        try await withDemo { _, client in
            let task = client.task(.get, "bytes/\(Self.size)")
            await withTaskGroup { group in
                for _ in 0..<5 { group.addTask { await task.progress.collected() } }
                for await values in group {
                    expectSound(values)
                    #expect(values.last?.completedBytes == Int64(Self.size))
                }
            }
        }
    }

    @Test func longTransferPublishesThroughputAndTimeLeft() async throws {
        let isTold = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "\(Self.size)")])
            // A trickle until the rate is known, and then the rest.
            exchange.throttle(bytesPerSecond: 200_000)
            var left = Self.size
            while !isTold.isOpen, left > 1_000 {
                try exchange.streamZeros(count: 1_000)
                left -= 1_000
            }
            exchange.throttle(bytesPerSecond: nil)
            try exchange.streamZeros(count: left)
        } test: { _, client in
            let task = client.task(.get, "trickle")
            for await value in task.progress where !value.isFinished {
                // The head can arrive so late that a rate of 0 is known before the first byte.
                guard value.completedBytes > 0, let rate = value.bytesPerSecond else { continue }
                #expect(rate > 0)
                #expect(value.estimatedTimeRemaining != nil)
                isTold.open()
            }
            #expect(isTold.isOpen)
            _ = try await task.value
        }
    }

    // MARK: Calls from a listener

    @Test(arguments: [true, false])
    func aListenerCanCancel(upload: Bool) async throws {
        try await withSlowServer { _, client, _ in
            let task = makeTask(client, upload: upload)
            var values: [Session.Progress] = []
            for await value in upload ? task.uploadProgress : task.progress {
                values.append(value)
                if value.completedBytes > 0 { task.cancel() }
            }
            expectSound(values)
            let error = try await task.failure()
            #expect(error.isCancelled)
            #expect(task.state == .cancelled)
            #expect((values.last?.completedBytes ?? 0) < Int64(Self.size))
        }
    }

    #if !TERN_URLSESSION
    @Test(arguments: [true, false])
    func aListenerCanPauseAndResume(upload: Bool) async throws {
        try await withSlowServer { server, client, gate in
            let task = makeTask(client, upload: upload)
            var pauses = 0
            for await value in upload ? task.uploadProgress : task.progress {
                guard value.completedBytes > 0, !value.isFinished, pauses < 5 else { continue }
                pauses += 1
                task.pause()
                if pauses == 1 {
                    #expect(task.state == .suspended)
                    gate.open()
                    try await fence(server, of: client.session)
                    let before = await client.session.tasks.snapshot.first
                    try await fence(server, of: client.session)
                    let after = await client.session.tasks.snapshot.first
                    #expect(before?.progress == after?.progress)
                    #expect(before?.uploadProgress == after?.uploadProgress)
                }
                task.resume()
                #expect(task.state != .suspended)
            }
            #expect(pauses > 0)
            let body = try await task.value
            if !upload { #expect(body.count == Self.size) }
        }
    }
    #endif

    private func makeTask(_ client: Client, upload: Bool) -> SessionTask<Data> {
        upload
            ? client.upload("upload", body: .data(Data(count: Self.size)))
            : client.task(.get, "half")
    }

    /// Runs a server that takes half of an upload, or sends half of a download, and then waits for the gate.
    private func withSlowServer(
        _ test: (LoopbackServer, Client, LoopbackServer.Gate) async throws -> Void
    ) async throws {
        let gate = LoopbackServer.Gate()
        let pattern = LoopbackServer.Pattern(count: Self.size)
        try await withServer { exchange in
            switch exchange.request.path {
            case "/upload":
                _ = try exchange.readChunk()
                try exchange.wait(for: gate)
                try LoopbackServer.answerDemo(exchange)
            case "/half":
                try exchange.writeHead(headers: [("Content-Length", "\(Self.size)")])
                try exchange.streamPattern(pattern, in: 0..<Self.size / 2)
                try exchange.wait(for: gate)
                try exchange.streamPattern(pattern, in: Self.size / 2..<Self.size)
            default:
                try LoopbackServer.answerDemo(exchange)
            }
        } test: { server, client in
            try await test(server, client, gate)
        }
    }
}
