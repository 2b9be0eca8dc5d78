#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The chunks of a body, from any sequence.
package struct ChunkSource {
    /// Returns the next chunk; nil at the end. `@concurrent`, because the caller's sequence never runs on an actor of
    /// Tern.
    package let next: @concurrent () async throws -> Data?

    package init<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks) where Chunks.Element == Data {
        var iterator = chunks.makeAsyncIterator()
        next = { try await iterator.next() }
    }

    init(_ next: @escaping @concurrent () async throws -> Data?) { self.next = next }
}

extension ChunkSource {
    /// Returns the chunks of a source that is opened with the first of them. More or fewer bytes than `count` are an
    /// error, found before any further byte is sent. nil accepts any number.
    static func exactly(
        _ length: Int64?, of part: String = "the body", _ open: @escaping @concurrent () async throws -> ChunkSource
    ) -> ChunkSource {
        var source: ChunkSource?
        var count: Int64 = 0
        return ChunkSource {
            let current = if let source { source } else { try await open() }
            source = current
            while let chunk = try await current.next() {
                if chunk.isEmpty { continue }
                count += Int64(chunk.count)
                if let length, count > length { throw WrongLength(part: part, stated: length, count: nil) }
                return chunk
            }
            if let length, count < length { throw WrongLength(part: part, stated: length, count: count) }
            return nil
        }
    }

    /// The error of a source that gives a different number of bytes than stated.
    struct WrongLength: Error, CustomStringConvertible {
        let part: String
        let stated: Int64
        /// The number of bytes; nil for more than stated.
        let count: Int64?

        var description: String {
            if let count { return "\(part) ended after \(count) of the stated \(stated) bytes" }
            return "\(part) has more than the stated \(stated) bytes"
        }
    }
}
