import Tern

/// The rules of RFC 9111 for a private cache, with RFC 5861 (stale responses) and RFC 8246 (immutable).
///
/// Pure: each decision follows from a request, the stored entries and the time.
struct CachePolicy: Sendable {
    /// The time for which a stale response answers requests while the server cannot be reached, in addition to
    /// `stale-if-error`; nil, the default, if it does not. RFC 9111 §4.2.4 permits it.
    var staleWhenDisconnected: Duration?

    /// The action for a request.
    enum Action: Sendable {
        /// Answers with a fresh response.
        case serve(CacheAnswer)
        /// Answers with a stale response. With `revalidateInBackground`, the cache refreshes it.
        case serveStale(CacheAnswer, revalidateInBackground: Bool)
        /// Sends the request with the fields of a condition. The entries are those that the condition is about, the one
        /// that matches the request first.
        case revalidate([CacheEntry], conditional: CacheCondition)
        /// Sends the request as it is. The response is stored if the rules allow it.
        case fetch
        /// Fails, because nothing that can be used is stored and the request must not be sent.
        case refuse
    }

    /// An action and its reason.
    struct Decision: Sendable {
        let action: Action
        let reason: CacheReason
    }

    /// Decides on a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - entries: The entries that the store found for it. Entries that do not belong to it are ignored.
    ///   - now: The present time.
    func decide(_ request: CacheRequest, entries: [CacheEntry], now: CacheTime) -> Decision {
        if let reason = Self.bypass(request) {
            // A request with another method cannot be answered from the store at all.
            let mayNotSend = request.choice == .onlyStored || request.directives.onlyIfCached && reason != .method
            if mayNotSend { return Decision(action: .refuse, reason: reason) }
            return Decision(action: .fetch, reason: reason)
        }
        let decision = decideOnEntries(request, entries: entries, now: now)
        guard request.mustNotBeSent else { return decision }
        switch decision.action {
        case .serve, .refuse: return decision
        case .serveStale(let answer, _):
            return Decision(action: .serveStale(answer, revalidateInBackground: false), reason: decision.reason)
        case .fetch, .revalidate: return Decision(action: .refuse, reason: decision.reason)
        }
    }

    /// Returns the reason why a request does not look at stored responses; nil if it does.
    private static func bypass(_ request: CacheRequest) -> CacheReason? {
        if request.key.method != "GET", request.key.method != "HEAD" { return .method }
        if request.choice == .noStore || request.directives.noStore { return .requestNoStore }
        if request.choice == .reload { return .reload }
        if request.hasOriginCondition { return .originCondition }
        return request.range == .other ? .rangeNotSupported : nil
    }

    private func decideOnEntries(_ request: CacheRequest, entries: [CacheEntry], now: CacheTime) -> Decision {
        let candidates = entries.filter { $0.isCandidate(for: request) }
        guard let entry = Self.selected(by: request, from: candidates) else {
            guard !candidates.isEmpty else { return Decision(action: .fetch, reason: .nothingStored) }
            return Decision(action: Self.offer(candidates, to: request), reason: .noVariant)
        }
        let form = CacheAnswer.form(of: entry, for: request, now: now)
        guard let obstacle = obstacle(to: entry, for: request, now: now) else {
            guard let form else { return missingPart(of: entry, for: request, isFresh: true) }
            let isImmutable = request.choice == .revalidate
            let answer = CacheAnswer(entry, form: form, to: request, at: now)
            return Decision(action: .serve(answer), reason: isImmutable ? .immutable : .fresh)
        }
        guard let form else { return missingPart(of: entry, for: request, isFresh: false) }
        if let permission = permission(to: entry, despite: obstacle, for: request, now: now) {
            let answer = CacheAnswer(entry, form: form, to: request, at: now)
            let isFresh = permission == .storedPreferred && obstacle != .mustValidate && entry.isFresh(at: now)
            let action: Action =
                isFresh
                ? .serve(answer)
                : .serveStale(answer, revalidateInBackground: permission == .staleWhileRevalidate)
            return Decision(action: action, reason: permission)
        }
        let condition = CacheCondition(validating: [entry], for: request)
        return Decision(
            action: condition.map { .revalidate([entry], conditional: $0) } ?? .fetch, reason: obstacle)
    }

    /// Returns the newest entry that the request selects (§4, §4.1). Those of the request's own credentials come before
    /// those that anybody shares.
    static func selected(by request: CacheRequest, from candidates: [CacheEntry]) -> CacheEntry? {
        let selected = candidates.filter { $0.isSelected(by: request) }
        let own = selected.filter { $0.properties.credentials == request.credentials }
        return (own.isEmpty ? selected : own).max { $0.isOlder(than: $1) }
    }

    /// Returns the reason why an entry cannot be used without validation; nil if it can (§4).
    private func obstacle(to entry: CacheEntry, for request: CacheRequest, now: CacheTime) -> CacheReason? {
        let directives = request.directives
        if entry.properties.mustValidate || entry.directives.noCache { return .mustValidate }
        if directives.noCache { return .requestNoCache }
        let (age, lifetime) = (entry.freshness.age(at: now), entry.freshness.lifetime)
        if request.choice == .revalidate, !(entry.directives.isImmutable && lifetime > age) { return .revalidate }
        if lifetime <= age { return .stale }
        if let limit = directives.maxAge, age > .seconds(limit) { return .requestMaxAge }
        if let minimum = directives.minFresh, lifetime - age < .seconds(minimum) { return .requestMinFresh }
        return nil
    }

