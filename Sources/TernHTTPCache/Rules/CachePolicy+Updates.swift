import Tern

/// A stored part, or a whole, and a received part that form one entry (RFC 9111 §3.4).
struct CacheCombination: Sendable {
    /// A piece of the combined body, in order. Positions count from the first byte of the stored or received bytes.
    enum Piece: Sendable, Hashable {
        case stored(Range<Int64>)
        case received(Range<Int64>)
    }

    /// The entry whose bytes are stored.
    let stored: CacheEntry
    /// The entry of the combined bytes, under a new number.
    let entry: CacheEntry
    let pieces: [Piece]
    /// Whether the caller receives the combined response in place of the received part.
    let answersCaller: Bool
    /// The reason why the combined response is not stored; nil if it may be stored.
    var obstacle: CacheReason?
}

// The decisions after 304, 206 and responses to HEAD.
extension CachePolicy {
    // MARK: 304 (§4.3.3, §4.3.4)

    func notModified(
        _ response: CacheResponse, to request: CacheRequest, sent: (entries: [CacheEntry], CacheCondition)?
    ) -> ResponseDecision {
        guard let sent, sent.1.missing == nil else {
            // Without a condition of the caller either, the response is delivered as it is.
            let isOwn = sent == nil
            return ResponseDecision(
                action: isOwn ? .passThrough(outdated: []) : .refetch, reason: isOwn ? .ownCondition : .unknownValidator
            )
        }
        let identified = Self.identified(by: response, to: request, among: sent.entries)
        guard let newest = identified.max(by: { $0.isOlder(than: $1) }) else {
            // Sent with the caller's condition alone, the request has an answer that is about that.
            let isOwn = EntityTag(of: response.headers).map { request.entityTags?.contains($0) ?? false } ?? false
            return isOwn
                ? ResponseDecision(action: .passThrough(outdated: []), reason: .ownCondition)
                : ResponseDecision(action: .refetch, reason: .unknownValidator)
        }
        let chosen = Self.updated(newest, by: response, selectedBy: request)
        let now = response.responseTime
        guard let form = CacheAnswer.form(of: chosen, for: request, now: now) else {
            return ResponseDecision(action: .refetch, reason: .partial)
        }
        func answer(isStored: Bool) -> CacheAnswer {
            CacheAnswer(chosen, form: form, to: request, at: now, isValidated: true, isStored: isStored)
        }
        guard newest.mayBeChanged(by: response.headers, to: request) else {
            return ResponseDecision(action: .answer(answer(isStored: false), removing: []), reason: .ofOneUser)
        }
        if let obstacle = Self.obstacle(toStoring: chosen, request: request) {
            return ResponseDecision(action: .answer(answer(isStored: false), removing: identified), reason: obstacle)
        }
        let others = identified.filter { $0 !== newest && $0.mayBeChanged(by: response.headers, to: request) }
            .map { Self.updated($0, by: response, selectedBy: nil) }
            .filter { Self.obstacle(toStoring: $0, request: request) == nil }
        return ResponseDecision(action: .update([chosen] + others, answer: answer(isStored: true)), reason: .validated)
    }

    /// Returns the stored responses that a 304 response is about (§4.3.4).
    private static func identified(
        by response: CacheResponse, to request: CacheRequest, among entries: [CacheEntry]
    ) -> [CacheEntry] {
        let validators = Validators(response.headers, responseTime: response.responseTime)
        func newest(_ matches: (CacheEntry) -> Bool) -> [CacheEntry] {
            guard let newest = entries.filter(matches).max(by: { $0.isOlder(than: $1) }) else { return [] }
            return [newest]
        }
        if let tag = validators.tag {
            if !tag.isWeak { return entries.filter { $0.validators.tag?.matchesStrongly(tag) == true } }
            return newest { $0.validators.tag?.matchesWeakly(tag) == true }
        }
        if let time = validators.lastModifiedTime { return newest { $0.validators.lastModifiedTime == time } }
        // Servers leave the entity tag out against RFC 9110 §15.4.5. With one stored response there is no doubt, unless
        // another condition of the caller was sent beside that of the cache.
        guard let only = entries.first, entries.count == 1, request.isConditional(onlyOn: only) else { return [] }
        return entries
    }

