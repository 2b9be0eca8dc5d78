import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A response whose body is read while it arrives, by one reader at a time.
///
/// The socket waits while about 2 MiB are unread. The time limit `idle` does not run while the transfer waits for the
/// reader. A response that the validation refuses, by default one with a status outside 200–299, is an error that
/// contains the start of the body.
///
/// The transfer ends with its last byte, with an error, with the cancellation of a Swift task that reads, with
/// `task.cancel()`, and when the stream and its readers are released. After a cancellation, and after the time limit
/// `total`, a reader receives the error next: what has arrived and was not read is dropped. Before any other error, it
/// receives all that has arrived.
public struct ResponseStream: Sendable {
    let source: StreamSource

    /// The task of the stream, with progress, pause, resume and cancel.
    public var task: AnySessionTask { AnySessionTask(source.record) }

    /// The head of the response. Returns when the head has arrived and was accepted. Cancelling the Swift task that
    /// waits ends the transfer.
    public var response: ResponseHead {
        get async throws(NetworkError) {
            // Releasing the source ends the transfer, so it must live as long as the wait.
            defer { withExtendedLifetime(source) {} }
            let outcome = await withTaskCancellationHandler {
                await source.opened.outcome()
            } onCancel: {
                source.record.cancel()
            }
            return try outcome.get().head
        }
    }

    /// The fields after the body (RFC 9110 §6.5): the trailers of a chunked body, or of a response over HTTP/2. Empty
    /// if the server sent none.
    ///
    /// ```swift
    /// for try await chunk in stream.chunks { hash.update(chunk) }
    /// let digest = try stream.trailers["Content-Digest"]
    /// ```
    ///
    /// They are known when a reader has reached the end of the body: when its iterator has returned nil. Servers send
    /// trailers to clients that ask for them with the field `TE: trailers`, and some send them always. With URLSession,
    /// which does not report trailers, they are always empty.
    ///
    /// - Throws: The error with which the transfer ended. Before its end, an error of kind `.unsupported`.
    public var trailers: Headers {
        get throws(NetworkError) {
            defer { withExtendedLifetime(source) {} }
            return try source.trailers()
        }
    }

    /// The body in chunks as they arrive. Each has 1 byte to 256 KiB.
    public var chunks: Chunks { Chunks(source: source) }

    /// The body as a sequence of bytes.
    public var bytes: Bytes { Bytes(chunks: chunks) }

    /// The body as lines of UTF-8 text, without their line endings: LF, CRLF, or CR. The last line can end without one.
    /// Bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// A line is collected in memory. A line that exceeds `maximumBodySize` of the request or the session (128 MiB by
    /// default) ends the transfer with an error of kind `.tooLarge`.
    public var lines: Lines { Lines(chunks: chunks) }

    /// The maximum number of bytes of a line, and of every other part of the body that is collected in memory.
    package var lineLimit: Int { source.lineLimit }

    /// Opens a pipe through which the caller moves the rest of the body. Returns nil if the bytes must pass through
    /// memory, and before the head has arrived.
    package func openPipe(_ limits: BodyPipe.Limits) -> BodyPipe? {
        // `try?`: the reader receives the error.
        try? source.opened.resultNow?.get().openPipe(limits)
    }

    /// Returns the chunks that have arrived, at least one; nil at the end. If the socket is lent, the caller moves the
    /// bytes that follow through the pipe that `openPipe(_:)` returned, and gives it back. Runs on the caller's actor, so
    /// that a reader that writes the chunks there needs one wake-up. Cancelling the reading Swift task ends the transfer.
    package func nextPiece(
        _ pipe: BodyPipe?, isolation: isolated (any Actor)? = #isolation
    ) async throws(NetworkError) -> BodyPiece? {
        try await source.nextPiece(pipe, isolation: isolation)
    }

    /// Gives the lent socket back.
    package func giveSocketBack(_ moved: BodyPipe.Moved) {
        // `try?`: a socket is lent only after a head.
        try? source.opened.resultNow?.get().giveSocketBack(moved)
    }

    /// Returns whether the elements of the body that have arrived and were not delivered are dropped, because the
    /// stream was cancelled or has reached its limit `total`. The next read of the body then throws. Called by a reader
    /// before each element, or now and then: a slow reader of many small elements would go on for minutes.
    package func dropsUnread() -> Bool { source.dropsUnread() }

