import Foundation
import Synchronization
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernHTTPCache

/// A server that answers each request with its number, a cache, and a client whose session uses it.
struct CachedServer: Sendable {
    let server: LoopbackServer
    let cache: HTTPCache
    let client: Client
    let clock: SetClock

    /// The number of requests that the server received.
    var requestCount: Int { server.counts.requestsReceived }

    /// Returns the body of a response as text, and its trace.
    func get(
        _ path: String = "a", headers: Headers = [:], cache choice: Tern.Request.CacheChoice = .useProtocol
    ) async throws -> Response<Data> {
        var request = try client.request(.get, path, headers: headers)
        request.cache = choice
        return try await client.session.response(for: request)
    }

    /// Returns the kind of the error of a request that fails; nil if it succeeds.
    func failure(
        _ path: String = "a", cache choice: Tern.Request.CacheChoice = .useProtocol
    ) async -> NetworkError.Kind? {
        do {
            _ = try await get(path, cache: choice)
            return nil
        } catch let error as NetworkError {
            return error.kind
        } catch {
            return nil
        }
    }

    /// Returns when this many requests wait for equal ones.
    func waitForWaiters(_ count: Int) async {
        while cache.shared.waitingRequests != count { await Task.yield() }
    }

    /// Returns when the session has this many live tasks. A request is one of them before it waits for an equal one.
    func waitForTasks(_ count: Int) async {
        while await client.session.tasks.count != count { await Task.yield() }
    }

    /// Checks that the session has no task left, and that it can be invalidated.
    func finish() async {
        await client.session.drained()
        #expect(await client.session.tasks.count == 0)
        await client.session.finishTasksAndInvalidate()
    }

    /// Returns a client of another session with the same cache.
    func client(_ change: (inout Session.Configuration) -> Void) throws -> Client {
        Client(baseURL: server.url, session: Session(configuration: .cached(cache, change)))
    }
}

extension Client {
    /// Returns the response to a GET request.
    func fetch(_ path: String) async throws -> Response<Data> {
        try await session.response(for: try request(.get, path))
    }
}

/// A policy that is told of each response before it is stored, and allows it.
struct StoringPolicy: SessionPolicy {
    let onStore: @Sendable (ResponseHead) -> Void

    init(_ onStore: @escaping @Sendable (ResponseHead) -> Void) { self.onStore = onStore }

    func storing(of response: ResponseHead, for task: AnySessionTask) async throws -> ResponseStoring? {
        onStore(response)
        return nil
    }
}

extension Task where Failure == any Error {
    /// The kind of the error; nil for a value.
    var kind: NetworkError.Kind? {
        get async {
            if case .failure(let error) = await result { return (error as? NetworkError)?.kind }
            return nil
        }
    }
}

/// A value that several closures of a test share.
final class Locked<Value: Sendable>: Sendable {
    private let lock: Lock<Value>

    init(_ value: Value) { lock = Lock(value) }

    var value: Value { lock.withLock { $0 } }

    func change(_ change: (inout Value) -> Void) { lock.withLock { change(&$0) } }
}

/// A clock that the test sets.
final class SetClock: Sendable {
    private let time = Lock(Date())

    var now: Date { time.withLock { $0 } }

    func advance(_ seconds: Double) { time.withLock { $0 += seconds } }

    func set(_ date: Date) { time.withLock { $0 = date } }
}

extension Response where Value == Data {
    var text: String { String(decoding: value, as: UTF8.self) }
}

extension Session.Configuration {
    static func cached(_ cache: HTTPCache, _ change: (inout Self) -> Void = { _ in }) -> Self {
        var configuration = Self()
        configuration.proxies = .none
        configuration.cache = cache
        change(&configuration)
        return configuration
    }
}

/// The stores that a test runs over.
enum StoreKind: String, CaseIterable, Sendable {
    case memory, disk
}

/// Runs a test with a server, a cache and a client.
func withCache(
    _ kind: StoreKind = .memory, cache change: (inout HTTPCache.Configuration) -> Void = { _ in },
    session: (inout Session.Configuration) -> Void = { _ in }, handler: @escaping LoopbackServer.Handler,
    test: (CachedServer) async throws -> Void
) async throws {
    let clock = SetClock()
    var configuration = HTTPCache.Configuration()
    configuration.now = { clock.now }
    change(&configuration)
    let folder = FileManager.default.temporaryDirectory.appending(path: "tern-http-\(UUID().uuidString)")
    // A leftover does no harm.
    defer { try? FileManager.default.removeItem(at: folder) }
    let cache: HTTPCache =
        switch kind {
        case .memory: .memory(configuration)
        case .disk: .disk(folder: folder, configuration)
        }
    let server = try LoopbackServer(handler: handler)
    defer { server.stop() }
    let client = Client(baseURL: server.url, session: Session(configuration: .cached(cache, session)))
    try await test(CachedServer(server: server, cache: cache, client: client, clock: clock))
}

/// Returns a handler that answers the n-th request of the server with the text `n`.
func numbered(_ headers: LoopbackServer.Fields) -> LoopbackServer.Handler {
    { exchange in try exchange.respond(headers: headers, text: "\(exchange.number)") }
}

/// Counts from 1.
final class Counter: Sendable {
    private let value = Atomic<Int>(0)

    func next() -> Int { value.wrappingAdd(1, ordering: .relaxed).newValue }
    var current: Int { value.load(ordering: .relaxed) }
}

/// Returns bytes as a gzip file.
func gzipped(_ data: Data) throws -> Data {
    let file = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString)")
    try data.write(to: file)
    let program = Process()
    program.executableURL = URL(filePath: "/bin/gzip")
    program.arguments = ["-n", file.path(percentEncoded: false)]
    try program.run()
    program.waitUntilExit()
    let compressed = file.appendingPathExtension("gz")
    defer {
        // A leftover does no harm.
        try? FileManager.default.removeItem(at: compressed)
    }
    return try Data(contentsOf: compressed)
}
