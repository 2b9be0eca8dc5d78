/// A suspended caller that is resumed exactly once, by a value or by its cancellation, whichever comes first.
///
/// Both may also come before the caller suspends, or after it continued. This is the one place in the package where
/// waiting meets cancellation.
public final class Waiter<Value: Sendable>: Sendable {
    @usableFromInline
    @safe enum State {
        case idle
        // Resumed once: the caller that takes the continuation out of the state, under the lock, leaves `.resumed`.
        case suspended(UnsafeContinuation<Value, Never>)
        case resumed(Value)
    }

    @usableFromInline let state = Lock(State.idle)

    /// Creates a waiter that is not resumed yet.
    @inlinable
    public init() {}

    /// Resumes the caller, or makes its later `wait` return at once. Must be called without a lock held.
    /// - Returns: False if the waiter was resumed before. The call then has no effect.
    @inlinable
    @discardableResult
    public func resume(returning value: Value) -> Bool {
        let (isFirst, continuation) = unsafe state.withLock { state -> (Bool, UnsafeContinuation<Value, Never>?) in
            switch state {
            case .idle:
                state = .resumed(value)
                return (true, nil)
            case .suspended(let continuation):
                state = .resumed(value)
                return unsafe (true, continuation)
            case .resumed:
                return (false, nil)
            }
        }
        unsafe continuation?.resume(returning: value)
        return isFirst
    }

    /// Returns the value of the first `resume`, or `cancelled` if the calling task is cancelled before. Call it once.
    @inlinable
    public func wait(cancelled: Value, isolation: isolated (any Actor)? = #isolation) async -> Value {
        await wait(onCancel: { self.resume(returning: cancelled) })
    }

    /// Returns the value of the first `resume`. Call it once.
    ///
    /// The call stays on the caller's actor. If it left the actor, a busy actor would continue on another thread each
    /// time.
    /// - Parameter cancel: Called if the calling task is cancelled before. It must cause a `resume`.
    @inlinable
    public func wait(
        onCancel cancel: @Sendable () -> Void, isolation: isolated (any Actor)? = #isolation
    ) async -> Value {
        await withTaskCancellationHandler {
            // A closure that does not use the actor does not run on it.
            _ = isolation
            return unsafe await withUnsafeContinuation { continuation in
                let known = state.withLock { state -> Value? in
                    if case .resumed(let value) = state { return value }
                    unsafe state = .suspended(continuation)
                    return nil
                }
                if let known { unsafe continuation.resume(returning: known) }
            }
        } onCancel: {
            cancel()
        }
    }
}

extension Waiter where Value == Void {
    /// Calls `resume(returning:)` without a value.
    @inlinable
    public func resume() { resume(returning: ()) }
    /// Calls `wait(cancelled:)` without a value.
    @inlinable
    public func wait(isolation: isolated (any Actor)? = #isolation) async { await wait(cancelled: ()) }
}

/// The next step of a reader of shared state, decided under the lock of that state.
package enum ReadStep<Element: Sendable>: Sendable {
    case element(Element)
    case end
    /// Nothing is there yet. The waiter is resumed when the state changes.
    case wait(Waiter<Void>)
}

/// The readers that wait for shared state to change. The lock of that state guards the list.
package struct WaiterList: Sendable {
    private var waiters: [Waiter<Void>] = []

    package init() {}

    /// Adds a waiter for a reader that is about to wait.
    package mutating func add() -> Waiter<Void> {
        let waiter = Waiter<Void>()
        waiters.append(waiter)
        return waiter
    }

    package var count: Int { waiters.count }

    package mutating func remove(_ waiter: Waiter<Void>) { waiters.removeAll { $0 === waiter } }

    /// Removes and returns all waiters. The caller resumes them after it releases the lock.
    package mutating func removeAll() -> [Waiter<Void>] {
        guard !waiters.isEmpty else { return [] }
        defer { waiters = [] }
        return waiters
    }

    /// Repeats `step`, and waits in between, until it returns an element. Returns nil at the end, or when the calling
    /// task is cancelled.
    /// - Parameter remove: Removes a waiter from the list. Called after each wait, because a cancelled wait leaves its
    ///   waiter there.
    package static func next<Element>(
        _ step: () -> ReadStep<Element>, remove: (Waiter<Void>) -> Void
    ) async -> Element? {
        while !Task.isCancelled {
            switch step() {
            case .element(let element): return element
            case .end: return nil
            case .wait(let waiter):
                await waiter.wait()
                remove(waiter)
            }
        }
        return nil
    }
}
