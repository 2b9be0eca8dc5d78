import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Receives one body: its bytes are written, then hashed, then counted. The system moves them from the socket to the
/// file, unless they are hashed or belong to a segment.
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
    let throttle: DownloadThrottle
    let time: TransferTime
    let progress: BodyProgress
    /// The position of the first byte in the file.
    let offset: Int64
    /// The position that no byte may reach; nil for none.
    let limit: Int64?
    /// The hash of the bytes of the file so far; nil if they are not hashed.
    var hash: FileHash?
    /// The segment that the bytes belong to; nil for bytes at the end of the part.
    var segment: (index: Int, plan: SegmentPlan)?

    /// Receives a body to its end. Returns the number of bytes that were counted when its last byte is written, or the
    /// reason of an early end.
    ///
    /// - Parameter isolation: The part, where the reader waits and writes, so that a portion costs one wake-up; nil for
    ///   a body that is hashed, which must not hold up the files of others.
    func run(
        _ stream: ResponseStream, isolation: isolated (any Actor)?
    ) async -> (count: Int64, failure: Failure?) {
        var position = offset
        do throws(Failure) {
            try await copy(stream, to: &position, isolation: isolation)
            return (position - offset, nil)
        } catch {
            return (position - offset, error)
        }
    }

    private func copy(
        _ stream: ResponseStream, to position: inout Int64, isolation: isolated (any Actor)?
    ) async throws(Failure) {
        let limits = throttle.isLimited ? DownloadRequests.throttledPipe : DownloadRequests.pipe
        let pipe = hash == nil && segment == nil ? stream.openPipe(limits) : nil
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
                let most = throttle.isLimited ? min(missing, Int64(DownloadRequests.chunkLimit)) : missing
                let moved = await part.move(upTo: most, through: pipe)
                if let failure = moved.failure { throw .file(failure) }
                position += moved.count
                stream.giveSocketBack(moved)
            }
            progress.add(position - start)
            do throws(DownloadThrottle.WaitEnd) {
                try await throttle.wait(after: Int(position - start), within: time)
            } catch {
                throw Failure(error)
            }
        }
    }

    private func write(_ chunk: Data, at position: Int64, isolation: isolated (any Actor)?) async throws(Failure) {
        if let limit, Int64(chunk.count) > limit - position { throw .tooLong(limit) }
        do throws(FileFailure) {
            if let segment {
                try await part.write(chunk, at: position, segment: segment.index, of: segment.plan)
            } else {
                try await part.write(chunk)
            }
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

/// The progress of one body, or of those of all segments together.
final class BodyProgress: Sendable {
    private let meter: ProgressMeter
    /// The number of bytes that are to be received; nil if it is not known.
    private let rest: Int64?
    private let received = Lock<Int64>(0)

    init(_ meter: ProgressMeter, rest: Int64?) { (self.meter, self.rest) = (meter, rest) }

    /// Counts bytes that were written.
    func add(_ count: Int64) {
        let isWatched = received.withLock { received in
            received += count
            // Stored under the lock, so that no earlier number replaces a later one.
            return meter.update(sent: 0, of: nil, received: received, of: rest)
        }
        if isWatched { meter.publishSoon() }
    }
}
