import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct StubTransportTests {
    struct User: Codable, Sendable, Equatable {
        var id: Int
        var name: String
    }

    private static func client(
        _ stub: StubTransport, _ configuration: Session.Configuration = Session.Configuration()
    ) throws -> Client {
        try Client(baseURL: "https://api.example.com", session: Session(configuration: configuration, stub: stub))
    }

    private static func failure<Value>(of operation: () async throws(NetworkError) -> Value) async -> NetworkError? {
        do {
            _ = try await operation()
            return nil
        } catch {
            return error
        }
    }

    @Test("Example of the documentation")
    func exampleOfTheDocumentationRuns() async throws {
        let stub = StubTransport([
            "GET /users/1": .text(#"{"id":1,"name":"Ada"}"#, contentType: "application/json"),
            "DELETE /users/1": .status(204),
        ])
        let client = try Client(baseURL: "https://api.example.com", session: Session(stub: stub))
        let user: User = try await client.get("users/1")
        #expect(stub.calls.map(\.path) == ["/users/1"])

        #expect(user == User(id: 1, name: "Ada"))
        try await client.delete("users/1")
        #expect(stub.calls.map(\.method) == [.get, .delete])
        #expect(stub.calls.map(\.index) == [0, 1])
    }

    @Test func aRouteWithAQueryComesBeforeTheOneWithout() async throws {
        let stub = StubTransport(["GET /users?page=2": .text("two"), "GET /users": .text("any")])
        let client = try Self.client(stub)
        #expect(try await client.get("users", query: ["page": 2], as: String.self) == "two")
        #expect(try await client.get("users", query: ["page": 3], as: String.self) == "any")
        #expect(stub.calls.map(\.query) == ["page=2", "page=3"])
    }

    @Test func unmatchedCallFailsWithItsName() async throws {
        let client = try Self.client(StubTransport(["GET /a": .status(200)]))
        let error = try #require(await Self.failure { () throws(NetworkError) in try await client.get("b") })
        #expect(error.kind == .unsupported)
        #expect(error.reason == "the stub has no answer for GET /b")
    }

    @Test func theClosureSeesMethodURLHeadersAndBody() async throws {
        let stub = StubTransport { call in
            try .json(User(id: 7, name: "\(call.method) \(call.urlString) \(call.headers["X-Key"] ?? "") \(call.text)"))
        }
        let client = try Self.client(stub)
        let made: User = try await client.post("users?a=b", headers: ["X-Key": "k"], body: .json(["name": "Ada"]))
        #expect(made.name == #"POST https://api.example.com/users?a=b k {"name":"Ada"}"#)
        let call = try #require(stub.calls.first)
        #expect(call.headers["Content-Type"] == "application/json")
        #expect(call.headers["Content-Length"] == "14")
        #expect(call.url == URL(string: "https://api.example.com/users?a=b"))
    }

    @Test(arguments: [nil, 3 << 20] as [Int64?])
    func aStreamedBodyIsReadWhole(length: Int64?) async throws {
        let stub = StubTransport { _ in .status(201) }
        let client = try Self.client(stub)
        let chunks = AsyncStream<Data> { continuation in
            for number in 0..<3 { continuation.yield(Data(repeating: UInt8(number), count: 1 << 20)) }
            continuation.finish()
        }
        let task = client.upload("files", body: .stream(chunks, length: length))
        var last: Session.Progress?
        for await progress in task.uploadProgress { last = progress }
        _ = try await task.value
        let body = try #require(stub.calls.first?.body)
        #expect(body.count == 3 << 20)
        #expect(body[body.startIndex + (2 << 20)] == 2)
        #expect(last?.completedBytes == 3 << 20)
        #expect(last?.totalBytes == length)
        #expect(stub.calls.first?.headers["Content-Length"] == length.map { String($0) })
    }

    @Test func aRefusedStatusIsAnErrorWithTheBody() async throws {
        let client = try Self.client(StubTransport(["GET /a": .text("no such thing", status: 404)]))
        let error = try #require(await Self.failure { () throws(NetworkError) in try await client.get("a") })
        #expect(error.kind == .status)
        #expect(error.status == 404)
        #expect(String(decoding: error.body, as: UTF8.self) == "no such thing")
    }

    @Test(arguments: [NetworkError.Kind.dns, .connectionRefused, .idleTimedOut, .untrustedServer])
    func aThrownFailureIsTheTasksError(kind: NetworkError.Kind) async throws {
        let stub = StubTransport { _ in throw StubTransport.Failure(kind, "as the test wants") }
        let client = try Self.client(stub)
        let error = try #require(await Self.failure { () throws(NetworkError) in try await client.get("a") })
        #expect(error.kind == kind)
        #expect(error.reason == "as the test wants")
        #expect(stub.calls.count == 1)
    }

    @Test func otherErrorIsTheUnderlyingError() async throws {
        struct Broken: Error {}
        let client = try Self.client(StubTransport { _ in throw Broken() })
        let error = try #require(await Self.failure { () throws(NetworkError) in try await client.get("a") })
        #expect(error.kind == .connectionFailed)
        #expect(error.underlying is Broken)
    }

    @Test(arguments: [(Request.Method.get, 2), (.put, 2), (.post, 1)])
    func safeRequestOnADeadPooledConnectionIsRetriedOnce(method: Request.Method, expected: Int) async throws {
        let stub = StubTransport { call in
            if call.index == 0 { throw StubTransport.Failure.deadPooledConnection }
            return .text("second")
        }
        let client = try Self.client(stub)
        let body: Request.Body = method == .get ? .none : .text("x")
        let error = await Self.failure { () throws(NetworkError) in
            try await client.send(method, "a", body: body, as: String.self)
        }
        #expect(error?.kind == (expected == 1 ? .connectionLost : nil))
        #expect(stub.calls.count == expected)
    }

    @Test func chunksComeOneByOne() async throws {
        let clock = ManualClock()
        let pieces = ["one", "two", "three"]
        let stub = StubTransport(
            ["GET /log": .chunks(pieces.map { Data($0.utf8) }, interval: .seconds(1))], clock: clock)
        var seen: [String] = []
        for try await chunk in try Self.client(stub).stream("log").chunks {
            seen.append(String(decoding: chunk, as: UTF8.self))
            if seen.count < pieces.count {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(1))
            }
        }
        #expect(seen == pieces)
        #expect(clock.now.offset == .seconds(2))
    }

    @Test func failureBetweenChunksKeepsEarlierChunks() async throws {
        let answer = StubTransport.Answer.text("half").failing(StubTransport.Failure(.connectionLost, "torn"))
        let client = try Self.client(StubTransport(["GET /a": answer]))
        let error = try #require(await Self.failure { () throws(NetworkError) in try await client.get("a") })
        #expect(error.kind == .connectionLost)
        #expect(error.status == 200)
        #expect(error.body == Data("half".utf8))
    }

    @Test func aBodyShorterThanItsLengthIsTruncated() async throws {
        let answer = StubTransport.Answer.text("half", headers: ["Content-Length": "8"])
        let client = try Self.client(StubTransport(["GET /a": answer]))
        let error = try #require(await Self.failure { () throws(NetworkError) in try await client.get("a") })
        #expect(error.kind == .truncatedBody)
    }

    @Test func aBodyBeyondTheLimitIsTooLarge() async throws {
        var configuration = Session.Configuration()
        configuration.maximumBodySize = 1_000
        let client = try Self.client(StubTransport(["GET /a": .data(Data(count: 1_001))]), configuration)
        let error = try #require(await Self.failure { () throws(NetworkError) in try await client.get("a") })
        #expect(error.kind == .tooLarge)
    }

    @Test func aHeadRequestGetsNoBody() async throws {
        let client = try Self.client(StubTransport(["HEAD /a": .text("hidden")]))
        let head = try await client.head("a")
        #expect(head.contentLength == 6)
    }

    @Test func aDelayPassesOnTheClock() async throws {
        let clock = ManualClock()
        let stub = StubTransport(["GET /a": .text("late").delayed(by: .seconds(30))], clock: clock)
        let task = try Self.client(stub).task(.get, "a", as: String.self)
        try await clock.waitForSleepers(1)
        #expect(task.state == .running)
        #expect(clock.nextDeadline?.offset == .seconds(30))
        clock.advance(by: .seconds(30))
        #expect(try await task.value == "late")
    }

    @Test func cancellingDuringADelayEndsAtOnce() async throws {
        let clock = ManualClock()
        let stub = StubTransport(["GET /a": .text("late").delayed(by: .seconds(30))], clock: clock)
        let task = try Self.client(stub).task(.get, "a", as: String.self)
        try await clock.waitForSleepers(1)
        task.cancel()
        let error = await Self.failure { () throws(NetworkError) in try await task.value }
        #expect(error?.isCancelled == true)
        #expect(task.state == .cancelled)
    }

    @Test func cancellingEndsAlsoWhenTheClosureIgnoresIt() async throws {
        let gate = LoopbackServer.Gate()
        let stub = StubTransport { _ in
            // A Swift task of its own, which the cancellation does not reach.
            await Task { try? await gate.wait() }.value
            return .status(200)
        }
        let task = try Self.client(stub).task(.get, "a")
        try await stub.waitForCalls(1)
        task.cancel()
        let error = await Self.failure { () throws(NetworkError) in try await task.value }
        #expect(error?.isCancelled == true)
        gate.open()
    }

    @Test func cancellingTheCallerCancelsTheRequest() async throws {
        let clock = ManualClock()
        let stub = StubTransport(["GET /a": .text("late").delayed(by: .seconds(30))], clock: clock)
        let client = try Self.client(stub)
        let caller = Task { await Self.failure { () throws(NetworkError) in try await client.get("a") } }
        try await clock.waitForSleepers(1)
        caller.cancel()
        #expect(await caller.value?.isCancelled == true)
    }

    @Test func pausedTaskReceivesNoBytesUntilItIsResumed() async throws {
        let clock = ManualClock()
        let stub = StubTransport(
            ["GET /a": .chunks([Data("one".utf8), Data("two".utf8)], interval: .seconds(1))], clock: clock)
        let task = try Self.client(stub).task(.get, "a", as: String.self)
        try await clock.waitForSleepers(1)
        var progress = task.progress.makeAsyncIterator()
        #expect(await progress.next()?.completedBytes == 3)
        task.pause()
        clock.advance(by: .seconds(1))
        #expect(task.state == .suspended)
        task.resume()
        #expect(try await task.value == "onetwo")
        #expect(await progress.next()?.completedBytes == 6)
    }

    @Test func aTaskThatIsPausedBeforeItsStartIsNotSent() async throws {
        let stub = StubTransport { call in .text(call.path) }
        let client = try Self.client(stub)
        let suspended = client.task(.get, "suspended", startsImmediately: false, as: String.self)
        _ = try await client.get("other", as: String.self)
        #expect(stub.calls.map(\.path) == ["/other"])
        suspended.resume()
        #expect(try await suspended.value == "/suspended")
    }

    @Test func slowReaderDelaysTheScript() async throws {
        let stub = StubTransport(["GET /a": .data(Data(count: 8 << 20))])
        let stream = try Self.client(stub).stream("a")
        _ = try await stream.response
        var progress = stream.task.progress.makeAsyncIterator()
        var held: Int64 = 0
        while held < 1 << 20 { held = await progress.next()?.completedBytes ?? .max }
        #expect(held <= 2 << 20)
        var count = 0
        for try await chunk in stream.chunks {
            #expect(chunk.count <= 256 << 10)
            count += chunk.count
        }
        #expect(count == 8 << 20)
    }

    @Test func stubbedDownloadWritesItsFile() async throws {
        let bytes = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
        let stub = StubTransport(["GET /a": .data(bytes)])
        let file = URL(filePath: "/tmp/tern-stub-\(UInt64.random(in: 0 ... .max))")
        defer { try? FileManager.default.removeItem(at: file) }
        let task = try Self.client(stub).download("a", to: file)
        #expect(try await task.value == file)
        #expect(try Data(contentsOf: file) == bytes)
    }

    @Test func closuresRunOffEveryActor() async throws {
        let session = Session(
            stub: StubTransport { _ in
                let isolation = #isolation
                #expect(isolation == nil)
                return .status(204)
            })
        let client = try Client(baseURL: "https://api.example.com", session: session)
        try await Task { @MainActor in _ = try await client.get("a") }.value
    }

    @Test func tenThousandCallsReceiveTheirOwnResponses() async throws {
        let stub = StubTransport { call in .text(call.path) }
        let client = try Self.client(stub)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<10_000 {
                group.addTask {
                    let path: String = try await client.get("\(number)")
                    #expect(path == "/\(number)")
                }
            }
            try await group.waitForAll()
        }
        #expect(Set(stub.calls.map(\.index)).count == 10_000)
    }
}