    /// The configuration of the stream's session.
    package var configuration: Session.Configuration { source.record.registry.configuration }

    /// Ends the transfer because of its content, and returns the error.
    ///
    /// - Parameter body: The part of the body that is refused.
    package func refuse(_ failure: FailureCause, body: Data = Data()) -> NetworkError {
        source.refuse(failure, body: body)
    }

    init(_ prepared: PreparedRequest, _ registry: TaskRegistry) {
        source = StreamSource(prepared, registry)
    }

    init(failed error: NetworkError, _ registry: TaskRegistry) {
        source = StreamSource(failed: error, registry)
    }

    /// The body as a sequence of chunks.
    public struct Chunks: AsyncSequence, Sendable {
        /// A chunk of the body.
        public typealias Element = Data
        let source: StreamSource

        /// Returns an iterator over the rest of the body.
        public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

        /// An iterator over chunks.
        public struct Iterator: AsyncIteratorProtocol {
            let source: StreamSource

            /// Returns the next chunk; nil at the end.
            public mutating func next() async throws(NetworkError) -> Data? { try await source.next() }

            /// Returns the next chunk; nil at the end. Runs on the caller's actor.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> Data? {
                try await next()
            }
        }
    }
}

extension ResponseStream: AsyncSequence {
    /// A chunk of the body.
    public typealias Element = Data

    /// Returns an iterator over the rest of the body, as ``chunks`` does.
    public func makeAsyncIterator() -> Chunks.Iterator { chunks.makeAsyncIterator() }
}

/// Owns the transfer of a stream, which ends when the source is released.
final class StreamSource: Sendable {
    let record: TaskRecord
    /// The response, once its head was accepted.
    let opened = TaskValue<IncomingResponse>()
    private let reading = Lock(Reading())

    /// The reading position, shared by consecutive readers.
    private struct Reading {
        var isUnderWay = false
        /// The chunks that have arrived and were not read. The next one is last.
        var unread: [Data] = []
        /// Whether a part of the body was dropped, so that its end is an error.
        var hasDropped = false
        /// The end of the transfer with its trailers, once a reader received it. Later readers receive the same.
        var end: Result<Headers, NetworkError>?
    }

    init(_ prepared: PreparedRequest, _ registry: TaskRegistry) {
        record = TaskRecord(
            id: registry.nextID(), registry: registry, request: prepared, valueType: Data.self,
            place: prepared.staysWithCaller ? .loop : .elsewhere)
        guard registry.live.join(record) else {
            record.fail()
            opened.deliver(.failure(registry.invalidated(prepared.request)))
            return
        }
        let opened = opened
        record.assign(opened.delivery) { record in
            let outcome = await record.run { record throws(NetworkError) in
                let response = try await RequestExecution(request: prepared, record: record).acceptedResponse()
                try record.handToReader()
                return response
            }
            // The stream's reader reads and ends a response that has arrived.
            if let error = outcome.failure { record.end(error) { opened.deliver(outcome) } }
            // Also delivered after a task that ended before, for example because its stream was dropped, so that no
            // reader waits forever.
            opened.deliver(outcome)
        }
        if Task.isCancelled {
            // A caller that is already cancelled sends nothing.
            record.cancel()
        } else {
            record.resume()
        }
    }

    init(failed error: NetworkError, _ registry: TaskRegistry) {
        record = TaskRecord(id: registry.nextID(), registry: registry, request: nil, valueType: Data.self)
        record.fail()
        opened.deliver(.failure(error))
    }

    deinit {
        record.abandon()
    }

    /// The maximum number of bytes in a line.
    var lineLimit: Int { record.request?.maximumBodySize ?? record.registry.configuration.maximumBodySize }

    /// Ends the transfer because a line is too long, and returns the error.
    func refuseLine() -> NetworkError {
        let reason = "a line of the response has more than \(lineLimit) bytes: read chunks, or raise maximumBodySize"
        return refuse(FailureCause(.tooLarge, reason))
    }

    /// Ends the transfer because of its content, and returns the error.
    ///
    /// - Parameter body: The part of the body that is refused.
    func refuse(_ failure: FailureCause, body: Data = Data()) -> NetworkError {
        let error =
            record.request.map { NetworkError(failure, request: $0, response: record.head, body: body) }
            ?? NetworkError(failure.kind, reason: failure.reason, body: body, underlying: failure.underlying)
        record.cancel()
        return error.carrying(record.registry.configuration.json).identified(
            task: record.id, session: record.registry.sessionID, label: record.label)
    }

