import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A folder for one test, which is removed after it.
struct TestFolder: Sendable {
    let path: String

    /// The names of all files in the folder, including hidden files.
    var names: [String] {
        get throws { try FileManager.default.subpathsOfDirectory(atPath: path).sorted() }
    }

    func url(_ name: String) -> URL { URL(filePath: "\(path)/\(name)") }

    func bytes(_ name: String) throws -> Data { try Data(contentsOf: url(name)) }

    func write(_ bytes: Data, to name: String) throws { try bytes.write(to: url(name)) }
}

func inTestFolder(_ test: (TestFolder) async throws -> Void) async throws {
    let path = "/tmp/tern-transfers-\(UInt64.random(in: 0 ... .max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    // A folder that cannot be removed disturbs no other test.
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await test(TestFolder(path: path))
}

/// Runs a server, a client with a session of its own, and a folder for one test.
func withServer(
    configuration change: (inout Session.Configuration) -> Void = { _ in }, _ handler: @escaping LoopbackServer.Handler,
    test: (LoopbackServer, Client, TestFolder) async throws -> Void
) async throws {
    let server = try LoopbackServer(handler: handler)
    defer { server.stop() }
    var configuration = Session.Configuration()
    configuration.proxies = .none
    change(&configuration)
    let client = Client(baseURL: server.url, session: Session(configuration: configuration))
    try await inTestFolder { try await test(server, client, $0) }
}

/// Returns the error that a call throws. Records an issue if it throws none.
func failure<Value>(
    of operation: () async throws -> Value, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> NetworkError {
    do {
        _ = try await operation()
        Issue.record("nothing failed", sourceLocation: sourceLocation)
    } catch let error as NetworkError {
        return error
    }
    throw NothingFailed()
}

/// The error of `failure(of:)` for a call that succeeds.
struct NothingFailed: Error {}

extension DurableDownloadOptions {
    /// Options whose attempts follow each other without a delay.
    static func test(_ change: (inout Self) -> Void = { _ in }) -> Self {
        var options = Self()
        options.retry.policy.firstDelay = .zero
        change(&options)
        return options
    }
}

/// The fields of a request for a part.
struct RangeFields: Equatable, Sendable {
    let range: String?
    let condition: String?

    init(_ request: LoopbackServer.Request) {
        range = request["Range"]
        condition = request["If-Range"]
    }

    init(_ range: String?, _ condition: String?) {
        self.range = range
        self.condition = condition
    }
}

/// Values seen by the threads of a server, for the test to read.
final class Log<Element: Sendable>: Sendable {
    private let shared = Lock<[Element]>([])

    var all: [Element] { shared.withLock { $0 } }

    func add(_ element: Element) { shared.withLock { $0.append(element) } }
}

extension LoopbackServer.Exchange {
    /// Sends the head of a whole file and a part of its body, then ends the connection.
    func cut(
        _ pattern: LoopbackServer.Pattern, after count: Int, from start: Int = 0, headers: LoopbackServer.Fields = []
    ) throws {
        var fields = headers + [("Content-Length", "\(pattern.count - start)")]
        if !headers.contains(where: { $0.name == "ETag" }) { fields.append(("ETag", pattern.etag)) }
        if start > 0 { fields.append(("Content-Range", "bytes \(start)-\(pattern.count - 1)/\(pattern.count)")) }
        try writeHead(status: start > 0 ? 206 : 200, headers: fields)
        try streamPattern(pattern, in: start..<min(start + count, pattern.count))
        close()
    }

    /// The first position that the request asks for; 0 without a range.
    var requestedStart: Int {
        request["Range"].flatMap { Int($0.dropFirst("bytes=".count).prefix { $0 != "-" }) } ?? 0
    }
}

/// The file system, with failures where a test requests them.
struct FaultyFiles: FileSystem {
    private let system = PosixFileSystem()
    /// Returns `errno` for a call on a path, or nil to perform it.
    let fault: @Sendable (_ call: String, _ path: String) -> Int32?
    /// The paths of the open descriptors.
    private let paths = Paths()

    private final class Paths: Sendable {
        let all = Lock<[Int32: String]>([:])
    }

    init(_ fault: @escaping @Sendable (_ call: String, _ path: String) -> Int32?) { self.fault = fault }

    private func check(_ call: String, _ path: String) throws(FileFailure) {
        if let code = fault(call, path) { throw FileFailure(call, path, code: code) }
    }

    func open(_ path: String, _ mode: FileMode) throws(FileFailure) -> Int32 {
        try check("open", path)
        let descriptor = try system.open(path, mode)
        paths.all.withLock { $0[descriptor] = path }
        return descriptor
    }

    func close(_ descriptor: Int32) throws(FileFailure) { try system.close(descriptor) }

    func write(_ bytes: Data, to descriptor: Int32) throws(FileFailure) {
        try check("write", paths.all.withLock { $0[descriptor] } ?? "")
        try system.write(bytes, to: descriptor)
    }

    func read(_ descriptor: Int32, at offset: Int64, count: Int) throws(FileFailure) -> Data {
        try check("read", paths.all.withLock { $0[descriptor] } ?? "")
        return try system.read(descriptor, at: offset, count: count)
    }

    func truncate(_ descriptor: Int32, to length: Int64) throws(FileFailure) {
        try system.truncate(descriptor, to: length)
    }

    func length(of path: String) throws(FileFailure) -> Int64 { try system.length(of: path) }

    func exists(_ path: String) -> Bool { system.exists(path) }

    func makeFolders(_ path: String) throws(FileFailure) { try system.makeFolders(path) }

    func rename(_ path: String, to destination: String) throws(FileFailure) {
        try check("rename", path)
        try system.rename(path, to: destination)
    }

    func renameIfAbsent(_ path: String, to destination: String) throws(FileFailure) {
        try check("rename", path)
        try system.renameIfAbsent(path, to: destination)
    }

    func remove(_ path: String) throws(FileFailure) {
        try check("remove", path)
        try system.remove(path)
    }
}

/// Returns the digest of bytes, from the functions that HTTP Digest uses.
func sha256(_ bytes: some Sequence<UInt8>) -> String {
    Hexadecimal.lowercase(DigestFunction.hash(Array(bytes), .sha256))
}

/// The status of a network that a test sets.
final class ScriptedNetwork: ReachabilitySource {
    private struct State {
        var status: Reachability.Status
        var watches: [@Sendable (Reachability.Status) -> Void] = []
        var routes: Set<String> = []
    }

    private struct Watch: ReachabilityWatch {
        func close() {}
    }

    private let state: Lock<State>

    /// - Parameter routes: The addresses to which there is a route.
    init(_ status: Reachability.Status, routes: Set<String> = []) {
        state = Lock(State(status: status, routes: routes))
    }

    func hasRoute(to address: String) -> Bool? { state.withLock { $0.routes.contains(address) } }

    var currentStatus: (@Sendable () -> Reachability.Status)? { { self.state.withLock { $0.status } } }

    func watch(_ onChange: @escaping @Sendable (Reachability.Status) -> Void) -> (any ReachabilityWatch)? {
        let status = state.withLock { state in
            state.watches.append(onChange)
            return state.status
        }
        onChange(status)
        return Watch()
    }

    func set(_ status: Reachability.Status) {
        let watches = state.withLock { state in
            state.status = status
            return state.watches
        }
        for watch in watches { watch(status) }
    }
}
