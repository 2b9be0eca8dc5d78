#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The life of a request, top to bottom: the plan was checked → the interceptors → its body is prepared → one attempt on
// the wire, and one more if a pooled connection turned out to be dead → what the answer asks for: a redirect, credentials
// → the answer is validated → the body is decoded.

extension RequestPlan {
    /// `collect` as an operation of a task with a handle.
    func collecting<Value: Sendable>(_ decoder: BodyDecoder<Value>) -> Operation<Response<Value>> {
        { [self] record throws(NetworkError) in try await collect(record, decoder) }
    }

    /// Sends, collects, validates and decodes.
    func collect<Value: Sendable>(
        _ record: TaskRecord, _ decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let arrival = try await arrival(record)
        let outcome = await arrival.ended()
        let value = try arrival.plan.decode(outcome, arrival.head, decoder)
        return Response(value: value, head: arrival.head, trailers: outcome.trailers, metrics: outcome.metrics)
    }

    /// The accepted response, through whatever stands between the task and the wire.
    func arrival(_ record: TaskRecord) async throws(NetworkError) -> Arrival {
        if !hasInterceptors { return try await accepted(record) }
        let chain = InterceptorChain(plan: self, record: record) { plan throws(NetworkError) in
            try await plan.accepted(record)
        }
        return try await chain.run()
    }

    /// Sends the request, and validates what comes.
    private func accepted(_ record: TaskRecord) async throws(NetworkError) -> Arrival {
        var arrival = try await travel(record)
        if arrival.outcome == nil, delivery == .collected {
            arrival.outcome = try await arrival.plan.collected(arrival)
        }
        if let refusal = arrival.plan.refusal(of: arrival) { throw await arrival.error(refusal) }
        return arrival
    }

    /// Collects the body of a response whose head has arrived, and returns the end of the response.
    private func collected(_ arrival: Arrival) async throws(NetworkError) -> TransferOutcome {
        let limit = request.maximumBodySize ?? context.configuration.maximumBodySize
        let isRefused = !arrival.isWanted && !accepts(arrival.head.status)
        let outcome = await arrival.collected(
            upTo: isRefused ? min(limit, context.configuration.errorBodyLimit) : limit)
        if let failure = outcome.failure, !(isRefused && isRefusedAnyway(failure, arrival.head)) {
            throw error(failure, outcome)
        }
        return outcome
    }

    /// Sends the request, and what its answers ask for, until one stands.
    func travel(_ record: TaskRecord) async throws(NetworkError) -> Arrival {
        if context.hasCredentials || !request.isPlain { try await prepareAuthorization() }
        let first = try await sent(record)
        let arrival = Course.mayGoOn(first.head) ? try await Course.lastArrival(from: first, record) : first
        if let policies { try await arrival.plan.askDisposition(policies, arrival, record) }
        return arrival
    }

    private func askDisposition(
        _ policies: Policies, _ arrival: Arrival, _ record: TaskRecord
    ) async throws(NetworkError) {
        let disposition = try await policies.ask(about: request) { policy in
            try await policy.disposition(of: arrival.head, for: AnySessionTask(record))
        }
        guard disposition == .cancel else { return }
        throw await arrival.error(
            TransferFailure(.cancelled, "the policy does not want the response"), readsBody: false)
    }

    /// One attempt: up to its end for a collected response, up to its head for a streamed one. A request that fails on a
    /// dead pooled connection is sent again, if it may be, once.
    func sent(_ record: TaskRecord) async throws(NetworkError) -> Arrival {
        context.observe { $0.willSend(request, of: AnySessionTask(record)) }
        let body = request.body.isNone ? PreparedBody.none : try await preparedBody(record)
        var exchange = try record.start(self, body, attempt: 1)
        var answer = await exchange.transfer.answer()
        if answer.isDeadConnection, mayBeSentAgain {
            exchange.pump?.stop()
            exchange = try record.start(self, body, attempt: 2)
            answer = await exchange.transfer.answer()
        }
        let outcome = answer.outcome.map { exchange.ended($0) }
        if let outcome, let failure = outcome.failure, !isRefusedAnyway(failure, outcome.head) {
            throw error(failure, outcome)
        }
        guard let head = answer.head else { throw error(Self.headless, outcome ?? TransferOutcome()) }
        storeCookies(of: head)
        if self.answer != nil || context.authorizations.hasAny { learnAuthorization(from: head) }
        context.observe { $0.didReceive(head, of: AnySessionTask(record)) }
        if outcome == nil { exchange.decoder = decoder(for: head) }
        return Arrival(exchange, self, head: head, outcome: outcome)
    }

