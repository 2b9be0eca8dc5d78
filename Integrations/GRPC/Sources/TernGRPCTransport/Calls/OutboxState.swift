import GRPCCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The framed messages of a call on their way to the connection. Pure; `Outbox` adds the lock and the continuations.
///
/// Pieces that were taken are kept until the server has begun to answer, or until they have more than `replayLimit`
/// bytes, so that a call that the server has not processed can be sent again.
struct OutboxState {
    /// The end of the messages.
    enum Ending: Sendable {
        case open
        case finished
        case failed(any Error)
    }

    /// The result of a read.
    enum Read: Sendable {
        case bytes(Data)
        /// Nothing yet.
        case wait
        case end
        case failed(any Error)
    }

    /// The result of a write.
    enum Write: Sendable {
        case written
        /// There is no room.
        case wait
        case refused(any Error)
    }

    /// The number of waiting bytes from which on a writer waits.
    static let capacity = 64 << 10
    /// The greatest number of taken bytes that are kept (as gRPC's limit for one call).
    static let replayLimit = 256 << 10
    /// The size up to which small messages are joined, so that each of them costs no step of its own.
    private static let joinedSize = 16 << 10
    /// The number of taken pieces from which on their places are removed.
    private static let mostTaken = 64

    private var waiting: [Data] = []
    /// The number of pieces of `waiting` that were taken.
    private var takenCount = 0
    private(set) var waitingBytes = 0
    private var kept: [Data] = []
    private var keptBytes = 0
    /// Whether all that was taken is kept.
    private(set) var isReplayable = true
    private var keeps = true
    private(set) var ending = Ending.open
    /// The reason why nothing is sent any more; nil while the call goes on.
    private(set) var closing: (any Error)?
    /// The number of the attempt that reads.
    private(set) var attempt = 0

    /// The number of pieces in memory, taken ones included.
    var pieceCount: Int { waiting.count + kept.count }

    /// Whether a writer can go on.
    var hasRoom: Bool { closing != nil || waitingBytes < Self.capacity }

    /// Whether a reader of an attempt has something to take.
    func isReadable(by attempt: Int) -> Bool {
        if attempt != self.attempt || closing != nil || takenCount < waiting.count { return true }
        return if case .open = ending { false } else { true }
    }

    /// Adds a framed message if there is room. The last one can exceed it.
    mutating func write(_ pieces: [Data]) -> Write {
        if let closing { return .refused(closing) }
        guard case .open = ending else {
            return .refused(RPCError(code: .failedPrecondition, message: "the messages of the call have ended"))
        }
        guard hasRoom else { return .wait }
        for piece in pieces {
            waitingBytes += piece.count
            if takenCount < waiting.count, let last = waiting.last, last.count + piece.count <= Self.joinedSize {
                waiting[waiting.count - 1].append(piece)
            } else {
                waiting.append(piece)
            }
        }
        return .written
    }

    /// Ends the messages.
    mutating func end(_ ending: Ending) {
        if case .open = self.ending { self.ending = ending }
    }

    /// Takes the next piece for an attempt.
    mutating func take(by attempt: Int) -> Read {
        guard attempt == self.attempt, closing == nil else { return .end }
        if case .failed(let error) = ending { return .failed(error) }
        guard takenCount < waiting.count else {
            return if case .finished = ending { .end } else { .wait }
        }
        // Emptied, so that a writer that is always ahead does not keep what was sent.
        let piece = waiting[takenCount]
        waiting[takenCount] = Data()
        takenCount += 1
        if takenCount == waiting.count || takenCount > Self.mostTaken {
            waiting.removeFirst(takenCount)
            takenCount = 0
        }
        waitingBytes -= piece.count
        guard keeps else {
            isReplayable = false
            return .bytes(piece)
        }
        kept.append(piece)
        keptBytes += piece.count
        if keptBytes > Self.replayLimit { forget() }
        return .bytes(piece)
    }

    private mutating func forget() {
        (kept, keptBytes) = ([], 0)
        (keeps, isReplayable) = (false, false)
    }

    /// The server answers: the call is not sent again.
    mutating func commit() { forget() }

    /// Begins another attempt, which reads from the first message on. Returns its number; nil if a part is gone.
    mutating func restart() -> Int? {
        guard isReplayable, closing == nil else { return nil }
        waiting = kept + waiting[takenCount...]
        takenCount = 0
        waitingBytes += keptBytes
        (kept, keptBytes) = ([], 0)
        attempt += 1
        return attempt
    }

    /// Nothing is sent any more.
    mutating func close(_ error: any Error) {
        if closing == nil { closing = error }
        (waiting, takenCount, waitingBytes) = ([], 0, 0)
        forget()
    }
}
