import Foundation
import Tern
import TernTesting
import Testing

@testable import TernCache
@testable import TernHTTPCache

/// Files that change under the cache: a miss or the right bytes.
@Suite("HTTP cache: damage", .timeLimit(.minutes(2)))
struct DiskDamageTests {
    private let pattern = LoopbackServer.Pattern(count: 300_000)

    private func body(_ count: Int) -> Data { Data(pattern.bytes(in: 0..<count)) }

    /// The file of the only large value in a folder.
    private func valueFile(_ folder: URL) async throws -> URL {
        let values = folder.appending(path: "values")
        // The file of a value that was found damaged is deleted after the look-up.
        try await until { try files(below: values).count == 1 }
        return try #require(try files(below: values).first)
    }

    /// Looks an entry up, and checks that it is whole or missing. Returns whether it was found.
    private func isFound(_ key: CacheKey, _ store: DiskEntryStore, _ body: Data) async -> Bool {
        guard let entry = await store.entries(for: key).first else { return false }
        #expect(entry.headers["X"] == key.path)
        guard let found = await store.body(of: entry, range: 0..<Int64(body.count)) else { return false }
        #expect(found == body)
        return found == body
    }

    /// The positions of a file to damage: each third of the last 1,200 bytes, where the trailer is, so that no field of
    /// it is left out, and some of the others; fewer in a large file, which is mapped and has the same trailer.
    private func positions(_ count: Int) -> [Int] {
        let trailer = max(0, count - 1_200)
        let isLarge = count > 100_000
        return Array(stride(from: 0, to: trailer, by: isLarge ? 4_999 : 997))
            + Array(stride(from: trailer, to: count, by: isLarge ? 11 : 3))
    }

    @Test(arguments: [20_000, 300_000])
    func eachAlteredByteOfABodyIsAMiss(count: Int) async throws {
        try await withFolder { folder in
            let cache = try await FileHook().cache(at: folder)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            let (key, body) = (CacheKey.path("a"), body(count))
            let entry = CacheEntry.whole(1, key, ["X": "/a"], count: count)
            await store.insert(entry, body: body, replacing: [], generation: 0)
            let size = try Data(contentsOf: try await valueFile(folder)).count
            #expect(size > count && size < count + 1_000)
            for position in positions(size) {
                let file = try await valueFile(folder)
                let handle = try FileHandle(forUpdating: file)
                // Each file has a time and a checksum of its own.
                try handle.seek(toOffset: UInt64(position))
                let byte = try #require(try handle.read(upToCount: 1)?.first)
                try handle.seek(toOffset: UInt64(position))
                try handle.write(contentsOf: [byte ^ 0x40])
                try handle.close()
                // A small range is verified as the whole is.
                #expect(await store.body(of: entry, range: 0..<10) == nil, "\(position)")
                await store.insert(entry, body: body, replacing: [], generation: 0)
            }
            #expect(await isFound(key, store, body))
            try await cache.close()
        }
    }

    @Test(arguments: [20_000, 300_000])
    func aTruncatedOrLongerBodyIsAMiss(count: Int) async throws {
        try await withFolder { folder in
            let cache = try await FileHook().cache(at: folder)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            let (key, body) = (CacheKey.path("a"), body(count))
            let entry = CacheEntry.whole(1, key, ["X": "/a"], count: count)
            for cut in [0, 1, 100, count - 1, count, count + 1, count + 60, count + 200, count + 5_000] {
                await store.insert(entry, body: body, replacing: [], generation: 0)
                let file = try await valueFile(folder)
                let size = try Data(contentsOf: file).count
                let handle = try FileHandle(forUpdating: file)
                try handle.truncate(atOffset: UInt64(cut))
                try handle.close()
                // Bytes after the trailer do not matter.
                #expect(await isFound(key, store, body) == (cut >= size), "\(cut)")
            }
            try await cache.close()
        }
    }

    @Test func bodiesThatWereSwappedAreMisses() async throws {
        try await withFolder { folder in
            let cache = try await FileHook().cache(at: folder)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            let other = Data(repeating: 7, count: 30_000)
            let (a, b) = (CacheKey.path("a"), CacheKey.path("b"))
            await store.insert(
                .whole(1, a, ["X": "/a"], count: 30_000), body: body(30_000), replacing: [], generation: 0)
            await store.insert(.whole(2, b, ["X": "/b"], count: 30_000), body: other, replacing: [], generation: 0)
            let paths = try files(below: folder.appending(path: "values"))
            try #require(paths.count == 2)
            let contents = try paths.map { try Data(contentsOf: $0) }
            try contents[1].write(to: paths[0])
            try contents[0].write(to: paths[1])
            #expect(await !isFound(a, store, body(30_000)))
            #expect(await !isFound(b, store, other))
            // Under the names of the index: the value of one key under another.
            await store.insert(
                .whole(1, a, ["X": "/a"], count: 30_000), body: body(30_000), replacing: [], generation: 0)
            try await cache.insert(other.prefix(29_999), for: "body 1")
            #expect(await !isFound(a, store, body(30_000)))
            try await cache.close()
        }
    }

