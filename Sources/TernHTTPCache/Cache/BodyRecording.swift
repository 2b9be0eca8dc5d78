import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Copies a body while its reader reads it, and stores it at the end. A small body is collected in memory; a larger one
/// goes to the disk while it arrives. A body that exceeds the limit of the store is not stored, and its reader is not
/// affected.
final class BodyRecording: BodyRecorder {
    /// The entry that is stored.
    enum Purpose: Sendable {
        case response(CacheEntry, replacing: [CacheEntry])
        case combination(CacheCombination)

        /// The entries that the response outdates even if it cannot be stored itself.
        var outdated: [CacheEntry] {
            if case .response(_, let replacing) = self { replacing } else { [] }
        }

        /// The entry of a response that outdates those to earlier requests; nil for a part.
        var entry: CacheEntry? {
            if case .response(let entry, _) = self { entry } else { nil }
        }
    }

    private enum Phase {
        case collecting(Data)
        case writing(BodyQueue)
        case ended
    }

    private struct State {
        var phase = Phase.collecting(Data())
        var received: Int64 = 0
        var hasEnd = false
    }

    private enum Action {
        case none
        case add(BodyQueue, [Data])
        case giveUp(BodyQueue?)
    }

    /// The size in bytes above which a body goes to the disk while it arrives.
    static let collectedLimit = 256 << 10

    private let purpose: Purpose
    /// Whether the start of a body can be completed by a range. A decompressed start cannot: ranges count the bytes
    /// that the server sends.
    private let keepsPart: Bool
    private let generation: UInt64
    private let store: any EntryStore
    private let report: StoringReport
    private let state = Lock(State())

    init(_ purpose: Purpose, _ received: CacheExchange.Received, of exchange: CacheExchange) {
        self.purpose = purpose
        keepsPart =
            !exchange.exchange.deliversDecodedBodies || received.response.head.contentCodings.isEmpty
        store = exchange.store
        generation = received.generation
        report = StoringReport(purpose, received, of: exchange)
        report.trace.record(.arriving, isStored: false)
    }

    // A response that is dropped has no end. The bytes that its reader has received are kept if they can be completed.
    deinit { finish(isWhole: false, isDamaged: false, isCancelled: true) }

    // MARK: The reader's side

    func receive(_ chunks: [Data]) {
        let action = state.withLock { state -> Action in
            if case .ended = state.phase { return .none }
            state.received += chunks.reduce(0) { $0 + Int64($1.count) }
            switch state.phase {
            case .ended:
                return .none
            case .writing(let queue):
                guard state.received <= store.entryLimit else {
                    state.phase = .ended
                    return .giveUp(queue)
                }
                return .add(queue, chunks)
            case .collecting(var body):
                // Otherwise, each chunk would copy the body.
                state.phase = .ended
                guard state.received <= store.entryLimit else { return .giveUp(nil) }
                for chunk in chunks { body.append(chunk) }
                guard body.count > collectedLimit, let queue = queue() else {
                    state.phase = .collecting(body)
                    return .none
                }
                state.phase = .writing(queue)
                return .add(queue, [body])
            }
        }
        switch action {
        case .none: break
        case .add(let queue, let chunks): queue.add(chunks)
        case .giveUp(let queue?): queue.abandon(.bodyTooLarge)
        case .giveUp(nil): report.gaveUp(.bodyTooLarge)
        }
    }

    /// The number of received bytes above which they go to the disk. The result of a combination can be large although
    /// the received part is not.
    private var collectedLimit: Int {
        guard case .combination(let combination) = purpose else { return Self.collectedLimit }
        return combination.entry.properties.storedLength > Self.collectedLimit ? -1 : .max
    }

    private func queue() -> BodyQueue? {
        let layout: BodyLayout
        let entry: CacheEntry
        switch purpose {
        case .response(let own, _): (entry, layout) = (own, BodyLayout())
        case .combination(let combination): (entry, layout) = (combination.entry, BodyLayout(combination))
        }
        return store.bodyWriter(for: entry).map {
            BodyQueue.start(writing: layout, to: $0, generation: generation, report: report)
        }
    }

    var isRecording: Bool {
        state.withLock { state in
            if case .ended = state.phase { false } else { true }
        }
    }

    func reachEnd() { state.withLock { $0.hasEnd = true } }

    func finish(isWhole: Bool, isDamaged: Bool, isCancelled: Bool) {
        let end = state.withLock { state -> (phase: Phase, received: Int64, hasEnd: Bool) in
            defer { state.phase = .ended }
            return (state.phase, state.received, state.hasEnd)
        }
        // An end before this one holds, also while its write is under way: a recorder is released before that ends.
        if case .ended = end.phase { return }
        let isWhole = isWhole && end.hasEnd
        // The end of a cancelled task says nothing about the response: one of those who wait takes its place.
        if isCancelled, !isWhole { report.sender?.willBeAbandoned() }
        switch (purpose, end.phase) {
        case (_, .ended): break
        case (_, .collecting) where isDamaged: report.gaveUp(.damaged)
        case (_, .writing(let queue)) where isDamaged: queue.abandon(.damaged)
        case (.response(let entry, let replacing), let phase):
            let finished = CachePolicy.finish(entry, received: end.received, isComplete: isWhole)
            finish(phase, isWhole || keepsPart ? finished : nil, replacing: replacing)
        case (.combination(let combination), .writing(let queue)):
            // A part of another length than it announced is none.
            let announced = BodyLayout(combination).received.upperBound
            guard isWhole, end.received == announced else { return queue.abandon(.incomplete) }
            queue.commit(combination.entry, replacing: [combination.stored])
        case (.combination(let combination), .collecting(let body)):
            guard isWhole else { return report.gaveUp(.incomplete) }
            combine(combination, body)
        }
    }

