import Tern
import TernConcurrency
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Shared support of the tests of tasks: gates for several values, probes for leaks, and fences.

/// Opens its gate when it is released: a closure that captures it opens the gate when the closure is released.
final class Probe: Sendable {
    let isGone: LoopbackServer.Gate

    init(_ isGone: LoopbackServer.Gate) { self.isGone = isGone }

    deinit { isGone.open() }

    /// Called in a closure that must hold the probe.
    func touch() {}
}

/// A number that the handler of a server increases and a test reads.
final class Counter: Sendable {
    private let count = Lock(0)

    var value: Int { count.withLock { $0 } }

    func add(_ number: Int = 1) { count.withLock { $0 += number } }

    /// Adds one, and returns the sum.
    func increase() -> Int {
        count.withLock {
            $0 += 1
            return $0
        }
    }
}

/// Runs a server of the demo routes, and a client whose session is its own.
func withDemo(
    configuration: Session.Configuration = .test(), test: (LoopbackServer, Client) async throws -> Void
) async throws {
    try await withServer(configuration: configuration) { exchange in
        try LoopbackServer.answerDemo(exchange)
    } test: { server, client in
        try await test(server, client)
    }
}

/// Runs a server that sends half of a body and waits for the gate, so that a test acts in the middle of it however busy
/// the machine is; other paths are those of the demo.
func withHalf(
    of size: Int, configuration: Session.Configuration = .test(),
    test: (LoopbackServer, Client, LoopbackServer.Gate) async throws -> Void
) async throws {
    let gate = LoopbackServer.Gate()
    let pattern = LoopbackServer.Pattern(count: size)
    try await withServer(configuration: configuration) { exchange in
        guard exchange.request.path == "/half" else { return try LoopbackServer.answerDemo(exchange) }
        try exchange.writeHead(headers: [("Content-Length", "\(size)")])
        try exchange.streamPattern(pattern, in: 0..<size / 2)
        try exchange.wait(for: gate)
        try exchange.streamPattern(pattern, in: size / 2..<size)
    } test: { server, client in
        try await test(server, client, gate)
    }
}

/// Sends requests through the engine and the server, one after another: earlier commands have taken effect after them,
/// and a transfer that was not stopped would have moved megabytes in the meantime.
///
/// - Parameter session: The session that the commands were for. Its actor handles them before it counts its tasks, and
///   sends each to the loop of its connection. New sessions take the loops in turn.
func fence(_ server: LoopbackServer, of session: Session? = nil, roundTrips: Int = 20) async throws {
    _ = await session?.tasks.count
    let request = try Request(.get, url: server.url("bytes/0"))
    // 0 over URLSession, which has no loops of ours.
    let sessions = (0..<max(1, Session.eventLoopCount)).map { _ in Session(configuration: .test()) }
    for number in 0..<max(roundTrips, sessions.count) {
        _ = try await sessions[number % sessions.count].response(for: request)
    }
}

/// Runs a test of a time limit with a short limit first, and with longer ones if the machine was too slow for it: no
/// server answers within a limit while a thread is blocked for longer.
///
/// - Parameter attempt: Returns false if its limit ended too early, as every limit does that is measured incorrectly.
func withGrowingLimit(
    sourceLocation: SourceLocation = #_sourceLocation, _ attempt: (Duration) async throws -> Bool
) async throws {
    for limit in [Duration.milliseconds(200), .milliseconds(1_500), .seconds(6)] {
        if try await attempt(limit) { return }
    }
    Issue.record("no limit was long enough", sourceLocation: sourceLocation)
}

extension LoopbackServer {
    /// Returns the number of requests for a path, without those of fences.
    func requestCount(_ path: String) -> Int {
        requests.count { $0.target == path || $0.target.hasPrefix(path + "?") }
    }
}

extension TaskHandle {
    /// Returns once the task is in this state; false if it ends in another.
    @discardableResult
    func wait(for wanted: Session.TaskState) async -> Bool {
        for await state in states where state == wanted { return true }
        return false
    }

    /// Returns once this number of bytes of the response has arrived.
    func wait(forBytes count: Int64) async {
        for await progress in progress where progress.completedBytes >= count { return }
    }

    /// Returns once this number of bytes of the request's body is sent.
    func wait(forSentBytes count: Int64) async {
        for await progress in uploadProgress where progress.completedBytes >= count { return }
    }
}

extension TaskHandle {
    /// The number of bytes of the response's body so far.
    var receivedBytes: Int64 {
        get async {
            var iterator = progress.makeAsyncIterator()
            return await iterator.next()?.completedBytes ?? -1
        }
    }

    /// Returns once this number of bytes of the response has arrived.
    func untilReceived(_ count: Int64) async {
        for await progress in progress {
            if progress.completedBytes >= count { return }
        }
    }
}

extension SessionTask {
    /// Returns the error that the task ends with. Records an issue if it ends with a value.
    func failure(sourceLocation: SourceLocation = #_sourceLocation) async throws -> NetworkError {
        return try await WireTests.failure(of: { try await value }, sourceLocation: sourceLocation)
    }
}

extension AsyncStream where Element: Sendable {
    /// Returns all elements up to the end.
    func collected() async -> [Element] {
        var elements: [Element] = []
        for await element in self { elements.append(element) }
        return elements
    }
}

/// A temporary folder that is removed with this object.
final class ScratchFolder: Sendable {
    let url = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    // A leftover does no harm.
    deinit { try? FileManager.default.removeItem(at: url) }
}

/// Makes a folder for the files of a test, and removes it after the test.
func withFolder(_ test: (URL) async throws -> Void) async throws {
    let folder = try ScratchFolder()
    defer { withExtendedLifetime(folder) {} }
    try await test(folder.url)
}
