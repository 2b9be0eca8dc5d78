package import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A second level in memory, which a test alters, lets fail, or keeps from answering.
package final class TestStore: CacheStore {
    package enum Fault: Sendable {
        /// Each call throws.
        case error
        /// No call returns before ``answer()``, not even after its cancellation.
        case silence
    }

    package struct Failure: Error, CustomStringConvertible {
        package let description = "the test's store fails"
    }

    private struct State {
        var values: [CacheStoreKey: Data] = [:]
        var reservations: Set<CacheStoreKey> = []
        var age = Duration.zero
        var fault: Fault?
        var silent: [Waiter<Void>] = []
        var reserveCount = 0
    }

    private let state = Lock(State())

    package init(_ fault: Fault? = nil) { state.withLock { $0.fault = fault } }

    package var values: [CacheStoreKey: Data] {
        get { state.withLock { $0.values } }
        set { state.withLock { $0.values = newValue } }
    }

    package var reservations: Set<CacheStoreKey> {
        get { state.withLock { $0.reservations } }
        set { state.withLock { $0.reservations = newValue } }
    }

    /// The number of calls of `reserve`.
    package var reserveCount: Int { state.withLock { $0.reserveCount } }

    package func setFault(_ fault: Fault?) { state.withLock { $0.fault = fault } }

    /// Sets the age of all values.
    package func setAge(_ age: Duration) { state.withLock { $0.age = age } }

    /// Ends the silence.
    package func answer() {
        let silent = state.withLock { state in
            state.fault = nil
            defer { state.silent = [] }
            return state.silent
        }
        for waiter in silent { waiter.resume() }
    }

    private func meetFault() async throws {
        let waiter = Waiter<Void>()
        let fault = state.withLock { state in
            if state.fault == .silence { state.silent.append(waiter) }
            return state.fault
        }
        switch fault {
        case nil: break
        case .error: throw Failure()
        case .silence: await waiter.wait(onCancel: {})
        }
    }

    package func entry(for key: CacheStoreKey) async throws -> CacheStoreEntry? {
        try await meetFault()
        return state.withLock { state in state.values[key].map { CacheStoreEntry(value: $0, age: state.age) } }
    }

    package func insert(_ value: Data, for key: CacheStoreKey, lifetime: Duration) async throws {
        try await meetFault()
        state.withLock { state in
            state.values[key] = value
            state.reservations.remove(key)
        }
    }

    package func remove(_ key: CacheStoreKey) async throws {
        try await meetFault()
        state.withLock { $0.values[key] = nil }
    }

    package func removeAll(inGroup group: String) async throws {
        try await meetFault()
        state.withLock { state in state.values = state.values.filter { $0.key.group != group } }
    }

    package func removeAll() async throws {
        try await meetFault()
        state.withLock { $0.values = [:] }
    }

    package func reserve(_ key: CacheStoreKey, for duration: Duration) async throws -> CacheStoreReservation {
        try await meetFault()
        return state.withLock { state in
            state.reserveCount += 1
            if let value = state.values[key] { return .value(CacheStoreEntry(value: value, age: state.age)) }
            return state.reservations.insert(key).inserted ? .granted : .taken
        }
    }

    package func release(_ key: CacheStoreKey) async throws {
        try await meetFault()
        state.withLock { _ = $0.reservations.remove(key) }
    }
}
