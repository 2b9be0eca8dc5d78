import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A response on its way to the task: the head, and either the whole body or the means to read it.
package struct IncomingResponse: Sendable {
    /// The request that was answered, and where the body comes from. One reference, because a response is copied at
    /// several stages.
    private enum Origin {
        /// A response from the wire whose end has arrived: nothing is left to read.
        case whole(PreparedRequest)
        /// Any other response.
        case open(Source)
    }

    /// The origin of a body that is still to be read, of a stored response, or of one that an interceptor made.
    private final class Source: Sendable {
        let request: PreparedRequest
        /// The attempt that brings the body; nil for a stored response, and for one that an interceptor made.
        let running: RunningAttempt?
        /// Decompresses the body; nil if nothing is to be decompressed.
        let decoder: ContentDecoder?
        /// The body of a response without an attempt.
        let ownBody: OwnBody?
        /// Receives a copy of the body; nil if nobody wants one.
        let recorder: (any BodyRecorder)?
        /// The place that a policy has named for the body; nil to leave it in memory.
        let downloadPlace: DownloadPlace?

        init(
            _ request: PreparedRequest, _ running: RunningAttempt?, decoder: ContentDecoder? = nil,
            ownBody: OwnBody? = nil, recorder: (any BodyRecorder)? = nil, downloadPlace: DownloadPlace? = nil
        ) {
            self.downloadPlace = downloadPlace
            self.request = request
            self.running = running
            self.decoder = decoder
            self.ownBody = ownBody
            self.recorder = recorder
        }
    }

    /// An attempt whose body is read.
    private struct RunningAttempt: Sendable {
        let record: TaskRecord
        let attempt: Attempt
        let pump: BodyPump?
        /// 1 for the first attempt.
        let number: Int
    }

    package var head: ResponseHead
    /// The end of the response, with its body if that was collected; nil while a body is still to be read.
    var outcome: AttemptOutcome?
    /// Whether the response is a redirect that is not followed. Its status is accepted regardless of the validation.
    private(set) var isStoppedRedirect = false
    /// The place of the body in the file of a continued download; nil for other responses, and for a body of any length
    /// that is the whole file.
    var filePlace: FilePlace?
    private var origin: Origin

    /// The request that was answered. After a redirect, a challenge or a change by an interceptor, it differs from the
    /// request that the task was created with.
    var request: PreparedRequest {
        switch origin {
        case .whole(let request): request
        case .open(let source): source.request
        }
    }

    /// Whether the response came from the wire, and its end has arrived.
    var isWhole: Bool {
        switch origin {
        case .whole: outcome != nil
        case .open: false
        }
    }

    /// nil for a response from the wire that is whole.
    private var source: Source? {
        switch origin {
        case .whole: nil
        case .open(let source): source
        }
    }

    private var running: RunningAttempt? { source?.running }
    private var decoder: ContentDecoder? { source?.decoder }
    private var recorder: (any BodyRecorder)? { source?.recorder }
    private var ownBody: OwnBody? { source?.ownBody }

    /// The limits for reading the body of a response that another request follows, so that its connection can be used
    /// again.
    private static let restLimit = (bytes: 64 << 10, time: Duration.seconds(1))
    /// The time in which the body of a refused response is read for its error.
    static let errorBodyTime = Duration.seconds(5)

    /// Creates a response from the wire whose end has arrived.
    init(whole outcome: AttemptOutcome, request: PreparedRequest, head: ResponseHead) {
        self.head = head
        self.outcome = outcome
        origin = .whole(request)
    }

    /// Creates a response from the wire whose body is still to be read.
    init(
        request: PreparedRequest, head: ResponseHead, record: TaskRecord, attempt: Attempt, pump: BodyPump?,
        number: Int, decoder: ContentDecoder?
    ) {
        self.head = head
        let running = RunningAttempt(record: record, attempt: attempt, pump: pump, number: number)
        origin = .open(Source(request, running, decoder: decoder))
    }

    /// Creates a response that an interceptor returned in place of a server.
    init(customBody data: Data, request: PreparedRequest, head: ResponseHead, metrics: TaskMetrics) {
        self.head = head
        outcome = AttemptOutcome(head: head, body: data, metrics: metrics)
        origin = .open(Source(request, nil, ownBody: OwnBody(data)))
    }

    /// Creates a stored response. A body without a coding that the task collects is whole at once.
    init(stored: StoredBody, request: PreparedRequest, head: ResponseHead, record: TaskRecord) {
        self.head = head
        let data = stored.bytes
        let decoder = data.isEmpty ? nil : request.decoder(for: head)
        let body = OwnBody(stored, record: record, isCoded: decoder != nil)
        origin = .open(Source(request, nil, decoder: decoder, ownBody: body))
        let limit = request.request.maximumBodySize ?? request.registry.configuration.maximumBodySize
        guard request.delivery == .collected, decoder == nil, data.count <= limit else { return }
        body.takeAll()
        outcome = record.endAttempt(with: body.outcome(head), pump: nil, isOnWire: false)
    }

    /// The attempt that brings the response; nil for a response that did not come over the wire.
    var attempt: Attempt? { running?.attempt }

    // MARK: The cache

    /// The body as it was sent, if all of it has arrived; nil while it is still to be read, and after a failure.
    package var wholeBody: Data? { outcome.flatMap { $0.failure == nil ? $0.body : nil } }
    /// Whether the body is still to be read.
    package var isOpen: Bool { outcome == nil }
    /// Whether the body may be stored when it has been read.
    var isRecorded: Bool { recorder?.isRecording ?? false }

    /// Returns the response to another form of the request as the response to the request itself.
    func answering(_ request: PreparedRequest) -> IncomingResponse {
        var response = self
        response.origin =
            switch origin {
            case .whole: .whole(request)
            case .open: .open(Source(request, running, decoder: decoder, ownBody: ownBody, recorder: recorder))
            }
        return response
    }

    /// Returns the response with a copy of its body for the recorder. Nobody has read the body.
    package func recording(to recorder: any BodyRecorder) -> IncomingResponse {
        var response = self
        response.origin = .open(Source(request, running, decoder: decoder, ownBody: ownBody, recorder: recorder))
        return response
    }

    /// Reads the body as it was sent and ends the response. Returns nil for a longer body, and for one that does not
    /// arrive whole.
    package func readBody(upTo limit: Int) async -> (bytes: Data, metrics: TaskMetrics)? {
        if let outcome { return wholeBody.flatMap { $0.count <= limit ? ($0, outcome.metrics) : nil } }
        var body = Data()
        while body.count <= limit, let chunks = await receivedChunks() {
            for chunk in chunks { body.append(chunk) }
        }
        let end = body.count <= limit ? await finalOutcome() : await discard()
        guard body.count <= limit, let end, end.failure == nil else { return nil }
        return (body, end.metrics)
    }

    // MARK: A response that becomes a download

    /// The place that a policy has named for the body; nil to leave it in memory.
    var downloadPlace: DownloadPlace? { source?.downloadPlace }

    /// Returns the response as one whose body is written to a file.
    func becomingDownload(_ place: DownloadPlace) -> IncomingResponse {
        var response = self
        response.origin = .open(
            Source(
                request, running, decoder: decoder, ownBody: ownBody, recorder: recorder, downloadPlace: place))
        return response
    }

    /// The response with a body that can be read, also if all of it has arrived.
    var unread: IncomingResponse {
        guard let outcome else { return self }
        return IncomingResponse(customBody: outcome.body, request: request, head: head, metrics: outcome.metrics)
    }

    /// Delivers a redirect as the final response. Its body is the result, so it counts as progress.
    mutating func stopRedirect() {
        isStoppedRedirect = true
        (running?.record ?? ownBody?.record)?.meter.setBodyCounted(true)
    }

    // MARK: The body

    /// Whether the body is decompressed while it is read.
    var isDecompressed: Bool { decoder != nil }

    /// Returns the next bytes of the body, about as many as wanted; nil at the end. `finalOutcome()` gives the reason
    /// of the end.
    func chunks(_ wanted: Int = .max) async -> [Data]? {
        let chunks = await decodedChunks(wanted)
        let registry = request.registry
        // A body that has arrived whole was reported before.
        if !registry.observers.isEmpty, outcome == nil, let chunks,
            let record = running?.record ?? ownBody?.record
        {
            for chunk in chunks { registry.observe { $0.didReceive(bytes: chunk, of: AnySessionTask(record)) } }
        }
        return chunks
    }

    @inline(__always)
    private func decodedChunks(_ wanted: Int) async -> [Data]? {
        guard let decoder else { return await receivedChunks() }
        while true {
            let chunks = decoder.next(wanted)
            if !chunks.isEmpty {
                (running?.record ?? ownBody?.record)?.meter.setDecoded(decoder.produced)
                return chunks
            }
            if decoder.failure != nil {
                cancelAttempt()
                return nil
            }
            guard let compressed = await receivedChunks() else { return nil }
            decoder.add(compressed)
        }
    }

    /// Returns the bytes that have arrived, as they were sent; nil at the end.
    private func receivedChunks() async -> [Data]? {
        guard let attempt = running?.attempt else {
            return ownBody?.next(isCounted: decoder == nil).map { [$0] }
        }
        guard let piece = await nextPiece(of: attempt) else {
            recorder?.reachEnd()
            return nil
        }
        // A reader that copies has no use for the socket.
        if piece.missingCount != nil { giveSocketBack(BodyPipe.Moved()) }
        recorder?.receive(piece.chunks)
        return piece.chunks
    }

    private func nextPiece(of attempt: Attempt) async -> BodyPiece? {
        let piece = await attempt.piece()
        if piece?.owesDemand == true { request.registry.transport.control(attempt, .demand) }
        return piece
    }

    // MARK: A body that is written to a file

    /// The number of bytes from which on a body is worth the system calls for a pipe.
    private static let leastPiped: Int64 = 1 << 20

    /// Opens a pipe through which the caller moves the rest of the body. Returns nil if the bytes must pass through
    /// memory: they are encrypted, decompressed, recorded or observed, or few.
    func openPipe(_ limits: BodyPipe.Limits = .usual) -> BodyPipe? {
        guard outcome == nil, let attempt, decoder == nil, recorder == nil, request.registry.observers.isEmpty,
            head.version == .http11, !request.request.target.isSecure, let length = head.contentLength,
            length >= Self.leastPiped, !attempt.hasEnded, let pipe = BodyPipe(limits)
        else { return nil }
        attempt.offer(pipe)
        request.registry.transport.control(attempt, .usePipe)
        return pipe
    }

    /// Returns the next bytes of the body; nil at the end. If the socket is lent, the caller moves the bytes that
    /// follow, and gives it back.
    ///
    /// - Parameter pipe: The pipe that `openPipe(_:)` returned.
    func piece(_ pipe: BodyPipe?) async -> BodyPiece? {
        guard pipe != nil, let attempt = running?.attempt else {
            return await chunks().map { BodyPiece(chunks: $0) }
        }
        return await nextPiece(of: attempt)
    }

    /// Gives the lent socket back.
    func giveSocketBack(_ moved: BodyPipe.Moved) {
        guard let attempt = running?.attempt else { return }
        attempt.giveSocketBack(moved)
        request.registry.transport.control(attempt, .demand)
    }

    private func cancelAttempt() {
        if let attempt { request.registry.transport.control(attempt, .cancel) }
    }

    /// Waits for the end of the response and returns its outcome.
    func finalOutcome() async -> AttemptOutcome {
        if let outcome { return outcome }
        guard let running else {
            guard let body = ownBody, let record = body.record else { return AttemptOutcome(head: head) }
            var outcome = body.outcome(head)
            if let decoder {
                // The end of a body that was not read to its end says nothing.
                let failure = decoder.failure ?? (body.isAtEnd ? decoder.failureOfEnd : nil)
                outcome = outcome.decoded(decoder)
                if let failure, failure.kind != .tooLarge { body.onDamage?() }
            }
            return record.endAttempt(with: outcome, pump: nil, isOnWire: false)
        }
        var outcome = await running.attempt.outcome()
        if running.number > 1 { outcome = outcome.counted(running.number) }
        let hasArrived = outcome.failure == nil
        if let decoder { outcome = outcome.decoded(decoder) }
        // A decoder that failed has cancelled the attempt itself.
        let isDamaged = decoder?.failure != nil || hasArrived && outcome.failure != nil
        recorder?.finish(isWhole: hasArrived, isDamaged: isDamaged, isCancelled: running.record.isCancelled)
        return running.record.endAttempt(with: outcome, pump: running.pump)
    }

    /// Collects at most `limit` bytes of the body in memory and returns the end of the response. Does not wait for the
    /// bytes of a longer body.
    func collect(upTo limit: Int) async -> AttemptOutcome {
        if let outcome { return outcome }
        let limit = max(0, limit)
        let expected = decoder == nil ? head.contentLength : nil
        var body = Data()
        var refusal: FailureCause?
        while refusal == nil, let chunks = await chunks(max(1, limit - body.count)) {
            if body.isEmpty, let expected, expected > limit { refusal = .bodyTooLarge(limit: limit) }
            for chunk in chunks where refusal == nil || body.count < limit {
                if chunk.count > limit - body.count { refusal = .bodyTooLarge(limit: limit) }
                body.collect(chunk.prefix(limit - body.count), expected: min(limit, Int(clamping: expected ?? 0)))
            }
        }
        if refusal != nil { cancelAttempt() }
        let outcome = await finalOutcome()
        // A transport that collects the body itself returns it here.
        return outcome.collected(body.isEmpty ? outcome.body : body, refusal: refusal)
    }

    // MARK: Responses that are not delivered

    /// Returns the error of a refused response, with the start of its body: at most `errorBodyLimit` bytes, and what
    /// has arrived after 5 seconds. A server that sends its body slowly cannot hold the error back longer.
    func error(_ refusal: FailureCause, readsBody: Bool = true) async -> NetworkError {
        if decoder == nil || !readsBody { return await refused(refusal, readsBody: readsBody) }
        // Decompression must not run on the loop.
        return await withTaskExecutorPreference(globalConcurrentExecutor) {
            await refused(refusal, readsBody: true)
        }
    }

    private func refused(_ refusal: FailureCause, readsBody: Bool) async -> NetworkError {
        let limit = readsBody ? max(0, request.registry.configuration.errorBodyLimit) : 0
        var start = outcome?.body.prefix(limit) ?? Data()
        if outcome == nil, limit > 0 {
            start = await reading(for: Self.errorBodyTime) {
                var start = Data()
                while start.count < limit, let chunks = await chunks() {
                    for chunk in chunks { start.append(chunk.prefix(limit - start.count)) }
                }
                return start
            }
        }
        let end = outcome == nil ? await discard() : outcome
        let configuration = request.registry.configuration
        let error = NetworkError(
            refusal, request: request.request, response: head, body: Data(start), metrics: end?.metrics
        ).carrying(configuration.json)
        guard refusal.kind == .status,
            let explanation = ServerExplanation.text(
                in: start, of: head.mediaType, quoting: configuration.quotedExplanations)
        else { return error }
        return error.adding("the server says: \(explanation)")
    }

    /// Ends a response that another request follows, and returns its outcome. The rest of a small body is read, so that
    /// the connection can be used again: at most 64 KiB and for 1 second. Beyond that, the connection is closed. A
    /// failure of the body does not matter.
    @discardableResult
    package func readRest() async -> AttemptOutcome? {
        guard outcome == nil, let running else { return outcome }
        // The connection cannot be reused, or need not be kept, in three cases: HTTP/2, where one stream can be
        // cancelled alone, unless the body is recorded; a body known to be longer; an upload that still runs.
        let isShort = (head.contentLength ?? 0) <= Int64(Self.restLimit.bytes)
        if isShort, running.pump == nil, head.version == .http11 || recorder != nil {
            await reading(for: Self.restLimit.time) {
                var count = 0
                while count <= Self.restLimit.bytes, let chunks = await receivedChunks() {
                    for chunk in chunks { count += chunk.count }
                }
            }
        }
        return await discard()
    }

    /// Gives the attempt up if it has not ended, and returns its outcome; nil if there was nothing to give up.
    @discardableResult
    package func discard() async -> AttemptOutcome? {
        guard outcome == nil, running != nil || ownBody?.record != nil else { return nil }
        cancelAttempt()
        return await finalOutcome()
    }

    /// Reads a body for a limited time. At the limit, the attempt ends as cancelled, and with it the body.
    private func reading<Value: Sendable>(for limit: Duration, _ read: () async -> Value) async -> Value {
        // No timer for a body that has arrived together with its head.
        guard let attempt = running?.attempt, !attempt.hasEnded else { return await read() }
        // Owned and cancelled here. A separate task, because cancelling this one would not end the reader's wait.
        let timer = Task { [registry = request.registry] in
            // An error means that the timer was cancelled: the body was read in time.
            guard (try? await registry.clock.sleepWithoutDescriptor(for: limit)) != nil else { return }
            registry.transport.control(attempt, .cancel)
        }
        defer { timer.cancel() }
        return await read()
    }
}

