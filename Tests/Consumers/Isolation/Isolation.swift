// One source for both programs, through a symbolic link: the consumer with NonisolatedNonsendingByDefault and the one
// without. It asserts, in every closure and conformance that a user can hand to Tern, that it runs off the loop, and
// prints "isolation: N seats checked" as its last line, which scripts/check-isolation asks for.
import Foundation
import Tern
import TernTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The thread of a place in the code: `pthread_self` may not be called where a thread may change.
func currentThread() -> UInt {
    #if canImport(Glibc)
    UInt(pthread_self())
    #else
    UInt(bitPattern: pthread_self())
    #endif
}

extension Session {
    /// A user may extend the actor: its methods run on the loop, which is how the loop's thread is known here.
    func loop() -> UInt { currentThread() }

    /// Calls all verbs from the loop itself: what Tern calls is off it even then.
    func checkFromInside(_ check: Check) async throws {
        precondition(currentThread() == check.loop)
        try await check.run(self, from: "the loop")
        precondition(currentThread() == check.loop)
    }
}

/// Where the pieces of user code ran.
final class Seats: @unchecked Sendable {
    // Touched with the lock held, always.
    private var seats: [String: Bool] = [:]
    private let lock = NSLock()

    func note(_ name: String, isOnLoop: Bool) {
        lock.withLock { seats[name] = isOnLoop || seats[name] == true }
    }

    var all: [String: Bool] { lock.withLock { seats } }
}

struct Check: Sendable {
    let loop: UInt
    let seats: Seats
    let server: LoopbackServer

    func note(_ name: String) { seats.note(name, isOnLoop: currentThread() == loop) }
}

/// A value that tells where it is encoded and decoded.
struct Told: Codable, Sendable {
    @TaskLocal static var check: Check?
    var number = 7

    init() {}

    init(from decoder: any Decoder) throws {
        number = try decoder.singleValueContainer().decode(Int.self)
        Self.check?.note("init(from:)")
    }

    func encode(to encoder: any Encoder) throws {
        Self.check?.note("encode(to:)")
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }
}

/// Chunks by the older requirement, whose isolation depends on the feature.
struct OldChunks: AsyncSequence, Sendable {
    let check: Check

    struct AsyncIterator: AsyncIteratorProtocol {
        let check: Check
        var left = 3

        mutating func next() async throws -> Data? {
            check.note("next()")
            await Task.yield()
            check.note("next() after a suspension")
            left -= 1
            return left >= 0 ? Data("old".utf8) : nil
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        check.note("makeAsyncIterator()")
        return AsyncIterator(check: check)
    }
}

/// Chunks by the newer one.
struct NewChunks: AsyncSequence, Sendable {
    typealias Element = Data
    let check: Check

    struct AsyncIterator: AsyncIteratorProtocol {
        let check: Check
        var left = 3

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> Data? {
            check.note("next(isolation:)")
            left -= 1
            return left >= 0 ? Data("new".utf8) : nil
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(check: check) }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
}

extension Check {
    /// Hands every kind of user code to Tern.
    func run(_ session: Session, from place: String) async throws {
        let client = Client(baseURL: server.url, session: session)
        let told: Told = try await Told.$check.withValue(self) { try await client.post("", body: .json(Told())) }
        guard told.number == 7 else { throw Failure(description: "\(place): the value came back as \(told.number)") }
        let byHand = BodyDecoder<Int> { body, _ in
            note("decoder by hand")
            return body.count
        }
        let request = try client.request(.post, "", body: .text("by hand"))
        _ = try await session.response(for: request, decode: byHand)
        _ = try await session.task(for: request, decode: byHand, startsImmediately: true).value
        let old = try await client.post("", body: .stream(OldChunks(check: self)), as: String.self)
        let new = try await client.post("", body: .stream(NewChunks(check: self)), as: String.self)
        guard old == "oldoldold", new == "newnewnew" else { throw Failure(description: "\(place): \(old), \(new)") }
        let file = try await session.download(request) { temporary, _ in
            note("destination of the task")
            return temporary.appendingPathExtension("done")
        }.value
        try FileManager.default.removeItem(at: file)
        let stub = StubTransport { call in
            note("closure of a stub")
            await Task.yield()
            note("closure of a stub after a suspension")
            return .text(call.text)
        }
        let answer = try await Session(stub: stub).response(for: request, decode: .string).value
        guard answer == "by hand" else { throw Failure(description: "\(place): the stub answered \(answer)") }
    }

    /// Readers on the main actor stay there, whatever the feature says.
    @MainActor func readOnMainActor(_ session: Session) async throws {
        let client = Client(baseURL: server.url, session: session)
        for try await _ in client.stream("", method: .post, body: .text("a\nb\n")).chunks { MainActor.assertIsolated() }
        for try await _ in client.stream("", method: .post, body: .text("a\nb\n")).bytes { MainActor.assertIsolated() }
        var lines = client.stream("", method: .post, body: .text("a\nb\n")).lines.makeAsyncIterator()
        while try await lines.next(isolation: MainActor.shared) != nil { MainActor.assertIsolated() }
        let task = client.task(.post, "", body: .text("a"))
        for await _ in task.states { MainActor.assertIsolated() }
        for await _ in task.progress { MainActor.assertIsolated() }
        seats.note("readers on the main actor", isOnLoop: currentThread() == loop)
    }
}

@main
enum Isolation {
    static func main() async throws {
        let server = try LoopbackServer { exchange in
            try exchange.respond(headers: [("Content-Type", "application/json")], body: try exchange.readBody())
        }
        defer { server.stop() }
        let check = Check(loop: await Session.shared.loop(), seats: Seats(), server: server)
        var configuration = Session.Configuration()
        configuration.proxies = .none
        configuration.destination = { _, _ in
            check.note("destination of the session")
            return nil
        }
        configuration.makeJSONEncoder = {
            check.note("makeJSONEncoder")
            return JSONEncoder()
        }
        configuration.makeJSONDecoder = {
            check.note("makeJSONDecoder")
            return JSONDecoder()
        }
        let session = Session(configuration: configuration)
        try await check.run(session, from: "main")
        try await Task { @MainActor in try await check.run(session, from: "the main actor") }.value
        try await session.checkFromInside(check)
        try await check.readOnMainActor(session)

        let seats = check.seats.all
        let onLoop = seats.filter(\.value).keys.sorted()
        guard onLoop.isEmpty else { throw Failure(description: "on the loop: \(onLoop)") }
        guard seats.count == 14 else { throw Failure(description: "\(seats.count) seats: \(seats.keys.sorted())") }
        print("isolation: \(seats.count) seats checked")
    }
}
