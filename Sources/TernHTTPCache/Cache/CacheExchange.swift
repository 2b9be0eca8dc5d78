import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One request on its way through the cache: look up → share → second level → forward. `CachePolicy` decides; these
/// functions look up, send and store.
struct CacheExchange: Sendable {
    let cache: HTTPCache
    let store: any EntryStore
    let exchange: NetworkExchange
    let request: CacheRequest
    /// The time of the request, in nanoseconds of `MonotonicClock`.
    let start: UInt64
    /// The number of times that the request began anew because its cookies or its authorization changed while it
    /// waited.
    var restarts = 0

    /// The number of times that a body may be missing from the store before the request is sent.
    private static let missingBodyLimit = 2
    /// The number of look-ups that a request repeats because an equal one was stored meanwhile.
    private static let repetitionLimit = 3
    /// The number of times that a request begins anew. It is then sent with the cookies and the authorization of its
    /// look-up.
    private static let restartLimit = 3

    /// The condition that is sent with a request, and the entries that it is about.
    typealias Condition = (entries: [CacheEntry], CacheCondition)

    /// The outcome of a step before the network.
    private enum Step<Value> {
        /// The request has its response.
        case answered(IncomingResponse)
        /// The store can have another response now.
        case lookUpAgain
        /// The next step takes the value.
        case goOn(Value)
    }

    /// The state of a request before the network, which each look-up takes over from the one before.
    private struct State {
        /// The exchange, with the time that is left.
        var exchange: NetworkExchange
        /// Whether the stored response is that of an equal request, for which this one has waited.
        var isShared = false
        /// The requests whose end this one has waited for.
        var awaited: Set<SharingKey> = []
        /// The number of bodies that were missing from the store.
        var missingBodies = 0
        /// The number of look-ups that were repeated because an equal request was stored meanwhile.
        var repetitions = 0
        var hasAskedSecondLevel = false
        var hasAwaitedWrites = false

        init(_ exchange: NetworkExchange) { self.exchange = exchange }

        /// Does work that waits. Its time counts for the limits of the request.
        mutating func wait<Value: Sendable>(
            for work: @escaping @Sendable () async -> Value
        ) async throws(NetworkError) -> Value {
            let began = MonotonicClock.nanoseconds()
            guard let value = await exchange.wait(for: work), !exchange.isCancelled else { throw exchange.wasCancelled }
            exchange = exchange.spending(since: began)
            return value
        }
    }

    /// A request that no stored response answers.
    private struct Miss {
        /// The reason why the request is sent.
        let reason: CacheReason
        /// The entries that the store found for the request.
        let entries: [CacheEntry]
        /// The condition that is sent with the request; nil for none.
        let condition: Condition?
        /// The key of the requests that the response can answer, too.
        let key: SharingKey
        /// `CacheState.storedCount` before the look-up.
        let storedCount: UInt64
    }

    /// Returns the response: a stored one, that of an equal request or of another process, or that of the server.
    func response() async throws(NetworkError) -> IncomingResponse {
        var state = State(exchange)
        while true {
            let miss: Miss
            switch try await lookUp(&state) {
            case .answered(let response): return response
            case .lookUpAgain: continue
            case .goOn(let found): miss = found
            }
            let sender: SharedExchange?
            switch try await share(miss, &state) {
            case .answered(let response): return response
            case .lookUpAgain: continue
            case .goOn(let own): sender = own
            }
            switch try await askSecondLevel(after: miss, sender: sender, state: &state) {
            case .answered(let response): return response
            case .lookUpAgain: continue
            case .goOn(let offer): return try await forward(miss, sender: sender, offer: offer, on: state.exchange)
            }
        }
    }

    // MARK: Look up

    /// Looks into the store, and answers with a stored response if the rules allow it.
    private func lookUp(_ state: inout State) async throws(NetworkError) -> Step<Miss> {
        let storedCount = cache.shared.storedCount
        let endedInserts = store.endedInserts(for: request.key)
        let entries = try await entries(&state)
        if state.exchange.isCancelled { throw state.exchange.wasCancelled }
        let decision = cache.policy.decide(request, entries: entries, now: cache.now)
        var condition: Condition?
        switch decision.action {
        case .refuse:
            if try await waitForWrites(after: endedInserts, &state) { return .lookUpAgain }
            let reason = "no stored response can be used, and the request must not be sent: \(decision.reason.text)"
            throw state.exchange.error(.notStored, reason)
        case .serve(let answer), .serveStale(let answer, _):
            let result = CacheHandling.Result.hit(decision.reason)
            if let response = await serve(answer, result, of: state.exchange, isShared: state.isShared) {
                if case .serveStale(_, revalidateInBackground: true) = decision.action {
                    await cache.refresh(with: self)
                }
                return .answered(response)
            }
            if state.exchange.isCancelled || Task.isCancelled { throw state.exchange.wasCancelled }
            // The body was evicted after the look-up. The next look-up does not find the entry.
            state.missingBodies += 1
            if state.missingBodies <= Self.missingBodyLimit { return .lookUpAgain }
            if request.mustNotBeSent { throw state.exchange.error(.notStored, CacheReason.storeUnavailable.text) }
        case .fetch:
            break
        case .revalidate(let conditioned, let own):
            // A body that is too large to be stored is not completed, because that would not be stored either.
            let isTooLarge = own.missing != nil && (conditioned.first?.total ?? 0) > store.entryLimit
            if !isTooLarge { condition = (conditioned, own) }
        }
        if isSharable(decision.reason), try await waitForWrites(after: endedInserts, &state) { return .lookUpAgain }
        let key = sharingKey(among: entries)
        return .goOn(
            Miss(
                reason: decision.reason, entries: entries, condition: condition, key: key, storedCount: storedCount))
    }

