/// One suspended caller that is resumed exactly once: by a value, or by its cancellation, whichever comes first, also
/// when that is before it suspends or after it has gone on.
///
/// The one place of the package in which a wait meets cancellation.
public final class Waiter<Value: Sendable>: Sendable {
    @usableFromInline
    @safe enum State {
        case idle
        // Resumed once: whoever takes it out of the state, under the lock, leaves `.resumed` there.
        case suspended(UnsafeContinuation<Value, Never>)
        case resumed(Value)
    }

    @usableFromInline let state = Lock(State.idle)

    /// A waiter that nobody has resumed yet.
    @inlinable
    public init() {}

    /// Resumes the caller, or lets its coming `wait` return at once. Later calls change nothing, and return false: the
    /// caller has another value already. Not to be called with a lock held.
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

    /// The value of the first `resume`; `cancelled` if the calling task is cancelled before. To be called once.
    @inlinable
    public func wait(cancelled: Value, isolation: isolated (any Actor)? = #isolation) async -> Value {
        await wait(onCancel: { self.resume(returning: cancelled) })
    }

    /// The value of the first `resume`. To be called once.
    ///
    /// The caller's actor is not left: with more to do, it would go to another thread each time.
    /// - Parameter cancel: Called if the calling task is cancelled before: it sees to it that somebody resumes.
    @inlinable
    public func wait(
        onCancel cancel: @Sendable () -> Void, isolation: isolated (any Actor)? = #isolation
    ) async -> Value {
        await withTaskCancellationHandler {
            // What does not name the actor is not run on it.
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
    /// `resume(returning:)` without a value.
    @inlinable
    public func resume() { resume(returning: ()) }
    /// `wait(cancelled:)` without a value.
    @inlinable
    public func wait(isolation: isolated (any Actor)? = #isolation) async { await wait(cancelled: ()) }
}