    /// Returns the trailers, once the end of the transfer is known.
    func trailers() throws(NetworkError) -> Headers {
        guard let end = reading.withLock({ $0.end }) else {
            throw NetworkError(.unsupported, reason: "trailers follow the body: read the stream to its end first")
        }
        return try end.get()
    }

    /// Whether the reader or the task was cancelled, or `Timeouts.total` is over, before the end of the body was read.
    private var isInterrupted: Bool {
        if Task.isCancelled { record.cancel() }
        if record.isCancelled { return true }
        guard case .success(let response)? = opened.resultNow else { return false }
        return response.attempt?.isOverTime ?? false
    }

    /// Drops what was not read if the stream was interrupted. Returns whether it was.
    func dropsUnread() -> Bool {
        guard reading.withLock({ $0.end == nil }), isInterrupted else { return false }
        reading.withLock { reading in
            reading.unread = []
            reading.hasDropped = true
        }
        return true
    }

    /// Takes back the bytes that a reader fetched and did not return.
    func returnUnreadBytes(_ rest: some Sequence<UInt8>) {
        let rest = Data(rest)
        if !rest.isEmpty { reading.withLock { $0.unread.append(rest) } }
    }

    /// Returns the next chunk; nil at the end. Cancelling the reading Swift task ends the transfer.
    func next() async throws(NetworkError) -> Data? {
        _ = dropsUnread()
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
        guard var chunks = try result.get()?.chunks else { return nil }
        chunks.reverse()
        let first = chunks.popLast()
        // These chunks follow the bytes that a reader gave back in the meantime.
        if !chunks.isEmpty { reading.withLock { $0.unread.insert(contentsOf: chunks, at: 0) } }
        return first
    }

    /// Returns all bytes that have arrived, on the caller's actor.
    func nextPiece(
        _ pipe: BodyPipe?, isolation: isolated (any Actor)?
    ) async throws(NetworkError) -> BodyPiece? {
        let (unread, isFree) = reading.withLock { reading in
            if reading.isUnderWay { return ([Data](), false) }
            let unread = Array(reading.unread.reversed())
            reading.unread = []
            reading.isUnderWay = unread.isEmpty
            return (unread, true)
        }
        guard isFree else {
            throw NetworkError(.unsupported, reason: "a response stream has one reader at a time")
        }
        if !unread.isEmpty { return BodyPiece(chunks: unread) }
        defer { reading.withLock { $0.isUnderWay = false } }
        let result = await withTaskCancellationHandler {
            // A closure that does not use the actor does not run on it, and each chunk would come by another thread.
            _ = isolation
            return await readHere(pipe)
        } onCancel: {
            record.cancel()
        }
        return try result.get()
    }

    @concurrent
    private func read() async -> Result<BodyPiece?, NetworkError> { await readHere(nil, dropsUnread: true) }

    /// - Parameter mayDrop: Whether the bytes of a stream that was interrupted are dropped. A reader that stores them
    ///   for a later request takes them.
    private func readHere(
        _ pipe: BodyPipe?, dropsUnread mayDrop: Bool = false
    ) async -> Result<BodyPiece?, NetworkError> {
        if let end = reading.withLock({ $0.end }) { return end.map { _ in nil } }
        do {
            // Cancelling the reader cancels the task, which then ends with its own error.
            let opened = try await self.opened.outcome().get()
            while let piece = await opened.piece(pipe) {
                if !mayDrop || !dropsUnread() { return .success(piece) }
            }
            let outcome = await opened.finalOutcome()
            let isCut = outcome.failure == nil && reading.withLock { $0.hasDropped }
            let failure: FailureCause? = isCut ? .cancelled : outcome.failure
            let error = failure.map { failure in
                opened.request.error(failure, outcome).identified(
                    task: record.id, session: record.registry.sessionID, label: record.label)
            }
            reading.withLock { $0.end = error.map { .failure($0) } ?? .success(outcome.trailers) }
            record.end(error)
            return error.map { .failure($0) } ?? .success(nil)
        } catch {
            reading.withLock { $0.end = .failure(error) }
            return .failure(error)
        }
    }
}