    /// Returns the entries for the request. A wait for the disk ends with the task.
    private func entries(_ state: inout State) async throws(NetworkError) -> [CacheEntry] {
        if let entries = entriesInMemory { return entries }
        return try await state.wait { [self] in await entries() }
    }

    /// Returns the entries for the request.
    func entries() async -> [CacheEntry] {
        var entries = await store.entries(for: request.key)
        if request.isHead { entries += await store.entries(for: request.key.with(method: "GET")) }
        return entries
    }

    /// The same as `entries()` if all are in memory; nil if some must be read.
    private var entriesInMemory: [CacheEntry]? {
        guard let entries = store.entriesNow(for: request.key) else { return nil }
        guard request.isHead else { return entries }
        return store.entriesNow(for: request.key.with(method: "GET")).map { entries + $0 }
    }

    /// Returns a Boolean value that indicates whether a stale response that is stored now answers the request.
    func isServedStale() async -> Bool {
        let entries = await entries()
        if case .serveStale = cache.policy.decide(request, entries: entries, now: cache.now).action { return true }
        return false
    }

    /// Waits once for the responses that are being written, if one of them is for this request: a large one cannot be
    /// read before that, and hides those that it outdates. Returns whether the look-up is to be repeated.
    ///
    /// - Parameter ended: `endedInserts(for:)` before the look-up. A response whose write has ended since was hidden
    ///   from it.
    private func waitForWrites(after ended: UInt64, _ state: inout State) async throws(NetworkError) -> Bool {
        guard !state.hasAwaitedWrites else { return false }
        guard store.isInserting(request.key) else {
            state.hasAwaitedWrites = store.endedInserts(for: request.key) != ended
            return state.hasAwaitedWrites
        }
        state.hasAwaitedWrites = true
        let limit = [state.exchange.end?.after, state.exchange.idleTime].compactMap { $0 }.min()
        try await state.wait { [cache, exchange] in
            await cache.shared.written(within: limit) { try await exchange.sleep(for: $0) }
        }
        return true
    }

    // MARK: Share

    /// Returns whether equal requests may share the response: whole ones to GET that were not asked for anew.
    ///
    /// - Parameter amongProcesses: Whether another process may have a newer response. That of a stored one that must be
    ///   validated can be the same.
    func isSharable(_ reason: CacheReason, amongProcesses: Bool = false) -> Bool {
        guard request.key.method == "GET", request.range == nil, !request.isConditional else { return false }
        switch reason {
        case .nothingStored, .noVariant, .stale: return true
        case .mustValidate, .partial: return !amongProcesses
        default: return false
        }
    }

    /// Returns the key of the requests that the response to this one can answer, as far as stored responses tell which
    /// fields select one: requests for different variants do not wait for each other.
    private func sharingKey(among entries: [CacheEntry]) -> SharingKey {
        var names: Set<String> = []
        for case .names(let own) in entries.map(\.vary) { names.formUnion(own) }
        let fields = names.sorted().map {
            VarySelection.Field(name: $0, value: VarySelection.value(of: $0, in: request.headers))
        }
        return SharingKey(key: request.key, credentials: request.credentials, variant: VarySelection(fields: fields))
    }

    /// Lets an equal request that is on its way answer this one, or lets this one answer equal requests.
    ///
    /// - Returns: The exchange that equal requests wait for; nil if they do not.
    private func share(_ miss: Miss, _ state: inout State) async throws(NetworkError) -> Step<SharedExchange?> {
        guard isSharable(miss.reason), !cache.shared.isUnstorable(miss.key, at: cache.now) else { return .goOn(nil) }
        if state.awaited.contains(miss.key) {
            let sender = cache.shared.begin(miss.key)
            sender?.begin(state.exchange)
            return .goOn(sender)
        }
        let storedCount = state.repetitions < Self.repetitionLimit ? miss.storedCount : nil
        switch cache.shared.join(miss.key, after: storedCount) {
        case nil:
            state.repetitions += 1
            return .lookUpAgain
        case .sender(let sender)?:
            sender.begin(state.exchange)
            return .goOn(sender)
        case .waiter(let waiter, let joined)?:
            return try await wait(waiter, for: joined, after: miss, state: &state)
        }
    }

