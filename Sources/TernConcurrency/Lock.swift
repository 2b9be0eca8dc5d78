#if TERN_PTHREAD_LOCK && canImport(Glibc)
import Glibc

// Sendable by hand: `value` is only touched between lock and unlock of `mutex`, which never moves.
/// The same interface as `Synchronization.Mutex`, over a pthread mutex: thread sanitizer follows that one, and reports
/// false races on the other. Only `make test-tsan` builds it.
@safe public final class Lock<Value>: @unchecked Sendable {
    private var value: Value
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    /// A lock around `value`.
    public init(_ value: sending Value) {
        self.value = value
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        unsafe pthread_mutex_init(mutex, nil)
    }

    deinit {
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    /// Runs `body` with the lock held; never to be entered twice by one thread.
    public func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
#else
public import Synchronization

/// The lock of the whole package: a value that is only reachable while the lock is held.
///
/// Public in a module that is no product: what is only `package` is not specialised in other modules, and each lock then
/// costs a call through witness tables.
public struct Lock<Value>: ~Copyable, Sendable {
    @usableFromInline let mutex: Mutex<Value>

    /// A lock around `value`.
    @inlinable
    public init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }

    /// Runs `body` with the lock held; never awaited, and never to be entered twice by one thread.
    @inlinable @inline(__always)
    public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock(body)
    }
}
#endif
