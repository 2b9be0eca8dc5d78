import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Collects a copy of a body while its reader reads it, and stores it at the end. A body that exceeds the limit of the
/// store is given up, and the reader never notices.
final class BodyRecording: BodyRecorder {
    /// The entry that is stored.
    enum Purpose: Sendable {
        case response(CacheEntry, replacing: [CacheEntry])
        case combination(CacheCombination)

        /// The entries that the response outdates even if it cannot be stored itself.
        var outdated: [CacheEntry] {
            if case .response(_, let replacing) = self { replacing } else { [] }
        }
    }

    private struct State {
        var body = Data()
        var hasEnd = false
        var isGivenUp = false
    }

    private let purpose: Purpose
    private let generation: UInt64
    private let trace: TraceRecord
    private let cache: HTTPCache
    private let store: any EntryStore
    private let sender: SharedExchange?
    private let state = Lock(State())

    init(_ purpose: Purpose, _ received: CacheExchange.Received, of exchange: CacheExchange) {
        self.purpose = purpose
        cache = exchange.cache
        store = exchange.store
        sender = received.forwarding.sender
        generation = received.generation
        trace = received.trace
        trace.finish(.arriving, isStored: false)
    }

    // MARK: The reader's side

    func receive(_ chunks: [Data]) {
        let limit = cache.entryByteLimit
        let isTooLong = state.withLock { state -> Bool in
            if state.isGivenUp { return false }
            for chunk in chunks { state.body.append(chunk) }
            guard state.body.count > limit else { return false }
            state.isGivenUp = true
            state.body = Data()
            return true
        }
        if isTooLong { giveUp(.bodyTooLarge) }
    }

    func reachEnd() { state.withLock { $0.hasEnd = true } }

    func finish(isWhole: Bool, isDamaged: Bool) {
        let end = state.withLock { state -> (body: Data, hasEnd: Bool)? in
            if state.isGivenUp { return nil }
            state.isGivenUp = true
            defer { state.body = Data() }
            return (state.body, state.hasEnd)
        }
        guard let end else { return }
        if isDamaged { return giveUp(.damaged) }
        let isWhole = isWhole && end.hasEnd
        switch purpose {
        case .response(let entry, let replacing):
            guard let entry = CachePolicy.finish(entry, received: Int64(end.body.count), isComplete: isWhole) else {
                return giveUp(.incomplete)
            }
            insert(entry, end.body, replacing: replacing)
        case .combination(let combination):
            guard isWhole else { return giveUp(.incomplete) }
            combine(combination, end.body)
        }
    }

    /// Stores a body that has arrived as a whole; nil for one that failed.
    func takeWhole(_ body: Data?) {
        guard let body else { return finish(isWhole: false, isDamaged: false) }
        guard body.count <= cache.entryByteLimit else { return giveUp(.bodyTooLarge) }
        // The store shares the memory of the body with its reader.
        state.withLock { $0 = State(body: body, hasEnd: true) }
        finish(isWhole: true, isDamaged: false)
    }

    // MARK: The store's side

    /// Stores an entry. The reader does not wait for the disk.
    private func insert(_ entry: CacheEntry, _ body: Data, replacing: [CacheEntry]) {
        guard cache.shared.reserve(body.count) else { return giveUp(.storeBusy) }
        if let memory = store as? MemoryEntryStore {
            let isStored = memory.insertNow(entry, body: body, replacing: replacing, generation: generation)
            return stored(isStored, body.count)
        }
        // Ends with the write.
        Task {
            stored(
                await store.insert(entry, body: body, replacing: replacing, generation: generation), body.count)
        }
    }

    /// Stores the received part together with the stored one.
    private func combine(_ combination: CacheCombination, _ received: Data) {
        let range = 0..<combination.stored.properties.storedLength
        if let memory = store as? MemoryEntryStore {
            return combine(combination, received, with: memory.bodyNow(of: combination.stored, range: range))
        }
        // Ends with the read.
        Task { combine(combination, received, with: await store.body(of: combination.stored, range: range)) }
    }

    private func combine(_ combination: CacheCombination, _ received: Data, with stored: Data?) {
        guard let stored, let body = combination.body(stored: stored, received: received) else {
            return giveUp(.incomplete)
        }
        insert(combination.entry, body, replacing: [combination.stored])
    }

    private func stored(_ isStored: Bool, _ count: Int) {
        cache.shared.release(count)
        trace.finish(isStored ? .stored : .storeFailed, isStored: isStored)
        if isStored { cache.shared.countStored() }
        sender?.end(isStored ? .stored : .notShared)
    }

    /// Stores nothing. A newer response outdates the stored ones all the same.
    private func giveUp(_ reason: CacheReason) {
        trace.finish(reason, isStored: false)
        let outdated = purpose.outdated
        guard !outdated.isEmpty else {
            sender?.end(.notShared)
            return
        }
        if let memory = store as? MemoryEntryStore {
            memory.removeNow(outdated)
            sender?.end(.notShared)
            return
        }
        // Ends with the removal.
        Task { [store, sender] in
            await store.remove(outdated)
            sender?.end(.notShared)
        }
    }
}
