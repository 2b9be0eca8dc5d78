import Synchronization
import TernConcurrency

@testable import DiskCrashChild
@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A folder of one test's own, gone after it.
func inDiskFolder(_ test: (URL) async throws -> Void) async throws {
    let path = "/tmp/tern-disk-\(UInt64.random(in: 0 ... .max))"
    // It is in the way of nobody if it cannot be removed.
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await test(URL(filePath: path))
}

func roomy(_ change: (inout DiskCache.Configuration) -> Void = { _ in }) -> DiskCache.Configuration {
    var configuration = DiskCache.Configuration()
    configuration.byteLimit = nil
    configuration.minimumFreeBytes = 0
    change(&configuration)
    return configuration
}

func bytes(_ count: Int, _ seed: Int = 1) -> Data { CrashPattern.value("bytes", seed, count) }

/// A wall clock that stands still until a test moves it.
final class TestTime: Sendable {
    private let seconds = Lock<Double>(1_700_000_000)

    var now: @Sendable () -> Date { { Date(timeIntervalSince1970: self.seconds.withLock { $0 }) } }

    func advance(_ by: Double) { seconds.withLock { $0 += by } }
}

/// The regular files below a folder, with the bytes that they take.
func diskFiles(_ url: URL) throws -> [String: Int] {
    let path = DiskCache.path(url)
    let files = PosixDiskFiles()
    var found: [String: Int] = [:]
    func walk(_ path: String) throws {
        for name in try files.names(in: path) {
            let entry = path + "/" + name
            // What goes while we look has no size.
            guard let status = try files.status(of: entry) else { continue }
            // Listing fails for what is no folder.
            if (try? files.names(in: entry)) != nil {
                try walk(entry)
            } else {
                found[entry] = status.allocated
            }
        }
    }
    try walk(path)
    return found
}

extension DiskCache {
    /// Files in the folder that no entry owns: leaked bytes.
    nonisolated func leaks() throws -> [String] {
        let index = shared.state.withLock { $0.index }
        var owned: Set<String> = [folder.index, folder.log, folder.lock, folder.clean]
        for hash in index.hashes {
            if let location = index.location(hash), !location.isInline { owned.insert(folder.value(location.id)) }
        }
        return try diskFiles(URL(filePath: folder.path)).keys.filter { !owned.contains($0) }.sorted()
    }
}

/// The system's files, with failures where a test wants them: `errno` for a call on a path, nil to let it through.
struct FaultyDiskFiles: DiskFileSystem {
    private let files = PosixDiskFiles()
    let fault: @Sendable (_ call: String, _ path: String) -> Int32?
    /// Whether what a call needs is in memory; as long as it is nil, nothing is.
    var isInMemory: (@Sendable (_ call: String, _ offset: Int) -> Bool)?

    private func check(_ call: String, _ path: String) throws(DiskCacheError) {
        if let code = fault(call, path) { throw .system(call, path, code: code) }
    }

    func makeFolder(_ path: String) throws(DiskCacheError) {
        try check("makeFolder", path)
        try files.makeFolder(path)
    }
    func open(_ path: String) throws(DiskCacheError) -> Int32 {
        try check("open", path)
        return try files.open(path)
    }
    func create(_ path: String) throws(DiskCacheError) -> Int32 {
        try check("create", path)
        return try files.create(path)
    }
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ path: String) throws(DiskCacheError) {
        try check("write", path)
        unsafe try files.write(bytes, to: descriptor, path)
    }
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, _ path: String
    ) throws(DiskCacheError) -> Int {
        try check("read", path)
        return unsafe try files.read(descriptor, into: buffer, at: offset, path)
    }
    func openAtOnce(_ path: String) -> Int32? {
        guard isInMemory?("open", 0) == true else { return nil }
        return try? files.open(path)  // What fails here is asked again, and told then.
    }
    func readAtOnce(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
        guard isInMemory?("read", offset) == true else { return false }
        // As above.
        return unsafe (try? files.read(descriptor, into: buffer, at: offset, "")) == buffer.count
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
    func remove(_ path: String) throws(DiskCacheError) {
        try check("remove", path)
        try files.remove(path)
    }
    func removeFolder(_ path: String) throws(DiskCacheError) { try files.removeFolder(path) }
    func names(in path: String) throws(DiskCacheError) -> [String] {
        try check("names", path)
        return try files.names(in: path)
    }
    func freeBytes(at path: String) throws(DiskCacheError) -> Int {
        try check("freeBytes", path)
        return try files.freeBytes(at: path)
    }
}

/// Failures that a test switches on and off.
final class Faults: Sendable {
    private let codes = Lock<[String: Int32]>([:])

    subscript(_ call: String) -> Int32? {
        get { codes.withLock { $0[call] } }
        set { codes.withLock { $0[call] = newValue } }
    }

    /// Files fail by their call, SQLite by a word of the statement.
    var seams: DiskStore.Seams {
        var seams = DiskStore.Seams()
        seams.files = FaultyDiskFiles { call, _ in self[call] }
        seams.fault = { sql in
            self.codes.withLock { codes in codes.first { sql.contains($0.key) }?.value }
        }
        return seams
    }
}

/// The events of a cache so far, in order.
func events(_ stream: AsyncStream<DiskCache.Event>, until isLast: (DiskCache.Event) -> Bool) async -> [DiskCache.Event]
{
    var seen: [DiskCache.Event] = []
    for await event in stream {
        seen.append(event)
        if isLast(event) { break }
    }
    return seen
}
