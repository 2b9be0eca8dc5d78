import Synchronization
import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Receives one body: each chunk is written, then hashed, then counted.
struct BodyCopy: Sendable {
    /// The reason why a body ended early.
    enum Failure: Error {
        case network(NetworkError)
        case file(FileFailure)
        /// The body has more bytes than this.
        case tooLong(Int64)
        case cancelled
    }

    let part: DownloadPart
    let hash: FileHash?
    let throttle: DownloadThrottle
    let meter: ProgressMeter
    /// The position of the first byte in the file.
    let offset: Int64
    /// The size of the file in bytes; nil if it is not known.
    let total: Int64?
    /// The position that no byte may reach; nil for none.
    let limit: Int64?

    /// The shortest time between two publications of progress, in nanoseconds.
    private static let publicationInterval: UInt64 = 10_000_000

    /// Receives a body to its end. Returns when its last byte is written.
    @concurrent
    func run(_ chunks: ResponseStream.Chunks) async throws(Failure) {
        var iterator = chunks.makeAsyncIterator()
        var position = offset
        var nextPublication: UInt64 = 0
        while let chunk = try await nextChunk(&iterator) {
            if let limit, Int64(chunk.count) > limit - position { throw .tooLong(limit) }
            do throws(FileFailure) {
                try await part.write(chunk)
            } catch {
                throw .file(error)
            }
            hash?.update(chunk)
            position += Int64(chunk.count)
            let isWatched = meter.update(
                sent: 0, of: nil, received: position - offset, of: total.map { $0 - offset })
            if isWatched, case let now = MonotonicClock.nanoseconds(), now >= nextPublication {
                nextPublication = now + Self.publicationInterval
                meter.publish()
            }
            do {
                try await throttle.wait(after: chunk.count)
            } catch {
                throw .cancelled
            }
        }
    }

    private func nextChunk(_ iterator: inout ResponseStream.Chunks.Iterator) async throws(Failure) -> Data? {
        do throws(NetworkError) {
            return try await iterator.next()
        } catch {
            throw .network(error)
        }
    }
}
