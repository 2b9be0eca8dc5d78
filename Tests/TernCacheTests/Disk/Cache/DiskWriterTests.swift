import Testing

@testable import TernCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct DiskWriterTests {
    @Test(arguments: [0, 5_000, 16_384, 16_385, 500_000])
    func aValueWrittenInPiecesIsThereAfterCommit(size: Int) async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(bytes(10), for: "key")
            let value = bytes(size)
            let writer = try await cache.writer(for: "key", metadata: Data([7]), tags: ["t"])
            for start in stride(from: 0, to: size, by: 4_099) {
                try await writer.write(value[start..<min(start + 4_099, size)])
            }
            #expect(try await cache.value(for: "key") == bytes(10))
            try await writer.commit()
            #expect(try await cache.entry(for: "key")?.value == value)
            #expect(try await cache.entry(for: "key")?.metadata == Data([7]))
            await #expect { try await writer.commit() } throws: { ($0 as? DiskCacheError)?.kind == .writerFinished }
            #expect(try cache.leaks().isEmpty)
            #expect(
                try await cache.usage.fileBytes
                    == diskFiles(folder).filter { $0.key.contains("/values/") }.values.reduce(0, +))
            try await cache.removeAll(tagged: "t")
            #expect(!cache.contains("key"))
        }
    }

    @Test func anAbandonedOrDroppedWriterLeavesNothing() async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            let writer = try await cache.writer(for: "a")
            try await writer.write(bytes(100_000))
            #expect(try await cache.usage.fileBytes >= 100_000)
            await writer.abandon()
            #expect(try await cache.usage.fileBytes == 0)
            do {
                let dropped = try await cache.writer(for: "b")
                try await dropped.write(bytes(100_000))
            }
            #expect(try await cache.usage.fileBytes == 0)
            #expect(try cache.leaks().isEmpty)
            #expect(!cache.contains("a"))
            #expect(!cache.contains("b"))
        }
    }

    @Test(arguments: [10, 300_000])
    func aFileCanBeReadWithoutCopyingAndOutlivesItsEntry(size: Int) async throws {
        try await withDiskFolder { folder in
            let cache = try await DiskCache(folder: folder, configuration: unlimited())
            try await cache.insert(bytes(size), for: "key", metadata: Data([1]))
            let file = try #require(try await cache.file(for: "key"))
            let mapped = try #require(try await cache.mappedValue(for: "key"))
            try await cache.remove("key")
            #expect(mapped == bytes(size))
            #expect(file.length == size)
            #expect(file.metadata == Data([1]))
            var buffer = [UInt8](repeating: 0, count: size)
            let count = unsafe buffer.withUnsafeMutableBytes {
                unsafe pread(file.descriptor, $0.baseAddress, $0.count, 0)
            }
            #expect(count == size)
            #expect(Data(buffer) == bytes(size))
            #expect(try await cache.file(for: "key") == nil)
            #expect(try cache.leaks().isEmpty)
        }
    }
}