extension AttemptOutcome {
    /// Returns the outcome of a body that was decompressed on its way to the reader.
    fileprivate func decoded(_ decoder: ContentDecoder) -> AttemptOutcome {
        var metrics = metrics
        metrics.decodedBodyBytes = decoder.produced
        // A decoder that failed has cancelled the attempt itself.
        let failure = decoder.failure ?? failure ?? decoder.failureOfEnd
        return AttemptOutcome(head: head, body: body, failure: failure, metrics: metrics, trailers: trailers)
    }
}

/// The place of a body in the file of a continued download. Indirect, because a response is copied at several stages.
indirect enum FilePlace: Sendable {
    /// The rest of the file until position `end`. The whole file has `total` bytes.
    case rest(until: Int64, total: Int64)
    /// The whole file, which is known to have this length in bytes.
    case whole(length: Int64)

    /// The length of the file after the body, in bytes.
    var end: Int64 {
        switch self {
        case .rest(let end, _): end
        case .whole(let length): length
        }
    }
}

/// The place of a body that a policy has made a download of.
final class DownloadPlace: Sendable {
    let file: URL
    let options: Download.Options

    init(file: URL, options: Download.Options) {
        self.file = file
        self.options = options
    }
}

/// The body of a response without an attempt, stored or made by an interceptor, for one reader.
private final class OwnBody: Sendable {
    private let rest: Lock<Data>
    /// The number of bytes.
    private let count: Int
    /// The task of a stored response; nil for a response that an interceptor made.
    let record: TaskRecord?
    private let start: UInt64
    /// The measurements of the exchange that confirmed or completed a stored response; nil if no request was sent.
    private let exchange: TaskMetrics?
    /// Called if the bytes cannot be decompressed.
    let onDamage: (@Sendable () -> Void)?

