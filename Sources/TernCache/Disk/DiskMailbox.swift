import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What waits for the cache's thread, in the order in which it came, and which of it shares a transaction. Pure.
struct DiskMailbox {
    enum Request: Sendable {
        /// One item, or those of `insert(contentsOf:)`, whose keys differ: all or none.
        case insert([DiskItem])
        case remove(DiskKey)
        /// An entry found damaged, if it is still that one.
        case discard(hash: UInt64, id: Int64)
        case removeAll
        case removeTag(Data)
        case trim(bytes: Int)
        case sweep
        /// Writes the order of use.
        case flush
    }

    struct Letter: Sendable {
        let request: Request
        let sequence: Int
        /// Bytes that a staged value holds until it is committed.
        let stagedBytes: Int
        let reply: @Sendable (Result<Void, DiskCacheError>) -> Void
    }

    enum Action {
        /// One transaction for all of them.
        case commit([Letter])
        /// This one alone.
        case perform(Letter)
        case idle
    }

    private var letters = FIFO<Letter>()
    private var isAwake = false
    private(set) var nextSequence = 0

    var isEmpty: Bool { letters.isEmpty }

    /// Adds a letter. Its sequence number, and whether the thread must be woken.
    mutating func push(
        _ request: Request, stagedBytes: Int = 0, reply: @escaping @Sendable (Result<Void, DiskCacheError>) -> Void
    ) -> (sequence: Int, mustWake: Bool) {
        nextSequence += 1
        letters.append(Letter(request: request, sequence: nextSequence, stagedBytes: stagedBytes, reply: reply))
        return (nextSequence, wake())
    }

    /// Whether the thread sleeps, and from now on does not.
    mutating func wake() -> Bool {
        defer { isAwake = true }
        return !isAwake
    }

    /// Nothing is left to do: the next letter wakes the thread.
    mutating func sleep() { isAwake = false }

    /// The next transaction: letters in order, as long as each key stands in one of them, up to `limit` bytes of log. A
    /// letter that concerns more than its keys goes alone.
    mutating func take(limit: Int) -> Action {
        var batch: [Letter] = []
        var hashes: Set<UInt64> = []
        var sum = 0
        while let letter = letters.first {
            let (isAlone, keys, cost) = Self.facts(letter.request)
            if isAlone {
                guard batch.isEmpty else { break }
                _ = letters.popFirst()
                return .perform(letter)
            }
            guard batch.isEmpty || (sum + cost <= limit && hashes.isDisjoint(with: keys)) else { break }
            hashes.formUnion(keys)
            sum += cost
            batch.append(letter)
            _ = letters.popFirst()
        }
        return batch.isEmpty ? .idle : .commit(batch)
    }

    /// Whether it goes alone, its keys' hashes, and the bytes of log that it takes at most.
    private static func facts(_ request: Request) -> (isAlone: Bool, keys: [UInt64], cost: Int) {
        switch request {
        case .insert(let items): (false, items.map(\.key.hash), items.reduce(0) { $0 + 2 * $1.rowBytes + 1_024 })
        case .remove(let key): (false, [key.hash], DiskBudget.removalCost)
        case .discard(let hash, _): (false, [hash], DiskBudget.removalCost)
        case .removeAll, .removeTag, .trim, .sweep, .flush: (true, [], 0)
        }
    }
}
