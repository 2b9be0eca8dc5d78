import Synchronization
import TernConcurrency
import Testing

@testable import DiskCrashChild
@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct DiskLimitTests {
    /// After each step, and in the middle of each (the file system checks at every call), the files take no more than
    /// the limit.
    @Test(arguments: [1, 2, 3])
    func theByteLimitHoldsAtAllTimes(seed: UInt64) async throws {
        try await withDiskFolder { folder in
            let limit = 8 << 20
            let most = Atomic<Int>(0)
            var dependencies = DiskStore.Dependencies()
            let look: @Sendable () -> Void = {
                // A folder that is deleted during the scan is scanned again with the next call.
                guard let files = try? diskFiles(folder) else { return }
                most.max(files.values.reduce(0, +), ordering: .relaxed)
            }
            let calls = Atomic<Int>(0)
            dependencies.files = FaultyDiskFiles { call, _ in
                if call != "read", calls.add(1, ordering: .relaxed).newValue % 7 == 0 { look() }
                return nil
            }
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited { $0.byteLimit = limit }, dependencies: dependencies)
            var random = Random(state: seed)
            for step in 0..<250 {
                let key = "\(random.below(2_000))"
                switch random.below(12) {
                case 0...5: try await cache.insert(bytes(random.below(16_000), step), for: key)
                case 6, 7: try await cache.insert(bytes(random.below(400_000), step), for: key)
                case 8:
                    try await cache.insert(
                        contentsOf: (0..<40).map { DiskCache.Item(bytes(4_000, $0), for: "\(step) \($0)") })
                case 9:
                    let writer = try await cache.writer(for: key)
                    for _ in 0..<random.below(12) { try await writer.write(bytes(50_000, step)) }
                    if random.below(2) == 0 { try await writer.commit() } else { await writer.abandon() }
                case 10: if step % 5 == 0 { try await cache.removeAll() } else { try await cache.remove(key) }
                default: _ = try await cache.value(for: key)
                }
                look()
                let usage = try await cache.usage
                #expect(usage.bytes <= limit)
            }
            #expect(most.load(ordering: .relaxed) <= limit)
            // The cache also uses the limit, instead of storing almost nothing.
            #expect(most.load(ordering: .relaxed) > limit / 2)
            #expect(try cache.leaks().filter { !$0.contains("/trash/") }.isEmpty)
        }
    }

    @Test func usageEqualsTheSizeOfTheFiles() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for number in 0..<50 { try await cache.insert(bytes(number * 1_700, number), for: "\(number)") }
            let usage = try await cache.usage
            let files = try diskFiles(folder)
            #expect(usage.fileBytes == files.filter { $0.key.contains("/values/") }.values.reduce(0, +))
            try await cache.close()
            let index = try diskFiles(folder).filter { $0.key.contains("index") }.values.reduce(0, +)
            #expect(index <= usage.indexBytes)
        }
    }

    @Test func theLeastRecentlyUsedAreEvictedFirst() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited { $0.countLimit = 3 })
            for key in ["a", "b", "c"] { try await cache.insert(bytes(20_000), for: key) }
            _ = try await cache.value(for: "a")
            try await cache.insert(bytes(20_000), for: "d")
            #expect(["a", "b", "c", "d"].filter { cache.contains($0) } == ["a", "c", "d"])
            // Replacing needs no room.
            try await cache.insert(bytes(20_000), for: "c")
            #expect(["a", "c", "d"].allSatisfy { cache.contains($0) })
            #expect(try cache.leaks().isEmpty)
        }
    }

    @Test func aValueThatCannotFitIsRefusedAndRemovesTheOldOne() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited { $0.byteLimit = 4 << 20 })
            try await cache.insert(bytes(100), for: "key")
            await #expect {
                try await cache.insert(bytes(5 << 20), for: "key")
            } throws: { ($0 as? DiskCacheError)?.kind == .tooLarge }
            #expect(!cache.contains("key"))
            try await cache.insert(bytes(1_000), for: "key")
            #expect(try await cache.value(for: "key") == bytes(1_000))
            #expect(try cache.leaks().isEmpty)
        }
    }

    /// The ways to store a value.
    enum Way: CaseIterable, Sendable { case insert, insertContents, enqueue, writer }

    @Test(arguments: Way.allCases)
    func aValueThatCannotFitEvictsNoOtherEntry(way: Way) async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(
                folder: folder,
                configuration: unlimited { ($0.byteLimit, $0.queuedByteLimit) = (8 << 20, 16 << 20) })
            for number in 0..<40 { try await cache.insert(bytes(number % 2 * 100_000 + 50, number), for: "\(number)") }
            try await cache.insert(bytes(100), for: "key")
            let events = cache.events
            let large = bytes(9 << 20)
            await #expect {
                switch way {
                case .insert: try await cache.insert(large, for: "key")
                case .insertContents:
                    try await cache.insert(contentsOf: [
                        DiskCache.Item(bytes(10), for: "other"), DiskCache.Item(large, for: "key"),
                    ])
                case .enqueue:
                    try cache.enqueue(large, for: "key")
                    try await cache.flush()
                case .writer:
                    let writer = try await cache.writer(for: "key")
                    try await writer.write(large)
                    try await writer.commit()
                }
            } throws: {
                ($0 as? DiskCacheError)?.kind == .tooLarge
            }
            #expect((0..<40).allSatisfy { cache.contains("\($0)") })
            // The old value of the key is outdated.
            #expect(!cache.contains("key") && !cache.contains("other"))
            #expect(try await cache.value(for: "39") == bytes(100_050, 39))
            #expect(try cache.leaks().isEmpty)
            try await cache.close()
            for await event in events {
                if case .evicted = event { Issue.record("an entry was evicted") }
            }
        }
    }

    @Test func aValueThatCannotFitFailsAloneInASharedTransaction() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited { $0.byteLimit = 8 << 20 })
            for number in 0..<20 { try await cache.insert(bytes(100_000, number), for: "\(number)") }
            for number in 20..<40 { try cache.enqueue(bytes(1_000, number), for: "\(number)") }
            try cache.enqueue(bytes(7 << 20), for: "large")
            for number in 40..<60 { try cache.enqueue(bytes(1_000, number), for: "\(number)") }
            await #expect {
                try await cache.flush()
            } throws: { ($0 as? DiskCacheError)?.kind == .tooLarge }
            #expect((0..<60).allSatisfy { cache.contains("\($0)") })
            #expect(!cache.contains("large"))
        }
    }

    @Test func theCountLimitHoldsWhenAReplacedEntryIsEvictedFirst() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited { $0.countLimit = 3 })
            for key in ["a", "b", "c"] { try await cache.insert(bytes(100), for: key) }
            try await cache.insert(contentsOf: ["a", "d"].map { DiskCache.Item(bytes(200), for: $0) })
            #expect(try await cache.usage.count == 3)
            #expect(["a", "b", "c", "d"].filter { cache.contains($0) } == ["a", "c", "d"])
            await #expect {
                try await cache.insert(contentsOf: ["e", "f", "g", "h"].map { DiskCache.Item(bytes(1), for: $0) })
            } throws: { ($0 as? DiskCacheError)?.kind == .tooLarge }
            #expect(["a", "c", "d"].allSatisfy { cache.contains($0) })
        }
    }

    @Test func aSmallerLimitIsReachedByOpening() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for number in 0..<120 {
                try await cache.insert(bytes(number % 2 == 0 ? 10_000 : 100_000, number), for: "\(number)")
            }
            try await cache.close()
            let again = try await DiskCache(folder: folder, configuration: unlimited { $0.byteLimit = 4 << 20 })
            #expect(try diskFiles(folder).values.reduce(0, +) <= 4 << 20)
            #expect(again.contains("119"))
            #expect(!again.contains("0"))
            try await again.trim(toBytes: 600_000)
            #expect(try await again.usage.bytes <= 1_200_000)
            #expect(again.contains("119"))
        }
    }

    @Test func aTrimBelowZeroIsOneToZero() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            for key in 0..<4 { try await cache.insert(bytes(key % 2 == 0 ? 100 : 40_000, key), for: "\(key)") }
            try await cache.trim(toBytes: .min)
            #expect(try await cache.usage.count == 0)
            try await cache.insert(bytes(100), for: "again")
            #expect(try await cache.value(for: "again") == bytes(100))
        }
    }

    @Test func spaceIsLeftFreeOnTheDisk() async throws {
        try await withDiskFolder { folder in
            let free = Lock(1 << 30)
            var dependencies = DiskStore.Dependencies()
            dependencies.files = ScarceDisk(free: { free.withLock { $0 } })
            let cache = try await DiskCache(
                folder: folder, configuration: unlimited { $0.minimumFreeBytes = 100 << 20 }, dependencies: dependencies
            )
            try await cache.insert(bytes(50_000), for: "a")
            free.withLock { $0 = 50 << 20 }
            await #expect {
                try await cache.insert(bytes(50_000), for: "b")
            } throws: { ($0 as? DiskCacheError)?.kind == .noSpace }
            #expect(!cache.contains("a"))
            free.withLock { $0 = 1 << 30 }
            try await cache.insert(bytes(50_000), for: "b")
            #expect(cache.contains("b"))
        }
    }
}

