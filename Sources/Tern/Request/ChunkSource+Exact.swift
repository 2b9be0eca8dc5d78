#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ChunkSource {
    /// The chunks of a source that is opened with the first of them; more or fewer bytes than stated are an error, found
    /// before anything behind them is sent. nil: any number.
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

    /// A source that gave other bytes than were stated.
    struct WrongLength: Error, CustomStringConvertible {
        let part: String
        let stated: Int64
        /// nil: more than stated.
        let count: Int64?

        var description: String {
            if let count { return "\(part) ended after \(count) of the stated \(stated) bytes" }
            return "\(part) has more than the stated \(stated) bytes"
        }
    }
}
