import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import Synchronization
import Tern
import TernServiceLifecycle
import TernTesting
import Testing

/// The server answers `/quick` at once, and everything else when `gate` is open.
@Suite(.timeLimit(.minutes(2)))
struct SessionServiceTests {
    let gate = LoopbackServer.Gate()
    let server: LoopbackServer
    let session = Session()
    let client: Client
    let clock = ManualClock()

    init() throws {
        let gate = gate
        server = try LoopbackServer { exchange in
            if exchange.request.path != "/quick" { try exchange.wait(for: gate) }
            try exchange.respond(text: exchange.request.path)
        }
        client = Client(baseURL: server.url, session: session)
    }

    private func service(logger: Logger? = nil) -> SessionService {
        SessionService(session: session, drainLimit: .seconds(5), logger: logger, clock: clock)
    }

    /// Starts a request that the server has received and does not answer yet.
    private func startRequest() async throws -> SessionTask<String> {
        let task = client.task(.get, "slow", as: String.self)
        try await server.wait { $0.requestsReceived == 1 }
        return task
    }

    /// Sends requests until the session refuses one, and returns the error.
    private func firstRefusal() async throws -> NetworkError {
        while true {
            do throws(NetworkError) { try await client.get("quick") } catch { return error }
        }
    }

    @Test func aRunningRequestFinishes() async throws {
        try await testGracefulShutdown { trigger in
            let task = try await startRequest()
            async let run: Void = service().run()
            trigger.triggerGracefulShutdown()
            try await clock.waitForSleepers(1)
            gate.open()
            #expect(try await task.value == "/slow")
            try await run
            // The service ended because the request did: the limit is not over.
            #expect(clock.now == ManualClock.Instant())
        }
    }

    @Test func aRequestBeyondTheLimitIsCancelled() async throws {
        let messages = Messages()
        try await testGracefulShutdown { trigger in
            let task = try await startRequest()
            async let run: Void = service(logger: messages.logger).run()
            trigger.triggerGracefulShutdown()
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(5))
            try await run
            let error = await #expect(throws: NetworkError.self) { try await task.value }
            #expect(error?.isCancelled == true)
        }
        #expect(
            messages.all == [
                "info the session ends running-tasks=1", "warning tasks are cancelled at the limit cancelled-tasks=1",
            ])
    }

    @Test func aRequestDuringTheShutdownIsRefused() async throws {
        try await testGracefulShutdown { trigger in
            let task = try await startRequest()
            async let run: Void = service().run()
            #expect(try await client.get("quick", as: String.self) == "/quick")
            trigger.triggerGracefulShutdown()
            let error = try await firstRefusal()
            #expect(error.kind == .sessionInvalidated)
            #expect(error.reason == "the session was invalidated")
            // The running request is not affected.
            gate.open()
            #expect(try await task.value == "/slow")
            try await run
        }
    }

    @Test func aStreamFinishesWithItsReader() async throws {
        try await testGracefulShutdown { trigger in
            gate.open()
            let stream = client.stream("body")
            _ = try await stream.response
            async let run: Void = service().run()
            trigger.triggerGracefulShutdown()
            try await clock.waitForSleepers(1)
            var text = ""
            for try await line in stream.lines { text += line }
            #expect(text == "/body")
            try await run
        }
    }

    @Test func aSessionWithoutTasksEndsAtOnce() async throws {
        try await testGracefulShutdown { trigger in
            trigger.triggerGracefulShutdown()
            try await service().run()
            #expect(try await firstRefusal().kind == .sessionInvalidated)
        }
    }

    @Test func cancellingBeforeTheShutdownCancelsRequests() async throws {
        let task = try await startRequest()
        let run = Task { try await service().run() }
        run.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        #expect(error?.isCancelled == true)
        await #expect(throws: CancellationError.self) { try await run.value }
        #expect(try await firstRefusal().kind == .sessionInvalidated)
    }

    @Test func cancellingDuringTheShutdownEndsItAtOnce() async throws {
        try await testGracefulShutdown { trigger in
            let task = try await startRequest()
            let run = Task { try await service().run() }
            trigger.triggerGracefulShutdown()
            try await clock.waitForSleepers(1)
            run.cancel()
            let error = await #expect(throws: NetworkError.self) { try await task.value }
            #expect(error?.isCancelled == true)
            await #expect(throws: CancellationError.self) { try await run.value }
            #expect(clock.now == ManualClock.Instant())
        }
    }

    @Test func aGroupEndsTheSessionAfterTheServicesThatUseIt() async throws {
        let (isRunning, hasAnswer) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let client = client
        let worker = Worker {
            isRunning.open()
            try await gracefulShutdown()
            // The session is before this service in the group, so it still takes requests.
            #expect(try await client.get("quick", as: String.self) == "/quick")
            hasAnswer.open()
        }
        let group = ServiceGroup(services: [service(), worker], logger: Logger(label: "test"))
        let run = Task { try await group.run() }
        try await isRunning.wait()
        await group.triggerGracefulShutdown()
        try await run.value
        #expect(hasAnswer.isOpen)
        #expect(try await firstRefusal().kind == .sessionInvalidated)
    }

    @Test func cancellingAGroupCancelsRequests() async throws {
        let task = try await startRequest()
        let isRunning = LoopbackServer.Gate()
        let worker = Worker {
            isRunning.open()
            try await gracefulShutdown()
        }
        let group = ServiceGroup(services: [service(), worker], logger: Logger(label: "test"))
        let run = Task { try await group.run() }
        try await isRunning.wait()
        run.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        #expect(error?.isCancelled == true)
        _ = await run.result
    }
}

/// A service that runs a closure.
private struct Worker: Service {
    let operation: @Sendable () async throws -> Void

    init(_ operation: @escaping @Sendable () async throws -> Void) { self.operation = operation }

    func run() async throws { try await operation() }
}

/// The messages of a logger.
private final class Messages: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    var logger: Logger { Logger(label: "test") { _ in Handler(messages: self) } }

    private struct Handler: LogHandler {
        let messages: Messages
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let fields = (event.metadata ?? [:]).map { " \($0)=\($1)" }.joined()
            messages.lines.withLock { $0.append("\(event.level) \(event.message)\(fields)") }
        }
    }
}
