/// Records which request is sent for each key, and which requests wait for it. The sender is one of the callers, and a
/// waiter takes its place if its request fails for a reason of its own; `LoadTable` of TernImages decides for loads
/// that no caller performs.
///
/// The request of a sender that leaves goes on for the others. It is cancelled when the last of them leaves.
struct SharedRequests<Key: Hashable, Sender, Waiter> {
    private struct SharedRequest {
        let number: UInt64
        var sender: Sender
        /// The priority of the sender; nil once it has left.
        var senderPriority: Request.Priority?
        var waiters: [(waiter: Waiter, priority: Request.Priority)] = []

        /// The highest priority of those that need the response.
        var priority: Request.Priority {
            ([senderPriority].compactMap { $0 } + waiters.map(\.priority)).max() ?? .normal
        }

        func action(before: Request.Priority) -> LeaveAction {
            let after = priority
            return after < before ? .lower(sender, from: before, to: after) : .none
        }
    }

    private var running: [Key: SharedRequest] = [:]
    private var lastNumber: UInt64 = 0

    enum JoinDecision {
        /// No request of this key is running: send it. The number identifies it.
        case send(number: UInt64)
        /// A request of this key is running: wait for it.
        case wait(sender: Sender)
    }

    /// The action after one of those that need a response has left.
    enum LeaveAction {
        case none
        /// The running request needs a lower priority only.
        case lower(Sender, from: Request.Priority, to: Request.Priority)
        /// The sender alone needs the running request, which goes on as its task says, and with its priority.
        case alone(Sender, from: Request.Priority, to: Request.Priority)
        /// Nobody needs the running request, whose sender has left before.
        case cancel(Sender)
    }

    /// Whether no request is running. For tests only.
    var isEmpty: Bool { running.isEmpty }

    mutating func join(
        _ key: Key, as sender: Sender, _ waiter: Waiter, priority: Request.Priority = .normal
    ) -> JoinDecision {
        guard let shared = running[key] else {
            lastNumber += 1
            running[key] = SharedRequest(number: lastNumber, sender: sender, senderPriority: priority)
            return .send(number: lastNumber)
        }
        running[key]?.waiters.append((waiter, priority))
        return .wait(sender: shared.sender)
    }

    /// Removes the waiters of a condition.
    mutating func leave(_ key: Key, where condition: (Waiter) -> Bool) -> LeaveAction {
        guard var shared = running[key] else { return .none }
        let before = shared.priority
        shared.waiters.removeAll { condition($0.waiter) }
        if shared.waiters.isEmpty {
            guard let own = shared.senderPriority else {
                // The next request of the key does not join one that is being cancelled.
                running[key] = nil
                return .cancel(shared.sender)
            }
            running[key] = shared
            return .alone(shared.sender, from: before, to: own)
        }
        running[key] = shared
        return shared.action(before: before)
    }

    /// Records that the sender does not need the response any more. Returns nil if nobody else does: its request ends.
    mutating func leaveAsSender(_ key: Key, _ number: UInt64) -> LeaveAction? {
        guard var shared = running[key], shared.number == number, !shared.waiters.isEmpty else { return nil }
        let before = shared.priority
        shared.senderPriority = nil
        running[key] = shared
        return shared.action(before: before)
    }

    func hasWaiters(_ key: Key, _ number: UInt64) -> Bool {
        running[key].map { $0.number == number && !$0.waiters.isEmpty } ?? false
    }

    /// Removes the key of a request that has a response, and returns the waiters that receive it.
    mutating func finish(_ key: Key, _ number: UInt64) -> [Waiter] {
        guard let shared = running[key], shared.number == number else { return [] }
        running[key] = nil
        return shared.waiters.map(\.waiter)
    }

    /// Returns the waiter that sends the request next, after the running one has failed for a reason of its own; nil if
    /// none waits.
    mutating func nextSender(_ key: Key, _ number: UInt64) -> Waiter? {
        guard var shared = running[key], shared.number == number else { return nil }
        guard !shared.waiters.isEmpty else {
            running[key] = nil
            return nil
        }
        let next = shared.waiters.removeFirst()
        shared.senderPriority = next.priority
        running[key] = shared
        return next.waiter
    }

    /// Makes a waiter the sender. Returns those who wait for it.
    mutating func setSender(
        of key: Key, _ number: UInt64, to sender: Sender, priority: Request.Priority = .normal
    ) -> [Waiter] {
        guard let shared = running[key], shared.number == number else { return [] }
        running[key]?.sender = sender
        running[key]?.senderPriority = priority
        return shared.waiters.map(\.waiter)
    }
}
