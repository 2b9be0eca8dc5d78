import Synchronization
import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The part of a cache's state that requests use without a hop to its actor: a fresh response in memory is found on the
/// thread that asks for it.
final class CacheState: Sendable {
    private struct Opening {
        var store: (any EntryStore)?
        /// The reason why memory is used in place of a folder; nil otherwise.
        var folderFailure: String?
        /// The time before which a folder that could not be opened is not tried again, in nanoseconds.
        var nextTry: UInt64 = 0
        /// The invalidations while the folder was not open.
        var invalidations: [CacheInvalidation] = []
        /// Whether there were more than are kept.
        var hasMoreInvalidations = false
    }

    /// The writes and removals under way for responses that have arrived.
    private struct Writes {
        var last: UInt64 = 0
        var running: Set<UInt64> = []
        /// The number of bytes that wait for the disk.
        var bytes = 0
        /// Those who wait for all writes up to a number.
        var waiters: [(number: UInt64, waiter: Waiter<Void>)] = []

        /// Removes and returns the waiters whose writes have ended.
        mutating func takeWaiters() -> [Waiter<Void>] {
            let first = running.min() ?? .max
            let done = waiters.filter { $0.number < first }.map(\.waiter)
            waiters.removeAll { $0.number < first }
            return done
        }
    }

    private let opening = Lock(Opening())
    private let waits = Lock(WaitTable())
    /// The requests whose responses could not be stored lately. Equal requests would wait for a response that is of no
    /// use to them. (Varnish calls this hit-for-miss.)
    private let unstorable = Lock(ExpiringKeys<SharingKey>())
    private let storedEnds = Atomic<UInt64>(0)
    /// The numbers of the entries. Random, because those of earlier processes are stored.
    private let lastID = Atomic<UInt64>(.random(in: 0 ... .max))
    private let writes = Lock(Writes())
    let statistics = Latest(HTTPCache.Statistics())

    /// The greatest number of bytes that wait for the disk.
    private static let queueLimit = 32 << 20
    /// The time for which a response counts as unstorable. Equal requests that come later wait for the first of them
    /// again.
    static let unstorableTime = Duration.seconds(120)
    /// The greatest number of invalidations that are kept while the folder is not open.
    private static let invalidationLimit = 1_024

    // MARK: The store

    var store: (any EntryStore)? { opening.withLock { $0.store } }

    /// Sets the store.
    ///
    /// - Parameter failure: The reason why it is in memory in place of a folder.
    func open(with store: any EntryStore, after failure: String? = nil) {
        opening.withLock { opening in
            opening.store = store
            opening.folderFailure = failure
        }
    }

    /// Sets the store of a folder once it has applied the invalidations from the time when the folder was not open. Not
    /// called by two at once.
    func openFolder(with store: DiskEntryStore) async {
        while true {
            let noted = opening.withLock { opening -> (invalidations: [CacheInvalidation], isAll: Bool)? in
                if opening.invalidations.isEmpty, !opening.hasMoreInvalidations {
                    opening.store = store
                    return nil
                }
                return (opening.invalidations, opening.hasMoreInvalidations)
            }
            guard let noted else { return }
            if noted.isAll { await store.removeAll() }
            for invalidation in noted.invalidations { await store.invalidate(invalidation) }
            // Those that were noted meanwhile stay for the next turn.
            opening.withLock { opening in
                opening.invalidations.removeFirst(min(noted.invalidations.count, opening.invalidations.count))
                if noted.isAll { opening.hasMoreInvalidations = false }
            }
        }
    }

    /// Notes what an unsafe request invalidates while the folder is not open. Returns the store if it is open, which
    /// must be told.
    func noteInvalidations(_ invalidations: [CacheInvalidation]) -> (any EntryStore)? {
        opening.withLock { opening in
            if let store = opening.store { return store }
            opening.invalidations += invalidations
            // Beyond the limit, everything is removed when the folder is opened.
            if opening.invalidations.count > Self.invalidationLimit {
                (opening.invalidations, opening.hasMoreInvalidations) = ([], true)
            }
            return nil
        }
    }

    /// The reason why memory is used in place of a folder; nil otherwise.
    var folderFailure: String? { opening.withLock { $0.folderFailure } }

    /// Returns whether a request tries to open the folder: not within a second after a failure.
    func mayOpen(at now: UInt64) -> Bool { opening.withLock { now >= $0.nextTry } }

    /// Notes that the folder could not be opened.
    func openingFailed(at now: UInt64) { opening.withLock { $0.nextTry = now + 1_000_000_000 } }

