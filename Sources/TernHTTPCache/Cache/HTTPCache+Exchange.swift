package import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension HTTPCache: ExchangeCache {
    /// Returns the response to a request: a stored one, or that of the server, which is stored if the rules allow it.
    package nonisolated func response(to exchange: NetworkExchange) async throws(NetworkError) -> IncomingResponse {
        let start = MonotonicClock.nanoseconds()
        let request = CacheRequest(exchange)
        if let store = shared.store {
            return try await CacheExchange(
                cache: self, store: store, exchange: exchange, request: request, start: start
            ).response()
        }
        // Opening a folder takes time.
        guard let opened = await exchange.wait(for: { [self] in await store() }) else { throw exchange.wasCancelled }
        let late = exchange.spending(since: start)
        guard let store = opened else { return try await responseWithoutStore(to: late, request) }
        return try await CacheExchange(
            cache: self, store: store, exchange: late, request: request, start: start
        ).response()
    }

    package nonisolated func storedResponses(limit: Int) async -> [StoredResponse] {
        await entries().prefix(limit).map { entry in
            StoredResponse(
                url: entry.url, method: entry.method, status: entry.status, bytes: entry.storedBytes,
                isWhole: entry.isWhole, age: entry.age, timeToLive: entry.timeToLive)
        }
    }

    private nonisolated func responseWithoutStore(
        to exchange: NetworkExchange, _ request: CacheRequest
    ) async throws(NetworkError) -> IncomingResponse {
        if request.mustNotBeSent {
            throw exchange.error(
                .notStored, "no stored response is available, because the cache cannot open its folder")
        }
        var response: IncomingResponse
        do throws(NetworkError) {
            response = try await exchange.send(adding: request.additions(nil, isRefresh: exchange.isRefresh))
        } catch {
            if let head = error.response { await invalidateWithoutStore(after: head, to: exchange, request) }
            throw error
        }
        await invalidateWithoutStore(after: response.head, to: exchange, request)
        let trace = TraceRecord(name: configuration.name, .forwarded(.nothingStored))
        trace.record(.storeUnavailable, isStored: false)
        response.head = response.head.traced(by: trace)
        return response
    }

    /// Removes what an unsafe request invalidates, although the folder was not open when it began.
    private nonisolated func invalidateWithoutStore(
        after head: ResponseHead, to exchange: NetworkExchange, _ request: CacheRequest
    ) async {
        let response = CacheResponse(
            status: head.status, headers: head.headers, requestTime: now, responseTime: now)
        guard case .invalidate(let own) = CachePolicy.invalidation(after: response, to: request).action else { return }
        let all = own.forScopes(of: exchange)
        if let store = shared.noteInvalidations(all) { return await invalidate(all, in: store) }
        await secondLevel?.remove(all.flatMap(\.keys))
    }

    /// Removes responses from the store and from the second level.
    nonisolated func invalidate(_ invalidations: [CacheInvalidation], in store: any EntryStore) async {
        await remove {
            var failure: String?
            for invalidation in invalidations { failure = await store.invalidate(invalidation) ?? failure }
            return failure
        } secondLevel: {
            await $0.remove(invalidations.flatMap(\.keys))
        }
    }

    /// Removes responses from the store, then from the second level, and from the store once more: a look-up in the
    /// second level can have brought an outdated response back meanwhile.
    ///
    /// - Returns: The reason why responses may be left; nil if none is.
    @discardableResult
    nonisolated func remove(
        store removeHere: () async -> String?, secondLevel removeThere: (SharedResponses) async -> String?
    ) async -> String? {
        let failure = await removeHere()
        guard let secondLevel else { return failure }
        let other = await removeThere(secondLevel)
        return await removeHere() ?? other
    }

    /// The present time.
    nonisolated var now: CacheTime { CacheTime(configuration.now()) }
}

extension CacheRequest {
    init(_ exchange: NetworkExchange) {
        let key = CacheKey(
            exchange.target, method: exchange.method, trust: exchange.scope.trust,
            partition: exchange.scope.partition)
        self.init(
            key: key, headers: exchange.headers, choice: exchange.cacheChoice, credentials: exchange.credentials)
    }
}
