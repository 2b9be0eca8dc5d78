import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What callers and the cache's thread both touch, under one lock that is held for some tens of nanoseconds: the entries,
/// what is staged, and what waits for the thread.
final class DiskShared: Sendable {
    /// Where a look-up leads.
    enum Place: Sendable {
        case staged(DiskItem)
        case stored(DiskIndex.Location)
    }

    /// A value in the index to be read by the thread.
    struct Reading: Sendable {
        /// Nil for the cache's own index, else the number of a read-only folder.
        let catalog: Int?
        let location: DiskIndex.Location
        let key: DiskKey
        let reply: @Sendable (DiskReading) -> Void
    }

    struct Staged {
        let item: DiskItem
        let sequence: Int
    }

    struct State {
        var index = DiskIndex()
        var mailbox = DiskMailbox()
        var readings: [Reading] = []
        var staged: [UInt64: Staged] = [:]
        var stagedBytes = 0
        /// The first failure of a staged value since the last `flush`.
        var stagingFailure: DiskCacheError?
        var hasFlushPending = false
        var isClosed = false
    }

    let state = Lock(State())
    private let seed = Atomic<UInt64>(0)
    private let mask: UInt64

    init(mask: UInt64) { self.mask = mask }

    var hasher: DiskKeyHasher { DiskKeyHasher(seed: seed.load(ordering: .acquiring), mask: mask) }

    func setSeed(_ seed: UInt64) { self.seed.store(seed, ordering: .releasing) }

    func contains(_ hash: UInt64, now: Int64) -> Bool {
        state.withLock { state in
            if let staged = state.staged[hash] { return staged.item.expires > now }
            return state.index.find(hash, now: now) != nil
        }
    }

    /// Where a key's value is, and whether so many entries were used that their order is to be written.
    func use(_ key: DiskKey, now: Int64) -> (place: Place?, mustFlush: Bool) {
        state.withLock { state in
            if let staged = state.staged[key.hash], staged.item.key == key {
                return (staged.item.expires > now ? .staged(staged.item) : nil, false)
            }
            let place = state.index.use(key.hash, now: now).map { Place.stored($0) }
            guard state.index.touchedCount >= Self.touchedLimit, !state.hasFlushPending else { return (place, false) }
            state.hasFlushPending = true
            return (place, true)
        }
    }

    /// What a killed process loses of the order of use, at most.
    static let touchedLimit = 1_024

    /// What the thread does next; when nothing is left, the next letter wakes it.
    func next(limit: Int) -> (readings: [Reading], action: DiskMailbox.Action) {
        state.withLock { state in
            let readings = state.readings
            if !readings.isEmpty { state.readings = [] }
            let action = state.mailbox.take(limit: limit)
            if case .idle = action, readings.isEmpty { state.mailbox.sleep() }
            return (readings, action)
        }
    }

    /// After a letter's end: what it had staged is in the index now, or lost.
    func settle(_ letters: [(letter: DiskMailbox.Letter, failure: DiskCacheError?)]) {
        state.withLock { state in
            for (letter, failure) in letters {
                if case .flush = letter.request { state.hasFlushPending = false }
                guard case .insert(let items) = letter.request else { continue }
                for item in items {
                    guard let staged = state.staged[item.key.hash], staged.sequence <= letter.sequence else { continue }
                    state.staged[item.key.hash] = nil
                }
                guard letter.stagedBytes > 0 else { continue }
                state.stagedBytes -= letter.stagedBytes
                if state.stagingFailure == nil { state.stagingFailure = failure }
            }
        }
    }

    /// Adds a letter. Whether the thread must be woken.
    func push(
        _ request: DiskMailbox.Request, reply: @escaping @Sendable (Result<Void, DiskCacheError>) -> Void
    ) throws(DiskCacheError) -> Bool {
        let mustWake = state.withLock { state -> Bool? in
            guard !state.isClosed else { return nil }
            switch request {
            // What was staged before is removed at once for readers; its letter is still on its way.
            case .remove(let key): state.staged[key.hash] = nil
            case .removeAll: state.staged.removeAll()
            default: break
            }
            return state.mailbox.push(request, reply: reply).mustWake
        }
        guard let mustWake else { throw Self.closed }
        return mustWake
    }

    func stage(
        _ item: DiskItem, limit: Int, reply: @escaping @Sendable (Result<Void, DiskCacheError>) -> Void
    ) throws(DiskCacheError) -> Bool {
        let bytes = item.size + item.metadata.count + item.key.bytes.count
        let result = state.withLock { state -> Result<Bool, DiskCacheError> in
            guard !state.isClosed else { return .failure(Self.closed) }
            guard state.stagedBytes + bytes <= limit else {
                return .failure(
                    DiskCacheError(.stagingFull, "\(state.stagedBytes) bytes are staged, \(limit) are allowed"))
            }
            let (sequence, mustWake) = state.mailbox.push(.insert([item]), stagedBytes: bytes, reply: reply)
            state.staged[item.key.hash] = Staged(item: item, sequence: sequence)
            state.stagedBytes += bytes
            return .success(mustWake)
        }
        return try result.get()
    }

    /// Adds a reading. Whether the thread must be woken; nil if the cache is closed.
    func push(_ reading: Reading) -> Bool? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            state.readings.append(reading)
            return state.mailbox.wake()
        }
    }

    static let closed = DiskCacheError(.closed, "the cache was closed")
}
