/// The reason of a decision, for the trace and `Cache-Status`.
enum CacheReason: String, Sendable, Hashable, CaseIterable {
    // Answers from the store.
    case fresh
    case immutable
    case maxStale = "max-stale"
    case staleWhileRevalidate = "stale-while-revalidate"
    case staleIfError = "stale-if-error"
    case disconnected
    case storedPreferred = "stored-preferred"
    case validated

    // Requests that go to the network.
    case method
    case nothingStored = "nothing-stored"
    case noVariant = "no-variant"
    case stale
    case mustValidate = "must-validate"
    case partial
    case requestNoStore = "request-no-store"
    case requestNoCache = "request-no-cache"
    case requestMaxAge = "request-max-age"
    case requestMinFresh = "request-min-fresh"
    case reload
    case revalidate
    case originCondition = "origin-condition"
    case rangeNotSupported = "range-not-supported"

    // Responses.
    case stored
    case combined
    case updatedByHead = "updated-by-head"
    case changedByHead = "changed-by-head"
    case unsafeMethod = "unsafe-method"
    case errorStatus = "error-status"
    case statusNotStored = "status-not-stored"
    case statusNotUnderstood = "status-not-understood"
    case noStore = "no-store"
    case varyEverything = "vary-everything"
    case notUsable = "no-validator-and-no-lifetime"
    case headTooLarge = "head-too-large"
    case urlTooLong = "url-too-long"
    case ofOneUser = "of-one-user"
    case ownCondition = "own-condition"
    case unknownValidator = "unknown-validator"
    case malformedRange = "malformed-range"
    case incomplete
    case otherRepresentation = "other-representation"

    // The store.
    case policy
    case bodyTooLarge = "body-too-large"
    case damaged
    case storeBusy = "store-busy"
    case storeFailed = "store-failed"
    case storeUnavailable = "store-unavailable"
    case arriving

    /// The reason in words.
    var text: String {
        switch self {
        case .fresh: "the stored response is fresh"
        case .immutable: "the stored response is fresh and immutable"
        case .maxStale: "the request accepts a stale response"
        case .staleWhileRevalidate: "the stored response may be used while it is revalidated"
        case .staleIfError: "the stored response may be used after an error"
        case .disconnected: "a stale response is used, because the server cannot be reached"
        case .storedPreferred: "the request prefers a stored response of any age"
        case .validated: "the server confirmed the stored response"
        case .method: "the method is not cached"
        case .nothingStored: "nothing is stored for the URL"
        case .noVariant: "no stored response matches the fields that Vary names"
        case .stale: "the stored response is stale"
        case .mustValidate: "the stored response must be validated before each use"
        case .partial: "only a part of the body is stored"
        case .requestNoStore: "the request forbids storing"
        case .requestNoCache: "the request asks for validation"
        case .requestMaxAge: "the stored response is older than the request accepts"
        case .requestMinFresh: "the stored response does not stay fresh for as long as the request asks"
        case .reload: "the request asks for a new response"
        case .revalidate: "the request asks for a revalidation"
        case .originCondition: "the request has a condition that only the server evaluates"
        case .rangeNotSupported: "the request has several ranges, or a range of another unit"
        case .stored: "the response is stored"
        case .combined: "the part is combined with the stored one"
        case .updatedByHead: "the stored response is updated by the response to HEAD"
        case .changedByHead: "the response to HEAD shows that the stored response is outdated"
        case .unsafeMethod: "the method can change the resource"
        case .errorStatus: "the request failed, so that the resource is unchanged"
        case .statusNotStored: "responses with this status are not stored"
        case .statusNotUnderstood: "the response has must-understand, and its status is unknown"
        case .noStore: "the response has no-store"
        case .varyEverything: "the response has Vary: *"
        case .notUsable: "the response has neither a validator nor a lifetime"
        case .headTooLarge: "the header fields exceed 48 KiB or 500 fields"
        case .urlTooLong: "the URL is longer than 8 KiB"
        case .ofOneUser: "the response is about one user, and the stored one answers all users"
        case .ownCondition: "the response answers the caller's own condition"
        case .unknownValidator: "the 304 response matches no stored response"
        case .malformedRange: "the Content-Range is malformed, or is not that of the request"
        case .incomplete: "the body did not arrive completely"
        case .otherRepresentation: "the part belongs to another representation"
        case .policy: "the policy forbids storing"
        case .bodyTooLarge: "the body exceeds the limit"
        case .damaged: "the body cannot be decompressed"
        case .storeBusy: "the disk is too slow: too many bytes wait to be written"
        case .storeFailed: "the response could not be written to the store"
        case .storeUnavailable: "the store cannot be opened"
        case .arriving: "the body has not arrived yet"
        }
    }
}
