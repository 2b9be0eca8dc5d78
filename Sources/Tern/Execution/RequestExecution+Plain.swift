/// The shortest way from call to value: one attempt of a request without hooks, body and cache, whose response is whole
/// and needs no further step. It runs on the caller's actor, where it takes some microseconds. Whatever takes longer
/// happens elsewhere: the value is decoded, and any other response continues on the general way, with the attempt that
/// was made.
///
/// The steps are synchronous and not inlined. Inlined, their variables take 8 KiB in the frame of the asynchronous
/// function, which each waiting call holds.
extension RequestExecution {
    /// Registers a task, executes its plain request and ends it. Cancelling the Swift task cancels the transfer.
    @inline(__always)
    static func plainResponse<Value: Sendable>(
        to request: PreparedRequest, decode decoder: BodyDecoder<Value>, isolation: isolated (any Actor)? = #isolation
    ) async throws(NetworkError) -> Response<Value> {
        let attempt = try PlainAttempt(request, valueType: Response<Value>.self)
        await attempt.transfer.waitForResponse { attempt.record.cancel() }
        switch attempt.takeOutcome() {
        case .whole(let response):
            if decoder.isImmediate { return try attempt.end(with: response, decode: decoder) }
            // A small value holds a caller without an actor up for less time than a change of threads.
            if isolation == nil, attempt.isQuick(response, with: decoder) {
                return try attempt.end(with: response, decode: decoder)
            }
            return try await attempt.decodeAndEnd(with: response, decode: decoder)
        case .other(let first):
            return try await attempt.response(after: first, decode: decoder)
        }
    }
}

/// The first attempt of a plain request, and its task.
private struct PlainAttempt: Sendable {
    let request: PreparedRequest
    let record: TaskRecord
    let transfer: Transfer

    /// Registers a task and starts its attempt.
    @inline(never)
    init(_ request: PreparedRequest, valueType: any Any.Type) throws(NetworkError) {
        let record = TaskRecord(
            id: request.registry.nextID(), registry: request.registry, request: request, valueType: valueType)
        guard record.startInCaller() else { throw request.registry.invalidated(request.request) }
        // A caller that is already cancelled sends nothing.
        if Task.isCancelled { record.cancel() }
        do throws(NetworkError) {
            transfer = try RequestExecution.startPlain(request, of: record)
        } catch {
            throw record.ended(with: error)
        }
        self.request = request
        self.record = record
    }

    /// The outcome of the attempt.
    enum Outcome: Sendable {
        /// A whole response that needs no further step.
        case whole(WholeResponse)
        /// Any other response, and a failure.
        case other(RequestExecution.FirstAttempt)
    }

    /// The end of the attempt, and its head unwrapped.
    struct WholeResponse: Sendable {
        let outcome: TransferOutcome
        let head: ResponseHead
    }

    /// Takes the outcome out of the transfer, and stores the cookies of a whole response.
    @inline(never)
    func takeOutcome() -> Outcome {
        let (earlyHead, outcome) = transfer.takeResponse()
        guard let outcome, let head = acceptedHead(of: outcome) else { return makeOther(head: earlyHead, outcome) }
        request.storeCookies(of: head)
        return .whole(WholeResponse(outcome: outcome, head: head))
    }

    @inline(never)
    private func makeOther(head: ResponseHead?, _ outcome: TransferOutcome?) -> Outcome {
        .other(RequestExecution.FirstAttempt(transfer: transfer, pump: nil, head: head, outcome: outcome))
    }

    /// Returns the head of a whole response that needs no further step; nil for any other end.
    @inline(never)
    private func acceptedHead(of outcome: TransferOutcome) -> ResponseHead? {
        guard !outcome.hasFailed, let head = outcome.head, !FollowUpRules.mayFollow(head),
            request.refusal(of: head, isEmpty: outcome.body.isEmpty) == nil
        else { return nil }
        return head
    }

    /// Returns whether the value takes little time to decode.
    @inline(never)
    func isQuick<Value: Sendable>(_ response: borrowing WholeResponse, with decoder: BodyDecoder<Value>) -> Bool {
        decoder.isQuick(response.outcome.body, in: request.registry)
    }

    /// Ends the task with a value that takes no time, or little, to decode.
    @inline(never)
    func end<Value: Sendable>(
        with response: consuming WholeResponse, decode decoder: BodyDecoder<Value>
    ) throws(NetworkError) -> Response<Value> {
        let value: Value
        do throws(NetworkError) {
            value = try request.decode(response.outcome, head: response.head, with: decoder)
        } catch {
            _ = record.endAttempt(with: response.outcome.kept(by: decoder), pump: nil)
            throw record.ended(with: error)
        }
        // Written out, because a function that returns one of both retains it.
        var end = response.outcome
        if !end.isKept(by: decoder) { end = end.withoutBody }
        if request.registry.hasSubscribers {
            // A subscriber can keep the task longer than the caller keeps the body.
            record.endPlain(with: end.withoutBody)
        } else {
            record.endPlain(with: end)
        }
        return Response(value: value, head: response.head, outcome: end)
    }

    /// Decodes the body of a whole response off the caller's actor, and ends the task.
    @concurrent
    func decodeAndEnd<Value: Sendable>(
        with response: WholeResponse, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let end = response.outcome.kept(by: decoder)
        _ = record.endAttempt(with: end, pump: nil)
        let value: Value
        do throws(NetworkError) {
            value = try request.decode(response.outcome, head: response.head, with: decoder)
        } catch {
            throw record.ended(with: error)
        }
        record.end(nil)
        return Response(value: value, head: response.head, outcome: end)
    }

    /// Continues after any other answer on the general way, off the caller's actor.
    @concurrent
    func response<Value: Sendable>(
        after first: RequestExecution.FirstAttempt, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        try await RequestExecution(request: request, record: record).run { execution throws(NetworkError) in
            let response = try await execution.response(
                after: first, to: request, onWireAs: request, body: nil, onHead: nil)
            let final = try await execution.finalResponse(after: response, to: request)
            return try await execution.decoded(try await execution.validated(final), with: decoder)
        }
    }
}

extension TaskRecord {
    /// Ends the task with an error. Returns the error as that of the task.
    fileprivate func ended(with error: NetworkError) -> NetworkError {
        let error = identified(error)
        end(error)
        return error
    }
}
