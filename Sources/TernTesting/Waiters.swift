/// Suspended callers with their conditions. The value lies inside its owner's lock: its methods return the
/// continuations, and the owner resumes them after unlocking.
struct Waiters<Condition> {
    /// Identifies a caller. It exists before the caller suspends, so that a cancellation can refer to it.
    typealias ID = Int

    private struct Entry {
        let id: ID
        let condition: Condition
        let continuation: CheckedContinuation<Bool, Never>
    }

    private var entries: [Entry] = []
    private var lastID = 0

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    var conditions: [Condition] { entries.map(\.condition) }

    mutating func nextID() -> ID {
        lastID += 1
        return lastID
    }

    mutating func add(_ id: ID, condition: Condition, continuation: CheckedContinuation<Bool, Never>) {
        entries.append(Entry(id: id, condition: condition, continuation: continuation))
    }

    /// Removes a waiting caller and returns its continuation; nil if it was already resumed or has not suspended yet.
    mutating func remove(_ id: ID) -> CheckedContinuation<Bool, Never>? {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
        return entries.remove(at: index).continuation
    }

    /// Removes and returns all callers whose condition holds, in the order of their calls.
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
    /// Suspends the caller until the owner removes it and resumes it with true.
    ///
    /// `isCancelled`, read inside the owner's lock, detects a cancellation before the suspension; the handler detects
    /// one during it; and a cancellation after it finds no entry and has no effect.
    ///
    /// - Parameters:
    ///   - register: Adds the continuation under the owner's lock, or resumes it if there is nothing to wait for.
    ///   - cancel: Removes the continuation under the owner's lock.
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
