/// The shortest way from call to value: one attempt of a request without hooks, body and cache, whose response is whole and
/// needs no further step. It runs on the caller's actor, where it takes some microseconds. Whatever takes longer happens
/// elsewhere: the value is decoded, and any other response continues on the general way, with the attempt that was made.
extension RequestExecution {
    /// Registers a task, executes its plain request and ends it. Cancelling the Swift task cancels the transfer.
    @inline(__always)
    static func plainResponse<Value: Sendable>(
        to request: PreparedRequest, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let registry = request.registry
        let record = TaskRecord(
            id: registry.nextID(), registry: registry, request: request, valueType: Response<Value>.self)
        guard record.startInCaller() else { throw registry.invalidated(request.request) }
        // A caller that is already cancelled sends nothing.
        if Task.isCancelled { record.cancel() }
        let execution = RequestExecution(request: request, record: record)
        let transfer: Transfer
        do throws(NetworkError) {
            transfer = try execution.startPlain(request, attempt: 1)
        } catch {
            throw execution.ended(with: error)
        }
        await transfer.waitForResponse { record.cancel() }
        let (earlyHead, outcome) = transfer.takeResponse()
        guard let outcome, !outcome.hasFailed, let head = outcome.head, !FollowUpRules.mayFollow(head),
            request.refusal(of: head, isEmpty: outcome.body.isEmpty) == nil
        else {
            let first = FirstAttempt(transfer: transfer, pump: nil, head: earlyHead, outcome: outcome)
            return try await execution.response(after: first, decode: decoder)
        }
        request.storeCookies(of: head)
        let end = outcome.kept(by: decoder)
        let value: Value
        do throws(NetworkError) {
            if decoder.isImmediate {
                value = try request.decode(outcome, head: head, with: decoder)
                // A subscriber can keep the task longer than the caller keeps the body.
                record.end(nil, outcome: registry.hasSubscribers ? end.withoutBody : end)
            } else {
                _ = record.endAttempt(with: end, pump: nil)
                value = try await execution.decode(outcome, head: head, with: decoder)
                record.end(nil)
            }
        } catch {
            if decoder.isImmediate { _ = record.endAttempt(with: end, pump: nil) }
            throw execution.ended(with: error)
        }
        return Response(value: value, head: head, outcome: end)
    }

    /// Ends the task with an error. Returns the error as that of the task.
    private func ended(with error: NetworkError) -> NetworkError {
        let error = record.identified(error)
        record.end(error)
        return error
    }

    /// Decodes the body of a whole response off the caller's actor.
    @concurrent
    private func decode<Value: Sendable>(
        _ outcome: TransferOutcome, head: ResponseHead, with decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Value {
        try request.decode(outcome, head: head, with: decoder)
    }

    /// Continues after any other answer on the general way, off the caller's actor.
    @concurrent
    private func response<Value: Sendable>(
        after first: FirstAttempt, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        try await run { execution throws(NetworkError) in
            let request = execution.request
            let response = try await execution.response(
                after: first, to: request, onWireAs: request, body: nil, onHead: nil)
            let final = try await execution.finalResponse(after: response, to: request)
            return try await execution.decoded(try await execution.validated(final), with: decoder)
        }
    }
}