    /// Stores the entry of a response; nil if its bytes cannot be used.
    private func finish(_ phase: Phase, _ entry: CacheEntry?, replacing: [CacheEntry]) {
        switch (phase, entry) {
        case (.collecting(let body), let entry?): insert(entry, body, replacing: replacing)
        case (.collecting, nil): report.gaveUp(.incomplete)
        case (.writing(let queue), let entry?): queue.commit(entry, replacing: replacing)
        case (.writing(let queue), nil): queue.abandon(.incomplete)
        case (.ended, _): break
        }
    }

    /// Stores a body that has arrived as a whole, and so is in memory already; nil for one that failed.
    func takeWhole(_ body: Data?) {
        if let body {
            let isTooLong = body.count > store.entryLimit
            state.withLock { state in
                state.phase = isTooLong ? .ended : .collecting(body)
                state.received = Int64(body.count)
                state.hasEnd = true
            }
            if isTooLong { return report.gaveUp(.bodyTooLarge) }
        }
        finish(isWhole: body != nil, isDamaged: false, isCancelled: false)
    }

    // MARK: Bodies in memory

    /// Stores an entry. The reader does not wait for the disk.
    private func insert(_ entry: CacheEntry, _ body: Data, replacing: [CacheEntry]) {
        let (report, store, generation) = (report, store, generation)
        if let isStored = store.insertNow(entry, body: body, replacing: replacing, generation: generation) {
            return report.stored(entry, isStored)
        }
        guard report.cache.reserve(body.count) else { return report.gaveUp(.storeBusy) }
        let writing = report.beginWriting(entry)
        let number = report.cache.beginWrite()
        // The end of the reader can start a request for the response before the disk has it.
        store.beginInsert(entry, body: body, replacing: replacing, generation: generation)
        // Ends with the write.
        Task {
            let isStored = await store.insert(entry, body: body, replacing: replacing, generation: generation)
            store.endInsert(entry)
            report.cache.release(body.count)
            report.stored(entry, isStored)
            writing?.end(.stored)
            report.cache.endWrite(number)
        }
    }

    /// Stores the received part together with the stored one.
    private func combine(_ combination: CacheCombination, _ received: Data) {
        let range = 0..<combination.stored.properties.storedLength
        if let stored = store.bodyNow(of: combination.stored, range: range) {
            return combine(combination, received, with: stored)
        }
        let number = report.cache.beginWrite()
        // Ends with the read.
        Task {
            combine(combination, received, with: await store.body(of: combination.stored, range: range))
            report.cache.endWrite(number)
        }
    }

    private func combine(_ combination: CacheCombination, _ received: Data, with stored: Data?) {
        guard let stored, let body = combination.body(stored: stored, received: received) else {
            return report.gaveUp(.incomplete)
        }
        insert(combination.entry, body, replacing: [combination.stored])
    }
}

/// Reports the end of storing a response: to its trace, to the statistics, and to equal requests that wait for it.
final class StoringReport: Sendable {
    let trace: TraceRecord
    let cache: CacheState
    let store: any EntryStore
    let sender: SharedExchange?
    /// The fields that select among the known variants of the response.
    private let variant: VarySelection
    /// The entries that the response outdates even if it cannot be stored itself.
    private let outdated: [CacheEntry]
    /// The entry of the response before its body arrived; nil for a part that is combined with a stored one.
    private let arriving: CacheEntry?
    /// The number of the request.
    private let generation: UInt64
    /// Offers the response to other processes; nil if it is not for them.
    private let offer: SharedOffer?
    /// Returns the present time.
    private let now: @Sendable () -> Date

    init(_ purpose: BodyRecording.Purpose, _ received: CacheExchange.Received, of exchange: CacheExchange) {
        trace = received.trace
        cache = exchange.cache.shared
        store = exchange.store
        sender = received.forwarding.sender
        variant = received.forwarding.key.variant
        outdated = purpose.outdated
        arriving = purpose.entry
        generation = received.generation
        offer = received.forwarding.offer
        now = exchange.cache.configuration.now
    }

    /// Begins the write of an entry that has arrived. Identical requests that come now wait for the write, also after a
    /// stream, whose reader they did not wait for. Returns nil if an identical request is under way.
    func beginWriting(_ entry: CacheEntry) -> SharedExchange? {
        cache.begin(key(of: entry))
    }

    private func key(of entry: CacheEntry) -> SharingKey {
        SharingKey(key: entry.key, credentials: entry.properties.credentials, variant: variant)
    }

    /// Reports the result of an insert, which removes outdated entries by itself.
    func stored(_ entry: CacheEntry, _ isStored: Bool) {
        trace.record(isStored ? .stored : .storeFailed, isStored: isStored)
        if isStored {
            cache.countStored()
            cache.noteStored(key(of: entry))
            offer?.make(entry, from: store)
        }
        sender?.end(isStored ? .stored : .notShared)
    }

    /// Reports that nothing is stored, and removes outdated entries.
    func gaveUp(_ reason: CacheReason) {
        trace.record(reason, isStored: false)
        if let arriving {
            // Its length was not known before.
            if reason == .bodyTooLarge { cache.noteUnstorable(key(of: arriving), at: CacheTime(now())) }
            store.outdateEarlier(than: arriving, generation: generation)
        }
        offer?.responses.discard(outdated)
        guard !outdated.isEmpty else {
            sender?.end(.notShared)
            return
        }
        if store.removeNow(outdated) {
            sender?.end(.notShared)
            return
        }
        let number = cache.beginWrite()
        // Ends with the removal.
        Task { [store, sender, outdated, cache] in
            await store.remove(outdated)
            sender?.end(.notShared)
            cache.endWrite(number)
        }
    }
}
