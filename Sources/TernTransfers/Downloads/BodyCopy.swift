import Synchronization
import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Receives one body: its bytes are written, then hashed, then counted. The system moves them from the socket to the
/// file, unless they are hashed.
struct BodyCopy: Sendable {
    /// The reason why a body ended early.
    enum Failure: Error {
        case network(NetworkError)
        case file(FileFailure)
        /// The body has more bytes than this.
        case tooLong(Int64)
        case cancelled
        /// The time for the download is over.
        case deadline

        init(_ end: DownloadThrottle.WaitEnd) {
            switch end {
            case .cancelled: self = .cancelled
            case .deadline: self = .deadline
            }
        }
    }

    let part: DownloadPart
    let hash: FileHash?
    let throttle: DownloadThrottle
    /// The end of the time for the download; nil for none.
    let deadline: TransferDeadline?
    let meter: ProgressMeter
    /// The position of the first byte in the file.
    let offset: Int64
    /// The size of the file in bytes; nil if it is not known.
    let total: Int64?
    /// The position that no byte may reach; nil for none.
    let limit: Int64?

    /// Receives a body to its end. Returns when its last byte is written.
    ///
    /// - Parameter isolation: The part, where the reader waits and writes, so that a portion costs one wake-up; nil for
    ///   a body that is hashed, which must not hold up the files of others.
    func run(_ stream: ResponseStream, isolation: isolated (any Actor)?) async throws(Failure) {
        var position = offset
        let limits = throttle.isLimited ? DurableDownload.throttledPipe : DurableDownload.pipe
        let pipe = hash == nil ? stream.openPipe(limits) : nil
        while let piece = try await nextPiece(of: stream, pipe, isolation: isolation) {
            let start = position
            for chunk in piece.chunks {
                try await write(chunk, at: position, isolation: isolation)
                position += Int64(chunk.count)
                if isolation != nil { await part.yieldTurn(after: chunk.count) }
            }
            if let pipe, let missing = piece.missingCount {
                if let limit, missing > limit - position { throw .tooLong(limit) }
                // With a throttle, moves as many bytes as a chunk has.
                let most = throttle.isLimited ? min(missing, Int64(DurableDownload.chunkLimit)) : missing
                let moved = await part.move(upTo: most, through: pipe)
                if let failure = moved.failure { throw .file(failure) }
                position += moved.count
                stream.giveSocketBack(moved)
            }
            let isWatched = meter.update(
                sent: 0, of: nil, received: position - offset, of: total.map { $0 - offset })
            if isWatched { meter.publishSoon() }
            do throws(DownloadThrottle.WaitEnd) {
                try await throttle.wait(after: Int(position - start), deadline: deadline)
            } catch {
                throw Failure(error)
            }
        }
    }

    private func write(_ chunk: Data, at position: Int64, isolation: isolated (any Actor)?) async throws(Failure) {
        if let limit, Int64(chunk.count) > limit - position { throw .tooLong(limit) }
        do throws(FileFailure) {
            try await part.write(chunk)
        } catch {
            throw .file(error)
        }
        hash?.update(chunk)
    }

    private func nextPiece(
        of stream: ResponseStream, _ pipe: BodyPipe?, isolation: isolated (any Actor)?
    ) async throws(Failure) -> BodyPiece? {
        do throws(NetworkError) {
            return try await stream.nextPiece(pipe)
        } catch {
            throw .network(error)
        }
    }
}
