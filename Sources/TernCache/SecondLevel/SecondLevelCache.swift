import TernConcurrency

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A second level behind the memory and the disk of a cache: a ``CacheStore`` that several processes share, and the
/// limits of its use.
///
/// ```swift
/// var configuration = ImagePipeline.Configuration()
/// configuration.secondLevel = SecondLevelCache(store)
/// ```
/// A load looks into memory, then on the disk, then into the second level, and then asks the network. A value from the
/// second level is stored in the levels before it. Processes that miss a value at the same time fetch it once: one
/// fetches, and the others wait for the value for at most ``waitLimit``.
///
/// A store that fails is a miss, and a store that does not answer costs at most ``timeLimit`` for each look-up. Neither
/// is ever an error of a load.
public struct SecondLevelCache: Sendable {
    /// The store.
    public var store: any CacheStore
    /// The time that a load waits for one answer of the store, 250 milliseconds by default.
    public var timeLimit = Duration.milliseconds(250)
    /// The time that a load waits for a value that another process fetches, 2 seconds by default. Then it fetches the
    /// value itself. The removal of a group, as at a logout, waits as long for its end.
    public var waitLimit = Duration.seconds(2)
    /// The time for which a process reserves a fetch, 10 seconds by default. If the process ends without the value,
    /// others wait for at most ``waitLimit`` during this time.
    public var reservationTime = Duration.seconds(10)
    /// The maximum lifetime of a value in the store, 1 day by default.
    public var lifetimeLimit = Duration.seconds(86_400)
    /// The maximum number of bytes of a value with its head, 8 MiB by default. Larger values are neither stored nor
    /// read.
    public var entryByteLimit = 8 << 20
    /// The clock for the limits. For tests.
    package var clock: any Clock<Duration> = ContinuousClock()

    /// Creates a second level with the default limits.
    public init(_ store: any CacheStore) { self.store = store }
}

extension SecondLevelCache {
    /// The result of a look-up.
    package enum LookUp: Sendable, Equatable {
        case found(SharedValue)
        /// Nothing usable is there. If it is reserved, the caller fetches the value, and inserts or releases it.
        case missing(isReserved: Bool)
        /// The store failed, or did not answer in time.
        case unavailable
    }

    /// Returns a value that was read from the store, or reserves its fetch.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - reserves: Whether the caller fetches a missing value. It then waits for a value that another process
    ///     fetches.
    ///   - now: The present time, by which the age of the value is measured.
    @concurrent
    package func lookUp(_ key: CacheStoreKey, reserves: Bool, now: @Sendable () -> Date) async -> LookUp {
        guard let first = await limited(timeLimit, { [store] in try await store.entry(for: key) }) else {
            return .unavailable
        }
        if let entry = first {
            if let value = value(of: entry, for: key, now: now()) { return .found(value) }
            // A reservation would return the damaged value.
            await remove(key)
        }
        return reserves ? await reserved(key, now: now) : .missing(isReserved: false)
    }

    private func reserved(_ key: CacheStoreKey, now: @Sendable () -> Date) async -> LookUp {
        let time = RelativeTime(clock)
        var delay = Duration.milliseconds(10)
        while !Task.isCancelled {
            let reservation = await limited(timeLimit) { [store, reservationTime] in
                try await store.reserve(key, for: reservationTime)
            }
            switch reservation {
            case nil: return .unavailable
            case .granted?: return .missing(isReserved: true)
            case .value(let entry)?:
                return value(of: entry, for: key, now: now()).map { .found($0) } ?? .missing(isReserved: false)
            case .taken?:
                guard time.elapsed() + delay <= waitLimit else { return .missing(isReserved: false) }
                // A cancelled sleep ends the loop.
                try? await clock.sleepWithoutDescriptor(for: delay)
                delay = min(delay * 3 / 2, .milliseconds(100))
            }
        }
        return .missing(isReserved: false)
    }

    private func value(of entry: CacheStoreEntry, for key: CacheStoreKey, now: Date) -> SharedValue? {
        guard entry.value.count <= entryByteLimit else { return nil }
        return SharedValue(entry.value, for: key)?.aged(by: entry.age, now: now)
    }

    /// Returns whether a value is within the limit.
    package func accepts(_ count: Int, metadata: Data, for key: CacheStoreKey) -> Bool {
        count <= entryByteLimit - SharedValue.overhead(key, metadata: metadata)
    }

