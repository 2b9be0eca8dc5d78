import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Executes one request from call to value: through the stages of its session (``Stages``), then the decoder.
///
/// The caller's Swift task executes a call. Any other task, and a call whose code of the caller can wait for anything
/// (``PreparedRequest/needsSwiftTask``), has one of its own. Code of the caller (interceptors, policies, credential
/// providers, observers, validators, decoders and body sequences) never runs on the caller's actor: a request that can
/// meet any of it enters the stages by one step off the actor (``PreparedRequest/staysWithCaller``).
struct RequestExecution: Sendable {
    /// The request that the task was created with. Interceptors, redirects and challenges can replace it on the wire.
    let request: PreparedRequest
    let record: TaskRecord

    private var registry: TaskRegistry { record.registry }

    init(request: PreparedRequest, record: TaskRecord) {
        self.request = request
        self.record = record
    }

    // MARK: A call

    /// Registers a task, executes it in the caller's own Swift task and ends it. Cancelling the Swift task cancels the
    /// attempt.
    static func response<Value: Sendable>(
        to request: PreparedRequest, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        if request.staysWithCaller {
            return try await RequestExecution(starting: request, valueType: Response<Value>.self).run(decoder)
        }
        return try await responseOffActor(to: request, decode: decoder)
    }

    /// Does the same off the caller's actor.
    @concurrent
    private static func responseOffActor<Value: Sendable>(
        to request: PreparedRequest, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        if request.needsSwiftTask { return try await responseInSwiftTask(to: request, decode: decoder) }
        return try await RequestExecution(starting: request, valueType: Response<Value>.self).run(decoder)
    }

    /// Creates the task of a call, and starts it.
    @inline(never)
    private init(starting request: PreparedRequest, valueType: any Any.Type) throws(NetworkError) {
        let registry = request.registry
        record = TaskRecord(id: registry.nextID(), registry: registry, request: request, valueType: valueType)
        self.request = request
        guard record.startInCaller() else { throw registry.invalidated(request.request) }
    }

    /// Executes the task in the caller's own Swift task, and ends it.
    private func run<Value: Sendable>(
        _ decoder: BodyDecoder<Value>, isolation: isolated (any Actor)? = #isolation
    ) async throws(NetworkError) -> Response<Value> {
        let result = await withTaskCancellationHandler {
            // A closure that does not use the actor does not run on it.
            _ = isolation
            return await record.run { _ throws(NetworkError) in try await response(decode: decoder) }
        } onCancel: {
            record.cancel()
        }
        // Consumed: copying a response copies many references.
        switch consume result {
        case .success(let response):
            record.end(with: response)
            return response
        case .failure(let error):
            record.end(error)
            throw error
        }
    }

    /// Executes a request in a Swift task of its own, which is cancelled together with the session's task, also by the
    /// registry. Returns when the task has ended, even if the caller is cancelled.
    private static func responseInSwiftTask<Value: Sendable>(
        to request: PreparedRequest, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let task = request.registry.makeTask(request, startsImmediately: true, place: .caller) {
            record throws(NetworkError) in
            try await RequestExecution(request: request, record: record).response(decode: decoder)
        }
        let result = await withTaskCancellationHandler {
            // Started here, so that a caller that is already cancelled sends nothing.
            task.resume()
            return await task.result.outcome()
        } onCancel: {
            task.cancel()
        }
        return try result.get()
    }

    // MARK: From request to value

    /// Returns the response with its decoded body.
    @inline(__always)
    func response<Value: Sendable>(decode decoder: BodyDecoder<Value>) async throws(NetworkError) -> Response<Value> {
        let accepted = try await acceptedResponse()
        // A small value holds a caller without an actor up for less time than a change of threads.
        let actor: (any Actor)? = #isolation
        if let outcome = accepted.outcome,
            decoder.isImmediate || actor == nil && decoder.isQuick(outcome.body, as: registry.configuration.json)
        {
            return try decoded(accepted, outcome, with: decoder)
        }
        return try await decodedOffActor(accepted, with: decoder)
    }

    /// Returns the response of a task with a handle. Its value is decoded in the concurrent pool, because its work can
    /// run on the event loop.
    func responseOfHandle<Value: Sendable>(
        decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let accepted = try await acceptedResponse()
        if decoder.isImmediate, let outcome = accepted.outcome { return try decoded(accepted, outcome, with: decoder) }
        return try await withTaskExecutorPreference(globalConcurrentExecutor) { () throws(NetworkError) in
            try await decodedOffActor(accepted, with: decoder)
        }
    }

    /// Returns the accepted response.
    @inline(__always)
    func acceptedResponse() async throws(NetworkError) -> IncomingResponse {
        try await registry.stages.stages(of: request.request).response(to: request, of: record)
    }

    @concurrent
    private func decodedOffActor<Value: Sendable>(
        _ response: IncomingResponse, with decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        record.meter.publishWhole()
        return try decoded(response, await response.finalOutcome(), with: decoder)
    }

    /// Decodes the body of an accepted response, and tells the observers.
    @inline(never)
    private func decoded<Value: Sendable>(
        _ response: IncomingResponse, _ outcome: AttemptOutcome, with decoder: BodyDecoder<Value>
    ) throws(NetworkError) -> Response<Value> {
        let value =
            registry.observers.isEmpty
            ? try response.request.decode(outcome, head: response.head, with: decoder, of: record)
            : try decodeAndReport(response, outcome, with: decoder)
        return Response(value: value, head: response.head, outcome: outcome.kept(by: decoder))
    }

    private func decodeAndReport<Value: Sendable>(
        _ response: IncomingResponse, _ outcome: AttemptOutcome, with decoder: BodyDecoder<Value>
    ) throws(NetworkError) -> Value {
        let result: Result<Value, NetworkError>
        do throws(NetworkError) {
            result = .success(
                try response.request.decode(outcome, head: response.head, with: decoder, of: record))
        } catch {
            result = .failure(error)
        }
        let reported = result.map { $0 as any Sendable }
        registry.observe { $0.didDecode(reported, from: outcome.body, of: AnySessionTask(record)) }
        return try result.get()
    }
}

extension AttemptOutcome {
    /// Returns the outcome for a response whose value comes from a decoder: with the body only if the value is that
    /// body.
    @inline(__always)
    func kept<Value>(by decoder: BodyDecoder<Value>) -> AttemptOutcome {
        isKept(by: decoder) ? self : withoutBody
    }

    /// Returns whether the outcome keeps its body, because the decoder's value is that body.
    @inline(__always)
    func isKept<Value>(by decoder: BodyDecoder<Value>) -> Bool { decoder.isImmediate && Value.self == Data.self }
}
