import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Answers with stored responses.
extension CacheExchange {
    /// The exchange with the server before a stored response was used.
    struct Outcome {
        /// The status of the server's response; nil if none arrived.
        let status: Int?
        let reason: CacheReason
        /// Whether the store has the server's response afterwards.
        let isStored: Bool
        /// The measurements of the exchange.
        let metrics: TaskMetrics?
    }

    /// Returns a stored response; nil if its body is not in the store any more.
    func serve(
        _ answer: CacheAnswer, _ result: CacheHandling.Result, of current: NetworkExchange? = nil,
        outcome: Outcome? = nil, body given: Data? = nil, isShared: Bool = false
    ) async -> IncomingResponse? {
        let exchange = current ?? exchange
        var body = Data()
        if let range = answer.body {
            guard let found = if let given { given } else { await self.body(of: answer.entry, range: range) } else {
                return nil
            }
            // Chunks of the body count from 0.
            body = found.startIndex == 0 ? found : Data(found)
        }
        let now = cache.now
        let trace = TraceRecord(name: cache.configuration.name, result, answer: answer, at: now, isShared: isShared)
        if let outcome {
            trace.receive(status: outcome.status)
            trace.record(outcome.reason, isStored: outcome.isStored)
        }
        cache.shared.count(result, answer, bytes: body.count, outcome: outcome?.reason)
        let head = ResponseHead(
            status: answer.status, version: answer.entry.properties.version, target: exchange.target,
            reason: answer.status == answer.entry.status ? answer.entry.properties.reasonPhrase : "",
            headers: answer.headers)
        // Bytes that cannot be decompressed would be an error for each reader until the response is stale.
        let stored = StoredBody(bytes: body, start: start, exchange: outcome?.metrics) {
            [store, cache, entry = answer.entry] in
            let number = cache.shared.beginWrite()
            // Ends with the removal.
            Task {
                await store.remove([entry])
                await cache.secondLevel?.remove([entry.key])
                cache.shared.endWrite(number)
            }
        }
        return exchange.answer(head.traced(by: trace), body: stored)
    }

    /// Returns stored bytes of an entry; nil if they are gone, and as soon as the task is cancelled.
    func body(of entry: CacheEntry, range: Range<Int64>) async -> Data? {
        if let body = store.bodyNow(of: entry, range: range) { return body }
        return await exchange.wait { [store] in await store.body(of: entry, range: range) } ?? nil
    }
}
