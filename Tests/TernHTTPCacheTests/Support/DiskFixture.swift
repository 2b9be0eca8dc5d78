import Foundation
import Tern
import TernConcurrency
import TernTesting

@testable import TernCache
@testable import TernHTTPCache

/// Creates a folder for one test, and removes it afterwards.
func withFolder(_ test: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "tern-http-\(UUID().uuidString)")
    // A leftover does no harm.
    defer { try? FileManager.default.removeItem(at: folder) }
    try await test(folder)
}

/// Runs a test with a server and a session whose cache is in a folder, over a file system with a hook.
func withDisk(
    _ hook: FileHook = FileHook(), byteLimit: Int = 256 << 20, entryByteLimit: Int? = nil,
    handler: @escaping LoopbackServer.Handler, test: (CachedServer, DiskCache, URL) async throws -> Void
) async throws {
    try await withFolder { folder in
        let disk = try await hook.cache(at: folder, byteLimit: byteLimit)
        let clock = SetClock()
        var configuration = HTTPCache.Configuration()
        configuration.now = { clock.now }
        configuration.byteLimit = byteLimit
        configuration.entryByteLimit = entryByteLimit
        let cache = HTTPCache.disk(folder: folder, configuration)
        cache.shared.open(with: DiskEntryStore(disk, entryLimit: cache.diskEntryLimit))
        let server = try LoopbackServer(handler: handler)
        defer { server.stop() }
        let client = Client(baseURL: server.url, session: Session(configuration: .cached(cache)))
        try await test(CachedServer(server: server, cache: cache, client: client, clock: clock), disk, folder)
        hook.set(nil)
        try await disk.close()
    }
}

/// Waits for an event of another task, until the test is cancelled at its time limit.
func until(_ condition: () throws -> Bool) async throws {
    while try !condition() {
        try Task.checkCancellation()
        await Task.yield()
    }
}

extension ResponseStream {
    /// Returns the trace once the response is stored, or is not going to be.
    func storedTrace() async throws -> CacheTrace? {
        let head = try await response
        try await until { head.cacheTrace?.storing != "arriving" }
        return head.cacheTrace
    }
}

extension HTTPCache {
    /// Returns once no bytes wait for the disk and nothing is under way there.
    func written(to disk: DiskCache) async throws {
        try await until { shared.waitingBytes == 0 }
        _ = try await disk.usage
    }
}

extension Response {
    /// Returns the trace once the response is stored, or is not going to be.
    func storedTrace() async -> CacheTrace? {
        while let trace = cacheTrace, trace.storing == "arriving", !Task.isCancelled { await Task.yield() }
        return cacheTrace
    }
}

/// A hook that a test sets: called before each call of the file system and each statement of the index, by its name.
final class FileHook: Sendable {
    typealias Hook = @Sendable (_ call: String) -> Int32?

    private let hook = Lock<Hook?>(nil)

    func set(_ new: Hook?) { hook.withLock { $0 = new } }

    func call(_ name: String) -> Int32? { hook.withLock { $0 }?(name) }

    func cache(at folder: URL, byteLimit: Int = 256 << 20) async throws -> DiskCache {
        var configuration = DiskCache.Configuration()
        configuration.byteLimit = byteLimit
        configuration.minimumFreeBytes = 0
        var dependencies = DiskStore.Dependencies()
        dependencies.files = HookedFiles(hook: self)
        dependencies.fault = { sql in self.call(sql) }
        return try await DiskCache(folder: folder, configuration: configuration, dependencies: dependencies)
    }
}

/// A gate that holds up a thread.
final class ThreadGate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    /// Waits until the gate is open.
    func pass() {
        semaphore.wait()
        semaphore.signal()
    }

    func open() { semaphore.signal() }
}

/// The system's files; a call fails with the code that the hook returns.
private struct HookedFiles: DiskFileSystem {
    let hook: FileHook
    private let files = PosixDiskFiles()

    init(hook: FileHook) { self.hook = hook }

    private func check(_ call: String, _ path: String) throws(DiskCacheError) {
        if let code = hook.call(call) { throw .system(call, path, code: code) }
    }

    func makeFolder(_ path: String) throws(DiskCacheError) { try files.makeFolder(path) }
    func makePrivate(_ path: String) throws(DiskCacheError) { try files.makePrivate(path) }
    func keepPrivate(_ path: String) throws(DiskCacheError) { try files.keepPrivate(path) }
    func open(_ path: String) throws(DiskCacheError) -> Int32 {
        try check("open", path)
        return try files.open(path)
    }
    func create(_ path: String) throws(DiskCacheError) -> Int32 {
        try check("create", path)
        return try files.create(path)
    }
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String) throws(DiskCacheError) {
        try check("write", path)
        unsafe try files.write(bytes, to: descriptor, path: path)
    }
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, path: String
    ) throws(DiskCacheError) -> Int {
        unsafe try files.read(descriptor, into: buffer, at: offset, path: path)
    }
    func status(_ descriptor: Int32, _ path: String) throws(DiskCacheError) -> DiskFileStatus {
        try files.status(descriptor, path)
    }
    func status(of path: String) throws(DiskCacheError) -> DiskFileStatus? { try files.status(of: path) }
    func close(_ descriptor: Int32) { files.close(descriptor) }
    func rename(_ path: String, to destination: String) throws(DiskCacheError) {
        try check("rename", path)
        try files.rename(path, to: destination)
    }
    func remove(_ path: String) throws(DiskCacheError) { try files.remove(path) }
    func removeFolder(_ path: String) throws(DiskCacheError) { try files.removeFolder(path) }
    func names(in path: String) throws(DiskCacheError) -> [String] { try files.names(in: path) }
    func freeBytes(at path: String) throws(DiskCacheError) -> Int { try files.freeBytes(at: path) }
}

/// Values in the order in which they were added.
final class Log<Value: Sendable>: Sendable {
    private let list = Lock<[Value]>([])

    var values: [Value] { list.withLock { $0 } }

    func add(_ value: Value) { list.withLock { $0.append(value) } }
}

/// Returns the regular files below a folder.
func files(below folder: URL) throws -> [URL] {
    let path = folder.path(percentEncoded: false)
    return try FileManager.default.subpathsOfDirectory(atPath: path).map { folder.appending(path: $0) }.filter { url in
        // A file that was removed in the meantime has no attributes.
        let attributes = try? FileManager.default.attributesOfItem(atPath: url.path(percentEncoded: false))
        return attributes?[.type] as? FileAttributeType == .typeRegular
    }
}

extension URL {
    /// The files of unfinished values in the folder of a cache.
    func unfinished() throws -> [URL] { try files(below: appending(path: "temporary")) }
}
