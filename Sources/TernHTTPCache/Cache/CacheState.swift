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
        var missed: [CacheInvalidation] = []
        /// Whether there were more than are kept.
        var hasMissedMore = false
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
    private static let missedLimit = 1_024

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

    /// Sets the store of a folder once it has applied the invalidations that were missed while the folder could not be
    /// opened. Not called by two at once.
    func openFolder(with store: DiskEntryStore) async {
        while true {
            let missed = opening.withLock { opening -> (invalidations: [CacheInvalidation], isAll: Bool)? in
                if opening.missed.isEmpty, !opening.hasMissedMore {
                    opening.store = store
                    return nil
                }
                return (opening.missed, opening.hasMissedMore)
            }
            guard let missed else { return }
            if missed.isAll { await store.removeAll() }
            for invalidation in missed.invalidations { await store.invalidate(invalidation) }
            // Those that were missed meanwhile stay for the next turn.
            opening.withLock { opening in
                opening.missed.removeFirst(min(missed.invalidations.count, opening.missed.count))
                if missed.isAll { opening.hasMissedMore = false }
            }
        }
    }

    /// Notes what an unsafe request invalidates while the folder is not open. Returns the store if it is open, which
    /// must be told.
    func missed(_ invalidations: [CacheInvalidation]) -> (any EntryStore)? {
        opening.withLock { opening in
            if let store = opening.store { return store }
            opening.missed += invalidations
            // Beyond the limit, everything is removed when the folder is opened.
            if opening.missed.count > Self.missedLimit { (opening.missed, opening.hasMissedMore) = ([], true) }
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
        let joined = waits.withLock { waits -> (role: SharingRole, check: WaitTable.Check?)? in
            if let (waiter, exchange, check) = waits.wait(for: key) { return (.waiter(waiter, exchange), check) }
            if let count, waits.hasStored(key.key, after: count) { return nil }
            return (.sender(SharedExchange(waits.begin(key), of: key, in: self)), nil)
        }
        // It can resume the waiter at once.
        joined?.check?()
        return joined?.role
    }

    fileprivate func setExchange(_ key: SharingKey, number: UInt64, _ exchange: NetworkExchange) {
        waits.withLock { $0.setExchange(key, number: number, exchange) }
    }

    /// Begins an exchange whose response is going to be stored, so that equal requests wait until it is. Returns nil if
    /// there is one already.
    func begin(_ key: SharingKey) -> SharedExchange? {
        waits.withLock { waits in
            waits.isTaken(key) ? nil : SharedExchange(waits.begin(key), of: key, in: self)
        }
    }

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

    fileprivate func setCheck(_ key: SharingKey, number: UInt64, _ check: @escaping WaitTable.Check) {
        if waits.withLock({ $0.setCheck(key, number: number, check) }) { check() }
    }

    /// The number of requests that wait for equal ones. For tests.
    var waitingRequests: Int { waits.withLock { $0.waiterCount } }

    func leave(_ waiter: Waiter<SharingEnd>, of key: SharingKey, _ end: SharingEnd) {
        waits.withLock { $0.remove(waiter, of: key) }
        waiter.resume(returning: end)
    }

    fileprivate func end(_ key: SharingKey, number: UInt64, as end: SharingEnd) {
        let waiters = waits.withLock { waits in
            if end == .stored {
                waits.recordStored(key.key, as: storedEnds.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue)
            }
            return waits.end(key, number: number)
        }
        for waiter in waiters { waiter.resume(returning: end) }
    }
}

/// Identifies equal requests.
struct SharingKey: Hashable, Sendable {
    let key: CacheKey
    let credentials: String?
    /// The fields that select among the known variants of the response.
    let variant: VarySelection
}

/// The end of an exchange for those who wait for it.
enum SharingEnd: Sendable {
    /// The response is stored: look again.
    case stored
    /// The response is not for others: send the own request.
    case notShared
    /// The exchange was cancelled or paused, or its response was dropped: one of those who wait takes its place.
    case abandoned
    /// The waiting task was cancelled.
    case cancelled
    /// The total time limit of the waiting task has passed.
    case timedOut
}

/// The part of a request among equal ones.
enum SharingRole: Sendable {
    case sender(SharedExchange)
    /// The exchange is nil if it is not on its way: the response is being written.
    case waiter(Waiter<SharingEnd>, NetworkExchange?)
}

