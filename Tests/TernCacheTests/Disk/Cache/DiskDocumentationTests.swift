import TernCache
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The examples of Documentation/DiskCache.md.
@Suite(.timeLimit(.minutes(1))) struct DiskDocumentationTests {
    @Test func theFirstExample() async throws {
        let key = "https://example.com/image"
        let data = Data(repeating: 1, count: 20_000)
        let etag = Data("etag".utf8)
        let items = [DiskCache.Item(data, for: "one"), DiskCache.Item(data, for: "two")]
        let body = AsyncStream { continuation in
            continuation.yield(data)
            continuation.yield(data)
            continuation.finish()
        }
        try await withDiskFolder { folder in
            var configuration = DiskCache.Configuration()
            configuration.byteLimit = 500 << 20
            configuration.timeToLive = .seconds(7 * 86_400)
            let cache = try await DiskCache(folder: folder, configuration: configuration)
            let events = cache.events

            try await cache.insert(data, for: key)
            try await cache.insert(data, for: key, metadata: etag, tags: ["user/7"], timeToLive: .seconds(60))
            try await cache.insert(contentsOf: items)
            let value = try await cache.value(for: key)
            let entry = try await cache.entry(for: key)
            #expect(value == data && entry?.metadata == etag && cache.contains(key))

            try cache.enqueue(data, for: "queued")
            try await cache.flush()
            #expect(try await cache.value(for: "queued") == data)

            let writer = try await cache.writer(for: key)
            for try await chunk in body { try await writer.write(chunk) }
            try await writer.commit()

            let mapped = try await cache.mappedValue(for: key)
            let file = try await cache.file(for: key)
            #expect(mapped == data + data && file?.length == 40_000)

            try await cache.insert(data, for: "tagged", tags: ["user/7"])
            try await cache.remove(key)
            try await cache.removeAll(tagged: "user/7")
            #expect(!cache.contains(key) && !cache.contains("tagged") && cache.contains("one"))
            try await cache.removeAll()
            try await cache.removeExpired()
            try await cache.trim(toBytes: 100 << 20)
            #expect(!cache.contains("one"))
            try await cache.close()
            for await event in events { Issue.record("nothing was to be told: \(event)") }
        }
    }
}