    /// Returns the reason why an entry can be used without validation nevertheless; nil if it cannot (§4.2.4).
    private func permission(
        to entry: CacheEntry, despite obstacle: CacheReason, for request: CacheRequest, now: CacheTime
    ) -> CacheReason? {
        let isPreferred = request.choice == .preferStored || request.choice == .onlyStored
        // The caller's choice is above the directives of the response, as with URLRequest. A response that is known to
        // be outdated is not stored for this purpose.
        if isPreferred, !entry.properties.mustValidate { return .storedPreferred }
        guard obstacle == .stale, !entry.directives.forbidsStale else { return nil }
        let directives = request.directives
        if let limit = directives.maxAge, entry.freshness.age(at: now) > .seconds(limit) { return nil }
        let staleness = entry.freshness.staleness(at: now)
        switch directives.maxStale {
        case .any?: return .maxStale
        case .seconds(let limit)? where staleness <= .seconds(limit): return .maxStale
        default: break
        }
        // A request that limits the age or asks for freshness does not want a stale response (§5.2.1).
        guard directives.maxAge == nil, directives.minFresh == nil, let limit = entry.directives.staleWhileRevalidate,
            staleness <= .seconds(limit)
        else { return nil }
        return .staleWhileRevalidate
    }

    /// Returns the action for a request whose bytes are not all stored: the missing ones are requested if they can be
    /// combined with the stored ones.
    private func missingPart(of entry: CacheEntry, for request: CacheRequest, isFresh: Bool) -> Decision {
        let reason = CacheReason.partial
        if request.range == nil, !request.isConditional, !request.isHead,
            let condition = CacheCondition(completing: entry)
        {
            return Decision(action: .revalidate([entry], conditional: condition), reason: reason)
        }
        return Decision(action: .fetch, reason: reason)
    }

    /// Returns the request for another variant: with the entity tags of those that are stored, so that the server can
    /// select one of them (§4.1, §4.3.1).
    private static func offer(_ candidates: [CacheEntry], to request: CacheRequest) -> Action {
        let tagged = candidates.filter { $0.isWhole && $0.validators.tag != nil && $0.status == 200 }
            .sorted { $1.isOlder(than: $0) }.prefix(CacheCondition.tagLimit)
        guard request.range == nil, !request.isConditional, !tagged.isEmpty,
            let condition = CacheCondition(validating: Array(tagged), for: request)
        else { return .fetch }
        return .revalidate(Array(tagged), conditional: condition)
    }
}

extension CacheEntry {
    func isFresh(at now: CacheTime) -> Bool { freshness.isFresh(at: now) }
}

/// The fields that make a request conditional on stored responses (RFC 9111 §4.3.1).
struct CacheCondition: Sendable, Hashable {
    /// The fields to send in place of the request's own.
    let headers: Headers
    /// The bytes that are requested to complete a stored part: from here to before the end, or to the end of the body.
    let missing: Missing?

    struct Missing: Sendable, Hashable {
        let first: Int64
        let end: Int64?
    }

    /// The greatest number of stored entity tags in a request.
    static let tagLimit = 8

    /// Creates the condition that validates entries; nil if none has a validator that can be sent with the request.
    init?(validating entries: [CacheEntry], for request: CacheRequest) {
        var headers = Headers()
        let tags = entries.compactMap { $0.validators.tag }
        if case .any? = request.entityTags { return nil }
        let own = request.headers.values(for: "If-None-Match")
        if !tags.isEmpty {
            headers["If-None-Match"] = Self.list(tags, adding: own)
        } else if !own.isEmpty {
            // The server evaluates the caller's tags, and a 304 is about the caller's response.
            return nil
        }
        // For one response without several ranges (§4.3.1).
        if entries.count == 1, request.range == nil, let modified = entries.first?.validators.lastModified {
            headers["If-Modified-Since"] = modified
        }
        guard !headers.isEmpty else { return nil }
        self.headers = headers
        missing = nil
    }

    /// Creates the condition that completes a part; nil without a strong validator, and if bytes before and after the
    /// part are missing.
    init?(completing entry: CacheEntry) {
        guard case .part(let range, let total) = entry.content, let validator = entry.validators.strongText else {
            return nil
        }
        let missing: Missing
        if range.first == 0 {
            if let total, range.end >= total { return nil }
            missing = Missing(first: range.end, end: total)
        } else {
            guard let total, range.end == total else { return nil }
            missing = Missing(first: 0, end: range.first)
        }
        self.missing = missing
        // Open at the end of the body, because its length can have changed.
        let last = missing.end == entry.total ? "" : missing.end.map { "\($0 - 1)" } ?? ""
        headers = ["Range": "bytes=\(missing.first)-\(last)", "If-Range": validator]
    }

    private static func list(_ tags: [EntityTag], adding own: [String]) -> String {
        var texts: [String] = []
        for tag in tags where !texts.contains(tag.text) { texts.append(tag.text) }
        return (own + texts.filter { !own.contains($0) }).joined(separator: ", ")
    }
}
