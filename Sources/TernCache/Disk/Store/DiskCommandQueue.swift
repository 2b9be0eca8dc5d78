import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The commands that wait for the cache's thread, in the order of their arrival. Selects those that share a
/// transaction. A pure value.
struct DiskCommandQueue {
    enum Request: Sendable {
        /// Inserts one item, or those of `insert(contentsOf:)`, whose keys differ: all or none.
        case insert([DiskItem])
        case remove(DiskKey)
        /// Removes an entry that was found damaged, unless it was replaced.
        case discard(hash: UInt64, id: Int64)
        case removeAll
        case removeTag(Data)
        case trim(bytes: Int)
        case sweep
        /// Writes the order of use.
        case flush
    }

    struct Command: Sendable {
        let request: Request
        let sequence: Int
        /// The number of bytes that a queued value holds until it is committed.
        let queuedBytes: Int
        let reply: @Sendable (Result<Void, DiskCacheError>) -> Void
    }

    enum Action {
        /// Commits all commands in one transaction.
        case commit([Command])
        /// Performs one command alone.
        case perform(Command)
        case idle
    }

    private var commands = FIFO<Command>()
    private var isAwake = false
    private(set) var nextSequence = 0

    var isEmpty: Bool { commands.isEmpty }

    /// Adds a command. Returns its sequence number, and whether the caller must wake the thread.
    mutating func push(
        _ request: Request, queuedBytes: Int = 0, reply: @escaping @Sendable (Result<Void, DiskCacheError>) -> Void
    ) -> (sequence: Int, mustWake: Bool) {
        nextSequence += 1
        commands.append(Command(request: request, sequence: nextSequence, queuedBytes: queuedBytes, reply: reply))
        return (nextSequence, wake())
    }

    /// Marks the thread as awake. Returns whether it was asleep.
    mutating func wake() -> Bool {
        defer { isAwake = true }
        return !isAwake
    }

    /// Marks the thread as asleep, because nothing is left to do. The next command wakes it.
    mutating func sleep() { isAwake = false }

    /// Removes and returns the commands of the next transaction: in order, while no key occurs twice, up to `limit`
    /// bytes of log. A command that concerns more than its keys is performed alone.
    mutating func take(limit: Int) -> Action {
        var batch: [Command] = []
        var hashes: Set<UInt64> = []
        var sum = 0
        while let command = commands.first {
            let (isAlone, keys, cost) = Self.batching(of: command.request)
            if isAlone {
                guard batch.isEmpty else { break }
                _ = commands.popFirst()
                return .perform(command)
            }
            guard batch.isEmpty || (sum + cost <= limit && hashes.isDisjoint(with: keys)) else { break }
            hashes.formUnion(keys)
            sum += cost
            batch.append(command)
            _ = commands.popFirst()
        }
        return batch.isEmpty ? .idle : .commit(batch)
    }

    /// Returns whether a request is performed alone, the hashes of its keys, and the maximum number of log bytes.
    private static func batching(of request: Request) -> (isAlone: Bool, keys: [UInt64], cost: Int) {
        switch request {
        case .insert(let items): (false, items.map(\.key.hash), items.reduce(0) { $0 + 2 * $1.rowBytes + 1_024 })
        case .remove(let key): (false, [key.hash], DiskBudget.removalCost)
        case .discard(let hash, _): (false, [hash], DiskBudget.removalCost)
        case .removeAll, .removeTag, .trim, .sweep, .flush: (true, [], 0)
        }
    }
}
