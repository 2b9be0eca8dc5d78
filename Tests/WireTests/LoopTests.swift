#if os(Linux) && !TERN_URLSESSION
import TernConcurrency
import Foundation
import Synchronization
import TernTesting
import Testing

@testable import Tern

/// User code never runs on the thread that serves the sockets, from wherever it is called.
@Suite("Loop: user code is off it", .timeLimit(.minutes(1)))
struct LoopSeatTests {
    /// Where the pieces of user code ran: true on the loop.
    fileprivate final class Seats: Sendable {
        private let seats = Lock<[String: Bool]>([:])

        func note(_ name: String) {
            let isOnLoop = EventLoop.shared.isCurrent
            seats.withLock { $0[name] = isOnLoop || $0[name] == true }
        }

        func expect(_ names: Set<String>, sourceLocation: SourceLocation = #_sourceLocation) {
            let seats = seats.withLock { $0 }
            #expect(Set(seats.keys) == names, sourceLocation: sourceLocation)
            #expect(seats.filter(\.value).isEmpty, "these ran on the loop", sourceLocation: sourceLocation)
        }
    }

    /// A value that tells where it was encoded and decoded.
    fileprivate struct Told: Codable, Sendable {
        private static let shared = Lock<[Int: Seats]>([:])
        let number: Int

        static func register(_ seats: Seats, _ number: Int) { shared.withLock { $0[number] = seats } }

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

    /// Chunks, by the older of the two requirements.
    fileprivate struct OldChunks: AsyncSequence, Sendable {
        let seats: Seats

        struct AsyncIterator: AsyncIteratorProtocol {
            let seats: Seats
            var left = 3

            mutating func next() async throws -> Data? {
                seats.note("next()")
                await Task.yield()
                seats.note("next() after a suspension")
                left -= 1
                return left >= 0 ? Data("old".utf8) : nil
            }
        }

        func makeAsyncIterator() -> AsyncIterator {
            seats.note("makeAsyncIterator()")
            return AsyncIterator(seats: seats)
        }
    }

    /// Chunks, by the newer one.
    fileprivate struct NewChunks: AsyncSequence, Sendable {
        typealias Element = Data
        typealias Failure = any Error
        let seats: Seats

        struct AsyncIterator: AsyncIteratorProtocol {
            let seats: Seats
            var left = 3

            mutating func next(isolation actor: isolated (any Actor)?) async throws -> Data? {
                seats.note("next(isolation:)")
                left -= 1
                return left >= 0 ? Data("new".utf8) : nil
            }
        }

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(seats: seats) }
    }

    private static let all: Set = [
        "makeJSONEncoder", "makeJSONDecoder", "init(from:)", "encode(to:)", "decoder by hand", "makeAsyncIterator()",
        "next()", "next() after a suspension", "next(isolation:)", "destination of the session",
        "destination of the task",
    ]

    private func run(_ number: Int, _ use: (Session, LoopbackServer, Seats) async throws -> Void) async throws {
        let seats = Seats()
        Told.register(seats, number)
        let server = try LoopbackServer { exchange in
            let body = try exchange.readBody()
            try exchange.respond(
                headers: [("Content-Type", "application/json")], body: body.isEmpty ? [UInt8]("\(number)".utf8) : body)
        }
        defer { server.stop() }
        var configuration = Session.Configuration.test()
        configuration.makeJSONEncoder = {
            seats.note("makeJSONEncoder")
            return JSONEncoder()
        }
        configuration.makeJSONDecoder = {
            seats.note("makeJSONDecoder")
            return JSONDecoder()
        }
        configuration.destination = { _, _ in
            seats.note("destination of the session")
            return nil
        }
        try await use(Session(configuration: configuration), server, seats)
        seats.expect(Self.all)
    }

    @Test func fromNowhereInParticular() async throws {
        try await run(1) { session, server, seats in try await session.useAll(1, server, seats) }
    }

    @Test @MainActor func fromTheMainActor() async throws {
        try await run(2) { session, server, seats in
            MainActor.assertIsolated()
            try await session.useAll(2, server, seats)
            MainActor.assertIsolated()
        }
    }

    /// A user may extend the actors that live on the loop: what Tern calls is off it even then.
    @Test func fromTheLoopItself() async throws {
        try await run(3) { session, server, seats in
            let wasOnLoop = try await session.useAllFromInside(3, server, seats)
            #expect(wasOnLoop)
        }
    }

    /// OpenSSL is torn down by the process's end: a loop that was still in it crashed.
    @Test(arguments: 0..<15) func aProcessMayEndAtAnyMoment(yields: Int) async {
        await #expect(processExitsWith: .success) { [yields] in
            let client = Client(baseURL: URL(filePath: "/"), session: Session(configuration: .test()))
            for number in 0..<20 { _ = client.task(.get, "https://127.0.0.1:\(number + 1)/") }
            for _ in 0..<(yields * yields) { await Task.yield() }
            exit(0)
        }
    }

    @Test func readersOfStreamsGoOnWhereTheyAre() async throws {
        try await withServer { exchange in
            try exchange.writeChunked(chunks: (0..<20).map { Array("line \($0)\n".utf8) })
        } test: { _, client in
            try await readOnMainActor(client)
        }
    }

    @MainActor private func readOnMainActor(_ client: Client) async throws {
        var lines = client.stream("").lines.makeAsyncIterator()
        var count = 0
        while try await lines.next(isolation: MainActor.shared) != nil {
            MainActor.assertIsolated()
            #expect(!EventLoop.shared.isCurrent)
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
        _ number: Int, _ server: LoopbackServer, _ seats: LoopSeatTests.Seats
    ) async throws {
        let client = Client(baseURL: server.url, session: self)
        let told = try await client.post("", body: .json(LoopSeatTests.Told(number)), as: LoopSeatTests.Told.self)
        #expect(told.number == number)
        let byHand = BodyDecoder<Int> { body, _ in
            seats.note("decoder by hand")
            return body.count
        }
        let request = try Request(url: server.url)
        _ = try await response(for: request, decode: byHand)
        _ = try await task(for: request, decode: byHand, startsImmediately: true).value
        #expect(try await client.post("", body: .stream(LoopSeatTests.OldChunks(seats: seats))).count == 9)
        #expect(try await client.post("", body: .stream(LoopSeatTests.NewChunks(seats: seats))).count == 9)
        let file = try await download(request) { temporary, _ in
            seats.note("destination of the task")
            return temporary.appendingPathExtension("done")
        }.value
        try FileManager.default.removeItem(at: file)
    }

    fileprivate func useAllFromInside(
        _ number: Int, _ server: LoopbackServer, _ seats: LoopSeatTests.Seats
    ) async throws -> Bool {
        let wasOnLoop = EventLoop.shared.isCurrent
        try await useAll(number, server, seats)
        return wasOnLoop && EventLoop.shared.isCurrent
    }
}
#endif
