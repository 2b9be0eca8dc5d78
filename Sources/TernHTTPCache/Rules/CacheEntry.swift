import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The head of a stored response with the circumstances of its exchange, and the values that the rules derive from it.
///
/// A class, because the rules read the derived values for each request, and they are calculated once.
final class CacheEntry: Sendable {
    /// The stored bytes of the body.
    enum Content: Sendable, Hashable {
        /// The whole body, of this length. A response to HEAD has none.
        case whole(Int64)
        /// A part of the body, and the length of the whole if it is known.
        case part(ByteRange, total: Int64?)
    }

    /// The stored properties.
    struct Properties: Sendable, Hashable {
        /// Identifies the stored body.
        var id: UInt64
        /// The key of the request.
        var key: CacheKey
        var status: Int
        var version: HTTPVersion
        var reasonPhrase = ""
        /// The stored fields.
        var headers: Headers
        var requestTime: CacheTime
        var responseTime: CacheTime
        /// The fields of the requests that selected the response. One of them must match.
        var selections: [VarySelection]
        /// A digest of the request's own credentials.
        var credentials: String?
        var content: Content
        /// Whether the response must be validated before its next use, whatever its directives say.
        var mustValidate = false
        /// The greatest freshness lifetime, by the caller's policy; nil for that of the rules.
        var lifetimeLimit: Duration?
        /// Texts of the caller, in the order of their names.
        var userInfo: [String: String] = [:]
    }

    let properties: Properties
    /// The body that a store read together with the head; nil if it is to be read by itself.
    let bodyBesideHead: Data?
    let directives: ResponseDirectives
    let freshness: CacheFreshness
    let validators: Validators
    let search: NoVarySearch
    let vary: Vary
    /// The time that decides which of two responses is newer: `Date`, or the time of the response.
    let date: CacheTime

    /// The greatest number of selections of one entry.
    static let selectionLimit = 16
    /// The greatest number of the caller's texts of one entry.
    static let userInfoLimit = 64

    /// Creates an entry.
    ///
    /// - Parameter directives: The directives of the fields; nil to read them.
    init(_ properties: Properties, bodyBesideHead: Data? = nil, directives: ResponseDirectives? = nil) {
        self.properties = properties
        self.bodyBesideHead = bodyBesideHead
        let headers = properties.headers
        let directives = directives ?? ResponseDirectives(headers)
        self.directives = directives
        // Read once: a date takes 3,000 instructions.
        let sent = CacheDates.time(of: "Date", in: headers, now: properties.responseTime)
        date = sent ?? properties.responseTime
        validators = Validators(headers, date: sent, responseTime: properties.responseTime)
        freshness = CacheFreshness(
            status: properties.status, headers: headers, directives: directives, date: sent,
            lastModified: validators.lastModifiedTime, requestTime: properties.requestTime,
            responseTime: properties.responseTime, limit: properties.lifetimeLimit)
        search = NoVarySearch(headers)
        vary = Vary(headers)
    }

    var id: UInt64 { properties.id }
    var key: CacheKey { properties.key }
    var status: Int { properties.status }
    var headers: Headers { properties.headers }
    var content: Content { properties.content }

    /// Returns the entry with other properties. Its body is to be read again, because it can be gone in the meantime.
    func changing(_ change: (inout Properties) -> Void) -> CacheEntry {
        var properties = properties
        change(&properties)
        return properties.derivesLike(self.properties) ? CacheEntry(properties, like: self) : CacheEntry(properties)
    }

    /// Creates an entry whose derived values are those of another one.
    private init(_ properties: Properties, like other: CacheEntry) {
        self.properties = properties
        bodyBesideHead = nil
        directives = other.directives
        freshness = other.freshness
        validators = other.validators
        search = other.search
        vary = other.vary
        date = other.date
    }

    /// Whether the whole body is stored.
    var isWhole: Bool {
        if case .whole = content { true } else { false }
    }

    /// The length of the whole body; nil if it is not known.
    var total: Int64? {
        switch content {
        case .whole(let count): count
        case .part(_, let total): total
        }
    }

    /// The groups of the response (RFC 9875); at most 64.
    var groups: [String] { Array((StructuredFields.strings("Cache-Groups", in: headers) ?? []).prefix(64)) }

    /// Returns whether the response is one of the request's URL, method, trust policy, partition and credentials.
    ///
    /// A response to a request without credentials of its own also answers requests with some, because the origin did
    /// not say that they make a difference. The other way around, one user would see the response of another.
    func isCandidate(for request: CacheRequest) -> Bool {
        guard key.method == request.key.method || request.isHead && key.method == "GET" else { return false }
        guard properties.credentials == nil || properties.credentials == request.credentials else { return false }
        return key.isEquivalent(to: request.key, under: search)
    }

    /// Returns whether a response may change the entry, of which it tells that it is current or outdated.
    ///
    /// A response to a request with credentials, or one that sets cookies, is about one user. It does not change an
    /// entry that answers the requests of others. An entry whose request sent cookies belongs to their store, as its
    /// key does.
    func mayBeChanged(by headers: Headers, to request: CacheRequest) -> Bool {
        guard properties.credentials == request.credentials else { return false }
        let isOfOneUser = properties.credentials != nil || request.headers.contains("Cookie")
        return isOfOneUser || !headers.contains { StoredFields.isCookie($0.name) }
    }

    /// Returns whether the fields that selected the response are those of the request (RFC 9111 §4.1).
    func isSelected(by request: CacheRequest) -> Bool {
        guard case .names(let names) = vary else { return false }
        return names.isEmpty || properties.selections.contains { $0.matches(request.headers) }
    }

    /// Returns whether the other entry is newer, or as new and received later.
    func isOlder(than other: CacheEntry) -> Bool {
        let (mine, theirs) = (date, other.date)
        return mine == theirs ? properties.responseTime < other.properties.responseTime : mine < theirs
    }
}

extension CacheEntry.Properties {
    /// Returns whether the values that an entry derives from both are the same.
    fileprivate func derivesLike(_ other: Self) -> Bool {
        status == other.status && requestTime == other.requestTime && responseTime == other.responseTime
            && lifetimeLimit == other.lifetimeLimit && headers == other.headers
    }
}
