import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
@Suite("Cancellation", .timeLimit(.minutes(1)))
struct CancelTests {
    /// The moment at which a task is cancelled.
    enum Phase: CaseIterable, CustomTestStringConvertible {
        case beforeStart
        case rightAfterStart
        case queued
        case connecting
        case waitingForHead
        case midBody
        case midUpload
        case paused

        var testDescription: String { "\(self)" }
    }

    /// The way in which a task is cancelled.
    enum Way: CaseIterable {
        case handle
        case swiftTask
    }

    /// Brings a request into a phase, and runs the test there; the gate of the server holds the resources of the phase.
    private func expectCancelled(
        _ phase: Phase, configuration: Session.Configuration = .test(),
        test: (LoopbackServer, Client, LoopbackServer.Gate) async throws -> Void
    ) async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: configuration) { exchange in
            switch exchange.request.path {
            case "/silent": try exchange.wait(for: gate)
            case "/unread":
                _ = try exchange.readChunk()
                try exchange.wait(for: gate)
            default: try LoopbackServer.answerDemo(exchange)
            }
        } test: { server, client in
            try await test(server, client, gate)
            // The engine keeps no state: the next request works, and the connection of the cancelled request is closed.
            #expect(try await client.get("json", as: String.self).contains("Ada"))
            await client.session.drained()
            #expect(await client.session.tasks.count == 0)
        }
    }

    @Test(arguments: Phase.allCases)
    func aHandleCancelsAtEveryPhase(phase: Phase) async throws {
        let configuration = Session.Configuration.test { if phase == .queued { $0.maximumConnectionsPerHost = 1 } }
        try await expectCancelled(phase, configuration: configuration) { server, client, gate in
            let task: SessionTask<Data>
            var blocker: SessionTask<Data>?
            switch phase {
            case .beforeStart:
                task = client.task(.get, "json", startsImmediately: false)
            case .rightAfterStart:
                task = client.task(.get, "silent")
            case .queued:
                blocker = client.task(.get, "silent")
                try await server.wait { $0.requestsReceived == 1 }
                task = client.task(.get, "json")
            case .connecting:
                // The server reads the head of a request and receives the beginning of TLS: the handshake never ends.
                let secure = try Client(baseURL: "https://127.0.0.1:\(server.port)/", session: client.session)
                task = secure.task(.get, "json")
                try await server.wait { $0.openConnections == 1 }
            case .waitingForHead:
                task = client.task(.get, "silent")
                try await server.wait { $0.requestsReceived == 1 }
            case .midBody:
                task = client.task(.get, "bytes/20000000", query: ["rate": 2_000_000])
                await task.wait(forBytes: 1)
            case .midUpload:
                task = client.upload("unread", body: .data(Data(count: 20 << 20)))
                await task.wait(forSentBytes: 1)
            case .paused:
                task = client.task(.get, "bytes/20000000", query: ["rate": 2_000_000])
                await task.wait(forBytes: 1)
                task.pause()
            }
            task.cancel()
            let error = try await task.failure()
            #expect(error.kind == .cancelled && error.isCancelled)
            #expect(error.taskID == task.id)
            #expect(task.state == .cancelled)
            #expect(await task.states.collected() == [.cancelled])
            task.cancel()
            task.resume()
            #expect(task.state == .cancelled)
            gate.open()
            _ = try? await blocker?.value  // The blocker exists in one phase only; its status is 500.
            if phase == .beforeStart || phase == .queued { #expect(server.requestCount("/json") == 0) }
        }
    }

    @Test(
        arguments: [Phase.rightAfterStart, .queued, .connecting, .waitingForHead, .midBody, .midUpload],
        [false, true])
    func theSwiftTaskOfACallCancelsItsTransferAtEveryPhase(phase: Phase, hasInterceptor: Bool) async throws {
        let configuration = Session.Configuration.test {
            if phase == .queued { $0.maximumConnectionsPerHost = 1 }
            if hasInterceptor { $0.interceptors = [PassingInterceptor()] }
        }
        try await expectCancelled(phase, configuration: configuration) { server, client, gate in
            var blocker: SessionTask<Data>?
            if phase == .queued {
                blocker = client.task(.get, "silent")
                try await server.wait { $0.requestsReceived == 1 }
            }
            let secure = try Client(baseURL: "https://127.0.0.1:\(server.port)/", session: client.session)
            let call = Task { () throws(NetworkError) -> Data in
                switch phase {
                case .queued: try await client.get("json")
                case .connecting: try await secure.get("json")
                case .midBody: try await client.get("bytes/20000000", query: ["rate": 2_000_000])
                case .midUpload: try await client.post("unread", body: .data(Data(count: 20 << 20)))
                default: try await client.get("silent")
                }
            }
            switch phase {
            case .connecting: try await server.wait { $0.openConnections == 1 }
            case .waitingForHead: try await server.wait { $0.requestsReceived == 1 }
            case .midBody: try await server.wait { $0.bytesOut > 100_000 }
            case .midUpload: try await server.wait { $0.bytesIn > 1_000 }
            default: break
            }
            call.cancel()
            let result = await call.result
            guard case .failure(let error as NetworkError) = result else {
                Issue.record("not cancelled: \(result)")
                return
            }
            #expect(error.isCancelled && error.reason == "the task was cancelled")
            #expect(error.sessionID == client.session.id)
            #expect(error.taskID != nil && error.taskID != blocker?.id)
            #expect(await client.session.tasks.snapshot.map(\.id) == (blocker.map { [$0.id] } ?? []))
            gate.open()
            _ = try? await blocker?.value  // The blocker exists in one phase only; its status is 500.
        }
    }

    @Test func aCancelledTransferClosesItsConnection() async throws {
        try await withDemo { server, client in
            let task = client.task(.get, "stall")
            _ = await task.response
            task.cancel()
            _ = try await task.failure()
            try await server.wait { $0.openConnections == 0 }
        }
    }

    @Test func cancelDuringTheEndGivesOneOutcome() async throws {
        try await withDemo { _, client in
            var endings: Set<Session.TaskState> = []
            for round in 0..<300 {
                let task = client.task(.get, "json")
                if round % 3 == 0 { _ = await task.response }
                for _ in 0..<(round % 7) { await Task.yield() }
                task.cancel()
                let state = await task.states.collected().last
                var error: NetworkError?
                do throws(NetworkError) { _ = try await task.value } catch let thrown { error = thrown }
                #expect(state == (error == nil ? .completed : .cancelled))
                #expect(error?.isCancelled != false)
                if let state { endings.insert(state) }
            }
            #expect(endings.contains(.cancelled))
        }
    }

    @Test func cancelAfterTheEndChangesNothing() async throws {
        try await withDemo { _, client in
            let task = client.task(.get, "json", as: String.self)
            _ = try await task.value
            task.cancel()
            #expect(task.state == .completed)
            #expect(try await task.value.contains("Ada"))
        }
    }

    @Test func cancellingOneOfManyWaitersEndsItsWaitOnly() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "late")
        } test: { server, client in
            let task = client.task(.get, "x", as: String.self)
            try await server.wait { $0.requestsReceived == 1 }
            let waiting = (0..<10).map { _ in Task { () throws(NetworkError) in try await task.value } }
            let impatient = Task { () throws(NetworkError) in try await task.value }
            for _ in 0..<20 { await Task.yield() }
            impatient.cancel()
            let result = await impatient.result
            guard case .failure(let error as NetworkError) = result else {
                Issue.record("the wait was not cancelled")
                return
            }
            #expect(error.isCancelled)
            #expect(task.state == .running)
            gate.open()
            for one in waiting { #expect(try await one.value == "late") }
            #expect(try await task.value == "late")
        }
    }

    @Test func waitForAHeadCanBeCancelledSeparately() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "late")
        } test: { server, client in
            let task = client.task(.get, "x", as: String.self)
            let waiting = Task { await task.response?.status }
            try await server.wait { $0.requestsReceived == 1 }
            waiting.cancel()
            #expect(await waiting.value == nil)
            #expect(task.state == .running)
            gate.open()
            #expect(try await task.value == "late")
        }
    }

    @Test func aDroppedHandleCancelsNothing() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "late")
        } test: { server, client in
            let events = client.session.tasks.events
            client.task(.get, "x")
            try await server.wait { $0.requestsReceived == 1 }
            gate.open()
            for await case .completed(let end) in events {
                #expect(end.error == nil)
                break
            }
        }
    }

    @Test func aCancelledDownloadLeavesNothingBehind() async throws {
        try await withDemo { _, client in
            try await withFolder { folder in
                let task = client.download(
                    "bytes/20000000", to: folder.appending(path: "x"), query: ["rate": 2_000_000])
                await task.wait(forBytes: 1)
                task.cancel()
                let error = try await task.failure()
                #expect(error.isCancelled)
                let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
                #expect(left.isEmpty)
            }
        }
    }

    @Test func aTaskCancelledBeforeItsStartMakesNoBody() async throws {
        try await withDemo { _, client in
            let isEncoded = LoopbackServer.Gate()
            let task = client.task(.post, "echo", body: .json(Watched(isEncoded)), startsImmediately: false)
            task.cancel()
            let error = try await task.failure()
            #expect(error.isCancelled)
            #expect(!isEncoded.isOpen)
            let missing = Request.Body.file(URL(filePath: "/nowhere/at/all"))
            let other = client.task(.post, "echo", body: missing, startsImmediately: false)
            other.cancel()
            let otherError = try await other.failure()
            #expect(otherError.isCancelled)
        }
    }

    private struct Watched: Encodable, Sendable {
        private let gate: LoopbackServer.Gate

        init(_ gate: LoopbackServer.Gate) { self.gate = gate }

        func encode(to encoder: any Encoder) throws {
            gate.open()
            var container = encoder.singleValueContainer()
            try container.encode(1)
        }
    }

    // MARK: Streams

    @Test func cancelledStreamWithoutAReaderEnds() async throws {
        try await withDemo { server, client in
            let stream = client.stream("stall")
            _ = try await stream.response
            stream.task.cancel()
            await client.session.drained()
            #expect(stream.task.state == .cancelled)
            #expect(await stream.task.states.collected() == [.cancelled])
            #expect(await stream.task.progress.collected().last?.isFinished == true)
            #expect(try await failure { for try await _ in stream.chunks {} }.isCancelled)
            try await server.wait { $0.openConnections == 0 }
        }
    }

    @Test func aDroppedStreamEndsItsTransfer() async throws {
        try await withDemo { server, client in
            do {
                let stream = client.stream("stall")
                _ = try await stream.response
            }
            try await server.wait { $0.openConnections == 0 }
            await client.session.drained()
        }
    }

    @Test func cancellingTheWaitForTheHeadEndsTheTransfer() async throws {
        let hasRequest = LoopbackServer.Gate()
        try await withServer { exchange in
            hasRequest.open()
            try exchange.waitForClientToClose()
        } test: { server, client in
            let stream = client.stream("never")
            let reader = Task { try await stream.response }
            try await hasRequest.wait()
            reader.cancel()
            guard case .failure(let error as NetworkError) = await reader.result else {
                Issue.record("not cancelled")
                return
            }
            #expect(error.isCancelled && stream.task.state == .cancelled)
            try await server.wait { $0.openConnections == 0 }
        }
    }

    @Test func cancellingTheReaderEndsTheTransfer() async throws {
        try await withDemo { server, client in
            let stream = client.stream("stall")
            let isReading = LoopbackServer.Gate()
            let reader = Task {
                _ = try await stream.response
                isReading.open()
                for try await _ in stream.chunks {}
            }
            try await isReading.wait()
            reader.cancel()
            guard case .failure(let error as NetworkError) = await reader.result else {
                Issue.record("not cancelled")
                return
            }
            #expect(error.isCancelled)
            try await server.wait { $0.openConnections == 0 }
            await client.session.drained()
        }
    }
}
#endif
