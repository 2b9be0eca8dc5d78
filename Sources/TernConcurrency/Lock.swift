#if TERN_PTHREAD_LOCK && canImport(Glibc)
import Glibc

/// The same interface as `Synchronization.Mutex`, over a pthread mutex: thread sanitizer follows that one, and reports
/// false races on the other. Only `make test-tsan` builds it.
// Sendable by hand: `value` is only touched between lock and unlock of `mutex`, which never moves.
@safe @usableFromInline package final class Lock<Value>: @unchecked Sendable {
    private var value: Value
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    @usableFromInline
    package init(_ value: sending Value) {
        self.value = value
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        unsafe pthread_mutex_init(mutex, nil)
    }

    deinit {
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    @usableFromInline
    package func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
#else
package import Synchronization

/// The lock of the whole package: a value that is only reachable while the lock is held.
package struct Lock<Value>: ~Copyable, Sendable {
    @usableFromInline let mutex: Mutex<Value>

    @inlinable
    package init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }

    @inlinable @inline(__always)
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock(body)
    }
}
#endif