    /// Stores a value, or releases its reservation if it is too large. Returns whether it is stored.
    @concurrent
    @discardableResult
    package func insert(_ value: SharedValue, for key: CacheStoreKey, lifetime: Duration) async -> Bool {
        let lifetime = min(lifetime, lifetimeLimit)
        guard lifetime >= .milliseconds(1), accepts(value.value.count, metadata: value.metadata, for: key) else {
            await release(key)
            return false
        }
        let bytes = value.encoded(for: key)
        // In the background: nobody waits for it, and the reservation lasts as long.
        return await limited(reservationTime) { [store] in
            try await store.insert(bytes, for: key, lifetime: lifetime)
        } != nil
    }

    /// Ends a reservation. If that fails, the reservation ends by itself.
    @concurrent
    package func release(_ key: CacheStoreKey) async {
        _ = await limited(timeLimit) { [store] in try await store.release(key) }
    }

    /// Removes a value. Returns false if it may be left.
    @concurrent
    @discardableResult
    package func remove(_ key: CacheStoreKey) async -> Bool {
        await limited(timeLimit) { [store] in try await store.remove(key) } != nil
    }

    /// Removes all values of a group, or of the store for nil. Returns the reason why values may be left; nil if none
    /// is.
    @concurrent
    package func removeAll(inGroup group: String?) async -> String? {
        let failure = Lock<String?>(nil)
        let isRemoved: Void? = await limited(waitLimit) { [store] in
            do {
                if let group { try await store.removeAll(inGroup: group) } else { try await store.removeAll() }
            } catch {
                failure.withLock { $0 = "\(error)" }
                throw error
            }
        }
        if isRemoved != nil { return nil }
        let reason = failure.withLock { $0 } ?? "it did not answer within \(waitLimit)"
        return "the second level could not remove its values: \(reason)"
    }

    /// Returns the result of an operation; nil if it fails, if it takes longer than the limit, and if the caller is
    /// cancelled.
    private func limited<Value: Sendable>(
        _ limit: Duration, _ operation: @escaping @Sendable () async throws -> Value
    ) async -> Value? {
        let waiter = Waiter<Value?>()
        let clock = clock
        // Both are owned and cancelled here. An operation that ignores its cancellation ends without a reader of its
        // result.
        let work = Task {
            // Each error is a miss.
            let value = try? await operation()
            waiter.resume(returning: value)
        }
        let timer = Task {
            // An error means that the operation ended in time.
            guard (try? await clock.sleepWithoutDescriptor(for: limit)) != nil else { return }
            waiter.resume(returning: nil)
        }
        let value = await waiter.wait(cancelled: nil)
        work.cancel()
        timer.cancel()
        return value
    }
}

/// The time since a moment, by any clock.
private struct RelativeTime: Sendable {
    let elapsed: @Sendable () -> Duration

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
    }
}

/// The values on their way to a second level. Nobody waits for them but `finish()`, and their number of bytes is
/// bounded: a value beyond the bound is not stored there.
package final class SharedUploads: Sendable {
    private struct State {
        var bytes = 0
        var lastNumber = 0
        var tasks: [Int: Task<Void, Never>] = [:]
    }

    private let state = Lock(State())
    /// The greatest number of bytes on their way. One value is accepted in any case.
    private static let limit = 32 << 20

    package init() {}

    deinit {
        for task in state.withLock({ Array($0.tasks.values) }) { task.cancel() }
    }

    /// Starts an upload. Returns false, and starts nothing, if too much is on its way.
    ///
    /// - Parameter count: The number of bytes that the operation holds.
    package func start(_ count: Int, _ operation: @escaping @Sendable () async -> Void) -> Bool {
        state.withLock { state in
            guard state.bytes == 0 || state.bytes + count <= Self.limit else { return false }
            state.bytes += count
            state.lastNumber += 1
            let number = state.lastNumber
            // Ends with the operation, whose time is bounded. `deinit` cancels it.
            state.tasks[number] = Task { [weak self] in
                await operation()
                self?.ended(number, count)
            }
            return true
        }
    }

    private func ended(_ number: Int, _ count: Int) {
        state.withLock { state in
            state.bytes -= count
            state.tasks[number] = nil
        }
    }

    /// Returns once the present uploads have ended.
    package func finish() async {
        for task in state.withLock({ Array($0.tasks.values) }) { await task.value }
    }
}
