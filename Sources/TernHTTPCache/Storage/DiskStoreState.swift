import TernCache
import TernConcurrency

/// The state that all stores over one `DiskCache` of this process share: the changes under way, the invalidations, and the
/// rules of `No-Vary-Search`. Two HTTP caches of one folder would otherwise overwrite each other's changes of a record.
final class DiskStoreState: Sendable {
    struct Values {
        var log = InvalidationLog()
        var search = SearchRules()
        /// The names of the records of rules that were read.
        var readRules: Set<String> = []

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
    /// The records that were read or written last, with the numbers of their values in the cache: a record is the stored one
    /// as long as the value has that number.
    let records: MemoryCache<CacheKey, NumberedRecord>
    /// The changes that wait for a change of the same record. A record without a change is not in the table.
    private let waiting = Lock<[String: [Waiter<Void>]]>([:])

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
        let waiter = waiting.withLock { waiting -> Waiter<Void>? in
            guard waiting[name] != nil else {
                waiting[name] = []
                return nil
            }
            let waiter = Waiter<Void>()
            waiting[name]?.append(waiter)
            return waiter
        }
        await waiter?.wait(onCancel: {})
    }

    func unlock(_ name: String) {
        let next = waiting.withLock { waiting -> Waiter<Void>? in
            guard let first = waiting[name]?.first else {
                waiting[name] = nil
                return nil
            }
            waiting[name]?.removeFirst()
            return first
        }
        next?.resume()
    }

    /// Waits until all changes that run now have ended.
    func changesEnded() async {
        for name in waiting.withLock({ Array($0.keys) }) {
            await lock(name)
            unlock(name)
        }
    }
}
