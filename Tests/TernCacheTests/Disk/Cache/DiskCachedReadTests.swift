import Synchronization
import TernConcurrency
import Testing

@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The caller reads value files that the system has in memory, without switching threads.
@Suite(.timeLimit(.minutes(1)))
struct DiskCachedReadTests {
    /// Counts the calls that may wait, and those that may not.
    private final class Watch: Sendable {
        let waiting = Lock<[String]>([])
        let atOnce = Lock<[Int]>([])
        /// The offset from which the disk is needed. A negative offset includes opening.
        let limit = Lock(Int.max)

        var dependencies: DiskStore.Dependencies {
            var dependencies = DiskStore.Dependencies()
            dependencies.files = FaultyDiskFiles { call, path in
                if path.contains("/values/"), call == "open" || call == "read" {
                    self.waiting.withLock { $0.append(call) }
                }
                return nil
            } isInMemory: { call, offset in
                self.atOnce.withLock { $0.append(call == "open" ? -1 : offset) }
                return (call == "open" ? -1 : offset) < self.limit.withLock { $0 }
            }
            return dependencies
        }
    }

    @Test(arguments: [16_385, 20_000, 65_400, 131_000, 131_072, 131_073, 300_000, 1 << 20])
    func aCachedFileIsReadWithoutWaiting(size: Int) async throws {
        try await withDiskFolder { folder in
            let watch = Watch()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited(), dependencies: watch.dependencies)
            try await cache.insert(bytes(size), for: "key", metadata: Data("about".utf8))
            let entry = try await cache.entry(for: "key")
            #expect(entry?.value == bytes(size))
            #expect(entry?.metadata == Data("about".utf8))
            #expect(watch.waiting.withLock { $0 } == [])
            #expect(watch.atOnce.withLock { $0.first } == -1)
            // A thread reads a whole file that is partly on the disk.
            for limit in [-1, 0, 131_072] where limit < size {
                watch.limit.withLock { $0 = limit }
                watch.waiting.withLock { $0 = [] }
                #expect(try await cache.value(for: "key") == bytes(size))
                let calls = watch.waiting.withLock { $0 }
                #expect(calls.first == "open" || (limit == 131_072 && calls.isEmpty))
            }
            try await cache.close()
        }
    }

    @Test func aLargeValueIsLeftToAThread() async throws {
        try await withDiskFolder { folder in
            let watch = Watch()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited(), dependencies: watch.dependencies)
            try await cache.insert(bytes(1 << 20 + 1), for: "key")
            #expect(try await cache.value(for: "key") == bytes(1 << 20 + 1))
            #expect(watch.atOnce.withLock { $0 } == [])
            #expect(watch.waiting.withLock { $0.first } == "open")
            try await cache.close()
        }
    }

    @Test(arguments: [0, 19_999, 20_000, 20_030, 20_060], [true, false])
    func damageInCachedFilesIsFoundAndRemoved(offset: Int, isCut: Bool) async throws {
        try await withDiskFolder { folder in
            let watch = Watch()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited(), dependencies: watch.dependencies)
            try await cache.insert(bytes(20_000), for: "key")
            let path = try #require(try diskFiles(folder).keys.first { $0.contains("/values/") })
            var stored = try Data(contentsOf: URL(filePath: path))
            if isCut { stored = stored.prefix(offset) } else { stored[offset] ^= 1 }
            try stored.write(to: URL(filePath: path))
            #expect(try await cache.value(for: "key") == nil)
            #expect(!cache.contains("key"))
            #expect(try cache.leaks().isEmpty)
            try await cache.close()
        }
    }

    @Test func keysOfOneHashDoNotReturnEachOthersValues() async throws {
        try await withDiskFolder { folder in
            let watch = Watch()
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited { $0.hashMask = 0 }, dependencies: watch.dependencies)
            try await cache.insert(bytes(30_000), for: "one")
            #expect(try await cache.value(for: "two") == nil)
            #expect(try await cache.value(for: "one") == bytes(30_000))
            #expect(watch.waiting.withLock { $0 } == [])
            try await cache.close()
        }
    }

    @Test func theSystemReportsCachedFiles() throws {
        let files = PosixDiskFiles()
        let path = "/tmp/tern-at-once-\(UInt64.random(in: 0 ... .max))"
        // A file that cannot be removed does no harm.
        defer { try? files.remove(path) }
        #expect(files.openCached(path) == nil)
        let descriptor = try files.create(path)
        defer { files.close(descriptor) }
        try unsafe bytes(10_000).withUnsafeBytes { unsafe try files.write($0, to: descriptor, path: path) }
        // Nil on systems that cannot tell.
        guard let known = files.openCached(path) else { return }
        defer { files.close(known) }
        var buffer = [UInt8](repeating: 0, count: 4_000)
        let isRead = unsafe buffer.withUnsafeMutableBytes { unsafe files.readCached(known, into: $0, at: 6_000) }
        if isRead { #expect(Data(buffer) == bytes(10_000).suffix(4_000)) }
        #expect(!(unsafe buffer.withUnsafeMutableBytes { unsafe files.readCached(known, into: $0, at: 6_001) }))
    }
}
