#if os(Linux) && !TERN_URLSESSION
import TernConcurrency
import TernEngine
import Foundation
import Synchronization
import TernTesting
import Testing

@testable import Tern

/// Returns whether this is the thread of an event loop.
private func isOnLoop() -> Bool {
    EventLoops.all.contains { $0.isCurrent }
}

/// Checks that user code never runs on the thread that serves the sockets, from every caller.
@Suite("Loop: user code runs off the loop", .timeLimit(.minutes(1)))
struct LoopTests {
    /// Records where user code ran: true on the loop.
    fileprivate final class Callbacks: Sendable {
        private let callbacks = Lock<[String: Bool]>([:])

        func note(_ name: String) {
            let onLoop = isOnLoop()
            callbacks.withLock { $0[name] = onLoop || $0[name] == true }
        }

        func expect(_ names: Set<String>, sourceLocation: SourceLocation = #_sourceLocation) {
            let callbacks = callbacks.withLock { $0 }
            #expect(Set(callbacks.keys) == names, sourceLocation: sourceLocation)
            #expect(callbacks.filter(\.value).isEmpty, "these ran on the loop", sourceLocation: sourceLocation)
        }
    }

    /// A value that records where it was encoded and decoded.
    fileprivate struct RecordingValue: Codable, Sendable {
        private static let shared = Lock<[Int: Callbacks]>([:])
        let number: Int

        static func register(_ callbacks: Callbacks, _ number: Int) { shared.withLock { $0[number] = callbacks } }

        init(_ number: Int) { self.number = number }

        init(from decoder: any Decoder) throws {
            number = try decoder.singleValueContainer().decode(Int.self)
            Self.shared.withLock { $0[number] }?.note("init(from:)")
        }

        func encode(to encoder: any Encoder) throws {
            Self.shared.withLock { $0[number] }?.note("encode(to:)")
            var container = encoder.singleValueContainer()
            try container.encode(number)
        }
    }

    /// A sequence of chunks with the older requirement, `next()`.
    fileprivate struct OldChunks: AsyncSequence, Sendable {
        let callbacks: Callbacks

        struct AsyncIterator: AsyncIteratorProtocol {
            let callbacks: Callbacks
            var left = 3

            mutating func next() async throws -> Data? {
                callbacks.note("next()")
                await Task.yield()
                callbacks.note("next() after a suspension")
                left -= 1
                return left >= 0 ? Data("old".utf8) : nil
            }
        }

        func makeAsyncIterator() -> AsyncIterator {
            callbacks.note("makeAsyncIterator()")
            return AsyncIterator(callbacks: callbacks)
        }
    }

