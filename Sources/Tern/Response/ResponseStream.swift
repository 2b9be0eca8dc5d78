import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A response whose body is read as it comes, by one reader at a time.
///
/// What is not read is not fetched: about 2 MiB are buffered, then the socket waits. The time limit `idle` does not run
/// while the reader holds the transfer up. A status outside 200–299 is an error, with the body's start on it.
///
/// The transfer ends with its last byte, with an error, with the cancellation of a Swift task that reads, with
/// `task.cancel()`, and when the stream and its readers are dropped.
public struct ResponseStream: Sendable {
    let source: StreamSource

    /// The task behind the stream: progress, pause, resume, cancel.
    public var task: AnySessionTask { AnySessionTask(source.record) }

    /// The head of the response, as soon as it is there and was accepted.
    public var response: ResponseHead {
        get async throws(NetworkError) {
            // Dropping the source ends the transfer, so it must live as long as the wait.
            defer { withExtendedLifetime(source) {} }
            return try await source.opened.value().head
        }
    }

    /// The body in pieces as they come, none empty, up to 256 KiB each.
    public var chunks: Chunks { Chunks(source: source) }

    /// The body, byte by byte.
    public var bytes: Bytes { Bytes(chunks: chunks) }

    /// The body as lines of UTF-8 text, without their ends: LF, CRLF, or CR. The last line need not have one. Bytes that
    /// are not UTF-8 are replaced by U+FFFD.
    ///
    /// A line is collected in memory: one of more bytes than `maximumBodySize`, the request's or else the session's (128 MiB
    /// by default), ends the transfer with an error of kind `.tooLarge`.
    public var lines: Lines { Lines(chunks: chunks) }

    init(_ plan: RequestPlan, _ context: SessionContext) {
        source = StreamSource(plan, context)
    }

    init(failed error: NetworkError, _ session: Session) {
        source = StreamSource(failed: error, session.context)
    }

    /// The body in pieces.
    public struct Chunks: AsyncSequence, Sendable {
        /// A piece of the body.
        public typealias Element = Data
        let source: StreamSource

        /// One pass over what is left of the body.
        public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

        /// Reads the pieces.
        public struct Iterator: AsyncIteratorProtocol {
            let source: StreamSource

            /// The next piece; nil at the end.
            public mutating func next() async throws(NetworkError) -> Data? { try await source.next() }

            /// The next piece; nil at the end. Runs on the caller's actor.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Data? {
                try await next()
            }
        }
    }
}

/// The transfer behind a stream. It ends with its owner: whoever drops the stream wants no more of it.
final class StreamSource: Sendable {
    let record: TaskRecord
    /// The head, once it was accepted.
    let opened = TaskValue<Arrival>()
    private let reading = Lock(Reading())

    /// Where the stream's readers are, one after another.
    private struct Reading {
        var isUnderWay = false
        /// What has come and nobody has had, the next last.
        var unread: [Data] = []
        /// How the transfer ended, once a reader was told: those after it are told the same.
        var end: Result<Void, NetworkError>?
    }

    init(_ plan: RequestPlan, _ context: SessionContext) {
        record = TaskRecord(id: context.ledger.nextID(), context: context, plan: plan, valueType: Data.self)
        guard context.ledger.addFresh(record) else {
            record.fail()
            opened.deliver(.failure(context.invalidated(plan.request)))
            return
        }
        let opened = opened
        record.assign(opened) { record in
            let outcome = await record.run { record throws(NetworkError) in try await plan.arrival(record) }
            // A response that is there is read, and ended, by the stream's reader.
            if let error = outcome.error { record.end(error) { opened.deliver(outcome.result) } }
            // Also delivered after a task that ended before, for example because its stream was dropped, so that no
            // reader waits forever.
            opened.deliver(outcome.result)
            if outcome.error == nil { record.handToReader() }
        }
        record.resume()
    }

    init(failed error: NetworkError, _ context: SessionContext) {
        record = TaskRecord(id: context.ledger.nextID(), context: context, plan: nil, valueType: Data.self)
        record.fail()
        opened.deliver(.failure(error))
    }

    deinit {
        record.abandon()
    }

    /// Bytes that a line may have.
    var lineLimit: Int { record.request?.maximumBodySize ?? record.context.configuration.maximumBodySize }

    /// Ends the transfer: a line is too long.
    func refuseLine() -> NetworkError {
        let reason = "a line of the response has more than \(lineLimit) bytes: read chunks, or raise maximumBodySize"
        let failure = TransferFailure(.tooLarge, reason)
        let error = record.request.map { NetworkError(failure, request: $0) } ?? NetworkError(.tooLarge, reason: reason)
        record.cancel()
        return error.identified(task: record.id, session: record.context.id, label: record.label)
    }

    /// What a reader had of the stream and leaves to the next one.
    func giveBack(_ rest: some Sequence<UInt8>) {
        let rest = Data(rest)
        if !rest.isEmpty { reading.withLock { $0.unread.append(rest) } }
    }

    /// The next piece; nil at the end. Cancelling the reading Swift task ends the transfer.
    func next() async throws(NetworkError) -> Data? {
        let (chunk, isFree) = reading.withLock { reading in
            if reading.isUnderWay { return (Data?.none, false) }
            let chunk = reading.unread.popLast()
            reading.isUnderWay = chunk == nil
            return (chunk, true)
        }
        guard isFree else {
            throw NetworkError(.unsupported, reason: "a response stream has one reader at a time")
        }
        if let chunk { return chunk }
        defer { reading.withLock { $0.isUnderWay = false } }
        let result = await withTaskCancellationHandler {
            await read()
        } onCancel: {
            record.cancel()
        }
        guard var chunks = try result.get() else { return nil }
        chunks.reverse()
        let first = chunks.popLast()
        // Behind what a reader gave back meanwhile.
        if !chunks.isEmpty { reading.withLock { $0.unread.insert(contentsOf: chunks, at: 0) } }
        return first
    }

    @concurrent
    private func read() async -> Result<[Data]?, NetworkError> {
        if let end = reading.withLock({ $0.end }) { return end.map { nil } }
        do {
            // Cancelling the reader cancels the task, which then ends with its own error.
            let opened = try await self.opened.outcome().get()
            if let chunks = await opened.chunks() { return .success(chunks) }
            let outcome = await opened.ended()
            let error = outcome.failure.map { failure in
                opened.plan.error(failure, outcome).identified(
                    task: record.id, session: record.context.id, label: record.label)
            }
            reading.withLock { $0.end = error.map { .failure($0) } ?? .success(()) }
            record.end(error)
            return error.map { .failure($0) } ?? .success(nil)
        } catch {
            return .failure(error)
        }
    }
}
