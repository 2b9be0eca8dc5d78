/// One suspended caller that is resumed exactly once: by a value, or by its cancellation, whichever comes first, also
/// when that is before it suspends or after it has gone on.
///
/// The one place of the package in which a wait meets cancellation.
public final class Waiter<Value: Sendable>: Sendable {
    @usableFromInline
    enum State {
        case idle
        case suspended(CheckedContinuation<Value, Never>)
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
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
            switch state {
            case .idle:
                state = .resumed(value)
                return (true, nil)
            case .suspended(let continuation):
                state = .resumed(value)
                return (true, continuation)
            case .resumed:
                return (false, nil)
            }
        }
        continuation?.resume(returning: value)
        return isFirst
    }

    /// The value of the first `resume`; `cancelled` if the calling task is cancelled before. To be called once.
    @inlinable
    public func wait(cancelled: Value) async -> Value {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known = state.withLock { state -> Value? in
                    if case .resumed(let value) = state { return value }
                    state = .suspended(continuation)
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            resume(returning: cancelled)
        }
    }
}

extension Waiter where Value == Void {
    /// `resume(returning:)` without a value.
    @inlinable
    public func resume() { resume(returning: ()) }
    /// `wait(cancelled:)` without a value.
    @inlinable
    public func wait() async { await wait(cancelled: ()) }
}
