import Tern
import TernConcurrency
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// What the tests of tasks share: gates that work over several values, probes for leaks, and fences.

/// Opens its gate when nothing holds it any more: captured by a closure, it tells when that closure is released.
final class Probe: Sendable {
    let isGone: LoopbackServer.Gate

    init(_ isGone: LoopbackServer.Gate) { self.isGone = isGone }

    deinit { isGone.open() }

    /// To be called in a closure that is to hold the probe.
    func touch() {}
}

/// A number that a server's handler counts up and a test reads.
final class Counter: Sendable {
    private let count = Lock(0)

    var value: Int { count.withLock { $0 } }

    func add(_ number: Int = 1) { count.withLock { $0 += number } }
}

/// Runs a server of the demo's routes, and a client of it whose session is its own.
func withDemo(
    configuration: Session.Configuration = .test(), test: (LoopbackServer, Client) async throws -> Void
) async throws {
    try await withServer(configuration: configuration) { exchange in
        try LoopbackServer.answerDemo(exchange)
    } test: { server, client in
        try await test(server, client)
    }
}

/// Runs a server that sends half of a body and waits for the gate, so that a test acts in the midst of it whatever else
/// the machine has to do; other paths are the demo's.
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

/// Round trips through the engine and the server, one after another: what was asked for before has been done after it,
/// and a transfer that was not stopped would have moved megabytes meanwhile.
func fence(_ server: LoopbackServer, roundTrips: Int = 20) async throws {
    let session = Session(configuration: .test())
    let request = try Request(.get, url: server.url("bytes/0"))
    for _ in 0..<roundTrips {
        _ = try await session.response(for: request)
    }
}

/// Tries what has a limit on time first with a short one, and with longer ones where the machine was too slow for it: where
/// it holds up a thread for longer than a limit, no server answers within that.
///
/// - Parameter attempt: False when its limit was over too early, as it is with every limit that is wrongly kept.
func withGrowingLimit(
    sourceLocation: SourceLocation = #_sourceLocation, _ attempt: (Duration) async throws -> Bool
) async throws {
    for limit in [Duration.milliseconds(200), .milliseconds(1_500), .seconds(6)] {
        if try await attempt(limit) { return }
    }
    Issue.record("no limit was long enough", sourceLocation: sourceLocation)
}

extension LoopbackServer {
    /// The requests for a path, without those of fences.
    func requestCount(_ path: String) -> Int {
        requests.count { $0.target == path || $0.target.hasPrefix(path + "?") }
    }
}

extension TaskHandle {
    /// Returns once the task is in this state; false when it ends in another.
    @discardableResult
    func wait(for wanted: Session.TaskState) async -> Bool {
        for await state in states where state == wanted { return true }
        return false
    }

    /// Returns once so many bytes of the response have come.
    func wait(forBytes count: Int64) async {
        for await progress in progress where progress.completedBytes >= count { return }
    }

    /// Returns once so many bytes of the request's body are sent.
    func wait(forSentBytes count: Int64) async {
        for await progress in uploadProgress where progress.completedBytes >= count { return }
    }
}

extension TaskHandle {
    /// Bytes of the response's body so far.
    var receivedBytes: Int64 {
        get async {
            var iterator = progress.makeAsyncIterator()
            return await iterator.next()?.completedBytes ?? -1
        }
    }

    /// Returns once so many bytes of the response have come.
    func untilReceived(_ count: Int64) async {
        for await progress in progress {
            if progress.completedBytes >= count { return }
        }
    }
}

extension SessionTask {
    /// The error that the task ends with; a test failure when it ends with a value.
    func failure(sourceLocation: SourceLocation = #_sourceLocation) async throws -> NetworkError {
        return try await WireTests.failure(of: { try await value }, sourceLocation: sourceLocation)
    }
}

extension AsyncStream where Element: Sendable {
    /// All elements up to the end.
    func collected() async -> [Element] {
        var elements: [Element] = []
        for await element in self { elements.append(element) }
        return elements
    }
}

/// A folder of its own for a test's files; removed after the test.
func withFolder(_ test: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }  // A test's own folder: nothing depends on it.
    try await test(folder)
}