    /// Returns an entry with the fields and times of a newer head (§3.2). With a request, the entry is also selected by
    /// the fields of that.
    static func updated(
        _ entry: CacheEntry, by response: CacheResponse, selectedBy request: CacheRequest?
    ) -> CacheEntry {
        entry.changing { properties in
            properties.headers = StoredFields.updated(
                properties.headers, with: response.headers, responseTime: response.responseTime)
            properties.requestTime = response.requestTime
            properties.responseTime = response.responseTime
            properties.mustValidate = false
            let vary = Vary(properties.headers)
            // Selections by other fields say nothing about these.
            if vary != entry.vary { properties.selections = [] }
            if let request, let selection = VarySelection(vary, of: request.headers),
                !properties.selections.contains(selection)
            {
                properties.selections = properties.selections.suffix(CacheEntry.selectionLimit - 1) + [selection]
            }
        }
    }

    // MARK: HEAD (§4.3.5)

    /// Updates the stored responses to GET if a response to HEAD shows that they are current, or marks them for
    /// validation if it shows that they are outdated. Returns nil if it shows neither.
    ///
    /// RFC 9111 §4.3.5 is about 200. After 404 and 410, a GET has the same answer, and a stored one is outdated. Other
    /// statuses say nothing about the content.
    static func headUpdate(
        of entries: [CacheEntry], by response: CacheResponse, to request: CacheRequest
    ) -> ResponseDecision? {
        guard [200, 404, 410].contains(response.status) else { return nil }
        var isCurrent = true
        let results = entries.compactMap { entry -> CacheEntry? in
            guard entry.mayBeChanged(by: response.headers, to: request) else { return nil }
            if response.status == 200 {
                guard let isSame = isSame(entry, as: response) else { return nil }
                let new = updated(entry, by: response, selectedBy: nil)
                if isSame, new.vary == entry.vary {
                    switch obstacle(toStoring: new, request: request) {
                    case nil: return new
                    case .requestNoStore?: return nil
                    case _?: break
                    }
                }
            }
            isCurrent = false
            return entry.changing { $0.mustValidate = true }
        }
        guard !results.isEmpty else { return nil }
        return ResponseDecision(
            action: .update(results, answer: nil), reason: isCurrent ? .updatedByHead : .changedByHead)
    }

    /// Returns whether a response to HEAD has the validators and the length of an entry; nil if it has none of them.
    private static func isSame(_ entry: CacheEntry, as response: CacheResponse) -> Bool? {
        let validators = Validators(response.headers, responseTime: response.responseTime)
        let length = contentLength(response.headers)
        if validators.isEmpty, length == nil { return nil }
        if let tag = validators.tag, entry.validators.tag != tag { return false }
        if let time = validators.lastModifiedTime, entry.validators.lastModifiedTime != time { return false }
        if let length, let total = entry.total, length != total { return false }
        return true
    }

    // MARK: 206 (§3.3, §3.4)

    /// Decides on the response to a request for the missing bytes of a stored part. The fields of the response count
    /// for the whole: if they forbid storing, the whole answers the caller, and the stored part is removed.
    func completed(
        _ response: CacheResponse, to request: CacheRequest, sent: (entries: [CacheEntry], CacheCondition), id: UInt64
    ) -> ResponseDecision {
        guard let stored = sent.entries.first, let missing = sent.1.missing, response.status == 206,
            let content = ByteContentRange(response.headers), content.range.first == missing.first,
            var combined = Self.combination(
                of: stored, with: content, response, to: request, id: id, answersCaller: true),
            combined.entry.isWhole
        else { return ResponseDecision(action: .refetch, reason: .otherRepresentation) }
        combined.obstacle = Self.obstacle(toStoring: combined.entry, request: request)
        return ResponseDecision(action: .combine(combined), reason: combined.obstacle ?? .combined)
    }

