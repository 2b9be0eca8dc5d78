import Foundation
import Tern
import TernCache
import TernTesting
import Testing

@testable import TernHTTPCache

/// Tests that the response to the later request stays, in whatever order responses are written.
@Suite("HTTP cache: order of responses", .timeLimit(.minutes(3)))
struct StoringOrderTests {
    private func withStore(_ kind: StoreKind, _ body: (any EntryStore) async throws -> Void) async throws {
        switch kind {
        case .memory: try await body(MemoryEntryStore(MemoryCacheConfiguration(), entryLimit: 1 << 20))
        case .disk:
            try await withFolder { folder in
                let cache = try await DiskCache(folder: folder)
                try await body(DiskEntryStore(cache, entryLimit: 1 << 20))
                try await cache.close()
            }
        }
    }

    private let body = Data("body".utf8)

    @Test(arguments: StoreKind.allCases)
    func aResponseThatIsWrittenLateDoesNotReplaceTheOneToALaterRequest(_ kind: StoreKind) async throws {
        try await withStore(kind) { store in
            let (first, second) = (store.beginRequest(), store.beginRequest())
            let (one, two) = (CacheEntry.whole(1, .path("a"), count: 4), CacheEntry.whole(2, .path("a"), count: 4))
            #expect(await store.insert(two, body: body, replacing: [], generation: second))
            #expect(await !store.insert(one, body: body, replacing: [], generation: first))
            #expect(await store.entries(for: .path("a")).map(\.id) == [2])
            #expect(await store.body(of: two, range: 0..<4) == body)
            // Another response of the same age is not affected.
            let other = CacheEntry.whole(3, .path("b"), count: 4)
            #expect(await store.insert(other, body: body, replacing: [], generation: first))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func anEarlierRequestReplacesNothingThatALaterOneConfirmed(_ kind: StoreKind) async throws {
        try await withStore(kind) { store in
            let old = CacheEntry.whole(1, .path("a"), count: 4)
            await store.insert(old, body: body, replacing: [], generation: store.beginRequest())
            let (reload, validation) = (store.beginRequest(), store.beginRequest())
            await store.update([old.changing { $0.headers["X"] = "confirmed" }], generation: validation)
            // The reload has found the entry before, and is answered late.
            let late = CacheEntry.whole(2, .path("a"), count: 4)
            #expect(await !store.insert(late, body: body, replacing: [old], generation: reload))
            await store.update([old.changing { $0.headers["X"] = "late" }], generation: reload)
            let found = await store.entries(for: .path("a"))
            #expect(found.map(\.id) == [1] && found.first?.headers["X"] == "confirmed")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func aResponseThatIsNotStoredOutdatesThoseToEarlierRequests(_ kind: StoreKind) async throws {
        try await withStore(kind) { store in
            let (first, second) = (store.beginRequest(), store.beginRequest())
            store.outdateEarlier(than: .whole(2, .path("a"), count: 4), generation: second)
            let one = CacheEntry.whole(1, .path("a"), count: 4)
            #expect(await !store.insert(one, body: body, replacing: [], generation: first))
            #expect(await store.insert(one, body: body, replacing: [], generation: store.beginRequest()))
        }
    }

    /// A property: whatever the interleaving of the writes, the response to the last request is the one that is found.
    @Test(arguments: StoreKind.allCases, [1, 2, 3] as [UInt64])
    func everyInterleavingLeavesTheLatestResponse(_ kind: StoreKind, seed: UInt64) async throws {
        try await withStore(kind) { store in
            var random = SeededGenerator(seed)
            for round in 0..<60 {
                let key = CacheKey.path("\(round)")
                let requests = (0..<Int.random(in: 2...5, using: &random)).map { place in
                    let size = [4, 9_000, 300_000].randomElement(using: &random) ?? 4
                    return (number: store.beginRequest(), id: UInt64(round * 10 + place + 1), size: size)
                }
                await withTaskGroup { group in
                    for request in requests.shuffled(using: &random) {
                        // A response without `Vary`, which takes the place of the one before it.
                        let entry = CacheEntry.whole(request.id, key, count: request.size).changing {
                            $0.selections = [VarySelection(fields: [])]
                        }
                        let bytes = Data(repeating: UInt8(request.id % 251), count: request.size)
                        group.addTask {
                            if request.size > 100_000, let writer = store.bodyWriter(for: entry) {
                                _ = await writer.write(bytes)
                                _ = await writer.commit(entry, replacing: [], generation: request.number)
                            } else {
                                await store.insert(entry, body: bytes, replacing: [], generation: request.number)
                            }
                        }
                    }
                }
                let last = try #require(requests.last)
                let found = await store.entries(for: key)
                #expect(found.map(\.id) == [last.id], "round \(round)")
                let body = try #require(await store.body(of: found[0], range: 0..<Int64(last.size)))
                #expect(body.count == last.size && body.first == UInt8(last.id % 251))
            }
        }
    }

    @Test func aRequestThatIsOlderThanAllThatIsKnownStoresNothing() {
        var order = StoringOrder()
        for number in 0..<UInt64(StoringOrder.limit + 1) {
            order.recordIfLatest(.whole(number, .path("\(number)"), count: 1), sent: number + 1)
        }
        // Half of them were forgotten: neither they nor unknown ones of their age may be older than what is stored.
        #expect(!order.isLatest(.whole(1, .path("0"), count: 1), sent: 1))
        #expect(!order.isLatest(.whole(1, .path("new"), count: 1), sent: 1))
        #expect(order.isLatest(.whole(1, .path("new"), count: 1), sent: UInt64(StoringOrder.limit) + 2))
        #expect(order.isLatest(.whole(1, .path("\(StoringOrder.limit)"), count: 1), sent: .max))
    }

    // MARK: Sessions

    private static func padded(_ number: Int, _ size: Int) -> String {
        let text = "\(number) "
        return text + String(repeating: "x", count: max(0, size - text.utf8.count))
    }

    @Test(arguments: [4, 12_000, 300_000], [false, true])
    func aReloadAfterAReloadIsFoundAfterwards(size: Int, isStream: Bool) async throws {
        try await withCache(
            .disk,
            handler: { exchange in
                try exchange.respond(
                    headers: [("Cache-Control", "max-age=60")], text: Self.padded(exchange.number, size))
            },
            test: { cached in
                func reload(_ path: String) async throws {
                    guard isStream else {
                        _ = try await cached.get(path, cache: .reload)
                        return
                    }
                    var request = try cached.client.request(.get, path)
                    request.cache = .reload
                    for try await _ in cached.client.session.stream(request).chunks {}
                }
                for pair in 1...60 {
                    try await reload("\(pair)")
                    try await reload("\(pair)")
                    let found = try await cached.get("\(pair)")
                    #expect(found.text.hasPrefix("\(2 * pair) "), "\(pair)")
                    #expect(found.cacheTrace?.source == .stored)
                }
                await cached.cache.flush()
                for pair in 1...60 { #expect(try await cached.get("\(pair)").text.hasPrefix("\(2 * pair) ")) }
                #expect(cached.requestCount == 120)
                await cached.finish()
            })
    }

    @Test(arguments: ["GET", "HEAD", "range"])
    func aResponseIsFoundBeforeTheDiskHasIt(kind: String) async throws {
        let (hook, gate) = (FileHook(), ThreadGate())
        try await withDisk(hook, handler: numbered([("Cache-Control", "max-age=60"), ("Set-Cookie", "a=b")])) {
            cached, _, _ in
            hook.set { call in
                if call.hasPrefix("INSERT") { gate.pass() }
                return nil
            }
            #expect(try await cached.get(cache: .reload).text == "1")
            #expect(try await cached.get(cache: .reload).text == "2")
            var request = try cached.client.request(kind == "HEAD" ? .head : .get, "a")
            if kind == "range" { request.headers["Range"] = "bytes=0-0" }
            let found = try await cached.client.session.response(for: request)
            #expect(found.cacheTrace?.source == .stored)
            #expect(found.text == (kind == "HEAD" ? "" : "2"))
            #expect(found.headers["Set-Cookie"] == nil)
            #expect(cached.requestCount == 2)
            gate.open()
            await cached.cache.flush()
            #expect(try await cached.get().text == "2")
        }
    }

    /// A large response is hidden while it is written. A look-up that it was hidden from is repeated, also if the write
    /// has ended when the look-up comes back.
    @Test func theEndOfAWriteIsNoticedAfterTheLookUp() {
        var pending = PendingWrites()
        let key = CacheKey.path("a")
        let entry = CacheEntry.whole(1, key, count: 4)
        pending.begin(entry, body: nil, replacing: [], sent: 1)
        let before = pending.endCount(of: key)
        #expect(pending.applied(to: [entry], of: key) { _, _ in true }.isEmpty && pending.contains(key))
        pending.end(1)
        #expect(!pending.contains(key) && pending.endCount(of: key) != before)
        let after = pending.endCount(of: key)
        pending.end(1)
        #expect(pending.endCount(of: key) == after)
    }

    @Test func theWaitForWritesEndsAtTheLimitOfTheRequest() async throws {
        let state = CacheState()
        let number = state.beginWrite()
        await state.written(within: .seconds(3)) { #expect($0 == .seconds(3)) }
        // Without a limit, and with one that is not reached, it ends with the write.
        let waits = [nil, Duration.seconds(600)].map { limit in
            Task { await state.written(within: limit) { try await Task.sleep(for: $0) } }
        }
        state.endWrite(number)
        for wait in waits { await wait.value }
    }
}