    /// The greatest number of bytes of a chunk.
    private static let chunkSize = 256 << 10

    /// Creates the body of a response that an interceptor made.
    init(_ data: Data) {
        rest = Lock(data)
        count = data.count
        record = nil
        start = 0
        exchange = nil
        onDamage = nil
    }

    /// Creates the body of a stored response.
    init(_ stored: StoredBody, record: TaskRecord, isCoded: Bool) {
        rest = Lock(stored.bytes)
        count = stored.bytes.count
        self.record = record
        start = stored.start
        var exchange = stored.exchange
        // It was reported at the end of the exchange.
        exchange?.pinReport = nil
        self.exchange = exchange
        // The response on the wire, such as a 304, can be one whose body does not count.
        record.meter.setBodyCounted(true)
        onDamage = isCoded ? stored.onDamage : nil
    }

    /// Returns the next bytes; nil at the end, and when the task was cancelled.
    ///
    /// - Parameter isCounted: Whether the bytes count as progress.
    func next(isCounted: Bool) -> Data? {
        if record?.isCancelled == true { return nil }
        let (chunk, completed) = rest.withLock { rest in
            let chunk = rest.prefix(Self.chunkSize)
            rest = rest.dropFirst(chunk.count)
            return (chunk, count - rest.count)
        }
        if isCounted { record?.meter.store(sent: 0, of: 0, received: Int64(completed), of: Int64(count)) }
        if chunk.isEmpty { return nil }
        // Readers count the bytes of a chunk from 0.
        return chunk.startIndex == 0 ? chunk : Data(chunk)
    }

