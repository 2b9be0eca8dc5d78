import TernConcurrency

/// The interceptors of one task, outermost first, around what sends its requests.
struct InterceptorChain: Sendable {
    typealias Innermost = @Sendable (RequestPlan) async throws(NetworkError) -> Arrival

    let plan: RequestPlan
    let record: TaskRecord
    let innermost: Innermost

    func run() async throws(NetworkError) -> Arrival {
        let interceptors = plan.context.configuration.interceptors + plan.request.interceptors
        let sent = LastArrival()
        let reply: Reply
        do throws(NetworkError) {
            reply = try await call(interceptors[...], plan.request, sent)
        } catch {
            await sent.take()?.discard()
            throw error
        }
        if reply.arrival == nil { await sent.take()?.discard() }
        return await reply.arrived(for: plan)
    }

    private func call(
        _ interceptors: ArraySlice<any Interceptor>, _ request: Request, _ sent: LastArrival
    ) async throws(NetworkError) -> Reply {
        guard let first = interceptors.first else { return try await send(request, sent) }
        let rest = interceptors.dropFirst()
        let next = Next(task: AnySessionTask(record), plan: plan) { request throws(NetworkError) in
            try await call(rest, request, sent)
        }
        do {
            return try await first.intercept(request, next: next)
        } catch let error as NetworkError {
            throw error
        } catch is CancellationError {
            throw NetworkError(.cancelled, request: request)
        } catch {
            let reason = "the interceptor \(type(of: first)) failed: \(error)"
            throw NetworkError(TransferFailure(.interceptor, reason, underlying: error), request: request)
        }
    }

    private func send(_ request: Request, _ sent: LastArrival) async throws(NetworkError) -> Reply {
        await sent.take()?.discard()
        let arrival = try await innermost(try plan.replacing(request))
        sent.keep(arrival)
        return Reply(arrival)
    }
}

/// The reply whose body may still be on its way when an interceptor asks again.
private final class LastArrival: Sendable {
    private let arrival = Lock<Arrival?>(nil)

    func take() -> Arrival? { arrival.withLock { $0.take() } }
    func keep(_ arrival: Arrival) { self.arrival.withLock { $0 = arrival } }
}
