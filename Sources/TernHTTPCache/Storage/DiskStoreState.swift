import TernCache
import TernConcurrency

/// The state that all stores over one `DiskCache` of this process share: the changes under way, the invalidations, and
/// the rules of `No-Vary-Search`. Two HTTP caches of one folder would otherwise overwrite each other's changes of a
/// record.
final class DiskStoreState: Sendable {
    struct Values {
        var log = InvalidationLog()
        var order = StoringOrder()
        var pending = PendingWrites()
        var search = SearchRules()
        /// The names of the records of rules that were read.
        var readRules: Set<String> = []

        /// Returns whether the response to a request is stored: it was not invalidated, and no response to a later
        /// request is known.
        func isStorable(_ entry: CacheEntry, sent number: UInt64) -> Bool {
            log.allows(entry, since: number) && order.isLatest(entry, sent: number)
        }

        /// Returns the stored entries of a key with those that were being written before they were read: a write that
        /// ends meanwhile may not be among the stored ones.
        func with(_ pending: PendingWrites, _ stored: [CacheEntry], of key: CacheKey) -> [CacheEntry] {
            pending.isEmpty ? stored : pending.applied(to: stored, of: key) { isStorable($0, sent: $1) }
        }

        /// Records an invalidation of everything. The stored rules are removed too, so they are read and stored again.
        mutating func recordAll() {
            log.recordAll()
            search = SearchRules()
            readRules = []
        }
    }

    /// A record as it is on the disk.
    struct NumberedRecord: Sendable {
        let number: Int64
        let record: CacheRecord
    }

    private struct Weak {
        weak var state: DiskStoreState?
    }

    /// Keeps the identity of the cache from being used again while the state is in the table.
    private let cache: DiskCache
    /// Read by look-ups without a wait.
    let values = Lock(Values())
    /// The records that were read or written last, with the numbers of their values in the cache: a record is the
    /// stored one as long as the value has that number.
    let records: MemoryCache<CacheKey, NumberedRecord>
    /// The changes of records under way.
    private struct Changes {
        /// The changes that wait for a change of the same record. A record without a change is not in the table.
        var waiting: [String: [Waiter<Void>]] = [:]
        /// Whether a removal of many records runs, for which all other changes wait.
        var isExclusive = false
        /// Those who wait for the end of the removal.
        var excluded: [Waiter<Void>] = []

        /// Begins a change of a record, or returns a waiter for the change before it.
        mutating func begin(_ name: String) -> Waiter<Void>? {
            guard waiting[name] != nil else {
                waiting[name] = []
                return nil
            }
            let waiter = Waiter<Void>()
            waiting[name]?.append(waiter)
            return waiter
        }

        mutating func exclude() -> Waiter<Void> {
            let waiter = Waiter<Void>()
            excluded.append(waiter)
            return waiter
        }
    }

    private let changes = Lock(Changes())

    private static let states = Lock<[ObjectIdentifier: Weak]>([:])

    /// The maximum number of bytes of the records in memory.
    private static let recordLimit = 8 << 20

    private init(_ cache: DiskCache) {
        self.cache = cache
        var memory = MemoryCacheConfiguration()
        memory.limits.cost = Self.recordLimit
        records = MemoryCache(memory) { $0.record.cost }
    }

    /// Returns the state of a cache, which lives as long as a store uses it.
    static func of(_ cache: DiskCache) -> DiskStoreState {
        states.withLock { states in
            if let state = states[ObjectIdentifier(cache)]?.state { return state }
            states = states.filter { $0.value.state != nil }
            let state = DiskStoreState(cache)
            states[ObjectIdentifier(cache)] = Weak(state: state)
            return state
        }
    }

    /// Waits until no other change of a record runs. A change that has begun is completed, so that cancellation has no
    /// effect.
    func lock(_ name: String) async {
        while true {
            let (excluded, waiter) = changes.withLock { changes -> (Waiter<Void>?, Waiter<Void>?) in
                changes.isExclusive ? (changes.exclude(), nil) : (nil, changes.begin(name))
            }
            guard let excluded else {
                await waiter?.wait(onCancel: {})
                return
            }
            await excluded.wait(onCancel: {})
        }
    }

    func unlock(_ name: String) {
        let next = changes.withLock { changes -> Waiter<Void>? in
            guard let first = changes.waiting[name]?.first else {
                changes.waiting[name] = nil
                return nil
            }
            changes.waiting[name]?.removeFirst()
            return first
        }
        next?.resume()
    }

    /// Removes many records: once all changes that run now have ended, and before any other begins. Otherwise, a change
    /// could write a removed record back that it read before.
    func exclusively<Value>(_ removal: () async -> Value) async -> Value {
        while let other = changes.withLock({ changes -> Waiter<Void>? in
            if changes.isExclusive { return changes.exclude() }
            changes.isExclusive = true
            return nil
        }) {
            await other.wait(onCancel: {})
        }
        for name in changes.withLock({ Array($0.waiting.keys) }) {
            // Behind those that wait already.
            await changes.withLock { $0.begin(name) }?.wait(onCancel: {})
            unlock(name)
        }
        let value = await removal()
        let excluded = changes.withLock { changes -> [Waiter<Void>] in
            changes.isExclusive = false
            defer { changes.excluded = [] }
            return changes.excluded
        }
        for waiter in excluded { waiter.resume() }
        return value
    }
}
