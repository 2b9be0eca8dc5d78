// The source of two programs, through a symbolic link: a consumer with NonisolatedNonsendingByDefault and one without.
// It asserts, in every closure and conformance that a user can pass to Tern, that it runs off the loop, and prints
// "isolation: N callbacks checked" as its last line, which scripts/checks/isolation reads.
import Foundation
import Tern
import TernTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Returns the current thread: `pthread_self` may not be called where the thread can change.
func currentThread() -> UInt {
    #if canImport(Glibc)
    UInt(pthread_self())
    #else
    UInt(bitPattern: pthread_self())
    #endif
}

extension Session {
    /// A user can extend the actor: its methods run on the loop, which identifies the loop's thread here.
    func loop() -> UInt { currentThread() }

    /// Calls all verbs from the loop itself: code that Tern calls is off the loop even then.
    func checkFromInside(_ check: Check) async throws {
        precondition(currentThread() == check.loop)
        try await check.run(self, from: "the loop")
        precondition(currentThread() == check.loop)
    }
}

/// Records where user code ran.
final class Callbacks: @unchecked Sendable {
    // Accessed only with the lock held.
    private var callbacks: [String: Bool] = [:]
    private let lock = NSLock()

    func note(_ name: String, isOnLoop: Bool) {
        lock.withLock { callbacks[name] = isOnLoop || callbacks[name] == true }
    }

    var all: [String: Bool] { lock.withLock { callbacks } }
}

struct Check: Sendable {
    let loop: UInt
    let callbacks: Callbacks
    let server: LoopbackServer

    func note(_ name: String) { callbacks.note(name, isOnLoop: currentThread() == loop) }
}

/// A value that records where it is encoded and decoded.
struct RecordingValue: Codable, Sendable {
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

/// A value that knows the thread on which it was decoded.
struct ThreadValue: Decodable, Sendable {
    let thread: UInt

    init(from decoder: any Decoder) throws {
        _ = try decoder.singleValueContainer().decode(Int.self)
        thread = currentThread()
    }
}

/// A sequence of chunks with the older requirement, whose isolation depends on the feature.
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

/// A sequence of chunks with the newer requirement.
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
    /// Passes every kind of user code to Tern.
    func run(_ session: Session, from place: String) async throws {
        let client = Client(baseURL: server.url, session: session)
        let value: RecordingValue = try await RecordingValue.$check.withValue(self) {
            try await client.post("", body: .json(RecordingValue()))
        }
        guard value.number == 7 else { throw Failure(description: "\(place): the value came back as \(value.number)") }
        let custom = BodyDecoder<Int> { body, _ in
            note("custom decoder")
            return body.count
        }
        let request = try client.request(.post, "", body: .text("custom"))
        _ = try await session.response(for: request, decode: custom)
        _ = try await session.task(for: request, decode: custom, startsImmediately: true).value
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
        guard answer == "custom" else { throw Failure(description: "\(place): the stub answered \(answer)") }
    }

    /// Checks that the body of a plain typed call does not occupy the actor of its caller, small as it is.
    @MainActor func decodeOffTheMainActor() async throws {
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        let main = currentThread()
        let value: ThreadValue = try await client.get("")
        guard value.thread != main else { throw Failure(description: "a typed GET was decoded on the main actor") }
        callbacks.note("typed GET on the main actor", isOnLoop: value.thread == loop)
    }

    /// Checks that readers on the main actor stay there, with and without the feature.
    @MainActor func readOnMainActor(_ session: Session) async throws {
        let client = Client(baseURL: server.url, session: session)
        for try await _ in client.stream("", method: .post, body: .text("a\nb\n")).chunks { MainActor.assertIsolated() }
        for try await _ in client.stream("", method: .post, body: .text("a\nb\n")).bytes { MainActor.assertIsolated() }
        var lines = client.stream("", method: .post, body: .text("a\nb\n")).lines.makeAsyncIterator()
        while try await lines.next(isolation: MainActor.shared) != nil { MainActor.assertIsolated() }
        let task = client.task(.post, "", body: .text("a"))
        for await _ in task.states { MainActor.assertIsolated() }
        for await _ in task.progress { MainActor.assertIsolated() }
        callbacks.note("readers on the main actor", isOnLoop: currentThread() == loop)
    }
}

@main
enum Isolation {
    static func main() async throws {
        let server = try LoopbackServer { exchange in
            let body = try exchange.readBody()
            try exchange.respond(
                headers: [("Content-Type", "application/json")], body: body.isEmpty ? Array("7".utf8) : body)
        }
        defer { server.stop() }
        let check = Check(loop: await Session.shared.loop(), callbacks: Callbacks(), server: server)
        var configuration = Session.Configuration()
        configuration.proxies = .none
        configuration.destination = { _, _ in
            check.note("destination of the session")
            return nil
        }
        configuration.json = .foundation {
            check.note("makeJSONDecoder")
            return JSONDecoder()
        } encoder: {
            check.note("makeJSONEncoder")
            return JSONEncoder()
        }
        let session = Session(configuration: configuration)
        try await check.run(session, from: "main")
        try await Task { @MainActor in try await check.run(session, from: "the main actor") }.value
        try await session.checkFromInside(check)
        try await check.readOnMainActor(session)
        try await check.decodeOffTheMainActor()

        let callbacks = check.callbacks.all
        let onLoop = callbacks.filter(\.value).keys.sorted()
        guard onLoop.isEmpty else { throw Failure(description: "on the loop: \(onLoop)") }
        guard callbacks.count == 15 else {
            throw Failure(description: "\(callbacks.count) callbacks: \(callbacks.keys.sorted())")
        }
        print("isolation: \(callbacks.count) callbacks checked")
    }
}
