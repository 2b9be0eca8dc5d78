/// Answers a request from the session's cache, or forwards it.
final class CacheStage: Stage {
    private let cache: any ExchangeCache
    private let next: any Stage

    init(cache: any ExchangeCache, next: any Stage) {
        self.cache = cache
        self.next = next
    }

    func response(to request: PreparedRequest, of task: TaskRecord) async throws(NetworkError) -> IncomingResponse {
        if request.isUpgrade {
            guard request.request.cache == .onlyStored else { return try await next.response(to: request, of: task) }
            let reason = "a request to switch to another protocol is never answered from the cache"
            throw NetworkError(FailureCause(.notStored, reason), request: request.request)
        }
        let response = try await cache.response(to: NetworkExchange(prepared: request, task: task, network: next))
        if request.hasHandle, !response.head.mayBeFollowed { task.receive(response.head) }
        return response
    }
}