    /// Waits for an equal request: within the total time limit, and not longer than for a silent server.
    private func wait(
        _ waiter: Waiter<SharingEnd>, for joined: NetworkExchange?, after miss: Miss, state: inout State
    ) async throws(NetworkError) -> Step<SharedExchange?> {
        let began = MonotonicClock.nanoseconds()
        let leave = joined?.isJoined(by: state.exchange)
        defer { leave?() }
        switch await end(of: waiter, for: miss.key, on: state.exchange) {
        case .cancelled:
            throw state.exchange.wasCancelled
        case .timedOut(let limit):
            let error = state.exchange.error(.waitingTimedOut(limit))
            if let stale = await stale(after: error, entries: miss.entries) { return .answered(stale) }
            throw error
        case .stored:
            state.isShared = true
            state.awaited.insert(miss.key)
        case .notShared:
            state.isShared = false
            state.awaited.insert(miss.key)
        case .abandoned:
            state.isShared = false
        }
        state.exchange = state.exchange.spending(since: began)
        return .lookUpAgain
    }

    /// Returns the end of an equal request: `.notShared` after the limit `idle`, because the other request can have a
    /// longer one.
    private func end(
        of waiter: Waiter<SharingEnd>, for key: SharingKey, on exchange: NetworkExchange
    ) async -> SharingEnd {
        let state = cache.shared
        let (end, idle) = (exchange.end, exchange.idleTime)
        let limit = [end?.after, idle].compactMap { $0 }.min()
        let own = end.flatMap { $0.after == limit ? SharingEnd.timedOut($0.limit) : nil }
        // Owned and cancelled here.
        let timer = limit.map { limit in
            Task {
                // An error means that the wait ended in time.
                guard (try? await exchange.sleep(for: limit)) != nil else { return }
                state.leave(waiter, of: key, own ?? .notShared)
            }
        }
        defer { timer?.cancel() }
        return await exchange.wait(for: waiter) { state.leave(waiter, of: key, .cancelled) }
    }

    // MARK: Second level

    /// Looks into the second level, and stores here what is newer there than the stored responses. The rules then
    /// decide on it like on any other stored response.
    ///
    /// - Returns: The offer of the response to other processes; nil if it is not for them.
    private func askSecondLevel(
        after miss: Miss, sender: SharedExchange?, state: inout State
    ) async throws(NetworkError) -> Step<SharedOffer?> {
        guard let shared = cache.secondLevel, SharedResponses.shares(request, of: state.exchange) else {
            return .goOn(nil)
        }
        guard !state.hasAskedSecondLevel, isSharable(miss.reason, amongProcesses: true) else {
            return .goOn(SharedOffer(responses: shared, lease: nil))
        }
        state.hasAskedSecondLevel = true
        let generation = store.beginRequest()
        let (id, limit) = (cache.shared.nextID(), state.exchange.end?.after)
        switch try await state.wait(for: { [request] in await shared.lookUp(request, id: id, within: limit) }) {
        case .missing(let lease):
            return .goOn(SharedOffer(responses: shared, lease: lease))
        case .found(let entry, let body):
            let replaced = miss.entries.filter { $0.isCandidate(for: request) && $0.isSelected(by: request) }
            guard entry.isCandidate(for: request), entry.isSelected(by: request), body.count <= store.entryLimit,
                replaced.allSatisfy({ $0.isOlder(than: entry) }),
                await store.insert(entry, body: body, replacing: replaced, generation: generation)
            else { return .goOn(SharedOffer(responses: shared, lease: nil)) }
            sender?.end(.stored)
            return .lookUpAgain
        }
    }

    // MARK: Forward

    /// Sends the request, or begins anew if other requests have received cookies or an authorization meanwhile.
    private func forward(
        _ miss: Miss, sender: SharedExchange?, offer: SharedOffer?, on exchange: NetworkExchange
    ) async throws(NetworkError) -> IncomingResponse {
        if restarts < Self.restartLimit, let changed = exchange.ofAnotherUser {
            sender?.end(.abandoned)
            // Other processes do not wait for this one.
            offer?.lease?.release()
            return try await CacheExchange(
                cache: cache, store: store, exchange: changed, request: CacheRequest(changed), start: start,
                restarts: restarts + 1
            ).response()
        }
        let forwarding = Forwarding(
            exchange: exchange, reason: miss.reason, entries: miss.entries, key: miss.key, sender: sender,
            offer: offer)
        return try await send(miss.condition, forwarding)
    }
}

extension NetworkExchange {
    /// The error of a cancelled task.
    var wasCancelled: NetworkError { error(.cancelled, "the task was cancelled") }
}