    private func decoder(for head: ResponseHead) -> ContentDecoder? {
        guard decompresses, context.transport.leavesStreamsCompressed, case let codings = head.contentCodings,
            !codings.isEmpty
        else { return nil }
        return ContentDecoder(
            codings.joined(separator: ", "), host: head.target.host,
            limit: context.configuration.maximumDecompressedSize,
            ratio: context.configuration.maximumDecompressionRatio)
    }

    private func preparedBody(_ record: TaskRecord) async throws(NetworkError) -> PreparedBody {
        // A task that never started reads no file and encodes nothing.
        if record.isCancelled { throw NetworkError(.cancelled, request: request) }
        return try await PreparedBody(self, files: context.files)
    }

    private func decode<Value: Sendable>(
        _ outcome: TransferOutcome, _ head: ResponseHead, _ decoder: BodyDecoder<Value>
    ) throws(NetworkError) -> Value {
        do {
            return try decoder.decode(outcome.body, head, context)
        } catch let problem as NetworkError {
            throw problem
        } catch {
            let reason = "the body of \(outcome.body.count) bytes is no \(Value.self): \(DecodingProblem.text(error))"
            throw self.error(TransferFailure(.decoding, reason, underlying: error), outcome)
        }
    }

    /// Returns whether a failure does not matter, because the status is refused anyway. The error then shows only the
    /// start of the body.
    private func isRefusedAnyway(_ failure: TransferFailure, _ head: ResponseHead?) -> Bool {
        guard let head else { return false }
        return switch failure.kind {
        case .tooLarge, .truncatedBody, .malformedResponse: !accepts(head.status)
        default: false
        }
    }

    static let headless = TransferFailure(.malformedResponse, "the response ended without a head")

    /// The public error of a failed attempt: with the request, the head, and the start of the body.
    func error(_ failure: TransferFailure, _ outcome: TransferOutcome) -> NetworkError {
        NetworkError(
            failure, request: request, response: outcome.head,
            body: Data(outcome.body.prefix(max(0, context.configuration.errorBodyLimit))), metrics: outcome.metrics)
    }
}

/// An attempt that is under way, and the task that feeds its body.
struct Exchange: Sendable {
    let record: TaskRecord
    let transfer: Transfer
    let pump: BodyPump?
    /// 2 after a dead pooled connection.
    let attempt: Int
    /// The decoder of a response whose body the session reads after its head; nil if nothing is to be decompressed.
    var decoder: ContentDecoder?

    /// Collects the body of a response from its chunks, at most `limit` bytes, and returns the end of the attempt. Does
    /// not wait for the bytes of a longer body.
    func collected(upTo limit: Int, expected: Int64?) async -> TransferOutcome {
        let limit = max(0, limit)
        var body = Data()
        var refusal: TransferFailure?
        while refusal == nil, let chunks = await chunks(max(1, limit - body.count)) {
            if body.isEmpty, decoder == nil, let expected, expected > limit { refusal = .bodyTooLarge(limit: limit) }
            for chunk in chunks where refusal == nil || body.count < limit {
                if chunk.count > limit - body.count { refusal = .bodyTooLarge(limit: limit) }
                body.collect(chunk.prefix(limit - body.count), expected: min(limit, Int(clamping: expected ?? 0)))
            }
        }
        if refusal != nil { record.context.transport.control(transfer, .cancel) }
        let outcome = await outcome()
        // A transport that collects the body itself returns it here.
        return outcome.collected(body.isEmpty ? outcome.body : body, refusal: refusal)
    }