    /// A sequence of chunks with the newer requirement, `next(isolation:)`.
    fileprivate struct NewChunks: AsyncSequence, Sendable {
        typealias Element = Data
        typealias Failure = any Error
        let callbacks: Callbacks

        struct AsyncIterator: AsyncIteratorProtocol {
            let callbacks: Callbacks
            var left = 3

            mutating func next(isolation actor: isolated (any Actor)?) async throws -> Data? {
                callbacks.note("next(isolation:)")
                left -= 1
                return left >= 0 ? Data("new".utf8) : nil
            }
        }

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(callbacks: callbacks) }
    }

    private static let all: Set = [
        "makeJSONEncoder", "makeJSONDecoder", "init(from:)", "encode(to:)", "custom decoder", "makeAsyncIterator()",
        "next()", "next() after a suspension", "next(isolation:)", "destination of the session",
        "destination of the task",
    ]

    private func run(_ number: Int, _ use: (Session, LoopbackServer, Callbacks) async throws -> Void) async throws {
        let callbacks = Callbacks()
        RecordingValue.register(callbacks, number)
        let server = try LoopbackServer { exchange in
            let body = try exchange.readBody()
            try exchange.respond(
                headers: [("Content-Type", "application/json")], body: body.isEmpty ? [UInt8]("\(number)".utf8) : body)
        }
        defer { server.stop() }
        var configuration = Session.Configuration.test()
        configuration.json = .foundation {
            callbacks.note("makeJSONDecoder")
            return JSONDecoder()
        } encoder: {
            callbacks.note("makeJSONEncoder")
            return JSONEncoder()
        }
        configuration.destination = { _, _ in
            callbacks.note("destination of the session")
            return nil
        }
        try await use(Session(configuration: configuration), server, callbacks)
        callbacks.expect(Self.all)
    }

    /// Some places of code of the caller that a stream runs before its head has arrived.
    fileprivate enum StreamHook: CaseIterable {
        case statusOfSession, checkOfSession, checkOfRequest, interceptorOfSession, interceptorOfRequest
    }

    private struct NotingInterceptor: Interceptor {
        let callbacks: Callbacks

        @concurrent func intercept(_ request: Request, next: Next) async throws -> Reply {
            callbacks.note("before")
            defer { callbacks.note("after") }
            return try await next(request)
        }
    }

    @Test(arguments: StreamHook.allCases)
    fileprivate func streamsRunUserCodeOffTheLoop(hook: StreamHook) async throws {
        let callbacks = Callbacks()
        let server = try LoopbackServer { try $0.respond(body: [1]) }
        defer { server.stop() }
        var configuration = Session.Configuration.test()
        var request = try Request(url: server.url)
        let validation = ResponseValidation(check: { _ in callbacks.note("check") })
        switch hook {
        case .statusOfSession:
            configuration.validation.statuses = { status in
                callbacks.note("check")
                return status == 200
            }
        case .checkOfSession: configuration.validation = validation
        case .checkOfRequest: request.validation = validation
        case .interceptorOfSession: configuration.interceptors = [NotingInterceptor(callbacks: callbacks)]
        case .interceptorOfRequest: request.interceptors = [NotingInterceptor(callbacks: callbacks)]
        }
        let session = Session(configuration: configuration)
        // From the loop, too.
        for executor in [session.executor, globalConcurrentExecutor] {
            let count = try await withTaskExecutorPreference(executor) {
                var count = 0
                for try await chunk in session.stream(request) { count += chunk.count }
                return count
            }
            #expect(count == 1)
        }
        let isInterceptor = hook == .interceptorOfSession || hook == .interceptorOfRequest
        callbacks.expect(isInterceptor ? ["before", "after"] : ["check"])
    }

    @Test func callsFromNoActorRunOffTheLoop() async throws {
        try await run(1) { session, server, callbacks in try await session.useAll(1, server, callbacks) }
    }

    @Test @MainActor func callsFromTheMainActorRunOffTheLoop() async throws {
        try await run(2) { session, server, callbacks in
            MainActor.assertIsolated()
            try await session.useAll(2, server, callbacks)
            MainActor.assertIsolated()
        }
    }

    /// A user can extend the actors that run on the loop: code that Tern calls is off the loop even then.
    @Test func callsFromTheLoopRunOffTheLoop() async throws {
        try await run(3) { session, server, callbacks in
            let wasOnLoop = try await session.useAllFromInside(3, server, callbacks)
            #expect(wasOnLoop)
        }
    }

    /// The end of the process tears OpenSSL down: a loop that still used it crashed.
    @Test(arguments: 0..<15) func processCanEndAtAnyMoment(yields: Int) async {
        await #expect(processExitsWith: .success) { [yields] in
            let client = Client(baseURL: URL(filePath: "/"), session: Session(configuration: .test()))
            for number in 0..<20 { _ = client.task(.get, "https://127.0.0.1:\(number + 1)/") }
            for _ in 0..<(yields * yields) { await Task.yield() }
            exit(0)
        }
    }

    @Test func streamReadersStayOnTheirActor() async throws {
        try await withServer { exchange in
            try exchange.writeChunked(chunks: (0..<20).map { Array("line \($0)\n".utf8) })
        } test: { _, client in
            try await readOnMainActor(client)
        }
    }

    /// An actor that makes calls, on a queue that tells whether code runs on it.
    private actor Caller {
        private static let executor = QueueExecutor("tern.test.caller")
        static var isCurrent: Bool { executor.isIsolatingCurrentContext() == true }

        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe Self.executor.asUnownedSerialExecutor() }

        func call(_ client: Client) async throws {
            #expect(Self.isCurrent)
            #expect(try await !client.get("", as: DecodedPlace.self).isOnCaller)
            let closure = BodyDecoder<Bool> { _, _ in Self.isCurrent }
            #expect(try await !client.session.response(for: client.request(.get, ""), decode: closure).value)
            #expect(try await client.get("") == Data("1".utf8))
            #expect(Self.isCurrent)
        }
    }

    /// A value that knows whether it was decoded on the caller's actor.
    private struct DecodedPlace: Decodable, Sendable {
        let isOnCaller: Bool

        init(from decoder: any Decoder) throws { isOnCaller = Caller.isCurrent }
    }

    @Test func callsOfAnActorDecodeOffIt() async throws {
        try await withServer { exchange in
            try exchange.respond(json: 1)
        } test: { _, client in
            try await Caller().call(client)
        }
    }

    @MainActor private func readOnMainActor(_ client: Client) async throws {
        var lines = client.stream("").lines.makeAsyncIterator()
        var count = 0
        while try await lines.next(isolation: MainActor.shared) != nil {
            MainActor.assertIsolated()
            #expect(!isOnLoop())
            count += 1
        }
        #expect(count == 20)
        for try await _ in client.stream("").chunks { MainActor.assertIsolated() }
        for try await _ in client.stream("").bytes { MainActor.assertIsolated() }
        let task = client.task(.get, "")
        for await _ in task.states { MainActor.assertIsolated() }
        for await _ in task.progress { MainActor.assertIsolated() }
        MainActor.assertIsolated()
    }
}

extension Session {
    fileprivate nonisolated func useAll(
        _ number: Int, _ server: LoopbackServer, _ callbacks: LoopTests.Callbacks
    ) async throws {
        let client = Client(baseURL: server.url, session: self)
        let value = try await client.post(
            "", body: .json(LoopTests.RecordingValue(number)), as: LoopTests.RecordingValue.self)
        #expect(value.number == number)
        let byHand = BodyDecoder<Int> { body, _ in
            callbacks.note("custom decoder")
            return body.count
        }
        let request = try Request(url: server.url)
        _ = try await response(for: request, decode: byHand)
        _ = try await task(for: request, decode: byHand, startsImmediately: true).value
        #expect(try await client.post("", body: .stream(LoopTests.OldChunks(callbacks: callbacks))).count == 9)
        #expect(try await client.post("", body: .stream(LoopTests.NewChunks(callbacks: callbacks))).count == 9)
        let file = try await download(request) { temporary, _ in
            callbacks.note("destination of the task")
            return temporary.appendingPathExtension("done")
        }.value
        try FileManager.default.removeItem(at: file)
    }

    fileprivate func useAllFromInside(
        _ number: Int, _ server: LoopbackServer, _ callbacks: LoopTests.Callbacks
    ) async throws -> Bool {
        let wasOnLoop = isOnLoop()
        try await useAll(number, server, callbacks)
        return wasOnLoop && isOnLoop()
    }
}
#endif
