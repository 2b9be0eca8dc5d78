import Tern

/// The head of a response from the network, with the times of its exchange.
struct CacheResponse: Sendable {
    var status: Int
    var version = HTTPVersion.http11
    var reasonPhrase = ""
    var headers: Headers
    /// The time at which the request was sent.
    var requestTime: CacheTime
    /// The time at which the head arrived.
    var responseTime: CacheTime
}

// The decisions after a response from the network.
extension CachePolicy {
    /// The action for a response.
    enum ResponseAction: Sendable {
        /// Delivers the response and stores it in place of the entries that it outdates.
        /// ``finish(_:received:isComplete:)`` gives the entry once the body has ended.
        case store(CacheEntry, replacing: [CacheEntry])
        /// Replaces entries by those of the same number, and answers with one of them; without an answer, delivers the
        /// response.
        case update([CacheEntry], answer: CacheAnswer?)
        /// Answers with a stored body under a head that is not stored. Removes entries once the answer is made.
        case answer(CacheAnswer, removing: [CacheEntry])
        /// Combines the received part with the stored one.
        case combine(CacheCombination)
        /// Delivers the response, and removes what it invalidates.
        case invalidate(CacheInvalidation)
        /// Answers with a stale response in place of an error.
        case serveStale(CacheAnswer)
        /// Sends the request once more, without a condition.
        case refetch
        /// Delivers the response, and removes the entries that it outdates.
        case passThrough(outdated: [CacheEntry])
    }

    /// An action and its reason.
    struct ResponseDecision: Sendable {
        let action: ResponseAction
        let reason: CacheReason
    }

    /// Decides on the response to a request.
    ///
    /// - Parameters:
    ///   - response: The head.
    ///   - request: The request as the caller made it.
    ///   - sent: The condition that was sent with it, and the entries that it is about; nil for none.
    ///   - entries: The entries that the store found for the request.
    ///   - id: The number of a new entry.
    func decide(
        after response: CacheResponse, to request: CacheRequest, sent: (entries: [CacheEntry], CacheCondition)?,
        entries: [CacheEntry], id: UInt64
    ) -> ResponseDecision {
        let method = Request.Method(request.key.method)
        guard method == .get || method == .head else { return Self.invalidation(after: response, to: request) }
        let candidates = entries.filter { $0.isCandidate(for: request) }
        let matching = candidates.filter { $0.isSelected(by: request) }
        if response.status == 304 { return notModified(response, to: request, sent: sent) }
        if let sent, sent.1.missing != nil, response.status == 206 || response.status == 416 {
            return completed(response, to: request, sent: sent, id: id)
        }
        if response.status >= 500,
            let answer = staleAnswer(
                to: request, entries: candidates, status: response.status, now: response.responseTime)
        {
            return ResponseDecision(action: .serveStale(answer), reason: .staleIfError)
        }
        // A response to HEAD takes the place of none to GET.
        let replaced = matching.filter { $0.key.method == request.key.method }
        let others = matching.filter { $0.key.method != request.key.method }
        if let decision = Self.headUpdate(of: others, by: response, to: request) { return decision }
        let directives = ResponseDirectives(response.headers)
        func passThrough(_ obstacle: CacheReason) -> ResponseDecision {
            let outdated = Self.outdates(response.status, obstacle) ? replaced : []
            return ResponseDecision(action: .passThrough(outdated: outdated), reason: obstacle)
        }
        // Most responses that are not stored end here, without an entry.
        if let obstacle = Self.obstacle(toStoring: response.status, directives, request: request) {
            return passThrough(obstacle)
        }
        let entry = Self.entry(response, directives, to: request, id: id)
        if let obstacle = Self.obstacle(toStoring: entry, request: request) { return passThrough(obstacle) }
        if response.status == 206 { return Self.partial(entry, to: request, matching: matching, id: id) }
        return ResponseDecision(action: .store(entry, replacing: replaced), reason: .stored)
    }

    // MARK: Storing (§3)

    /// The statuses whose responses are never stored: those about one exchange or one connection, those about the
    /// condition or the range of one request, which are not part of the key, and those of RFC 6585 that forbid it.
    private static let unstoredStatuses: Set<Int> = [101, 304, 401, 407, 408, 412, 416, 417, 421, 428, 429, 431, 511]
    /// The statuses that this cache knows: those of RFC 9110 §15 with a final response.
    private static let knownStatuses = Set(200...206).union([300, 301, 302, 303, 304, 305, 307, 308])
        .union(400...417).union([421, 422, 426]).union(500...505)

