import TernCache
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The examples of Documentation/MemoryCache.md, and of the comments.
@Suite struct MemoryDocumentationTests {
    final class Document: Sendable {
        let byteCount: Int
        init(byteCount: Int) { self.byteCount = byteCount }
    }

    @Test func theFirstExample() async throws {
        let url = try #require(URL(string: "https://example.com/image"))
        let data = Data(repeating: 1, count: 2_000)
        var shown: [Data] = []
        func show(_ data: Data) { shown.append(data) }

        let cache = MemoryCache<URL, Data>(costLimit: 100 << 20) { $0.count }
        cache[url] = data
        if let data = cache[url] { show(data) }
        cache.insert(data, for: url, timeToLive: .seconds(300))
        await cache.trim(toCost: 10 << 20)

        #expect(shown == [data] && cache.totalCost == 2_000)
    }

    @Test func valuesInUse() async throws {
        let url = try #require(URL(string: "https://example.com/document"))
        let documents = MemoryCache<URL, Document>(weakReferences: .objects) { $0.byteCount }
        let document = Document(byteCount: 10)
        documents[url] = document
        await documents.trim(for: .critical)
        #expect(documents[url] === document)
    }
}
