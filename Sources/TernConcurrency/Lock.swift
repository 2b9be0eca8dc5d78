#if TERN_PTHREAD_LOCK && canImport(Glibc)
import Glibc

// Sendable by hand: `value` is only touched between lock and unlock of `mutex`, which never moves.
/// A lock with the interface of `Synchronization.Mutex` on a pthread mutex. Thread sanitizer understands pthread
/// mutexes, and reports false races on `Mutex`. Only `make test-tsan` builds it.
@safe public final class Lock<Value>: @unchecked Sendable {
    private var value: Value
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    /// Creates a lock that guards `value`.
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

    /// Runs `body` with the lock held. A thread must not enter the same lock twice.
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

/// A value that can only be accessed while its lock is held. The one lock type of the package.
///
/// Public in a module that is not a product: other modules do not specialise `package` code, and each use of the lock
/// would cost a call through witness tables.
public struct Lock<Value>: ~Copyable, Sendable {
    @usableFromInline let mutex: Mutex<Value>

    /// Creates a lock that guards `value`.
    @inlinable
    public init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }

    /// Runs `body` with the lock held. A thread must not enter the same lock twice.
    @inlinable @inline(__always)
    public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock(body)
    }
}
#endif