    /// Decides on a 206 response to the caller's own range.
    static func partial(
        _ entry: CacheEntry, to request: CacheRequest, matching: [CacheEntry], id: UInt64
    ) -> ResponseDecision {
        guard let content = ByteContentRange(entry.headers), request.range != nil else {
            return ResponseDecision(action: .passThrough(outdated: []), reason: .malformedRange)
        }
        let properties = entry.properties
        let response = CacheResponse(
            status: 206, version: properties.version, reasonPhrase: properties.reasonPhrase, headers: entry.headers,
            requestTime: properties.requestTime, responseTime: properties.responseTime)
        if let stored = selected(by: request, from: matching),
            let combined = combination(of: stored, with: content, response, to: request, id: id, answersCaller: false)
        {
            return ResponseDecision(action: .combine(combined), reason: .combined)
        }
        let part = entry.changing { $0.content = .part(content.range, total: content.total) }
        return ResponseDecision(action: .store(part, replacing: matching), reason: .stored)
    }

    /// Combines a stored entry with a received part. Returns nil if the validators are not the same strong ones, if the
    /// lengths contradict each other, and if bytes between the parts are missing.
    ///
    /// The combined entry belongs to the user of the request, because its fields are those of the received part.
    static func combination(
        of stored: CacheEntry, with content: ByteContentRange, _ response: CacheResponse, to request: CacheRequest,
        id: UInt64, answersCaller: Bool
    ) -> CacheCombination? {
        let owned = stored.changing { $0.credentials = request.credentials }
        guard owned.mayBeChanged(by: response.headers, to: request) else { return nil }
        // A part may leave the field out (RFC 9110 §15.3.7).
        let coding = response.headers["Content-Encoding"]
        guard coding == nil || coding == stored.headers["Content-Encoding"] else { return nil }
        let validators = Validators(response.headers, responseTime: response.responseTime)
        guard stored.status == 200 || stored.status == 206, validators.isSameStrongly(as: stored.validators) else {
            return nil
        }
        let own: ByteRange
        switch stored.content {
        case .whole(let count):
            guard count > 0 else { return nil }
            own = ByteRange(first: 0, count: count)
        case .part(let range, _): own = range
        }
        let new = content.range
        if let total = stored.total, let other = content.total, total != other { return nil }
        let total = stored.total ?? content.total
        guard own.touches(new), total.map({ max(own.end, new.end) <= $0 }) ?? true else { return nil }
        let union = ByteRange(
            first: min(own.first, new.first), count: max(own.end, new.end) - min(own.first, new.first))
        var pieces: [CacheCombination.Piece] = []
        if own.first <= new.first {
            pieces.append(.stored(0..<own.count))
            if new.end > own.end { pieces.append(.received(own.end - new.first..<new.count)) }
        } else {
            pieces.append(.received(0..<new.count))
            if own.end > new.end { pieces.append(.stored(new.end - own.first..<own.count)) }
        }
        let entry = updated(owned, by: response, selectedBy: nil).changing { $0.id = id }
        return CacheCombination(
            stored: stored, entry: combinedEntry(entry, union, total: total), pieces: pieces,
            answersCaller: answersCaller)
    }

    private static func combinedEntry(_ entry: CacheEntry, _ range: ByteRange, total: Int64?) -> CacheEntry {
        entry.changing { properties in
            let isWhole = range.first == 0 && range.end == total
            properties.content = isWhole ? .whole(range.count) : .part(range, total: total)
            guard isWhole, properties.status == 206 else { return }
            properties.status = 200
            properties.reasonPhrase = ""
            properties.headers.remove("Content-Range")
            properties.headers["Content-Length"] = "\(range.count)"
        }
    }
}