    /// Returns the reason why a response is not stored; nil if it is.
    static func obstacle(toStoring entry: CacheEntry, request: CacheRequest) -> CacheReason? {
        if let obstacle = obstacle(toStoring: entry.status, entry.directives, request: request) { return obstacle }
        if entry.vary == .everything { return .varyEverything }
        guard request.key.urlLength <= CacheKey.longestURL else { return .urlTooLong }
        guard StoredFields.isWithinLimits(entry.headers) else { return .headTooLarge }
        return isUsable(entry) ? nil : .notUsable
    }

    /// Returns the reason why no response with a status and directives is stored; nil if one may be.
    private static func obstacle(
        toStoring status: Int, _ directives: ResponseDirectives, request: CacheRequest
    ) -> CacheReason? {
        guard (200...599).contains(status), !unstoredStatuses.contains(status) else { return .statusNotStored }
        if request.choice == .noStore || request.directives.noStore { return .requestNoStore }
        // must-understand takes the place of no-store for a status that is known (§5.2.2.3).
        if directives.mustUnderstand {
            guard knownStatuses.contains(status) else { return .statusNotUnderstood }
        } else if directives.noStore {
            return .noStore
        }
        return nil
    }

    /// Returns whether a response that is not stored shows that stored ones are not the newest any more. An error that
    /// says nothing about the resource, and a response whose request forbids storing, does not.
    private static func outdates(_ status: Int, _ obstacle: CacheReason) -> Bool {
        guard [200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 410].contains(status) else { return false }
        return [.noStore, .varyEverything, .notUsable, .headTooLarge, .statusNotUnderstood].contains(obstacle)
    }

    /// Returns whether a stored response can ever answer a request: after validation, or without it.
    private static func isUsable(_ entry: CacheEntry) -> Bool {
        let directives = entry.directives
        // Others are stored only if the origin says so (§3): an error with an entity tag does not replace a response.
        let isPermitted =
            CacheFreshness.heuristicStatuses.contains(entry.status) || entry.freshness.basis != .none
            || directives.isPublic || directives.isPrivate
        if !isPermitted { return false }
        if !entry.validators.isEmpty { return true }
        if directives.noCache { return false }
        if entry.freshness.lifetime > .zero { return true }
        let permitted = max(directives.staleWhileRevalidate ?? 0, directives.staleIfError ?? 0)
        return entry.freshness.basis != .none && permitted > 0 && !directives.mustRevalidate
    }

    private static func entry(
        _ response: CacheResponse, _ directives: ResponseDirectives, to request: CacheRequest, id: UInt64
    ) -> CacheEntry {
        let headers = StoredFields.stored(response.headers, responseTime: response.responseTime)
        let selection = VarySelection(Vary(headers), of: request.headers)
        let length = contentLength(headers) ?? 0
        return CacheEntry(
            CacheEntry.Properties(
                id: id, key: request.key, status: response.status, version: response.version,
                reasonPhrase: String(response.reasonPhrase.prefix(128)), headers: headers,
                requestTime: response.requestTime, responseTime: response.responseTime,
                selections: selection.map { [$0] } ?? [], credentials: request.credentials,
                content: .whole(request.isHead ? 0 : length)),
            // Those of the stored fields: `Connection` cannot exclude them.
            directives: directives)
    }

    static func contentLength(_ headers: Headers) -> Int64? {
        headers["Content-Length"].flatMap { FieldText.number($0.utf8, limit: ByteRange.limit) }
    }

    /// Returns an entry after the end of its body; nil if the bytes that arrived cannot be used.
    ///
    /// - Parameters:
    ///   - received: The number of bytes that arrived.
    ///   - isComplete: Whether the message is complete (RFC 9112 §8).
    static func finish(_ entry: CacheEntry, received: Int64, isComplete: Bool) -> CacheEntry? {
        guard case .part(let range, let total) = entry.content else {
            if entry.key.method == "HEAD" { return entry }
            let length = contentLength(entry.headers)
            if isComplete, length ?? received == received { return entry.changing { $0.content = .whole(received) } }
            // Only a 200 can be completed, and only with a strong validator (§3.3, §3.4).
            guard entry.status == 200, received > 0, received < length ?? .max, entry.validators.strongText != nil
            else { return nil }
            let range = ByteRange(first: 0, count: received)
            return entry.changing { $0.content = .part(range, total: length) }
        }
        if isComplete, received == range.count { return whole(entry, if: range, of: total) }
        guard received > 0, received < range.count, entry.validators.strongText != nil else { return nil }
        return entry.changing { $0.content = .part(ByteRange(first: range.first, count: received), total: total) }
    }