    func nextID() -> UInt64 { lastID.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Takes room among the bytes that wait for the disk. Returns false if there is none.
    func reserve(_ count: Int) -> Bool {
        writes.withLock { writes in
            if writes.bytes > 0, writes.bytes + count > Self.queueLimit { return false }
            writes.bytes += count
            return true
        }
    }

    /// The number of bytes that wait for the disk. For tests.
    var waitingBytes: Int { writes.withLock { $0.bytes } }

    /// Gives room back for bytes that are written, or given up.
    func release(_ count: Int) { writes.withLock { $0.bytes -= count } }

    /// Records that a response that has arrived is being written, or that entries are being removed. Returns the number
    /// for `endWrite(_:)`.
    func beginWrite() -> UInt64 {
        writes.withLock { writes in
            writes.last += 1
            writes.running.insert(writes.last)
            return writes.last
        }
    }

    /// Records that a response is written or given up. A second call has no effect.
    func endWrite(_ number: UInt64) {
        let waiters = writes.withLock { writes -> [Waiter<Void>] in
            guard writes.running.remove(number) != nil else { return [] }
            return writes.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when the writes that are under way now have ended, or the caller is cancelled. Later ones do not count.
    ///
    /// - Parameters:
    ///   - limit: The longest wait; nil for any.
    ///   - sleep: Sleeps for the limit.
    func written(
        within limit: Duration? = nil, sleep: @escaping @Sendable (Duration) async throws -> Void = { _ in }
    ) async {
        let waiter = Waiter<Void>()
        let isIdle = writes.withLock { writes in
            if writes.running.isEmpty { return true }
            writes.waiters.append((writes.last, waiter))
            return false
        }
        if isIdle { return }
        // Owned and cancelled here. An error means that the wait ended in time.
        let timer = limit.map { limit in Task { if (try? await sleep(limit)) != nil { waiter.resume() } } }
        defer { timer?.cancel() }
        await waiter.wait()
        writes.withLock { writes in writes.waiters.removeAll { $0.waiter === waiter } }
    }

    // MARK: Equal requests

    /// The number of exchanges so far whose responses are stored.
    var storedCount: UInt64 { storedEnds.load(ordering: .acquiring) }

    /// Joins the requests of a key: as the one that is sent, or as one that waits for it.
    ///
    /// - Parameter count: ``storedCount`` before the look-up that found nothing. Returns nil if an equal request has
    ///   ended since, and its response is stored: another look-up finds it.
    func join(_ key: SharingKey, after count: UInt64? = nil) -> SharingRole? {
        let (role, check) = waits.withLock { waits -> (SharingRole?, WaitingRequests.Check?) in
            if let requests = waits[key] {
                let (waiter, exchange, check) = requests.add()
                return (.waiter(waiter, exchange), check)
            }
            if let count, waits.hasStored(key.key, after: count) { return (nil, nil) }
            return (.sender(SharedExchange(waits.begin(key), of: key, in: self)), nil)
        }
        // It can resume the waiter at once.
        check?()
        return role
    }

    /// Begins an exchange whose response is going to be stored, so that equal requests wait until it is. Returns nil if
    /// there is one already.
    func begin(_ key: SharingKey) -> SharedExchange? {
        waits.withLock { waits in
            waits[key] == nil ? SharedExchange(waits.begin(key), of: key, in: self) : nil
        }
    }

    /// Ends the wait of a request.
    func leave(_ waiter: Waiter<SharingEnd>, of key: SharingKey, _ end: SharingEnd) {
        waits.withLock { waits in _ = waits[key]?.remove(waiter) }
        waiter.resume(returning: end)
    }

    /// Ends an exchange, and the wait of the equal requests.
    func end(_ key: SharingKey, _ requests: WaitingRequests, as end: SharingEnd) {
        waits.withLock { waits in
            if end == .stored {
                waits.recordStored(key.key, as: storedEnds.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue)
            }
            waits.end(key)
        }
        for waiter in requests.takeAll() { waiter.resume(returning: end) }
    }

    /// The number of requests that wait for equal ones. For tests.
    var waitingRequests: Int { waits.withLock { $0.waiterCount } }

    /// Notes that the response to a request cannot be stored, so that equal requests do not wait for each other.
    func noteUnstorable(_ key: SharingKey, at now: CacheTime) {
        unstorable.withLock { $0.add(key, for: Self.unstorableTime, at: now) }
    }

    /// Notes that the response to a request is stored.
    func noteStored(_ key: SharingKey) { unstorable.withLock { $0.remove(key) } }

    /// Returns whether the response to an equal request could not be stored a short time ago.
    func isUnstorable(_ key: SharingKey, at now: CacheTime) -> Bool {
        unstorable.withLock { $0.contains(key, at: now) }
    }
}