    @Test func recordsThatWereSwappedAreMisses() async throws {
        try await withFolder { folder in
            let cache = try await FileHook().cache(at: folder)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            let keys = [CacheKey.path("a"), CacheKey.path("b"), CacheKey.path("a", partition: "p")]
            for (id, key) in keys.enumerated() {
                let entry = CacheEntry.whole(UInt64(id), key, ["X": key.path], count: 4)
                await store.insert(entry, body: Data("body".utf8), replacing: [], generation: 0)
            }
            let heads = try await keys.asyncMap { try await cache.value(for: "head " + $0.text) }
            for (number, key) in keys.enumerated() {
                for other in keys.indices where other != number {
                    try await cache.insert(try #require(heads[other]), for: "head " + key.text)
                    #expect(await store.entries(for: key).isEmpty)
                }
            }
            try await cache.close()
        }
    }

    @Test func alteredBytesOfTheIndexAreMisses() async throws {
        try await withFolder { folder in
            let hook = FileHook()
            let body = body(4_000)
            let key = CacheKey.path("a")
            let first = try await hook.cache(at: folder)
            await DiskEntryStore(first, entryLimit: 1 << 20).insert(
                .whole(1, key, ["X": "/a"], count: body.count), body: body, replacing: [], generation: 0)
            try await first.close()
            let index = folder.appending(path: "index.sqlite")
            let original = try Data(contentsOf: index)
            var found = 0
            for position in stride(from: 0, to: original.count, by: original.count / 150) {
                var bytes = original
                bytes[position] ^= 0x11
                try bytes.write(to: index)
                let cache = try await hook.cache(at: folder)
                let store = DiskEntryStore(cache, entryLimit: 1 << 20)
                if await isFound(key, store, body) { found += 1 }
                // The cache is of use all the same.
                let stored = await store.insert(
                    .whole(2, .path("b"), ["X": "/b"], count: body.count), body: body, replacing: [], generation: 0)
                #expect(stored, "\(position)")
                try await cache.close()
                for file in try files(below: folder) { try FileManager.default.removeItem(at: file) }
            }
            #expect(found > 0)
        }
    }

    @Test func aHeadOrABodyAloneIsAMiss() async throws {
        try await withFolder { folder in
            let cache = try await FileHook().cache(at: folder)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            let (key, body) = (CacheKey.path("a"), body(20_000))
            let entry = CacheEntry.whole(1, key, ["X": "/a"], count: body.count)
            await store.insert(entry, body: body, replacing: [], generation: 0)
            try await cache.remove("head " + key.text)
            #expect(await store.entries(for: key).isEmpty)
            await store.update([entry], generation: store.generation)
            #expect(await store.entries(for: key).isEmpty)
            await store.insert(entry, body: body, replacing: [], generation: 0)
            try await cache.remove("body 1")
            #expect(await !isFound(key, store, body))
            #expect(try await cache.usage.count == 0)
            try await cache.close()
        }
    }

    /// The process has no descriptor left when the record is to be read.
    @Test func anInvalidationReachesARecordThatCannotBeRead() async throws {
        try await withFolder { folder in
            let hook = FileHook()
            let (key, bytes) = (CacheKey.path("a"), body(20_000))
            do {
                let cache = try await hook.cache(at: folder)
                let store = DiskEntryStore(cache, entryLimit: 1 << 20)
                let headers: Headers = ["X": "/a", "Y": String(repeating: "y", count: 20_000)]
                await store.insert(.whole(1, key, headers, count: 20_000), body: bytes, replacing: [], generation: 0)
                try await cache.close()
            }
            // Another process, which has nothing in memory.
            let cache = try await hook.cache(at: folder)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            hook.set { $0 == "open" ? EMFILE : nil }
            #expect(await store.entries(for: key).isEmpty)
            #expect(await store.invalidate(CacheInvalidation(keys: [key], groups: [])) == nil)
            hook.set(nil)
            #expect(await store.entries(for: key).isEmpty)
            try await cache.close()
        }
    }
}

extension Sequence {
    fileprivate func asyncMap<Value>(_ transform: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}
