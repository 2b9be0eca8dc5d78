import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernCache
@testable import TernHTTPCache

/// Several caches of one folder.
@Suite("HTTP cache: shared folders", .timeLimit(.minutes(1)))
struct SharedFolderTests {
    @Test func twoCachesOfOneFolderLoseNoChangeOfARecord() async throws {
        try await withFolder { folder in
            let disk = try await FileHook().cache(at: folder)
            let stores = [DiskEntryStore(disk, entryLimit: 1 << 20), DiskEntryStore(disk, entryLimit: 1 << 20)]
            let key = CacheKey.path("a")
            await withTaskGroup(of: Void.self) { group in
                for id in 1...UInt64(CacheRecord.limit) {
                    group.addTask {
                        await stores[Int(id % 2)].insert(
                            .whole(id, key, count: 4), body: Data("body".utf8), replacing: [], generation: 0)
                    }
                }
            }
            #expect(Set(await stores[0].entries(for: key).map(\.id)) == Set(1...UInt64(CacheRecord.limit)))
            try await disk.close()
        }
    }

    @Test func twoCachesOfOneFolderShareInvalidationsAndSearchRules() async throws {
        try await withFolder { folder in
            let disk = try await FileHook().cache(at: folder)
            let (one, two) = (DiskEntryStore(disk, entryLimit: 1 << 20), DiskEntryStore(disk, entryLimit: 1 << 20))
            let (key, body) = (CacheKey.path("a"), Data("body".utf8))
            let sent = one.generation
            await two.invalidate(CacheInvalidation(keys: [key], groups: []))
            #expect(await !one.insert(.whole(1, key, count: 4), body: body, replacing: [], generation: sent))
            let rule: Headers = ["No-Vary-Search": "params=(\"utm\")"]
            func url(_ query: String) -> CacheKey {
                CacheKey(origin: key.origin, path: "/s", query: query)
            }
            // The second store has looked before, and knows that there is no rule.
            #expect(await two.entries(for: url("utm=2")).isEmpty)
            await one.insert(
                .whole(2, url("utm=1"), rule, count: 4), body: body, replacing: [], generation: one.generation)
            #expect(await two.entries(for: url("utm=2")).map(\.id) == [2])
            try await disk.close()
        }
    }

    @Test func twoSessionsShareOneFolder() async throws {
        try await withFolder { folder in
            let server = try LoopbackServer(handler: numbered([("Cache-Control", "max-age=60")]))
            defer { server.stop() }
            let clients = (0..<2).map { _ in
                Client(
                    baseURL: server.url,
                    session: Session(configuration: .cached(.disk(folder: folder)) { $0.partition = "user" }))
            }
            let first = try await clients[0].session.response(for: clients[0].request(.get, "a"))
            let trace = await first.storedTrace()
            #expect(trace?.isStored == true)
            let second = try await clients[1].session.response(for: clients[1].request(.get, "a"))
            #expect(second.cacheTrace?.source == .stored)
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test func aFolderInUseIsReportedAndUsedOnceItIsFree() async throws {
        try await withFolder { folder in
            let holder = try await DiskCache(folder: folder)
            let server = try LoopbackServer(handler: numbered([("Cache-Control", "max-age=60")]))
            defer { server.stop() }
            let cache = HTTPCache.disk(folder: folder)
            let client = Client(baseURL: server.url, session: Session(configuration: .cached(cache)))
            let request = try client.request(.get, "a")
            for _ in 0..<2 {
                let response = try await client.session.response(for: request)
                #expect(response.cacheTrace?.storing == "store-unavailable")
                #expect(response.cacheTrace?.source == .network)
            }
            let failure = await #expect(throws: HTTPCache.Failure.self) { try await cache.open() }
            #expect(failure?.reason.isEmpty == false)
            try await holder.close()
            try await cache.open()
            let third = try await client.session.response(for: request)
            let trace = await third.storedTrace()
            #expect(trace?.isStored == true)
            let fourth = try await client.session.response(for: request)
            #expect(fourth.cacheTrace?.source == .stored)
            #expect(server.counts.requestsReceived == 3)
        }
    }

    @Test func requestsTryAFolderAgainOnceASecond() {
        let state = CacheState()
        let second: UInt64 = 1_000_000_000
        #expect(state.mayOpen(at: 5 * second))
        state.openingFailed(at: 5 * second)
        #expect(!state.mayOpen(at: 6 * second - 1))
        #expect(state.mayOpen(at: 6 * second))
    }

    @Test func aRemovalThatCannotBeMadeIsAnError() async throws {
        try await withFolder { folder in
            try Data().write(to: folder)
            let cache = HTTPCache.disk(folder: folder)
            let session = Session(configuration: .cached(cache))
            await #expect(throws: HTTPCache.Failure.self) { try await cache.removeAll() }
            await #expect(throws: HTTPCache.Failure.self) { try await cache.clear(partition: "ada") }
            await #expect(throws: HTTPCache.Failure.self) { try await cache.clear(session) }
            await #expect(throws: HTTPCache.Failure.self) { try await cache.remove("http://example.com/", of: session) }
            let memory = HTTPCache.memory()
            let failure = await #expect(throws: HTTPCache.Failure.self) {
                try await memory.remove("no URL", of: session)
            }
            #expect(failure?.reason.isEmpty == false)
        }
    }

    @Test func aPathThatIsNoFolderIsReported() async throws {
        try await withFolder { folder in
            try Data().write(to: folder)
            let failure = await #expect(throws: HTTPCache.Failure.self) {
                try await HTTPCache.disk(folder: folder).open()
            }
            #expect(failure?.reason.contains(folder.lastPathComponent) == true)
        }
    }
}