/// The system's files on a disk with an injected amount of free space.
private struct ScarceDisk: DiskFileSystem {
    private let files = PosixDiskFiles()
    let free: @Sendable () -> Int

    init(free: @escaping @Sendable () -> Int) { self.free = free }

    func makeFolder(_ path: String) throws(DiskCacheError) { try files.makeFolder(path) }
    func open(_ path: String) throws(DiskCacheError) -> Int32 { try files.open(path) }
    func create(_ path: String) throws(DiskCacheError) -> Int32 { try files.create(path) }
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String) throws(DiskCacheError) {
        unsafe try files.write(bytes, to: descriptor, path: path)
    }
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, path: String
    ) throws(DiskCacheError) -> Int { unsafe try files.read(descriptor, into: buffer, at: offset, path: path) }
    func status(_ descriptor: Int32, _ path: String) throws(DiskCacheError) -> DiskFileStatus {
        try files.status(descriptor, path)
    }
    func status(of path: String) throws(DiskCacheError) -> DiskFileStatus? { try files.status(of: path) }
    func close(_ descriptor: Int32) { files.close(descriptor) }
    func rename(_ path: String, to destination: String) throws(DiskCacheError) {
        try files.rename(path, to: destination)
    }
    func remove(_ path: String) throws(DiskCacheError) { try files.remove(path) }
    func removeFolder(_ path: String) throws(DiskCacheError) { try files.removeFolder(path) }
    func names(in path: String) throws(DiskCacheError) -> [String] { try files.names(in: path) }
    func freeBytes(at path: String) throws(DiskCacheError) -> Int { free() }
}
