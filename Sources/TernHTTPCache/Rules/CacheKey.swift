import Tern

/// Identifies the stored responses that a request can be answered with, apart from its header fields: the method, the
/// URL, the trust policy and the partition.
///
/// The host is canonical, so that no spelling of a host reaches the responses of another, and an exchange under one
/// trust policy never answers a request under another.
struct CacheKey: Sendable, Hashable {
    let method: String
    /// `https://example.com:443`, always with the port.
    let origin: String
    let path: String
    /// The query without its `?`; nil without a `?`.
    let query: String?
    /// Identifies the trust policy; empty for the default one.
    let trust: String
    /// Identifies the user; empty for sessions without anything that distinguishes users.
    let partition: String
    /// The hash value of the other properties. A response that is stored is looked for in ten tables, and each would
    /// take 700 instructions for it.
    private let hash: Int

    /// The greatest length of a URL in bytes. A longer one is not stored.
    static let longestURL = 8 << 10

    init(
        method: String = "GET", origin: String, path: String, query: String?, trust: String = "",
        partition: String = ""
    ) {
        self.method = method
        self.origin = origin
        self.path = path
        self.query = query
        self.trust = trust
        self.partition = partition
        var hasher = Hasher()
        hasher.combine(method)
        hasher.combine(origin)
        hasher.combine(path)
        hasher.combine(query)
        hasher.combine(trust)
        hasher.combine(partition)
        hash = hasher.finalize()
    }

    func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    init(_ target: Target, method: Request.Method = .get, trust: String = "", partition: String = "") {
        self.init(
            method: method.rawValue, origin: target.origin, path: target.path, query: target.query, trust: trust,
            partition: partition)
    }

    /// The URL with its port.
    var url: String { origin + path + (query.map { "?" + $0 } ?? "") }

    /// The length of ``url`` in bytes.
    var urlLength: Int { origin.utf8.count + path.utf8.count + (query.map { $0.utf8.count + 1 } ?? 0) }

    /// Returns the key of another method.
    func with(method: String) -> CacheKey {
        CacheKey(method: method, origin: origin, path: path, query: query, trust: trust, partition: partition)
    }

    /// Returns the key of another user.
    func with(partition: String, trust: String) -> CacheKey {
        CacheKey(method: method, origin: origin, path: path, query: query, trust: trust, partition: partition)
    }

    /// Returns the key of another URL for the same user under the same trust policy.
    func with(target: Target) -> CacheKey {
        CacheKey(
            method: method, origin: target.origin, path: target.path, query: target.query, trust: trust,
            partition: partition)
    }

    /// Returns the key that all equivalent URLs share.
    func canonical(_ search: NoVarySearch) -> CacheKey {
        CacheKey(
            method: method, origin: origin, path: path, query: search.canonical(query), trust: trust,
            partition: partition)
    }

    /// Returns whether both differ in the method or in an equivalent query only.
    func isEquivalent(to other: CacheKey, under search: NoVarySearch) -> Bool {
        guard origin == other.origin, path == other.path, trust == other.trust, partition == other.partition else {
            return false
        }
        return query == other.query || search.canonical(query) == search.canonical(other.query)
    }

    /// Reads the form of ``text``; nil for another text.
    init?(text: String) {
        var rest = Array(text.utf8)[...]
        var parts: [String] = []
        for _ in 0..<3 {
            guard let colon = rest.firstIndex(of: UInt8(ascii: ":")),
                let count = FieldText.number(rest[..<colon], limit: 1 << 20)
            else { return nil }
            let first = colon + 1
            let end = first + Int(count)
            guard end < rest.endIndex, rest[end] == UInt8(ascii: " ") else { return nil }
            parts.append(String(decoding: rest[first..<end], as: UTF8.self))
            rest = rest[(end + 1)...]
        }
        let url = String(decoding: rest, as: UTF8.self)
        // The authority ends at the first slash after `://`.
        guard let scheme = url.firstRange(of: "://"), let slash = url[scheme.upperBound...].firstIndex(of: "/") else {
            return nil
        }
        let pathAndQuery = url[slash...]
        let mark = pathAndQuery.firstIndex(of: "?")
        self.init(
            method: parts[2], origin: String(url[..<slash]), path: String(pathAndQuery[..<(mark ?? url.endIndex)]),
            query: mark.map { String(pathAndQuery[pathAndQuery.index(after: $0)...]) }, trust: parts[1],
            partition: parts[0])
    }

    /// The parts in one text. Each part but the last has its length before it, so that no two keys give the same text.
    var text: String {
        [partition, trust, method].map { "\($0.utf8.count):\($0) " }.joined() + url
    }
}

/// A request as the rules see it.
struct CacheRequest: Sendable {
    let key: CacheKey
    /// The fields as they are sent, those that the session adds included.
    let headers: Headers
    let choice: Request.CacheChoice
    /// A digest of the request's own credentials; nil without any. A response to them answers no request with others.
    let credentials: String?
    let directives: RequestDirectives
    /// The range of a GET request; nil without one.
    let range: RangeRequest?
    let entityTags: EntityTagList?
    let ifModifiedSince: String?

    init(key: CacheKey, headers: Headers, choice: Request.CacheChoice = .useProtocol, credentials: String? = nil) {
        self.key = key
        self.headers = headers
        self.choice = choice
        self.credentials = credentials
        directives = RequestDirectives(headers)
        // Defined for GET alone (RFC 9110 §14.2).
        range = key.method == "GET" ? RangeRequest(headers) : nil
        entityTags = EntityTagList(headers)
        ifModifiedSince = headers["If-Modified-Since"]
    }

    var isHead: Bool { key.method == "HEAD" }

    /// Whether only a stored response answers the request.
    var mustNotBeSent: Bool { choice == .onlyStored || directives.onlyIfCached }

    /// Whether the caller asks on its own whether a response has changed.
    var isConditional: Bool { entityTags != nil || ifModifiedSince != nil }

    /// Returns whether a request with the condition that validates an entry has no other condition of the caller: the
    /// caller has none, or the same one.
    func isConditional(onlyOn entry: CacheEntry) -> Bool {
        let tags = headers.values(for: "If-None-Match")
        if !tags.isEmpty {
            guard tags.count == 1, let own = entry.validators.tag, tags[0].hasSameBytes(as: own.text) else {
                return false
            }
        }
        // The date of the entry takes the place of the caller's, except in a request for a range.
        return ifModifiedSince == nil || range == nil && entry.validators.lastModified != nil
    }

    /// Returns the fields that take the place of the request's own when it is sent: those of a condition, and the
    /// directive by which the caches on the way follow the choice of the caller, too (RFC 9111 §5.2.1).
    ///
    /// - Parameter isRefresh: Whether the cache itself made the choice.
    func additions(_ condition: CacheCondition?, isRefresh: Bool) -> Headers {
        var fields = condition?.headers ?? [:]
        // The rest of a part has its coding. Without the field, a request for a range asks for none.
        if condition?.missing != nil { fields["Accept-Encoding"] = headers["Accept-Encoding"] }
        if isRefresh || headers.contains("Cache-Control") { return fields }
        switch choice {
        case .revalidate: fields["Cache-Control"] = "max-age=0"
        case .reload: fields["Cache-Control"] = "no-cache"
        case .useProtocol, .preferStored, .onlyStored, .noStore: break
        }
        return fields
    }

    /// Whether the request has a condition that only an origin server evaluates (RFC 9111 §4.3.2).
    var hasOriginCondition: Bool { headers.contains("If-Match") || headers.contains("If-Unmodified-Since") }
}
