import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Runs the interceptors of the session, and inside them those of the request, outermost first, around the stages that
/// send the request.
final class InterceptorStage: Stage {
    /// An interceptor, with the result of its cast to `RequestAdapter`. The cast is made once for each session, and for
    /// each request with interceptors of its own.
    enum Step: Sendable {
        /// One that is called synchronously.
        case adapter(any RequestAdapter)
        case interceptor(any Interceptor)

        init(_ interceptor: any Interceptor) {
            self = (interceptor as? any RequestAdapter).map { .adapter($0) } ?? .interceptor(interceptor)
        }
    }

    private let steps: [Step]
    private let next: any Stage
    /// Whether an interceptor has `waitsOnlyInNext == false`. A cancellation of the session's task does not end its
    /// waits, so a call needs a Swift task of its own.
    let needsSwiftTask: Bool

    /// Returns nil without interceptors.
    ///
    /// - Parameter outer: The interceptors of the session, which surround the others.
    init?(_ interceptors: [any Interceptor], inside outer: InterceptorStage? = nil, next: any Stage) {
        self.next = next
        steps = (outer?.steps ?? []) + interceptors.map { Step($0) }
        needsSwiftTask = outer?.needsSwiftTask == true || interceptors.contains { !$0.waitsOnlyInNext }
        if steps.isEmpty { return nil }
    }

    func response(to request: PreparedRequest, of task: TaskRecord) async throws(NetworkError) -> IncomingResponse {
        let passage = InterceptorPassage(steps, prepared: request, task: task, next: next)
        let reply: Reply
        do throws(NetworkError) {
            reply = try await passage.reply(to: request.request, from: 0)
        } catch {
            await passage.takeResponse()?.discard()
            throw error
        }
        if reply.response == nil { await passage.takeResponse()?.discard() }
        return await reply.incomingResponse(for: request)
    }
}

/// The state of one request while its interceptors run.
final class InterceptorPassage: InterceptorChain {
    private struct State {
        /// The latest response, whose body can still be arriving when an interceptor sends the request again.
        var response: IncomingResponse?
        /// Whether the request was sent.
        var hasSent = false
        /// The error of the latest time; nil for an accepted response.
        var error: NetworkError?
    }

    /// The request that the task was created with.
    let prepared: PreparedRequest
    let task: TaskRecord
    var control: any TaskControl { task }
    /// The stage after the interceptors.
    private let next: any Stage
    private let steps: [InterceptorStage.Step]
    private let state = Lock(State())

    init(_ steps: [InterceptorStage.Step], prepared: PreparedRequest, task: TaskRecord, next: any Stage) {
        self.steps = steps
        self.prepared = prepared
        self.task = task
        self.next = next
    }

    /// Returns the reply to a request, from the interceptor of an index on.
    func reply(to first: Request, from firstIndex: Int) async throws(NetworkError) -> Reply {
        var (request, index) = (first, firstIndex)
        while index < steps.count {
            switch steps[index] {
            case .adapter(let adapter):
                request = try adapted(request, by: adapter)
                index += 1
            case .interceptor(let interceptor):
                return try await reply(of: interceptor, to: request, before: index + 1)
            }
        }
        return try await send(request)
    }

    private func adapted(_ request: Request, by adapter: any RequestAdapter) throws(NetworkError) -> Request {
        do {
            return try adapter.adapt(request)
        } catch {
            throw failure(of: adapter, error, request)
        }
    }

    private func reply(
        of interceptor: any Interceptor, to request: Request, before index: Int
    ) async throws(NetworkError) -> Reply {
        do {
            return try await interceptor.intercept(request, next: Next(chain: self, index: index))
        } catch {
            throw failure(of: interceptor, error, request)
        }
    }

    private func failure(of interceptor: any Interceptor, _ error: any Error, _ request: Request) -> NetworkError {
        if let error = error as? NetworkError { return error }
        if error is CancellationError { return NetworkError(.cancelled, request: request) }
        let reason = "the interceptor \(type(of: interceptor)) failed: \(error)"
        return NetworkError(FailureCause(.interceptor, reason, underlying: error), request: request)
    }

    // MARK: The next stage

    private func send(_ request: Request) async throws(NetworkError) -> Reply {
        await takeResponse()?.discard()
        let prepared = try prepared.replacing(request)
        beginSending(request)
        do throws(NetworkError) {
            let response = try await next.response(to: prepared, of: task)
            state.withLock { $0.response = response }
            task.meter.publishWhole()
            return Reply(response, head: response.head, outcome: response.outcome)
        } catch {
            state.withLock { $0.error = error }
            task.meter.publishWhole()
            throw error
        }
    }

    /// Moves out the latest response, which is then to be discarded.
    func takeResponse() -> IncomingResponse? { state.withLock { $0.response.take() } }

    /// Records that the request is sent, and tells the observers if it was sent before.
    private func beginSending(_ request: Request) {
        let (isRetry, previousError) = state.withLock { state in
            defer { (state.hasSent, state.error) = (true, nil) }
            return (state.hasSent, state.error)
        }
        guard isRetry else { return }
        task.registry.observe { $0.willRetry(request, after: previousError, of: AnySessionTask(task)) }
    }
}

extension Next {
    /// The state of the request.
    var passage: InterceptorPassage? { chain as? InterceptorPassage }
}

extension Reply {
    /// Returns the response with which the task continues.
    fileprivate func incomingResponse(for prepared: PreparedRequest) async -> IncomingResponse {
        let response = response as? IncomingResponse
        if let given {
            let metrics = metrics ?? TaskMetrics()
            let prepared = response?.request ?? prepared
            await response?.discard()
            return IncomingResponse(customBody: given, request: prepared, head: head, metrics: metrics)
        }
        guard var response else {
            return IncomingResponse(customBody: Data(), request: prepared, head: head, metrics: TaskMetrics())
        }
        response.head = head
        return response
    }
}
