import TernConcurrency
import Testing

@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct DiskCacheTests {
    @Test(arguments: [0, 1, 1_000, 16_384, 16_385, 200_000, 1_048_576])
    func anInsertedValueIsFoundAfterReopening(size: Int) async throws {
        try await withDiskFolder { folder in
            let value = bytes(size)
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(value, for: "key", metadata: Data("meta".utf8))
            #expect(try await cache.value(for: "key") == value)
            #expect(cache.contains("key"))
            #expect(!cache.contains("other"))
            #expect(try await cache.value(for: "other") == nil)
            try await cache.close()

            let again = try await DiskCache(folder: folder, configuration: unlimited())
            let entry = try #require(try await again.entry(for: "key"))
            #expect(entry.value == value)
            #expect(entry.metadata == Data("meta".utf8))
            #expect(entry.expires == nil)
            #expect(try await again.mappedValue(for: "key") == value)
            #expect(try again.leaks().isEmpty)
            try await again.close()
        }
    }

    @Test func aFolderMustBeOnThisMachine() async throws {
        let url = try #require(URL(string: "https://example.com/tmp/tern-not-here"))
        let error = await #expect(throws: DiskCacheError.self) { _ = try await DiskCache(folder: url) }
        #expect(error?.kind == .invalidArgument)
        #expect(!FileManager.default.fileExists(atPath: "/tmp/tern-not-here"))
    }

    @Test func aReplacedValueIsGoneWithItsFile() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for size in [50_000, 10, 60_000, 70_000, 20] {
                try await cache.insert(bytes(size, size), for: "key")
                #expect(try await cache.value(for: "key") == bytes(size, size))
                #expect(try cache.leaks().isEmpty)
            }
            #expect(try await cache.usage.count == 1)
            #expect(try await cache.usage.fileBytes == 0)
            try await cache.remove("key")
            #expect(!cache.contains("key"))
            #expect(try await cache.value(for: "key") == nil)
            #expect(try await cache.usage.count == 0)
        }
    }

    @Test func keysAreComparedByTheirBytes() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(bytes(1), for: "caf\u{E9}")
            #expect(try await cache.value(for: "cafe\u{301}") == nil)
            try cache.enqueue(bytes(2), for: "nai\u{308}ve")
            #expect(try await cache.value(for: "na\u{EF}ve") == nil)
            try await cache.insert(bytes(3), for: "")
            #expect(try await cache.value(for: "") == bytes(3))
        }
    }

    @Test(arguments: [UInt64(0), 1, 3])
    func collidingKeysNeverReturnEachOthersValues(mask: UInt64) async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited { $0.hashMask = mask })
            for number in 0..<20 {
                try await cache.insert(bytes(number * 2_000, number), for: "key \(number)")
                #expect(try await cache.value(for: "key \(number)") == bytes(number * 2_000, number))
                for other in 0..<number {
                    let value = try await cache.value(for: "key \(other)")
                    #expect(value == nil || value == bytes(other * 2_000, other))
                }
            }
            #expect(try cache.leaks().isEmpty)
        }
    }

    @Test func anEntryExpiresOnTheInjectedClock() async throws {
        try await withDiskFolder { folder in
            let time = TestTime()
            let configuration = unlimited {
                $0.now = time.now
                $0.timeToLive = .seconds(100)
            }
            let cache = try await DiskCache(folder: folder, configuration: configuration)
            try await cache.insert(bytes(10), for: "default")
            try await cache.insert(bytes(50_000), for: "short", timeToLive: .seconds(10))
            let entry = try #require(try await cache.entry(for: "short"))
            #expect(entry.expires == time.now().addingTimeInterval(10))
            #expect(entry.created == time.now())
            time.advance(9.999)
            #expect(cache.contains("short"))
            time.advance(0.001)
            #expect(!cache.contains("short"))
            #expect(try await cache.value(for: "short") == nil)
            #expect(cache.contains("default"))
            #expect(try await cache.usage.count == 2)
            try await cache.removeExpired()
            #expect(try await cache.usage.count == 1)
            #expect(try cache.leaks().isEmpty)
            try await cache.close()
            time.advance(90)
            let again = try await DiskCache(folder: folder, configuration: configuration)
            #expect(!again.contains("default"))
            // An insert sweeps by itself.
            try await again.insert(bytes(1), for: "new")
            #expect(try await again.usage.count == 1)
            try await again.close()
        }
    }

    @Test func aGroupIsRemovedByItsTag() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for number in 0..<150 {
                try await cache.insert(
                    bytes(number % 3 == 0 ? 20_000 : 100), for: "\(number)",
                    tags: number % 2 == 0 ? ["even", "all"] : ["all"])
            }
            try await cache.removeAll(tagged: "even")
            #expect((0..<150).filter { cache.contains("\($0)") } == (0..<150).filter { $0 % 2 == 1 })
            try await cache.removeAll(tagged: "none")
            #expect(try await cache.usage.count == 75)
            // A replaced entry leaves its old groups.
            try await cache.insert(bytes(5), for: "1", tags: ["other"])
            try await cache.close()
            let again = try await DiskCache(folder: folder, configuration: unlimited())
            try await again.removeAll(tagged: "all")
            #expect((0..<150).filter { again.contains("\($0)") } == [1])
            #expect(try again.leaks().isEmpty)
        }
    }

    @Test func removeAllLeavesNothingBehind() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for number in 0..<200 { try await cache.insert(bytes(17_000 + number), for: "\(number)") }
            try cache.enqueue(bytes(10), for: "queued")
            try await cache.removeAll()
            #expect(!cache.contains("7"))
            #expect(!cache.contains("queued"))
            #expect(try await cache.value(for: "7") == nil)
            try await cache.insert(bytes(30_000), for: "7")
            #expect(try await cache.value(for: "7") == bytes(30_000))
            // The steps run between calls. Each call to the actor lets some of them run.
            while try await cache.usage.fileBytes > 40_960 { await Task.yield() }
            #expect(try cache.leaks().isEmpty)
        }
    }

    @Test func trashOfAKilledOwnerIsDeleted() async throws {
        try await withDiskFolder { folder in
            let path = DiskCache.path(folder)
            try FileManager.default.createDirectory(atPath: path + "/trash/1/00", withIntermediateDirectories: true)
            for number in 0..<300 { try bytes(5_000).write(to: URL(filePath: path + "/trash/1/00/\(number)")) }
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            while try await cache.usage.fileBytes > 0 { await Task.yield() }
            #expect(try cache.leaks().isEmpty)
        }
    }

    @Test func aQueuedValueIsReadableAtOnceAndBounded() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited { $0.queuedByteLimit = 100_000 })
            try cache.enqueue(bytes(50_000), for: "a", metadata: Data([1]))
            #expect(cache.contains("a"))
            #expect(try await cache.entry(for: "a")?.metadata == Data([1]))
            #expect(throws: DiskCacheError.self) { try cache.enqueue(bytes(100_001), for: "b") }
            #expect(!cache.contains("b"))
            try await cache.flush()
            #expect(try await cache.usage.queuedBytes == 0)
            #expect(try await cache.usage.count == 1)
            #expect(try await cache.value(for: "a") == bytes(50_000))
            try cache.enqueue(bytes(90_000), for: "b")
            try await cache.remove("b")
            #expect(!cache.contains("b"))
            try await cache.close()
            let again = try await DiskCache(folder: folder, configuration: unlimited())
            #expect(again.contains("a"))
            #expect(!again.contains("b"))
        }
    }

    @Test func concurrentInsertsAreAllStored() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<300 {
                    group.addTask { try await cache.insert(bytes(number * 100, number), for: "\(number)") }
                }
                try await group.waitForAll()
            }
            for number in 0..<300 { #expect(try await cache.value(for: "\(number)") == bytes(number * 100, number)) }
            try await cache.insert(
                contentsOf: (0..<100).map { DiskCache.Item(bytes(20, $0), for: "\($0 % 50)", tags: ["t"]) })
            #expect(try await cache.value(for: "7") == bytes(20, 57))
            #expect(try await cache.usage.count == 300)
        }
    }

    @Test func theOrderOfUseSurvivesReopening() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for key in ["a", "b", "c", "d"] { try await cache.insert(bytes(100), for: key) }
            _ = try await cache.value(for: "b")
            _ = try await cache.value(for: "a")
            try await cache.close()
            let again = try await DiskCache(folder: folder, configuration: unlimited { $0.countLimit = 2 })
            #expect(["a", "b", "c", "d"].filter { again.contains($0) } == ["a", "b"])
        }
    }

    @Test func aClosedCacheThrowsClosed() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(bytes(100), for: "a")
            let events = cache.events
            try await cache.close()
            try await cache.close()
            await #expect { try await cache.insert(bytes(1), for: "b") } throws: {
                ($0 as? DiskCacheError)?.kind == .closed
            }
            await #expect { try await cache.value(for: "a") } throws: { ($0 as? DiskCacheError)?.kind == .closed }
            for await _ in events { Issue.record("no event was due") }
        }
    }

    @Test func everyCallOnAClosedCacheThrowsClosed() async throws {
        try await withDiskFolder { folder in
            let shipped = folder.appending(path: "shipped")
            let other = try await DiskCache(folder: shipped, configuration: unlimited())
            try await other.insert(bytes(40_000), for: "shipped")
            try await other.close()
            let cache = try await DiskCache(
                folder: folder.appending(path: "own"), configuration: unlimited { $0.readOnlyFolders = [shipped] })
            try await cache.insert(bytes(100), for: "small")
            try await cache.insert(bytes(40_000), for: "large")
            let writer = try await cache.writer(for: "written")
            try await writer.write(bytes(40_000))
            let file = try #require(try await cache.file(for: "large"))
            try await cache.close()

            func expectClosed(
                _ call: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
            ) async {
                await #expect(sourceLocation: sourceLocation) {
                    try await call()
                } throws: {
                    ($0 as? DiskCacheError)?.kind == .closed
                }
            }
            for key in ["small", "large", "shipped", "missing"] {
                await expectClosed { _ = try await cache.value(for: key) }
                await expectClosed { _ = try await cache.entry(for: key) }
                await expectClosed { _ = try await cache.mappedValue(for: key) }
                await expectClosed { _ = try await cache.file(for: key) }
                #expect(!cache.contains(key))
            }
            await expectClosed { try await cache.insert(contentsOf: [DiskCache.Item(bytes(1), for: "a")]) }
            await expectClosed { try await cache.insert(contentsOf: [DiskCache.Item]()) }
            await expectClosed { try cache.enqueue(bytes(1), for: "a") }
            await expectClosed { try await cache.flush() }
            await expectClosed { try await writer.write(bytes(1)) }
            await expectClosed { try await writer.commit() }
            await expectClosed { _ = try await cache.writer(for: "a") }
            await expectClosed { try await cache.remove("small") }
            await expectClosed { try await cache.removeAll() }
            await expectClosed { try await cache.removeAll(tagged: "t") }
            await expectClosed { try await cache.removeExpired() }
            await expectClosed { try await cache.trim(toBytes: 0) }
            await expectClosed { _ = try await cache.usage }
            #expect(try PosixDiskFiles().status(file.descriptor, "").size >= 40_000)
        }
    }

    @Test func theCacheRunsOnItsOwnThread() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            await cache.expectOwnThread()
        }
    }
}

extension DiskCache {
    fileprivate func expectOwnThread() {
        executor.checkIsolated()
        #expect(executor.isIsolatingCurrentContext() == true)
    }
}
