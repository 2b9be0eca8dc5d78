#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// How an attempt ended. A reference: it goes from the loop to the caller through many hands, and a copy of its many
/// fields at each of them showed in profiles.
package final class TransferOutcome: Sendable {
    package struct Fields: Sendable {
        package var head: ResponseHead?
        package var body = Data()
        package var failure: TransferFailure?
        package var metrics = TaskMetrics()
        package var trailers: Headers = [:]

        package init() {}
    }

    package let fields: Fields

    package init(_ fields: Fields) { self.fields = fields }

    package init(
        head: ResponseHead? = nil, body: Data = Data(), failure: TransferFailure? = nil,
        metrics: TaskMetrics = TaskMetrics(), trailers: Headers = [:]
    ) {
        var fields = Fields()
        fields.head = head
        fields.body = body
        fields.failure = failure
        fields.metrics = metrics
        fields.trailers = trailers
        self.fields = fields
    }

    package var head: ResponseHead? { fields.head }
    /// The whole body of a collected response, or its start when the attempt failed.
    package var body: Data { fields.body }
    package var failure: TransferFailure? { fields.failure }
    package var metrics: TaskMetrics { fields.metrics }
    package var trailers: Headers { fields.trailers }

    /// The same end of an attempt that was not the first.
    func counted(_ attempts: Int) -> TransferOutcome {
        var fields = fields
        fields.metrics.attempts = attempts
        return TransferOutcome(fields)
    }
}

/// What an attempt has come to: its end, or the head of a streamed response that goes on.
package struct TransferAnswer: Sendable {
    package let head: ResponseHead?
    package let outcome: TransferOutcome?

    /// The attempt ended because its pooled connection was dead.
    var isDeadConnection: Bool { outcome?.failure?.isDeadPooledConnection == true }
}

/// What has arrived of an attempt and what its one reader waits for. Pure: the lock and the continuation are around it.
struct TransferState {
    /// What the reader can wait for.
    enum Interest {
        case head
        case chunks
        case outcome
    }

    /// Bytes that may wait for the reader before the transport is told to stand still.
    static let highWaterMark = 1 << 20

    private(set) var head: ResponseHead?
    private(set) var outcome: TransferOutcome?
    private(set) var hasEnded = false
    private var chunks: [Data] = []
    private var bufferedBytes = 0
    private var isFull = false

    func isSatisfied(_ interest: Interest) -> Bool {
        if hasEnded { return true }
        return switch interest {
        case .head: head != nil
        case .chunks: !chunks.isEmpty
        case .outcome: false
        }
    }

    mutating func receive(_ head: ResponseHead) {
        self.head = head
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
        if head == nil { head = outcome.head }
        self.outcome = outcome
    }

    /// The outcome, handed over: a second call has a cancellation.
    mutating func takeOutcome() -> TransferOutcome { outcome.take() ?? TransferOutcome(failure: .cancelled) }

    /// The head of a streamed response, else the outcome.
    mutating func answer(isStreamed: Bool) -> TransferAnswer {
        if isStreamed, let head { return TransferAnswer(head: head, outcome: nil) }
        let outcome = takeOutcome()
        return TransferAnswer(head: outcome.head, outcome: outcome)
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
