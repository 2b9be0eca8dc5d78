import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The state that callers share with the cache's thread: the entries, the queued values, and the commands for the
/// thread. One lock guards it, and is held for tens of nanoseconds.
final class DiskSharedState: Sendable {
    /// The place where a look-up found a value.
    enum Found: Sendable {
        case queued(DiskItem)
        case stored(DiskIndex.Location)
    }

    /// A request to the thread to read a value that is stored in the index.
    struct ReadRequest: Sendable {
        /// The number of a read-only folder; nil for the cache's own index.
        let readOnlyFolder: Int?
        let location: DiskIndex.Location
        let key: DiskKey
        let reply: @Sendable (DiskReadResult) -> Void
    }

    struct QueuedItem {
        let item: DiskItem
        let sequence: Int
    }

    struct State {
        var index = DiskIndex()
        /// The calls for the files of the open folder, for readers; nil before it was opened.
        var files: (any DiskFileSystem)?
        var commandQueue = DiskCommandQueue()
        var readRequests: [ReadRequest] = []
        var queued: [UInt64: QueuedItem] = [:]
        var queuedBytes = 0
        /// The first failure of a queued value since the last `flush`.
        var queueFailure: DiskCacheError?
        var hasFlushPending = false
        var isClosed = false
    }

    let state = Lock(State())
    private let seed = Atomic<UInt64>(0)
    private let mask: UInt64

    init(mask: UInt64) { self.mask = mask }

    var hasher: DiskKeyHasher { DiskKeyHasher(seed: seed.load(ordering: .acquiring), mask: mask) }

    /// The seed of the hashes so far; nil before the first opening.
    var presentSeed: UInt64? {
        let seed = seed.load(ordering: .acquiring)
        return seed == 0 ? nil : seed
    }

    func setSeed(_ seed: UInt64) { self.seed.store(seed, ordering: .releasing) }

    func contains(_ hash: UInt64, now: Int64) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            if let queued = state.queued[hash] { return queued.item.expires > now }
            return state.index.find(hash, now: now) != nil
        }
    }

    /// Returns the number of a stored value; nil without one, and while it is queued.
    func number(_ key: DiskKey, now: Int64) -> Int64? {
        state.withLock { state in
            guard !state.isClosed, state.queued[key.hash]?.item.key != key else { return nil }
            return state.index.find(key.hash, now: now)?.id
        }
    }

    /// Looks a key up, and counts that as a use. Also returns whether so many entries were used that the caller must
    /// request a flush of their order.
    func lookUp(_ key: DiskKey, now: Int64) throws(DiskCacheError) -> (found: Found?, mustFlush: Bool) {
        let result = state.withLock { state -> (found: Found?, mustFlush: Bool)? in
            guard !state.isClosed else { return nil }
            if let queued = state.queued[key.hash], queued.item.key == key {
                return (queued.item.expires > now ? .queued(queued.item) : nil, false)
            }
            let found = state.index.use(key.hash, now: now).map { Found.stored($0) }
            guard state.index.unsavedUseCount >= Self.unsavedUseLimit, !state.hasFlushPending else {
                return (found, false)
            }
            state.hasFlushPending = true
            return (found, true)
        }
        guard let result else { throw Self.closed }
        return result
    }

    /// The maximum number of uses whose order a killed process loses.
    static let unsavedUseLimit = 1_024

    /// Returns the next work of the thread. If there is none, the next command wakes the thread.
    func next(limit: Int) -> (readRequests: [ReadRequest], action: DiskCommandQueue.Action) {
        state.withLock { state in
            let readRequests = state.readRequests
            if !readRequests.isEmpty { state.readRequests = [] }
            let action = state.commandQueue.take(limit: limit)
            if case .idle = action, readRequests.isEmpty { state.commandQueue.sleep() }
            return (readRequests, action)
        }
    }

    /// Removes the queued values of completed commands. They are in the index now, or lost.
    func complete(_ outcomes: [(command: DiskCommandQueue.Command, failure: DiskCacheError?)]) {
        state.withLock { state in
            for (command, failure) in outcomes {
                if case .flush = command.request { state.hasFlushPending = false }
                guard case .insert(let items) = command.request else { continue }
                for item in items {
                    guard let queued = state.queued[item.key.hash], queued.sequence <= command.sequence else {
                        continue
                    }
                    state.queued[item.key.hash] = nil
                }
                guard command.queuedBytes > 0 else { continue }
                state.queuedBytes -= command.queuedBytes
                if state.queueFailure == nil { state.queueFailure = failure }
            }
        }
    }

    /// Adds a command. Returns whether the caller must wake the thread.
    func push(
        _ request: DiskCommandQueue.Request, reply: @escaping @Sendable (Result<Void, DiskCacheError>) -> Void
    ) throws(DiskCacheError) -> Bool {
        let mustWake = state.withLock { state -> Bool? in
            guard !state.isClosed else { return nil }
            switch request {
            // Readers no longer see values that were queued before, although their commands still wait.
            case .remove(let key): state.queued[key.hash] = nil
            case .removeAll: state.queued.removeAll()
            default: break
            }
            return state.commandQueue.push(request, reply: reply).mustWake
        }
        guard let mustWake else { throw Self.closed }
        return mustWake
    }

    /// Stages an item, and adds the command that commits it. Returns whether the caller must wake the thread.
    func enqueue(
        _ item: DiskItem, limit: Int, reply: @escaping @Sendable (Result<Void, DiskCacheError>) -> Void
    ) throws(DiskCacheError) -> Bool {
        let bytes = item.size + item.metadata.count + item.key.bytes.count
        let result = state.withLock { state -> Result<Bool, DiskCacheError> in
            guard !state.isClosed else { return .failure(Self.closed) }
            guard state.queuedBytes + bytes <= limit else {
                return .failure(
                    DiskCacheError(.queueFull, "\(state.queuedBytes) bytes are queued, \(limit) are allowed"))
            }
            let (sequence, mustWake) = state.commandQueue.push(.insert([item]), queuedBytes: bytes, reply: reply)
            state.queued[item.key.hash] = QueuedItem(item: item, sequence: sequence)
            state.queuedBytes += bytes
            return .success(mustWake)
        }
        return try result.get()
    }

    /// Adds a read request. Returns whether the caller must wake the thread; nil if the cache is closed.
    func push(_ request: ReadRequest) -> Bool? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            state.readRequests.append(request)
            return state.commandQueue.wake()
        }
    }

    static let closed = DiskCacheError(.closed, "the cache was closed")
}
