import Foundation
import Tern
import Testing

@testable import TernCache
@testable import TernHTTPCache

/// The records of a store on the disk that it also keeps in memory.
@Suite("HTTP cache: records in memory", .timeLimit(.minutes(1)))
struct DiskMemoryTests {
    private let body = Data("body".utf8)

    /// Checks that a look-up in memory has the same result as one on the disk: all of it, or none because it must be
    /// read.
    private func check(_ store: DiskEntryStore, _ key: CacheKey, isKnown: Bool? = nil) async throws {
        let now = store.entriesNow(for: key)
        if let isKnown { #expect((now != nil) == isKnown) }
        let read = await store.entries(for: key)
        guard let now else { return }
        #expect(now.map(\.properties) == read.map(\.properties))
    }

    @Test func aSmallResponseIsInMemoryOnceItWasWrittenOrRead() async throws {
        try await withFolder { folder in
            let key = CacheKey.path("a")
            for isWritten in [true, false] {
                let cache = try await DiskCache(folder: folder)
                let store = DiskEntryStore(cache, entryLimit: 1 << 20)
                if isWritten {
                    await store.insert(.whole(1, key, count: 4), body: body, replacing: [], generation: 0)
                } else {
                    #expect(store.entriesNow(for: key) == nil)
                    #expect(await store.entries(for: key).map(\.id) == [1])
                }
                let entry = try #require(store.entriesNow(for: key)?.first)
                #expect(store.bodyNow(of: entry, range: 0..<4) == body)
                #expect(store.bodyNow(of: entry, range: 1..<3) == Data("od".utf8))
                #expect(store.bodyNow(of: entry, range: 1..<5) == nil)
                #expect(store.entriesNow(for: .path("b"))?.isEmpty == true)
                try await cache.close()
                // A closed cache has no entries.
                #expect(store.entriesNow(for: key)?.isEmpty == true)
            }
        }
    }

    @Test func eachChangeIsSeenAtOnce() async throws {
        try await withFolder { folder in
            let cache = try await DiskCache(folder: folder)
            let (store, other) = (
                DiskEntryStore(cache, entryLimit: 1 << 20), DiskEntryStore(cache, entryLimit: 1 << 20)
            )
            let key = CacheKey.path("a")
            let entry = CacheEntry.whole(1, key, ["X": "1"], count: 4)
            func insert() async {
                await store.insert(entry, body: body, replacing: [], generation: store.generation)
                #expect(store.entriesNow(for: key)?.count == 1)
            }
            await insert()
            await other.update([entry.changing { $0.headers["X"] = "2" }], generation: other.generation)
            #expect(store.entriesNow(for: key)?.first?.headers["X"] == "2")
            await other.remove([entry])
            #expect(store.entriesNow(for: key)?.isEmpty == true)
            await insert()
            await other.invalidate(CacheInvalidation(keys: [key], groups: []))
            #expect(store.entriesNow(for: key)?.isEmpty == true)
            await insert()
            await other.removeAll(partition: key.partition)
            #expect(store.entriesNow(for: key)?.isEmpty == true)
            await insert()
            await other.removeAll()
            #expect(store.entriesNow(for: key)?.isEmpty == true)
            await insert()
            // The limits of the disk hold for what is in memory.
            try await cache.trim(toBytes: 0)
            #expect(store.entriesNow(for: key)?.isEmpty == true)
            #expect(store.bodyNow(of: entry, range: 0..<4) == nil)
            try await cache.close()
        }
    }

    @Test func aRecordInMemoryHasNoCookies() async throws {
        try await withFolder { folder in
            let cache = try await DiskCache(folder: folder)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            let key = CacheKey.path("a")
            let entry = CacheEntry.whole(1, key, ["X": "1", "Set-Cookie": "a=b"], count: 4)
            await store.insert(entry, body: body, replacing: [], generation: 0)
            #expect(store.entriesNow(for: key)?.first?.headers == ["X": "1"])
            try await cache.close()
        }
    }

    @Test func aHitInMemoryIsAUse() async throws {
        try await withFolder { folder in
            var configuration = DiskCache.Configuration()
            configuration.countLimit = 10
            let cache = try await DiskCache(folder: folder, configuration: configuration)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            for id in 1...40 as ClosedRange<UInt64> {
                await store.insert(
                    .whole(id, .path("\(id)"), count: 4), body: body, replacing: [], generation: 0)
                #expect(store.entriesNow(for: .path("1"))?.count == 1, "\(id)")
            }
            #expect(store.entriesNow(for: .path("2"))?.isEmpty == true)
            try await cache.close()
        }
    }

    @Test func concurrentReadersAndWritersNeverSeeAnOldRecord() async throws {
        try await withFolder { folder in
            let cache = try await DiskCache(folder: folder)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            let keys = (0..<4).map { CacheKey.path("\($0)") }
            try await withThrowingTaskGroup { group in
                for (number, key) in keys.enumerated() {
                    group.addTask {
                        // The only writer of its key.
                        for version in 1...100 as ClosedRange<UInt64> {
                            let id = UInt64(number) << 32 | version
                            let old = await store.entries(for: key)
                            await store.insert(
                                .whole(id, key, ["X": "\(version)"], count: 4), body: body, replacing: old,
                                generation: store.generation)
                            let found = store.entriesNow(for: key)
                            #expect(found == nil || found?.map(\.id) == [id])
                            if version % 10 == 0 { await store.invalidate(CacheInvalidation(keys: [key], groups: [])) }
                            if version % 10 == 0 { #expect(store.entriesNow(for: key)?.isEmpty == true) }
                        }
                    }
                    // Readers that put records into memory.
                    for _ in 0..<3 {
                        group.addTask { for _ in 0..<200 { _ = await store.entries(for: key) } }
                    }
                }
                try await group.waitForAll()
            }
            for key in keys { try await check(store, key) }
            try await cache.close()
        }
    }
}
