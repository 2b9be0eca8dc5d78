import Synchronization
import TernConcurrency

@testable import DiskCrashChild
@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Creates a folder for one test, and removes it afterwards.
func withDiskFolder(_ test: (URL) async throws -> Void) async throws {
    let path = "/tmp/tern-disk-\(UInt64.random(in: 0 ... .max))"
    // A folder that cannot be removed does no harm.
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await test(URL(filePath: path))
}

func unlimited(_ change: (inout DiskCache.Configuration) -> Void = { _ in }) -> DiskCache.Configuration {
    var configuration = DiskCache.Configuration()
    configuration.byteLimit = nil
    configuration.minimumFreeBytes = 0
    change(&configuration)
    return configuration
}

func bytes(_ count: Int, _ seed: Int = 1) -> Data { CrashPattern.value(for: "bytes", version: seed, size: count) }

/// A wall clock that only advances when a test says so.
final class TestTime: Sendable {
    private let seconds = Lock<Double>(1_700_000_000)

    var now: @Sendable () -> Date { { Date(timeIntervalSince1970: self.seconds.withLock { $0 }) } }

    func advance(_ by: Double) { seconds.withLock { $0 += by } }
}

/// Returns the regular files below a folder, with their sizes on the disk.
func diskFiles(_ url: URL) throws -> [String: Int] {
    let path = DiskCache.path(url)
    let files = PosixDiskFiles()
    var found: [String: Int] = [:]
    func walk(_ path: String) throws {
        for name in try files.names(in: path) {
            let entry = path + "/" + name
            // A file that disappears during the scan has no size.
            guard let status = try files.status(of: entry) else { continue }
            if status.isFolder {
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
    /// Returns the files in the folder that no entry owns: leaked bytes.
    nonisolated func leaks() throws -> [String] {
        let index = shared.state.withLock { $0.index }
        var owned: Set<String> = [folder.index, folder.log, folder.lock, folder.clean]
        for hash in index.hashes {
            if let location = index.location(hash), !location.isInline { owned.insert(folder.value(location.id)) }
        }
        return try diskFiles(URL(filePath: folder.path)).keys.filter { !owned.contains($0) }.sorted()
    }
}

/// The system's files with injected failures: `errno` for a call on a path, or nil to let it pass.
struct FaultyDiskFiles: DiskFileSystem {
    private let files = PosixDiskFiles()
    let fault: @Sendable (_ call: String, _ path: String) -> Int32?
    /// Returns whether the data of a call is in memory. If it is nil, nothing is.
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
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String) throws(DiskCacheError) {
        try check("write", path)
        unsafe try files.write(bytes, to: descriptor, path: path)
    }
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, path: String
    ) throws(DiskCacheError) -> Int {
        try check("read", path)
        return unsafe try files.read(descriptor, into: buffer, at: offset, path: path)
    }
    func openCached(_ path: String) -> Int32? {
        guard isInMemory?("open", 0) == true else { return nil }
        return try? files.open(path)  // The next call fails too, and reports the error.
    }
    func readCached(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
        guard isInMemory?("read", offset) == true else { return false }
        // See above.
        return unsafe (try? files.read(descriptor, into: buffer, at: offset, path: "")) == buffer.count
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

    /// Files fail by the name of the call, SQLite by a word of the statement.
    var dependencies: DiskStore.Dependencies {
        var dependencies = DiskStore.Dependencies()
        dependencies.files = FaultyDiskFiles { call, _ in self[call] }
        dependencies.fault = { sql in
            self.codes.withLock { codes in codes.first { sql.contains($0.key) }?.value }
        }
        return dependencies
    }
}

/// Returns the events of a cache so far, in order.
func events(_ stream: AsyncStream<DiskCache.Event>, until isLast: (DiskCache.Event) -> Bool) async -> [DiskCache.Event]
{
    var seen: [DiskCache.Event] = []
    for await event in stream {
        seen.append(event)
        if isLast(event) { break }
    }
    return seen
}
