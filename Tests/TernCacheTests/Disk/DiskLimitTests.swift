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
    /// After each step, and in the middle of each (the seam looks at every call), the files take no more than the limit.
    @Test(arguments: [1, 2, 3])
    func theByteLimitHoldsAtAllTimes(seed: UInt64) async throws {
        try await inDiskFolder { folder in
            let limit = 8 << 20
            let most = Atomic<Int>(0)
            var seams = DiskStore.Seams()
            let look: @Sendable () -> Void = {
                // A folder that goes while it is looked through is looked at again with the next call.
                guard let files = try? diskFiles(folder) else { return }
                most.max(files.values.reduce(0, +), ordering: .relaxed)
            }
            let calls = Atomic<Int>(0)
            seams.files = FaultyDiskFiles { call, _ in
                if call != "read", calls.add(1, ordering: .relaxed).newValue % 7 == 0 { look() }
                return nil
            }
            let cache = try await DiskCache(
                folder: folder, configuration: roomy { $0.byteLimit = limit }, seams: seams)
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
            // The limit is used, too, and not kept by storing next to nothing.
            #expect(most.load(ordering: .relaxed) > limit / 2)
            #expect(try cache.leaks().filter { !$0.contains("/trash/") }.isEmpty)
        }
    }

    @Test func usageIsWhatTheFilesTake() async throws {
        try await inDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: roomy())
            for number in 0..<50 { try await cache.insert(bytes(number * 1_700, number), for: "\(number)") }
            let usage = try await cache.usage
            let files = try diskFiles(folder)
            #expect(usage.fileBytes == files.filter { $0.key.contains("/values/") }.values.reduce(0, +))
            try await cache.close()
            let index = try diskFiles(folder).filter { $0.key.contains("index") }.values.reduce(0, +)
            #expect(index <= usage.indexBytes)
        }
    }

    @Test func theLeastRecentlyUsedGoFirst() async throws {
        try await inDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: roomy { $0.countLimit = 3 })
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
        try await inDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: roomy { $0.byteLimit = 4 << 20 })
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

    @Test func aSmallerLimitIsReachedByOpening() async throws {
        try await inDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: roomy())
            for number in 0..<120 {
                try await cache.insert(bytes(number % 2 == 0 ? 10_000 : 100_000, number), for: "\(number)")
            }
            try await cache.close()
            let again = try await DiskCache(folder: folder, configuration: roomy { $0.byteLimit = 4 << 20 })
            #expect(try diskFiles(folder).values.reduce(0, +) <= 4 << 20)
            #expect(again.contains("119"))
            #expect(!again.contains("0"))
            try await again.trim(toBytes: 600_000)
            #expect(try await again.usage.bytes <= 1_200_000)
            #expect(again.contains("119"))
        }
    }

    @Test func aTrimBelowZeroIsOneToZero() async throws {
        try await inDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: roomy())
            for key in 0..<4 { try await cache.insert(bytes(key % 2 == 0 ? 100 : 40_000, key), for: "\(key)") }
            try await cache.trim(toBytes: .min)
            #expect(try await cache.usage.count == 0)
            try await cache.insert(bytes(100), for: "again")
            #expect(try await cache.value(for: "again") == bytes(100))
        }
    }

    @Test func spaceIsLeftFreeOnTheDisk() async throws {
        try await inDiskFolder { folder in
            let free = Lock(1 << 30)
            var seams = DiskStore.Seams()
            seams.files = ScarceDisk(free: { free.withLock { $0 } })
            let cache = try await DiskCache(
                folder: folder, configuration: roomy { $0.minimumFreeBytes = 100 << 20 }, seams: seams)
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

/// The system's files on a disk that says how much of it is free.
private struct ScarceDisk: DiskFileSystem {
    private let files = PosixDiskFiles()
    let free: @Sendable () -> Int

    init(free: @escaping @Sendable () -> Int) { self.free = free }

    func makeFolder(_ path: String) throws(DiskCacheError) { try files.makeFolder(path) }
    func open(_ path: String) throws(DiskCacheError) -> Int32 { try files.open(path) }
    func create(_ path: String) throws(DiskCacheError) -> Int32 { try files.create(path) }
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ path: String) throws(DiskCacheError) {
        unsafe try files.write(bytes, to: descriptor, path)
    }
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, _ path: String
    ) throws(DiskCacheError) -> Int { unsafe try files.read(descriptor, into: buffer, at: offset, path) }
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
