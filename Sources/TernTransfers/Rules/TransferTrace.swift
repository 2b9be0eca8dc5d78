import Tern
import TernConcurrency

/// The decisions of one transfer, for its user: the newest 1,000.
final class TransferTrace<Event: Sendable>: Sendable {
    private let shared = Lock<[Event]>([])
    private let limit = 1_000

    var events: [Event] { shared.withLock { $0 } }

    func add(_ event: Event) {
        shared.withLock { events in
            if events.count >= limit { events.removeFirst() }
            events.append(event)
        }
    }
}

extension Reachability {
    /// Returns whether the network is reachable within a time; with nil, when it is.
    func returns(within limit: Duration?, _ time: TransferTime) async -> Bool {
        startPermanentWatchIfNeeded()
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await status in self.statuses where status != .unreachable { return true }
                return false
            }
            if let limit {
                group.addTask {
                    // Cancelled: the status changed first, or the transfer was cancelled.
                    try? await time.sleep(limit)
                    return false
                }
            }
            let isBack = await group.next() ?? false
            group.cancelAll()
            return isBack
        }
    }
}
