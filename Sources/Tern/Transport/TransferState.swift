#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// How an attempt ended. A reference: it goes from the loop to the caller through many hands, and a copy of its many
/// fields at each of them showed in profiles.
package final class TransferOutcome: Sendable {
    package let head: ResponseHead?
    /// The body of a collected response that did not arrive in chunks, or its start when the attempt failed.
    package let body: Data
    package let failure: TransferFailure?
    package let metrics: TaskMetrics
    package let trailers: Headers

    package init(
        head: consuming ResponseHead? = nil, body: consuming Data = Data(), failure: TransferFailure? = nil,
        metrics: consuming TaskMetrics = TaskMetrics(), trailers: Headers = [:]
    ) {
        self.head = head
        self.body = body
        self.failure = failure
        self.metrics = metrics
        self.trailers = trailers
    }

    /// The same end of a body that was decompressed on its way to the reader.
    func decoded(_ decoder: ContentDecoder) -> TransferOutcome {
        var metrics = metrics
        metrics.decodedBodyBytes = decoder.produced
        // A decoder that failed has ended the attempt itself.
        let failure = decoder.failure ?? failure ?? decoder.failureOfEnd
        return TransferOutcome(head: head, body: body, failure: failure, metrics: metrics, trailers: trailers)
    }

    /// Returns the same outcome with a body that was collected from its chunks, and the reason if the body is
    /// incomplete.
    func collected(_ body: Data, refusal: TransferFailure?) -> TransferOutcome {
        TransferOutcome(head: head, body: body, failure: refusal ?? failure, metrics: metrics, trailers: trailers)
    }

    /// The same end of an attempt that was not the first.
    func counted(_ attempts: Int) -> TransferOutcome {
        var metrics = metrics
        metrics.attempts = attempts
        return TransferOutcome(head: head, body: body, failure: failure, metrics: metrics, trailers: trailers)
    }
}

/// The result of waiting for a response: its head, if the session reads the body itself, or the end of the attempt.
package struct TransferAnswer: Sendable {
    /// nil at the end of a response.
    private let early: ResponseHead?
    package let outcome: TransferOutcome?

    init(early: ResponseHead) {
        self.early = early
        outcome = nil
    }

    init(_ outcome: TransferOutcome) {
        early = nil
        self.outcome = outcome
    }

    package var head: ResponseHead? { outcome?.head ?? early }

    /// The attempt ended because its pooled connection was dead.
    var isDeadConnection: Bool { outcome?.failure?.isDeadPooledConnection == true }
}

/// What has arrived of an attempt and what its one reader waits for. Pure: the lock and the continuation are around it.
struct TransferState {
    /// What the reader can wait for.
    enum Interest {
        /// Waits for the head of a response whose body the session reads itself, or for the end.
        case answer
        case chunks
        case outcome
    }

    /// Bytes that may wait for the reader before the transport is told to stand still.
    static let highWaterMark = 1 << 20

    private var announced: ResponseHead?
    private var hasAnswer = false
    private(set) var outcome: TransferOutcome?
    private(set) var hasEnded = false
    private var chunks: [Data] = []
    private var bufferedBytes = 0
    private var isFull = false

    var head: ResponseHead? { announced ?? outcome?.head }

    func isSatisfied(_ interest: Interest) -> Bool {
        if hasEnded { return true }
        return switch interest {
        case .answer: hasAnswer
        case .chunks: !chunks.isEmpty
        case .outcome: false
        }
    }

    /// Receives the head. With `isAnswer`, the reader continues with the head alone.
    mutating func receive(_ head: ResponseHead, isAnswer: Bool) {
        announced = head
        hasAnswer = isAnswer
    }

    /// Returns whether the transport must stand still until the reader asks for more.
    mutating func receive(_ chunk: Data) -> Bool {
        chunks.append(chunk)
        bufferedBytes += chunk.count
        if bufferedBytes >= Self.highWaterMark { isFull = true }
        return isFull
    }

    mutating func complete(_ outcome: TransferOutcome) {
        guard !hasEnded else { return }
        hasEnded = true
        self.outcome = outcome
    }

    /// The outcome, handed over: a second call has a cancellation.
    mutating func takeOutcome() -> TransferOutcome { outcome.take() ?? TransferOutcome(failure: .cancelled) }

    /// Returns the head of a response whose body the session reads itself, or otherwise the outcome.
    mutating func answer() -> TransferAnswer {
        if hasAnswer, let announced { return TransferAnswer(early: announced) }
        return TransferAnswer(takeOutcome())
    }

    /// All that is buffered, and whether the transport waits to hear that it was taken.
    mutating func take() -> (chunks: [Data], owesDemand: Bool) {
        defer {
            chunks = []
            bufferedBytes = 0
            isFull = false
        }
        return (chunks, isFull && !hasEnded)
    }
}