/// An exchange that equal requests wait for. Dropping it without an end abandons it.
final class SharedExchange: Sendable {
    private let number: UInt64
    private let key: SharingKey
    private let state: CacheState
    private let hasEnded = Atomic<Bool>(false)
    private let isAbandoned = Atomic<Bool>(false)

    fileprivate init(_ number: UInt64, of key: SharingKey, in state: CacheState) {
        self.number = number
        self.key = key
        self.state = state
    }

    deinit { end(.abandoned) }

    /// Calls a function as soon as an equal request waits: at once, or when one begins to.
    func whenAwaited(_ check: @escaping @Sendable () -> Void) { state.setCheck(key, number: number, check) }

    /// Sets the exchange, whose progress those who wait see.
    func begin(_ exchange: NetworkExchange) { state.setExchange(key, number: number, exchange) }

    /// Turns a later `end(_:)` into `.abandoned`, so that one of the waiting requests is sent.
    func willBeAbandoned() { isAbandoned.store(true, ordering: .releasing) }

    /// Ends the wait of the equal requests. Only the first call has an effect.
    func end(_ end: SharingEnd) {
        guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
        state.end(key, number: number, as: isAbandoned.load(ordering: .acquiring) ? .abandoned : end)
    }
}

/// The requests that wait for equal ones. Pure: its methods return the waiters to resume.
struct WaitTable {
    /// Ends the wait if the response turns out not to be storable.
    typealias Check = @Sendable () -> Void

    private struct Exchange {
        let number: UInt64
        var exchange: NetworkExchange?
        /// Called when a request begins to wait, until the exchange ends.
        var check: Check?
        var waiters: [Waiter<SharingEnd>] = []
    }

    private static let bucketCount = 64

    private var exchanges: [SharingKey: Exchange] = [:]
    private var lastNumber: UInt64 = 0
    /// The last stored exchange of each bucket of keys. Keys that share a bucket cost a look-up, and nothing else.
    private var lastStored = [UInt64](repeating: 0, count: bucketCount)

    /// Records that the response of an exchange is stored. The numbers of such exchanges increase.
    mutating func recordStored(_ key: CacheKey, as number: UInt64) { lastStored[Self.bucket(of: key)] = number }

    /// Returns whether a response for a key may have been stored after the exchange with a number.
    func hasStored(_ key: CacheKey, after number: UInt64) -> Bool { lastStored[Self.bucket(of: key)] > number }

    private static func bucket(of key: CacheKey) -> Int { Int(UInt(bitPattern: key.hashValue) % UInt(bucketCount)) }

    func isTaken(_ key: SharingKey) -> Bool { exchanges[key] != nil }

    var waiterCount: Int { exchanges.values.reduce(0) { $0 + $1.waiters.count } }

    /// Sets the function to call when a request begins to wait. Returns whether one waits already.
    mutating func setCheck(_ key: SharingKey, number: UInt64, _ check: @escaping Check) -> Bool {
        guard let exchange = exchanges[key], exchange.number == number else { return false }
        exchanges[key]?.check = check
        return !exchange.waiters.isEmpty
    }

    /// Begins an exchange. Returns its number.
    mutating func begin(_ key: SharingKey) -> UInt64 {
        lastNumber += 1
        exchanges[key] = Exchange(number: lastNumber)
        return lastNumber
    }

    mutating func setExchange(_ key: SharingKey, number: UInt64, _ exchange: NetworkExchange) {
        if exchanges[key]?.number == number { exchanges[key]?.exchange = exchange }
    }

    /// Returns a waiter for the exchange of a key, the exchange, and the function to call then; nil without an
    /// exchange.
    mutating func wait(for key: SharingKey) -> (Waiter<SharingEnd>, NetworkExchange?, Check?)? {
        guard let exchange = exchanges[key] else { return nil }
        let waiter = Waiter<SharingEnd>()
        exchanges[key]?.waiters.append(waiter)
        return (waiter, exchange.exchange, exchange.check)
    }

    mutating func remove(_ waiter: Waiter<SharingEnd>, of key: SharingKey) {
        exchanges[key]?.waiters.removeAll { $0 === waiter }
    }

    /// Ends an exchange. Returns those who waited for it.
    mutating func end(_ key: SharingKey, number: UInt64) -> [Waiter<SharingEnd>] {
        guard let exchange = exchanges[key], exchange.number == number else { return [] }
        exchanges[key] = nil
        return exchange.waiters
    }
}
