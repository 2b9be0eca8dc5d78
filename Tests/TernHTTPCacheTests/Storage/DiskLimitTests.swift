import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernCache
@testable import TernHTTPCache

/// The limits of the folder, disks that are full, and changes at the same time.
@Suite("HTTP cache: limits of the disk", .timeLimit(.minutes(2)))
struct DiskLimitTests {
    private let body = Data("body".utf8)

    @Test func theByteLimitHoldsAtAllTimes() async throws {
        let limit = 6 << 20
        let pattern = LoopbackServer.Pattern(count: 1 << 20)
        try await withDisk(byteLimit: limit, entryByteLimit: 2 << 20) { exchange in
            let size = Int(exchange.request.target.split(separator: "-").last ?? "") ?? 0
            try exchange.serveFile(
                LoopbackServer.Pattern(count: size), headers: [("Cache-Control", "max-age=60")])
        } test: { cached, disk, folder in
            for number in 0..<60 {
                let size = [100, 6_000, 14_000, 60_000, 700_000, 1 << 20][number % 6]
                for try await _ in cached.client.stream("\(number)-\(size)").chunks {
                    try await cached.cache.written(to: disk)
                    #expect(try taken(folder) <= limit)
                }
                try await until { cached.cache.statistics.stored > number }
                #expect(try taken(folder) <= limit)
            }
            let last = try await cached.get("59-1048576")
            #expect(last.cacheTrace?.source == .stored)
            #expect(last.value.count == pattern.count && pattern.matches(last.value))
            #expect(cached.requestCount == 60)
        }
    }

    /// The bytes that the files of a folder take.
    private func taken(_ folder: URL) throws -> Int {
        try files(below: folder).reduce(0) { sum, file in
            sum + (try PosixDiskFiles().status(of: file.path(percentEncoded: false))?.allocated ?? 0)
        }
    }

    @Test func aBodyLargerThanTheFolderEmptiesNothing() async throws {
        let limit = 6 << 20
        try await withDisk(byteLimit: limit) { exchange in
            let size = Int(exchange.request.target.split(separator: "-").last ?? "") ?? 0
            try exchange.writeChunkedHead(headers: [("Cache-Control", "max-age=60")])
            for _ in 0..<max(1, size >> 18) { try exchange.writeChunk(Array(repeating: 1, count: min(size, 1 << 18))) }
            try exchange.endChunks()
        } test: { cached, disk, _ in
            let first = try await cached.get("a-100000")
            let trace = await first.storedTrace()
            #expect(trace?.isStored == true)
            for try await _ in cached.client.stream("b-\(8 << 20)").chunks {
                try await cached.cache.written(to: disk)
            }
            let again = try await cached.get("a-100000")
            #expect(again.cacheTrace?.source == .stored)
        }
    }

