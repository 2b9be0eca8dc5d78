package import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// One attempt, shared by the transport that fills it and the session that reads it. It has one reader at a time.
package final class Transfer: Sendable {
    package typealias Wake = UnsafeContinuation<Void, Never>

    @safe private struct Shared {
        var state = TransferState()
        var interest = TransferState.Interest.outcome
        var reader: Wake?

        mutating func readerIfSatisfied() -> Wake? {
            guard unsafe reader != nil, state.isSatisfied(interest) else { return nil }
            defer { unsafe reader = nil }
            return unsafe reader
        }
    }

    private static let nextID = Atomic<UInt64>(1)

    /// Unique in the process.
    package let id: UInt64
    package let order: TransferOrder
    /// Where the transport keeps the attempt: its own affair, and changed by nobody else.
    package let place = Atomic<Int>(-1)
    /// The bytes moved so far, for whoever listens.
    package let meter: ProgressMeter
    private let onHead: (@Sendable (ResponseHead) -> Void)?
    private let shared = Lock(Shared())

    package init(
        _ order: consuming TransferOrder, meter: ProgressMeter, onHead: (@Sendable (ResponseHead) -> Void)? = nil
    ) {
        id = Self.nextID.wrappingAdd(1, ordering: .relaxed).oldValue
        self.order = consume order
        self.meter = meter
        self.onHead = onHead
    }

    // MARK: The transport's side. Each returns the reader to be woken, if any: after the sockets of the turn are served.

    /// Receives the head. With `isCompressed`, the body comes in chunks, which the session decompresses.
    package func receive(_ head: ResponseHead, isCompressed: Bool = false) -> Wake? {
        onHead?(head)
        let isAnswer = order.isAnswer(head, isCompressed: isCompressed)
        return unsafe shared.withLock { shared in
            shared.state.receive(head, isAnswer: isAnswer)
            return unsafe shared.readerIfSatisfied()
        }
    }

    /// `isFull`: send no more until `TransferCommand.demand`.
    package func receive(_ chunk: Data) -> (wake: Wake?, isFull: Bool) {
        unsafe shared.withLock { shared in
            let isFull = shared.state.receive(chunk)
            return unsafe (shared.readerIfSatisfied(), isFull)
        }
    }

    package func complete(_ outcome: TransferOutcome) -> Wake? {
        unsafe shared.withLock { shared in
            shared.state.complete(outcome)
            return unsafe shared.readerIfSatisfied()
        }
    }

    // MARK: The session's side.

    /// Waits for a response. Returns the head as soon as it is there, if the session reads the body itself
    /// (`TransferOrder.isAnswer`). For any other response, and without a head, returns the end of the attempt.
    package func answer() async -> TransferAnswer {
        await wait(for: .answer)
        return shared.withLock { $0.state.answer() }
    }

    /// A Boolean value that indicates whether the attempt has ended.
    var hasEnded: Bool { shared.withLock { $0.state.hasEnded } }

    /// What is buffered, as soon as something is; nil after the last byte, also when the attempt failed.
    package func chunks() async -> (chunks: [Data], owesDemand: Bool)? {
        await wait(for: .chunks)
        let taken = shared.withLock { $0.state.take() }
        return taken.chunks.isEmpty ? nil : taken
    }

    /// How the attempt ended. To be called once: the outcome is handed over.
    package func outcome() async -> TransferOutcome {
        await wait(for: .outcome)
        // The wait ends only with an outcome.
        return shared.withLock { $0.state.takeOutcome() }
    }

    private func wait(for interest: TransferState.Interest) async {
        unsafe await withUnsafeContinuation { (reader: Wake) in
            let isReady = shared.withLock { shared in
                if shared.state.isSatisfied(interest) { return true }
                shared.interest = interest
                unsafe shared.reader = reader
                return false
            }
            if isReady { unsafe reader.resume() }
        }
    }
}