    /// Returns the entry of a range: a whole response if the range has all bytes.
    private static func whole(_ entry: CacheEntry, if range: ByteRange, of total: Int64?) -> CacheEntry {
        guard range.first == 0, range.end == total else {
            return entry.changing { $0.content = .part(range, total: total) }
        }
        return entry.changing {
            $0.content = .whole(range.count)
            $0.status = 200
            $0.reasonPhrase = ""
            $0.headers.remove("Content-Range")
            $0.headers["Content-Length"] = "\(range.count)"
        }
    }

    // MARK: Invalidation (§4.4, RFC 9875)

    static func invalidation(after response: CacheResponse, to request: CacheRequest) -> ResponseDecision {
        guard !Request.Method(request.key.method).isSafe else {
            return ResponseDecision(action: .passThrough(outdated: []), reason: .method)
        }
        guard (200...399).contains(response.status) else {
            return ResponseDecision(action: .passThrough(outdated: []), reason: .errorStatus)
        }
        let invalidation = CacheInvalidation(after: response.headers, to: request.key)
        return ResponseDecision(action: .invalidate(invalidation), reason: .unsafeMethod)
    }

    // MARK: Stale responses after errors (§4.2.4, RFC 5861 §4)

    /// Returns the stale response that answers a request in place of an error; nil if none is permitted.
    ///
    /// - Parameter status: The status of the error; nil if no response arrived.
    func staleAnswer(
        to request: CacheRequest, entries: [CacheEntry], status: Int?, now: CacheTime
    ) -> CacheAnswer? {
        if let status, ![500, 502, 503, 504].contains(status) { return nil }
        guard request.choice != .reload, request.choice != .noStore, request.choice != .revalidate,
            !request.directives.noStore, !request.directives.noCache || request.directives.staleIfError != nil,
            !request.hasOriginCondition
        else { return nil }
        let candidates = entries.filter { $0.isCandidate(for: request) }
        guard let entry = Self.selected(by: request, from: candidates), !entry.directives.forbidsStale,
            !entry.properties.mustValidate, let form = CacheAnswer.form(of: entry, for: request, now: now)
        else { return nil }
        var limits = [entry.directives.staleIfError, request.directives.staleIfError].compactMap { $0 }
            .map { Duration.seconds($0) }
        if status == nil, let limit = staleWhenDisconnected { limits.append(limit) }
        guard let limit = limits.max(), entry.freshness.staleness(at: now) <= limit else { return nil }
        return CacheAnswer(entry, form: form, to: request, at: now)
    }
}

/// The URLs and groups whose stored responses an unsafe request invalidates.
struct CacheInvalidation: Sendable, Hashable {
    /// The keys, for GET. Responses to HEAD under the same URLs are invalidated too.
    let keys: [CacheKey]
    /// The groups of the request's origin (RFC 9875 §3).
    let groups: [String]

    init(keys: [CacheKey], groups: [String]) {
        self.keys = keys
        self.groups = groups
    }

    /// Takes the URL of the request, and those of `Location` and `Content-Location` if they have the same origin.
    init(after headers: Headers, to key: CacheKey) {
        let own = key.with(method: "GET")
        var keys = [own]
        // A URL that cannot be requested has no stored responses.
        if let base = try? Target(absolute: key.url) {
            for name in ["Location", "Content-Location"] {
                // As above, for a malformed reference.
                guard let text = headers[name], let target = try? base.resolving(text), target.origin == base.origin
                else { continue }
                let other = own.with(target: target)
                if !keys.contains(other) { keys.append(other) }
            }
        }
        self.keys = keys
        groups = Array((StructuredFields.strings("Cache-Group-Invalidation", in: headers) ?? []).prefix(64))
    }
}
