/// Suspended callers, each with the condition it waits for. A value inside its owner's lock: its methods hand the
/// continuations out, and the owner resumes them after unlocking.
struct Waiters<Condition> {
    /// One caller's place, drawn before it suspends, so that a cancellation can name it.
    typealias Ticket = Int

    private struct Entry {
        let ticket: Ticket
        let condition: Condition
        let continuation: CheckedContinuation<Bool, Never>
    }

    private var entries: [Entry] = []
    private var lastTicket = 0

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    var conditions: [Condition] { entries.map(\.condition) }

    mutating func drawTicket() -> Ticket {
        lastTicket += 1
        return lastTicket
    }

    mutating func add(_ ticket: Ticket, _ condition: Condition, _ continuation: CheckedContinuation<Bool, Never>) {
        entries.append(Entry(ticket: ticket, condition: condition, continuation: continuation))
    }

    /// The continuation of a caller that still waits; nil when it was served before, or has not suspended yet.
    mutating func remove(_ ticket: Ticket) -> CheckedContinuation<Bool, Never>? {
        guard let index = entries.firstIndex(where: { $0.ticket == ticket }) else { return nil }
        return entries.remove(at: index).continuation
    }

    /// Takes out all whose condition holds, in the order in which they came.
    mutating func take(
        where holds: (Condition) -> Bool
    ) -> [(condition: Condition, continuation: CheckedContinuation<Bool, Never>)] {
        guard !entries.isEmpty else { return [] }
        let taken = entries.filter { holds($0.condition) }
        if !taken.isEmpty { entries.removeAll { holds($0.condition) } }
        return taken.map { ($0.condition, $0.continuation) }
    }
}

extension Waiters {
    /// Suspends until somebody takes the caller out and resumes it with true.
    ///
    /// A cancellation before the suspension is seen by `isCancelled` inside the owner's lock, one during it by the
    /// handler, and one after it finds no entry and does nothing.
    /// - Parameter register: adds the continuation under the owner's lock, or resumes it when nothing is to wait for.
    /// - Parameter cancel: removes it under the owner's lock.
    static func suspend(
        register: (CheckedContinuation<Bool, Never>) -> Void,
        cancel: @escaping @Sendable () -> CheckedContinuation<Bool, Never>?
    ) async throws(CancellationError) {
        let served = await withTaskCancellationHandler {
            await withCheckedContinuation { register($0) }
        } onCancel: {
            cancel()?.resume(returning: false)
        }
        if !served { throw CancellationError() }
    }
}
