package import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// One attempt on the wire. The transport writes the response into it, and the session reads it. It has one reader at a
/// time.
package final class Attempt: Sendable {
    package typealias Wake = UnsafeContinuation<Void, Never>

    @safe private struct Shared {
        var state = AttemptState()
        var interest = AttemptState.Interest.outcome
        var reader: Wake?

        mutating func readerIfSatisfied() -> Wake? {
            guard unsafe reader != nil, state.isSatisfied(interest) else { return nil }
            defer { unsafe reader = nil }
            return unsafe reader
        }
    }

    private static let nextID = Atomic<UInt64>(1)

    /// A number that is unique in the process.
    package let id: UInt64
    package let request: WireRequest
    /// The index of the attempt in the transport's own table. Only the transport uses it.
    package let tableIndex = Atomic<Int>(-1)
    /// The number of the place that the transport has chosen for the attempt. Only the transport uses it.
    package let place = Atomic<Int>(0)
    /// The number of bytes moved so far.
    package let meter: ProgressMeter
    private let onHead: (@Sendable (ResponseHead) -> Void)?
    private let shared: Lock<Shared>

    @inline(__always)
    package init(
        _ request: consuming WireRequest, meter: ProgressMeter,
        onHead: (@Sendable (ResponseHead) -> Void)? = nil
    ) {
        id = Self.nextID.wrappingAdd(1, ordering: .relaxed).oldValue
        shared = unsafe Lock(Shared(state: AttemptState(bufferLimit: request.bufferLimit)))
        self.request = consume request
        self.meter = meter
        self.onHead = onHead
    }

    // MARK: The transport's side. Each function returns the reader to wake, if any, once the sockets of the turn are
    // served.

    /// Receives the head. With `isCompressed`, the body arrives in chunks, which the session decompresses.
    package func receive(_ head: ResponseHead, isCompressed: Bool = false) -> Wake? {
        onHead?(head)
        let isStreamed = request.streamsBody(of: head, isCompressed: isCompressed)
        return unsafe shared.withLock { shared in
            shared.state.receive(head, isStreamed: isStreamed)
            return unsafe shared.readerIfSatisfied()
        }
    }

    /// Receives an interim response (1xx), before the head. A transport calls it only if the request reports interim
    /// responses (`WireRequest.reportsInterimResponses`): otherwise, nobody takes them.
    package func receive(interim head: ResponseHead) -> Wake? {
        unsafe shared.withLock { shared in
            shared.state.receive(interim: head)
            return unsafe shared.readerIfSatisfied()
        }
    }

    /// Decides from the head of the final response whether its body counts as progress. Called before the first bytes
    /// of the body.
    package func expectBody(of head: ResponseHead) {
        if !request.countsBody(of: head), meter.counts(id) { meter.setBodyCounted(false) }
    }

    /// Stores the numbers of bytes (`ProgressMeter.update`), unless another attempt of the task has begun. Not inlined,
    /// which saves a retain of the meter.
    @inline(never)
    package func updateProgress(sent: Int64, of sentTotal: Int64?, received: Int64?, of receivedTotal: Int64?) -> Bool {
        guard meter.counts(id) else { return false }
        return meter.update(sent: sent, of: sentTotal, received: received, of: receivedTotal)
    }

    /// Stores the numbers of bytes, as `updateProgress(sent:of:received:of:)` does, and publishes them at once.
    package func publishProgress(sent: Int64, of sentTotal: Int64?, received: Int64, of receivedTotal: Int64?) {
        if updateProgress(sent: sent, of: sentTotal, received: received, of: receivedTotal) { meter.publish() }
    }

    /// Receives bytes of the body. If `isFull`, the transport delivers no more until `AttemptCommand.demand`.
    package func receive(_ chunk: Data) -> (wake: Wake?, isFull: Bool) {
        unsafe shared.withLock { shared in
            let isFull = shared.state.receive(chunk)
            return unsafe (shared.readerIfSatisfied(), isFull)
        }
    }

    /// The pipe that the session has offered; nil for none.
    package var pipe: BodyPipe? { shared.withLock { $0.state.pipe } }

    /// Lends the socket of the body, of which this number of bytes is missing, to the reader until
    /// `AttemptCommand.demand`. `takeMoved()` then returns what the reader has moved.
    package func lendSocket(missing: Int64) -> Wake? {
        unsafe shared.withLock { shared in
            shared.state.lendSocket(missing: missing)
            return unsafe shared.readerIfSatisfied()
        }
    }

    /// Takes what the reader has moved; nil if it has not given the socket back.
    package func takeMoved() -> BodyPipe.Moved? { shared.withLock { $0.state.moved.take() } }

    /// Receives the end of the body of an attempt that goes on: the transport still sends. Only after a switch to
    /// another protocol.
    package func endBody() -> Wake? {
        unsafe shared.withLock { shared in
            shared.state.endBody()
            return unsafe shared.readerIfSatisfied()
        }
    }

    /// Receives the end of the attempt.
    package func complete(_ outcome: AttemptOutcome) -> Wake? {
        unsafe shared.withLock { shared in
            shared.state.complete(outcome)
            return unsafe shared.readerIfSatisfied()
        }
    }

    // MARK: The session's side.

    /// Waits for the response. Returns the head as soon as it arrives, if the session reads the body itself
    /// (`WireRequest.streamsBody(of:)`). For any other response, and without a head, returns the end of the attempt.
    ///
    /// - Parameter interim: Called with each interim response before, in the caller's Swift task.
    @inline(__always)
    package func response(
        onInterim interim: (ResponseHead) -> Void = { _ in }
    ) async -> (head: ResponseHead?, outcome: AttemptOutcome?) {
        while true {
            await wait(for: .response)
            let (heads, response) = shared.withLock { shared in
                let heads = shared.state.takeInterims()
                return (heads, heads.isEmpty ? shared.state.takeResponse() : nil)
            }
            if let response { return response }
            for head in heads { interim(head) }
        }
    }

    /// Whether the attempt has ended at its limit `Timeouts.total`.
    var isOverTime: Bool { shared.withLock { $0.state.isOverTime } }

    /// Whether the attempt has ended.
    var hasEnded: Bool { shared.withLock { $0.state.hasEnded } }

    /// Waits for bytes of the body, and returns those in the buffer; nil after the last byte, also when the attempt
    /// failed.
    package func piece() async -> BodyPiece? {
        await wait(for: .chunks)
        let piece = shared.withLock { $0.state.take() }
        return piece.isEmpty ? nil : piece
    }

    /// Offers a pipe for the rest of the body, before `AttemptCommand.usePipe`.
    package func offer(_ pipe: BodyPipe) { shared.withLock { $0.state.pipe = pipe } }

    /// Gives the lent socket back, before `AttemptCommand.demand`.
    package func giveSocketBack(_ moved: BodyPipe.Moved) { shared.withLock { $0.state.moved = moved } }

    /// Waits for the end of the attempt. Called once, because the outcome is moved out.
    package func outcome() async -> AttemptOutcome {
        await wait(for: .outcome)
        // The wait ends only with an outcome.
        return shared.withLock { $0.state.takeOutcome() }
    }

    @inline(__always)
    private func wait(for interest: AttemptState.Interest) async {
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

/// The bytes of a body that the reader takes at once.
package struct BodyPiece: Sendable {
    package var chunks: [Data]
    /// The number of missing bytes if the reader now has the socket, to move those that follow the chunks; nil
    /// otherwise.
    package var missingCount: Int64?
    /// Whether the transport waits for `AttemptCommand.demand`. With a lent socket, the reader sends that command when
    /// it gives the socket back.
    package var owesDemand = false

    var isEmpty: Bool { chunks.isEmpty && missingCount == nil }
}

/// The part of a response that has arrived, and whether it satisfies the reader. Pure; `Attempt` adds the lock and the
/// continuation.
struct AttemptState {
    /// An event that the reader waits for.
    enum Interest {
        /// The head of a response whose body the session reads itself, or the end.
        case response
        case chunks
        case outcome
    }

    /// The number of bytes that may wait for the reader before the transport stops.
    static let highWaterMark = 1 << 20
    /// The number of bytes that a smaller chunk counts as: with each chunk, the memory holds an object.
    private static let smallestChunk = 256

    private let bufferLimit: Int

    private var announced: ResponseHead?
    /// The interim responses that the reader has not taken. The transport limits their number.
    private var interims: [ResponseHead] = []
    private var isStreamed = false
    private(set) var outcome: AttemptOutcome?
    private(set) var hasEnded = false
    private(set) var isOverTime = false
    /// Whether no more bytes of the body follow.
    private var isBodyEnded = false
    private var chunks: [Data] = []
    private var bufferedBytes = 0
    /// The pipe that the session has offered for the rest of the body.
    var pipe: BodyPipe?
    /// The number of missing bytes, while the socket is lent and the reader has not been told; nil otherwise.
    private var missingCount: Int64?
    /// The bytes that the reader has moved, once it has given the socket back, until the transport takes them.
    var moved: BodyPipe.Moved?
    /// Whether the transport waits until the reader asks for more.
    private var isFull = false

    init(bufferLimit: Int = highWaterMark) { self.bufferLimit = bufferLimit }

    var head: ResponseHead? { announced ?? outcome?.head }

    func isSatisfied(_ interest: Interest) -> Bool {
        if hasEnded { return true }
        return switch interest {
        case .response: isStreamed || !interims.isEmpty
        case .chunks: !chunks.isEmpty || missingCount != nil || isBodyEnded
        case .outcome: false
        }
    }

    /// Receives the head. With `isStreamed`, the reader continues with the head alone.
    mutating func receive(_ head: ResponseHead, isStreamed: Bool) {
        announced = head
        self.isStreamed = isStreamed
    }

    /// Receives an interim response. One that comes after the head is left out.
    mutating func receive(interim head: ResponseHead) {
        if announced == nil { interims.append(head) }
    }

    /// Moves the interim responses out, in their order.
    mutating func takeInterims() -> [ResponseHead] {
        if interims.isEmpty { return [] }
        defer { interims = [] }
        return interims
    }

    /// Receives bytes. Returns whether the transport must stop until the reader asks for more.
    mutating func receive(_ chunk: Data) -> Bool {
        chunks.append(chunk)
        bufferedBytes += max(chunk.count, Self.smallestChunk)
        if bufferedBytes >= bufferLimit { isFull = true }
        return isFull
    }

    /// Lends the socket, of whose body this number of bytes is missing, to the reader.
    mutating func lendSocket(missing: Int64) { missingCount = missing }

    /// Ends the body before the end of the attempt.
    mutating func endBody() { isBodyEnded = true }

    mutating func complete(_ outcome: AttemptOutcome) {
        guard !hasEnded else { return }
        hasEnded = true
        if outcome.hasFailed { isOverTime = outcome.failure?.kind == .totalTimedOut }
        missingCount = nil
        self.outcome = outcome
    }

    /// Moves the outcome out. A second call returns a cancellation.
    mutating func takeOutcome() -> AttemptOutcome { outcome.take() ?? AttemptOutcome(failure: .cancelled) }

    /// Returns the head of a response whose body the session reads itself, or else moves the outcome out.
    mutating func takeResponse() -> (head: ResponseHead?, outcome: AttemptOutcome?) {
        if isStreamed, let announced { return (announced, nil) }
        return (nil, takeOutcome())
    }

    /// Moves the buffered bytes out.
    mutating func take() -> BodyPiece {
        defer {
            chunks = []
            bufferedBytes = 0
            missingCount = nil
            isFull = false
        }
        let owesDemand = isFull && !hasEnded && missingCount == nil
        return BodyPiece(chunks: chunks, missingCount: missingCount, owesDemand: owesDemand)
    }
}
