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
    /// A Boolean value that indicates whether the caller receives the combined response in place of the received part.
    let answersCaller: Bool
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
        let identified = Self.identified(by: response, among: sent.entries)
        guard let newest = identified.max(by: { $0.isOlder(than: $1) }) else {
            return request.isConditional
                ? ResponseDecision(action: .passThrough(outdated: []), reason: .ownCondition)
                : ResponseDecision(action: .refetch, reason: .unknownValidator)
        }
        let updated = identified.map { Self.updated($0, by: response, selectedBy: $0 === newest ? request : nil) }
        let now = response.responseTime
        guard let chosen = updated.first(where: { $0.id == newest.id }),
            let form = CacheAnswer.form(of: chosen, for: request, now: now)
        else { return ResponseDecision(action: .refetch, reason: .partial) }
        let answer = CacheAnswer(chosen, form: form, to: request, at: now, isValidated: true)
        let isKept = Self.obstacle(toStoring: chosen, request: request) == nil
        return ResponseDecision(action: .update(updated, answer: answer, isKept: isKept), reason: .validated)
    }

    /// Returns the stored responses that a 304 response is about (§4.3.4).
    private static func identified(by response: CacheResponse, among entries: [CacheEntry]) -> [CacheEntry] {
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
        // Servers leave the entity tag out against RFC 9110 §15.4.5. With one stored response there is no doubt.
        return entries.count == 1 ? entries : []
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

    /// Updates the stored responses to GET if the response to HEAD shows that they are current, or else marks them for
    /// validation.
    static func headUpdate(of entries: [CacheEntry], by response: CacheResponse) -> ResponseDecision {
        var isCurrent = true
        let results = entries.map { entry -> CacheEntry in
            if response.status == 200, isSame(entry, as: response) {
                let new = updated(entry, by: response, selectedBy: nil)
                if !new.directives.noStore, new.vary == entry.vary { return new }
            }
            isCurrent = false
            return entry.changing { $0.mustValidate = true }
        }
        return ResponseDecision(
            action: .update(results, answer: nil, isKept: true), reason: isCurrent ? .updatedByHead : .changedByHead)
    }

    private static func isSame(_ entry: CacheEntry, as response: CacheResponse) -> Bool {
        let validators = Validators(response.headers, responseTime: response.responseTime)
        if let tag = validators.tag, entry.validators.tag != tag { return false }
        if let time = validators.lastModifiedTime, entry.validators.lastModifiedTime != time { return false }
        if let length = contentLength(response.headers), let total = entry.total, length != total { return false }
        return true
    }

    // MARK: 206 (§3.3, §3.4)

    /// Decides on the response to a request for the missing bytes of a stored part.
    func completed(
        _ response: CacheResponse, sent: (entries: [CacheEntry], CacheCondition), id: UInt64
    ) -> ResponseDecision {
        guard let stored = sent.entries.first, let missing = sent.1.missing, response.status == 206,
            let content = ContentRange(response.headers), content.range.first == missing.first,
            let combined = Self.combination(of: stored, with: content, response, id: id, answersCaller: true),
            combined.entry.isWhole
        else { return ResponseDecision(action: .refetch, reason: .otherRepresentation) }
        return ResponseDecision(action: .combine(combined), reason: .combined)
    }

    /// Decides on a 206 response to the caller's own range.
    static func partial(
        _ entry: CacheEntry, to request: CacheRequest, matching: [CacheEntry], id: UInt64
    ) -> ResponseDecision {
        guard let content = ContentRange(entry.headers), request.range != nil else {
            return ResponseDecision(action: .passThrough(outdated: []), reason: .malformedRange)
        }
        let properties = entry.properties
        let response = CacheResponse(
            status: 206, version: properties.version, reasonPhrase: properties.reasonPhrase, headers: entry.headers,
            requestTime: properties.requestTime, responseTime: properties.responseTime)
        if let stored = selected(by: request, from: matching),
            let combined = combination(of: stored, with: content, response, id: id, answersCaller: false)
        {
            return ResponseDecision(action: .combine(combined), reason: .combined)
        }
        let part = entry.changing { $0.content = .part(content.range, total: content.total) }
        return ResponseDecision(action: .store(part, replacing: matching), reason: .stored)
    }

    /// Combines a stored entry with a received part. Returns nil if the validators are not the same strong ones, if the
    /// lengths contradict each other, and if bytes between the parts are missing.
    static func combination(
        of stored: CacheEntry, with content: ContentRange, _ response: CacheResponse, id: UInt64, answersCaller: Bool
    ) -> CacheCombination? {
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
        let entry = updated(stored, by: response, selectedBy: nil).changing { $0.id = id }
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
