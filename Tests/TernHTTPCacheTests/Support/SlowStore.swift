import Tern
import TernCache
import TernTesting

@testable import TernHTTPCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A store whose heads and bodies must be read, like those on a disk. A read waits while its gate is closed, also after
/// its cancellation.
final class SlowStore: EntryStore {
    private let memory = MemoryEntryStore(MemoryCacheConfiguration(), entryLimit: 1 << 20)
    private let heads: LoopbackServer.Gate
    private let bodies: LoopbackServer.Gate
    /// The number of reads that have begun.
    let reads = Counter()

    init(heads: LoopbackServer.Gate, bodies: LoopbackServer.Gate) {
        self.heads = heads
        self.bodies = bodies
    }

    private func wait(for gate: LoopbackServer.Gate) async {
        _ = reads.next()
        // An error means that the test has failed already.
        await Task { try? await gate.wait() }.value
    }

    func entriesNow(for key: CacheKey) -> [CacheEntry]? { nil }
    func bodyNow(of entry: CacheEntry, range: Range<Int64>) -> Data? { nil }

    func entries(for key: CacheKey) async -> [CacheEntry] {
        await wait(for: heads)
        return memory.found(for: key)
    }

    func body(of entry: CacheEntry, range: Range<Int64>) async -> Data? {
        await wait(for: bodies)
        return memory.bodyNow(of: entry, range: range)
    }

    func insert(_ entry: CacheEntry, body: Data, replacing: [CacheEntry], generation: UInt64) async -> Bool {
        await memory.insert(entry, body: body, replacing: replacing, generation: generation)
    }

    func keys() async -> [CacheKey] { await memory.keys() }
    func entries(at key: CacheKey) async -> [CacheEntry] { await memory.entries(at: key) }
    func bodyWriter(for entry: CacheEntry) -> (any BodyWriter)? { nil }
    var entryLimit: Int { memory.entryLimit }
    func update(_ entries: [CacheEntry], generation: UInt64) async {
        await memory.update(entries, generation: generation)
    }
    func outdateEarlier(than entry: CacheEntry, generation: UInt64) {
        memory.outdateEarlier(than: entry, generation: generation)
    }
    func isValid(_ entry: CacheEntry, since generation: UInt64) -> Bool {
        memory.isValid(entry, since: generation)
    }
    func remove(_ entries: [CacheEntry]) async { await memory.remove(entries) }
    func invalidate(_ invalidation: CacheInvalidation) async -> String? { await memory.invalidate(invalidation) }
    func removeAll(partition: String) async -> String? { await memory.removeAll(partition: partition) }
    func removeAll() async -> String? { await memory.removeAll() }
    func acceptsRule(of entry: CacheEntry) -> Bool { memory.acceptsRule(of: entry) }
    var generation: UInt64 { memory.generation }
    func beginRequest() -> UInt64 { memory.beginRequest() }
}