    @Test(arguments: [4, 50_000, 600_000])
    func aFullDiskFailsNoRequestAndKeepsNoOutdatedResponse(count: Int) async throws {
        let hook = FileHook()
        let number = Counter()
        try await withDisk(hook) { exchange in
            let text = String(repeating: "\(number.next())", count: count)
            try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: text)
        } test: { cached, disk, _ in
            let first = try await cached.get()
            let stored = await first.storedTrace()
            #expect(stored?.isStored == true)
            hook.set { call in
                // ENOSPC, and SQLITE_FULL for a changed record.
                if call == "write" || call == "create" { return 28 }
                return call.hasPrefix("INSERT") ? 13 : nil
            }
            let second = try await cached.get(cache: .reload)
            #expect(second.value == Data(String(repeating: "2", count: count).utf8))
            let failed = await second.storedTrace()
            #expect(failed?.storing == "store-failed")
            try await until { cached.cache.shared.waitingBytes == 0 }
            // The first response is outdated, although the second could not take its place.
            let third = try await cached.get()
            #expect(third.value == Data(String(repeating: "3", count: count).utf8))
            _ = await third.storedTrace()
            hook.set(nil)
            let fourth = try await cached.get()
            let again = await fourth.storedTrace()
            #expect(again?.isStored == true)
        }
    }

    @Test func aConfirmationThatCannotBeWrittenIsDeliveredAllTheSame() async throws {
        let hook = FileHook()
        try await withDisk(hook) { exchange in
            try exchange.serveFile(LoopbackServer.Pattern(count: 50_000), headers: [("Cache-Control", "max-age=5")])
        } test: { cached, _, _ in
            let first = try await cached.get()
            _ = await first.storedTrace()
            cached.clock.advance(10)
            hook.set { $0.hasPrefix("INSERT") ? 13 : nil }
            let confirmed = try await cached.get()
            #expect(confirmed.value == first.value)
            #expect(confirmed.cacheTrace?.source == .validated)
            hook.set(nil)
        }
    }

    // MARK: Changes at the same time

    /// Holds up the thread of the disk at the first insert of a record, and invalidates meanwhile.
    private func withHeldInsert(
        _ entry: CacheEntry, _ invalidate: @escaping @Sendable (DiskEntryStore) async -> Void,
        test: (DiskEntryStore) async throws -> Void
    ) async throws {
        try await withFolder { folder in
            let (hook, gate, arrived) = (FileHook(), ThreadGate(), LoopbackServer.Gate())
            let cache = try await hook.cache(at: folder)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            hook.set { call in
                guard call.hasPrefix("INSERT") else { return nil }
                arrived.open()
                gate.pass()
                return nil
            }
            let generation = store.generation
            async let isStored = store.insert(entry, body: body, replacing: [], generation: generation)
            try await arrived.wait()
            async let invalidated: Void = invalidate(store)
            try await until { store.generation != generation }
            gate.open()
            _ = await isStored
            await invalidated
            hook.set(nil)
            try await test(store)
            try await cache.close()
        }
    }

    @Test func anInvalidationDuringAnInsertRemovesTheEntry() async throws {
        let key = CacheKey.path("a")
        try await withHeldInsert(.whole(1, key, count: 4)) { store in
            await store.invalidate(CacheInvalidation(keys: [key], groups: []))
        } test: { store in
            #expect(await store.entries(for: key).isEmpty)
        }
    }

    @Test func aRemovalOfAUserDuringAnInsertRemovesTheEntry() async throws {
        let key = CacheKey.path("a", partition: "user")
        try await withHeldInsert(.whole(1, key, count: 4)) { store in
            await store.removeAll(partition: "user")
        } test: { store in
            #expect(await store.entries(for: key).isEmpty)
        }
    }

    @Test func rulesAreStoredAgainAfterARemovalOfEverything() async throws {
        try await withFolder { folder in
            let first = try await FileHook().cache(at: folder)
            let store = DiskEntryStore(first, entryLimit: 1 << 20)
            let rule: Headers = ["No-Vary-Search": "params=(\"utm\")"]
            func url(_ query: String) -> CacheKey { CacheKey(origin: "http://example.com:80", path: "/", query: query) }
            await store.insert(.whole(1, url("utm=1"), rule, count: 4), body: body, replacing: [], generation: 0)
            await store.removeAll()
            await store.insert(
                .whole(2, url("utm=2"), rule, count: 4), body: body, replacing: [], generation: store.generation)
            try await first.close()
            let second = try await FileHook().cache(at: folder)
            let again = DiskEntryStore(second, entryLimit: 1 << 20)
            #expect(await again.entries(for: url("utm=3")).map(\.id) == [2])
            try await second.close()
        }
    }

    // MARK: Many entries

    /// `TERN_CACHE_ENTRIES=100000` measures; fewer entries only exercise the same calls.
    @Test func manyEntriesAreOpenedFoundAndRemoved() async throws {
        let count = ProcessInfo.processInfo.environment["TERN_CACHE_ENTRIES"].flatMap { Int($0) } ?? 500
        try await withFolder { folder in
            let first = try await FileHook().cache(at: folder)
            let filled = DiskEntryStore(first, entryLimit: 1 << 20)
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<64 {
                    group.addTask { [body] in
                        for id in stride(from: worker, to: count, by: 64) {
                            await filled.insert(
                                .whole(UInt64(id), .path("\(id)"), ["Cache-Control": "max-age=60"], count: 4),
                                body: body, replacing: [], generation: 0)
                        }
                    }
                }
            }
            try await first.close()
            let clock = ContinuousClock()
            var opened: DiskCache?
            let opening = try await clock.measure { opened = try await FileHook().cache(at: folder) }
            let cache = try #require(opened)
            let store = DiskEntryStore(cache, entryLimit: 1 << 20)
            let sample = stride(from: 0, to: count, by: max(1, count / 500)).map { $0 }
            var found = 0
            let lookUps = await clock.measure {
                for id in sample { found += await store.entries(for: .path("\(id)")).count }
            }
            let removals = await clock.measure {
                for id in sample { await store.remove([.whole(UInt64(id), .path("\(id)"), count: 4)]) }
            }
            #expect(found == sample.count)
            #expect(try await cache.usage.count == count - sample.count)
            let (lookUp, removal) = (lookUps / sample.count, removals / sample.count)
            print("\(count) entries: open \(opening), look-up \(lookUp), removal \(removal)")
            try await cache.close()
        }
    }
}
