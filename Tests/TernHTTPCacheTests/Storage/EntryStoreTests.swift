import Tern
import TernCache
import Testing

@testable import TernHTTPCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the stores in memory and on the disk: both keep the same rules.
@Suite(.timeLimit(.minutes(2))) struct EntryStoreTests {
    enum Kind: CaseIterable {
        case memory
        case disk
    }

    private func withStore(_ kind: Kind, _ body: (any EntryStore) async throws -> Void) async throws {
        switch kind {
        case .memory: try await body(MemoryEntryStore(MemoryCacheConfiguration(), entryLimit: 100_000))
        case .disk:
            try await withFolder { folder in
                let cache = try await DiskCache(folder: folder)
                try await body(DiskEntryStore(cache, entryLimit: 100_000))
                try await cache.close()
            }
        }
    }

    private func key(_ url: String = "http://example.com/a", partition: String = "") -> CacheKey {
        let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true)
        let tail = parts.count > 2 ? parts[2].split(separator: "?", maxSplits: 1) : [""]
        return CacheKey(
            origin: "\(parts[0])//\(parts[1]):80", path: "/" + (tail.first ?? ""),
            query: tail.count > 1 ? String(tail[1]) : nil, partition: partition)
    }

    private func entry(
        _ id: UInt64, _ key: CacheKey, _ headers: Headers = [:], count: Int64 = 4, selections: [VarySelection] = []
    ) -> CacheEntry {
        CacheEntry(
            CacheEntry.Properties(
                id: id, key: key, status: 200, version: .http11, headers: headers,
                requestTime: CacheTime(milliseconds: 0), responseTime: CacheTime(milliseconds: Int64(id)),
                selections: selections, content: .whole(count)))
    }

    private let body = Data("body".utf8)

    @Test(arguments: Kind.allCases)
    func aStoredResponseIsFoundWithItsBody(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            let one = entry(1, key(), ["X": "y"])
            #expect(await store.insert(one, body: body, replacing: [], generation: store.generation))
            let found = try #require(await store.entries(for: key()).first)
            #expect(found.properties == one.properties)
            #expect(await store.body(of: found, range: 0..<4) == body)
            #expect(await store.body(of: found, range: 1..<3) == Data("od".utf8))
            #expect(await store.body(of: found, range: 1..<5) == nil)
            #expect(await store.body(of: found, range: -1..<5) == nil)
            #expect(await store.entries(for: key("http://example.com/b")).isEmpty)
            #expect(await store.entries(for: key().with(method: "HEAD")).isEmpty)
        }
    }

    @Test(arguments: Kind.allCases)
    func aLargeBodyIsKeptApartFromItsHead(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            let large = Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0) })
            let one = entry(1, key(), count: 50_000)
            #expect(await store.insert(one, body: large, replacing: [], generation: 0))
            #expect(await store.body(of: one, range: 49_990..<50_000) == large[49_990...])
            let updated = one.changing { $0.headers["X"] = "new" }
            await store.update([updated], generation: store.generation)
            #expect(await store.entries(for: key()).first?.headers["X"] == "new")
            #expect(await store.body(of: one, range: 0..<50_000) == large)
        }
    }

    @Test(arguments: Kind.allCases)
    func aBodyBeyondTheLimitOrOfAnotherLengthIsNotStored(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            let huge = Data(repeating: 1, count: 100_001)
            #expect(await !store.insert(entry(1, key(), count: 100_001), body: huge, replacing: [], generation: 0))
            #expect(await !store.insert(entry(1, key(), count: 5), body: body, replacing: [], generation: 0))
            #expect(await store.entries(for: key()).isEmpty)
        }
    }

    @Test(arguments: Kind.allCases)
    func variantsStayAndReplacedEntriesLeave(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            let one = entry(1, key())
            let two = entry(2, key(), count: 20_000)
            let large = Data(repeating: 2, count: 20_000)
            await store.insert(one, body: body, replacing: [], generation: 0)
            await store.insert(two, body: large, replacing: [], generation: 0)
            #expect(Set(await store.entries(for: key()).map(\.id)) == [1, 2])
            await store.insert(entry(3, key()), body: body, replacing: [two], generation: 0)
            #expect(Set(await store.entries(for: key()).map(\.id)) == [1, 3])
            #expect(await store.body(of: two, range: 0..<1) == nil)
            await store.remove([one])
            #expect(await store.entries(for: key()).map(\.id) == [3])
            await store.update([one], generation: store.generation)
            #expect(await store.entries(for: key()).map(\.id) == [3])
        }
    }

    @Test(arguments: Kind.allCases)
    func invalidationRemovesURLsAndGroups(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            for (id, path) in [(1, "a"), (2, "b"), (3, "c")] as [(UInt64, String)] {
                let headers: Headers = path == "b" ? ["Cache-Groups": "\"g\""] : [:]
                await store.insert(
                    entry(id, key("http://example.com/\(path)"), headers), body: body, replacing: [], generation: 0)
            }
            let head = entry(4, key().with(method: "HEAD"), count: 0)
            await store.insert(head, body: Data(), replacing: [], generation: 0)
            let other = entry(5, key("http://example.com/b", partition: "p"), ["Cache-Groups": "\"g\""])
            await store.insert(other, body: body, replacing: [], generation: 0)
            await store.invalidate(CacheInvalidation(after: ["Cache-Group-Invalidation": "\"g\""], to: key()))
            #expect(await store.entries(for: key()).isEmpty)
            #expect(await store.entries(for: head.key).isEmpty)
            #expect(await store.entries(for: key("http://example.com/b")).isEmpty)
            #expect(await store.entries(for: key("http://example.com/c")).count == 1)
            #expect(await store.entries(for: other.key).count == 1)
        }
    }

    @Test(arguments: Kind.allCases)
    func nothingThatWasRequestedBeforeAnInvalidationIsStored(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            let before = store.generation
            await store.invalidate(CacheInvalidation(after: [:], to: key()))
            #expect(await !store.insert(entry(1, key()), body: body, replacing: [], generation: before))
            let large = Data(repeating: 2, count: 20_000)
            #expect(await !store.insert(entry(2, key(), count: 20_000), body: large, replacing: [], generation: before))
            #expect(
                await store.insert(
                    entry(3, key("http://example.com/b")), body: body, replacing: [], generation: before))
            #expect(await store.insert(entry(4, key()), body: body, replacing: [], generation: store.generation))
            // More invalidations than the log knows.
            let early = store.generation
            for number in 0..<1_100 {
                await store.invalidate(CacheInvalidation(after: [:], to: key("http://example.com/\(number)")))
            }
            #expect(await !store.insert(entry(5, key("http://x.org/")), body: body, replacing: [], generation: early))
        }
    }

    @Test(arguments: Kind.allCases)
    func aUsersResponsesAreRemovedTogether(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            for (id, partition) in [(1, ""), (2, "one"), (3, "two")] as [(UInt64, String)] {
                await store.insert(entry(id, key(partition: partition)), body: body, replacing: [], generation: 0)
            }
            let before = store.generation
            await store.removeAll(partition: "one")
            #expect(await store.entries(for: key(partition: "one")).isEmpty)
            #expect(await store.entries(for: key(partition: "two")).count == 1)
            #expect(await store.entries(for: key()).count == 1)
            #expect(await !store.insert(entry(4, key(partition: "one")), body: body, replacing: [], generation: before))
        }
    }

    @Test(arguments: Kind.allCases)
    func equivalentURLsAreFound(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            let rule: Headers = ["No-Vary-Search": "params=(\"utm\")"]
            await store.insert(
                entry(1, key("http://example.com/p?a=1&utm=2"), rule), body: body, replacing: [], generation: 0)
            let found = await store.entries(for: key("http://example.com/p?utm=3&a=1"))
            #expect(found.map(\.id) == [1])
            let first = try #require(found.first)
            #expect(await store.body(of: first, range: 0..<4) == body)
            #expect(await store.entries(for: key("http://example.com/p?a=2")).isEmpty)
            await store.invalidate(CacheInvalidation(after: [:], to: key("http://example.com/p?a=1")))
            #expect(await store.entries(for: key("http://example.com/p?a=1&utm=2")).isEmpty)
        }
    }

    @Test(arguments: Kind.allCases)
    func nothingThatWasRequestedBeforeAnInvalidationOfAnEquivalentURLIsStored(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            func ruled(_ id: UInt64, _ query: String) -> CacheEntry {
                entry(id, key("http://example.com/p?\(query)"), ["No-Vary-Search": "params=(\"utm\")"])
            }
            // The rule is known from the second time on.
            for id in [1, 2] as [UInt64] {
                let before = store.generation
                await store.invalidate(CacheInvalidation(after: [:], to: key("http://example.com/p?a=1&utm=2")))
                let outdated = ruled(id, "utm=1&a=1")
                #expect(await !store.insert(outdated, body: body, replacing: [], generation: before))
                let other = ruled(id + 10, "utm=1&a=2")
                #expect(await store.insert(other, body: body, replacing: [], generation: before))
                let unruled = entry(id + 20, key("http://example.com/p?utm=1&a=1"))
                #expect(await store.insert(unruled, body: body, replacing: [], generation: before))
                let current = ruled(id + 30, "utm=1&a=1")
                #expect(await store.insert(current, body: body, replacing: [], generation: store.generation))
            }
        }
    }

    @Test(arguments: Kind.allCases)
    func aRuleBeyondTheLimitIsRefused(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            func ruled(_ id: UInt64, _ name: String) -> CacheEntry {
                entry(id, key("http://example.com/p?\(name)=1"), ["No-Vary-Search": "params=(\"\(name)\")"])
            }
            for id in 1...4 as ClosedRange<UInt64> {
                #expect(store.acceptsRule(of: ruled(id, "n\(id)")))
                await store.insert(ruled(id, "n\(id)"), body: body, replacing: [], generation: 0)
            }
            #expect(!store.acceptsRule(of: ruled(5, "n5")))
            #expect(
                !store.acceptsRule(
                    of: entry(
                        6, key("http://example.com/q"),
                        [
                            "No-Vary-Search": "params=(\"\(String(repeating: "n", count: 2_000))\")"
                        ])))
            // The known rules stay, so that an invalidation reaches their entries.
            #expect(store.acceptsRule(of: ruled(7, "n1")))
            await store.invalidate(CacheInvalidation(after: [:], to: key("http://example.com/p?n1=7")))
            #expect(await store.entries(for: key("http://example.com/p?n1=2")).isEmpty)
        }
    }

    @Test(arguments: Kind.allCases)
    func anInvalidationReachesEachOfManyGroups(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            func grouped(_ id: UInt64) -> CacheEntry {
                let names = (0..<40).map { "\"\(id)-\($0)\"" }.joined(separator: ", ")
                return entry(id, key(), ["Cache-Groups": names])
            }
            await store.insert(grouped(1), body: body, replacing: [], generation: 0)
            await store.insert(grouped(2), body: body, replacing: [], generation: 0)
            for id in await store.entries(for: key()).map(\.id) {
                await store.invalidate(
                    CacheInvalidation(
                        after: ["Cache-Group-Invalidation": "\"\(id)-39\""], to: key("http://example.com/z")))
            }
            #expect(await store.entries(for: key()).isEmpty)
        }
    }

    @Test(arguments: Kind.allCases)
    func aRemovalIsNotUndoneByAChangeUnderWay(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            let one = entry(1, key(partition: "ada"), ["X": "1"])
            for round in 0..<100 {
                await store.insert(one, body: body, replacing: [], generation: store.generation)
                let generation = store.generation
                await withTaskGroup { group in
                    for number in 0..<4 {
                        let update = one.changing { $0.headers["X"] = "\(number)" }
                        group.addTask { await store.update([update], generation: generation) }
                    }
                    group.addTask {
                        if round % 2 == 0 {
                            await store.removeAll(partition: "ada")
                        } else {
                            await store.removeAll()
                        }
                    }
                    group.addTask {
                        let other = entry(2, key(partition: "ada"))
                        await store.insert(other, body: body, replacing: [], generation: generation)
                        await store.removeAll(partition: "ada")
                    }
                }
                #expect(await store.entries(for: key(partition: "ada")).isEmpty, "\(round)")
            }
        }
    }

    // MARK: On the disk alone

    @Test func entriesSurviveANewProcess() async throws {
        try await withFolder { folder in
            let rule: Headers = ["No-Vary-Search": "params=(\"utm\")", "Cache-Groups": "\"g\""]
            let large = Data(repeating: 3, count: 30_000)
            let first = try await DiskCache(folder: folder)
            let store = DiskEntryStore(first, entryLimit: 100_000)
            await store.insert(entry(1, key(), count: 30_000), body: large, replacing: [], generation: 0)
            await store.insert(
                entry(2, key("http://example.com/p?utm=1"), rule), body: body, replacing: [], generation: 0)
            try await first.close()
            let second = try await DiskCache(folder: folder)
            let again = DiskEntryStore(second, entryLimit: 100_000)
            let found = try #require(await again.entries(for: key()).first)
            #expect(await again.body(of: found, range: 0..<30_000) == large)
            #expect(await again.entries(for: key("http://example.com/p?utm=9")).map(\.id) == [2])
            await again.invalidate(
                CacheInvalidation(after: ["Cache-Group-Invalidation": "\"g\""], to: key("http://example.com/z")))
            #expect(await again.entries(for: key("http://example.com/p?utm=1")).isEmpty)
            try await second.close()
        }
    }

    @Test func aLostBodyIsAMissAndItsHeadLeaves() async throws {
        try await withFolder { folder in
            let cache = try await DiskCache(folder: folder)
            let store = DiskEntryStore(cache, entryLimit: 100_000)
            let one = entry(1, key(), count: 30_000)
            await store.insert(one, body: Data(repeating: 3, count: 30_000), replacing: [], generation: 0)
            try await cache.remove("body 1")
            #expect(await store.body(of: one, range: 0..<1) == nil)
            #expect(await store.entries(for: key()).isEmpty)
            try await cache.close()
        }
    }

    @Test func anAlteredHeadIsAMiss() async throws {
        try await withFolder { folder in
            let cache = try await DiskCache(folder: folder)
            let store = DiskEntryStore(cache, entryLimit: 100_000)
            await store.insert(entry(1, key()), body: body, replacing: [], generation: 0)
            let name = "head " + key().text
            let head = try #require(try await cache.value(for: name))
            try await cache.insert(head.dropLast(1), for: name)
            #expect(await store.entries(for: key()).isEmpty)
            // The record of another URL.
            try await cache.insert(head, for: "head " + key("http://example.com/b").text)
            #expect(await store.entries(for: key("http://example.com/b")).isEmpty)
            #expect(await store.insert(entry(2, key()), body: body, replacing: [], generation: 0))
            #expect(await store.entries(for: key()).map(\.id) == [2])
            try await cache.close()
        }
    }

    @Test func aClosedDiskIsAMissAndFailsNothing() async throws {
        try await withFolder { folder in
            let cache = try await DiskCache(folder: folder)
            let store = DiskEntryStore(cache, entryLimit: 100_000)
            await store.insert(entry(1, key()), body: body, replacing: [], generation: 0)
            try await cache.close()
            #expect(await store.entries(for: key()).isEmpty)
            #expect(await !store.insert(entry(2, key()), body: body, replacing: [], generation: 0))
            await store.update([entry(1, key())], generation: store.generation)
            await store.invalidate(CacheInvalidation(after: [:], to: key()))
            await store.removeAll(partition: "")
        }
    }

    @Test func changesOfOneKeyAtATimeLoseNoVariant() async throws {
        try await withFolder { folder in
            let cache = try await DiskCache(folder: folder)
            let store = DiskEntryStore(cache, entryLimit: 100_000)
            let key = key()
            await withTaskGroup(of: Void.self) { group in
                for id in 1...UInt64(CacheRecord.limit) {
                    let one = entry(id, key)
                    group.addTask { [body] in await store.insert(one, body: body, replacing: [], generation: 0) }
                }
            }
            #expect(Set(await store.entries(for: key).map(\.id)) == Set(1...UInt64(CacheRecord.limit)))
            try await cache.close()
        }
    }

    @Test func valuesOfSecretFieldsAreNotWritten() async throws {
        try await withFolder { folder in
            let cache = try await DiskCache(folder: folder)
            let store = DiskEntryStore(cache, entryLimit: 100_000)
            let vary: Headers = ["Vary": "Cookie, Authorization"]
            let request: Headers = ["Cookie": "verysecret", "Authorization": "verysecret"]
            let selection = try #require(VarySelection(Vary(vary), of: request))
            await store.insert(
                entry(1, key(), vary, selections: [selection]), body: body, replacing: [], generation: 0)
            let head = try #require(try await cache.value(for: "head " + key().text))
            #expect(!String(decoding: head, as: UTF8.self).contains("verysecret"))
            try await cache.close()
        }
    }

    /// The response is newer than the one that it outdates, although it is not stored itself.
    @Test(arguments: Kind.allCases)
    func aRefusedResponseRemovesTheOneThatItOutdates(_ kind: Kind) async throws {
        try await withStore(kind) { store in
            let old = entry(1, key(), ["X": "old"])
            #expect(await store.insert(old, body: body, replacing: [], generation: store.generation))
            let generation = store.generation
            #expect(await store.removeAll(partition: "other") == nil)
            let new = entry(2, key(), ["X": "new"])
            #expect(await store.insert(new, body: body, replacing: [old], generation: generation) == false)
            #expect(await store.entries(for: key()).isEmpty)
        }
    }
}