    /// Returns the next bytes of the body, about as many as wanted; nil at the end. `outcome` gives the reason of the
    /// end.
    func chunks(_ wanted: Int = .max) async -> [Data]? {
        guard let decoder else { return await chunksAsTheyCome() }
        while true {
            let chunks = decoder.next(wanted)
            if !chunks.isEmpty {
                record.meter.noteDecoded(decoder.produced)
                return chunks
            }
            if decoder.failure != nil {
                record.context.transport.control(transfer, .cancel)
                return nil
            }
            guard let compressed = await chunksAsTheyCome() else { return nil }
            decoder.add(compressed)
        }
    }

    private func chunksAsTheyCome() async -> [Data]? {
        guard let taken = await transfer.chunks() else { return nil }
        if taken.owesDemand { record.context.transport.control(transfer, .demand) }
        return taken.chunks
    }

    /// The end of the attempt.
    func outcome() async -> TransferOutcome { ended(await transfer.outcome()) }

    /// Tells the task how the attempt ended.
    func ended(_ first: TransferOutcome) -> TransferOutcome {
        var outcome = attempt > 1 ? first.counted(attempt) : first
        if let decoder { outcome = outcome.decoded(decoder) }
        pump?.stop()
        if let report = outcome.metrics.pinReport {
            record.context.observe { $0.didFindUnpinned(report, of: AnySessionTask(record)) }
        }
        record.attemptEnded(outcome.metrics, head: outcome.head.flatMap { Course.mayGoOn($0) ? nil : $0 })
        return outcome
    }
}

extension Data {
    /// Appends a chunk. A large first chunk is used without a copy.
    fileprivate mutating func collect(_ chunk: Data, expected: Int) {
        if isEmpty, chunk.count > 16 << 10, chunk.count >= expected {
            self = chunk
        } else {
            if isEmpty { reserveCapacity(expected) }
            append(chunk)
        }
    }
}

extension TaskRecord {
    /// Puts the request on the wire.
    fileprivate func start(_ plan: RequestPlan, _ body: PreparedBody, attempt: Int) throws(NetworkError) -> Exchange {
        let pipe = body.makePipe()
        var order = plan.order(priority: priority, attempt: attempt)
        body.complete(&order, pipe)
        if plan.answer != nil || context.authorizations.hasAny { try plan.addAuthorization(to: &order, body) }
        let onHead: (@Sendable (ResponseHead) -> Void)? =
            order.announcesHead ? { @Sendable head in if !Course.mayGoOn(head) { self.receive(head) } } : nil
        // Before the order is handed over: asked of the transfer's own, it would be copied.
        if let refusal = context.transport.refusal(of: order) { throw NetworkError(refusal, request: plan.request) }
        let transfer = Transfer(consume order, meter: meter, onHead: onHead)
        guard begin(transfer) else { throw NetworkError(.cancelled, request: plan.request) }
        let pump = pipe.map { BodyPump(body, into: $0, transfer, context.transport) }
        return Exchange(record: self, transfer: transfer, pump: pump, attempt: attempt)
    }
}

extension RequestPlan {
    /// Idempotent by RFC 9110 §9.2.2, with a body that can be produced again.
    fileprivate var mayBeSentAgain: Bool { request.method.isIdempotent && request.body.isReplayable }
}

extension NetworkError {
    fileprivate init(_ failure: TransferFailure, request: Request) {
        self.init(failure, request: request, response: nil)
    }
}

/// What a decoder says of a body, in one line that quotes no value of it.
enum DecodingProblem {
    static func text(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        return switch error {
        case .keyNotFound(let key, let context): "no value for '\(path(context, key))'"
        case .valueNotFound(let type, let context): "null in place of \(type) at '\(path(context))'"
        case .typeMismatch(let type, let context): "not a \(type) at '\(path(context))'"
        case .dataCorrupted(let context): "\(context.debugDescription) at '\(path(context))'"
        @unknown default: "it cannot be decoded"
        }
    }

    private static func path(_ context: DecodingError.Context, _ last: (any CodingKey)? = nil) -> String {
        let keys = context.codingPath + (last.map { [$0] } ?? [])
        if keys.isEmpty { return "its top" }
        return keys.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    }
}