    /// Whether all bytes were read.
    var isAtEnd: Bool { rest.withLock { $0.isEmpty } }

    /// Takes all bytes at once, for the outcome.
    func takeAll() { record?.meter.store(sent: 0, of: 0, received: Int64(count), of: Int64(count)) }

    /// Returns the end of the response, whose body did not come over a connection.
    func outcome(_ head: ResponseHead) -> AttemptOutcome {
        let rest = rest.withLock { $0 }
        var metrics = exchange ?? TaskMetrics()
        metrics.totalTime = Int64(clamping: (MonotonicClock.nanoseconds() &- start) / 1_000)
        metrics.decodedBodyBytes = Int64(count)
        if exchange == nil {
            metrics.httpVersion = head.version
            metrics.transactions = 0
        }
        let isRead = rest.isEmpty || record?.isCancelled != true
        return AttemptOutcome(head: head, body: rest, failure: isRead ? nil : .cancelled, metrics: metrics)
    }
}

extension Data {
    /// The most bytes that are reserved because of a length that the server states.
    private static let mostReservedBytes = 1 << 20

    /// Appends a chunk. A large first chunk is used without a copy.
    fileprivate mutating func collect(_ chunk: Data, expected: Int) {
        if isEmpty, chunk.count > 16 << 10, chunk.count >= expected {
            self = chunk
        } else {
            if isEmpty { reserveCapacity(Swift.min(expected, Self.mostReservedBytes)) }
            append(chunk)
        }
    }
}
