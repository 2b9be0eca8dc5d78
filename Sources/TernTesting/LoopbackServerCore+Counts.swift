import Synchronization
import Tern
import TernConcurrency

/// The log and the counts, and those who wait for them.
extension LoopbackCore {
    var requests: [LoopbackServer.LoggedRequest] { state.withLock { $0.log.requests } }

    func clearRequests() { state.withLock { $0.log.clear() } }

    /// Logs a request; the answer is its serial number.
    func received(_ request: LoopbackServer.Request) -> Int {
        let entry = LoopbackServer.LoggedRequest(
            method: request.method, target: request.target, bodySize: 0, connectionIndex: request.connectionIndex,
            requestIndex: request.requestIndex)
        let serial = logs ? state.withLock { $0.log.append(entry) } : 0
        counters.received.wrappingAdd(1, ordering: .sequentiallyConsistent)
        countsChanged()
        return serial
    }

    func setBodySize(_ size: Int, of serial: Int) {
        if logs { state.withLock { $0.log.setBodySize(size, of: serial) } }
    }

    /// Serves those who wait for counts. The flag is written before a waiter looks at the counts, and read here after
    /// they changed, both sequentially consistent: one of the two sees the other.
    func countsChanged() {
        guard hasWaiters.load(ordering: .sequentiallyConsistent) else { return }
        let counts = counters.snapshot
        let served = state.withLock { state in
            let served = state.waiters.take { $0(counts) }
            if state.waiters.isEmpty { hasWaiters.store(false, ordering: .sequentiallyConsistent) }
            return served
        }
        for waiter in served { waiter.continuation.resume(returning: true) }
    }

    func wait(
        until condition: @escaping @Sendable (LoopbackServer.Counts) -> Bool
    ) async throws(CancellationError) {
        let ticket = state.withLock { $0.waiters.drawTicket() }
        try await Waiters<@Sendable (LoopbackServer.Counts) -> Bool>.suspend { continuation in
            let outcome = state.withLock { state -> Bool? in
                if Task.isCancelled { return false }
                hasWaiters.store(true, ordering: .sequentiallyConsistent)
                if condition(counters.snapshot) { return true }
                state.waiters.add(ticket, condition, continuation)
                return nil
            }
            if let outcome { continuation.resume(returning: outcome) }
        } cancel: {
            self.state.withLock { $0.waiters.remove(ticket) }
        }
    }
}
