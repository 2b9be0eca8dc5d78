/// The record of how the cache of a session handled one response (`ResponseHead.cacheTrace`).
///
/// ```swift
/// let response = try await client.response(for: try client.request(.get, "articles/7"))
/// print(response.cacheTrace?.description ?? "no cache")
/// // stored: the stored response is fresh; age 42 s
/// ```
public struct CacheTrace: Sendable, Hashable {
    /// The origin of a response.
    public enum Source: String, Sendable, Hashable, CaseIterable {
        /// A stored response, without a request to the server.
        case stored
        /// A stored response that is not fresh any more, without the server's confirmation.
        case stale
        /// A stored response after the server's confirmation (304).
        case validated
        /// The server.
        case network
    }

    /// The origin of the response.
    public let source: Source
    /// The reason why the request was answered from the store, or was sent, such as `fresh` or `nothing-stored`.
    public let reason: String
    /// The reason in words.
    public let explanation: String
    /// The result of storing the response, such as `stored`, `no-store` or `no-validator-and-no-lifetime`; `arriving`
    /// until the body is stored or given up; nil if no response came from the server.
    public let storing: String?
    /// A Boolean value that indicates whether the response is in the store. It becomes true when the body has arrived
    /// and is stored.
    public let isStored: Bool
    /// A Boolean value that indicates whether the request waited for an equal one and shares its response.
    public let isShared: Bool
    /// The age of the stored response; nil for one from the server.
    public let age: Duration?
    /// The time for which the response is still fresh: negative if it is stale, nil if it has no lifetime.
    public let timeToLive: Duration?
    /// The record as the value of a `Cache-Status` field (RFC 9211), for logs and for servers that pass responses on.
    public let cacheStatus: String

    package init(
        source: Source, reason: String, explanation: String, storing: String?, isStored: Bool, isShared: Bool,
        age: Duration?, timeToLive: Duration?, cacheStatus: String
    ) {
        self.source = source
        self.reason = reason
        self.explanation = explanation
        self.storing = storing
        self.isStored = isStored
        self.isShared = isShared
        self.age = age
        self.timeToLive = timeToLive
        self.cacheStatus = cacheStatus
    }

    /// The value of `storing` until the body has arrived and is stored or given up.
    package static let isArriving = "arriving"

    /// A Boolean value that indicates whether a stored response answered without the server's confirmation. The request
    /// can have been sent before, and failed.
    public var isHit: Bool { source == .stored || source == .stale }
}

extension CacheTrace: CustomStringConvertible {
    /// One line: the origin, the reason and what was stored.
    public var description: String {
        var text = "\(source.rawValue): \(explanation)"
        if let age { text += "; age \(age.components.seconds) s" }
        switch storing {
        case Self.isArriving?: text += "; not stored yet"
        case let storing?: text += isStored ? "; stored" : "; not stored: \(storing)"
        case nil: break
        }
        return text
    }
}

/// The trace of a response that is still arriving: the record changes once, when the body is stored.
package protocol CacheTraceSource: AnyObject, Sendable {
    /// The present record.
    var trace: CacheTrace { get }
}

extension Request {
    /// The choice of a request between stored responses and the network, for sessions with a cache. Without a cache,
    /// only ``onlyStored`` has an effect: the request fails.
    public enum CacheChoice: String, Sendable, Hashable, CaseIterable {
        /// Follows the rules of RFC 9111: a fresh stored response, or else the network. The default.
        case useProtocol
        /// Uses the network. The response is stored. Sent with `Cache-Control: no-cache`, for the caches on the way,
        /// unless the request has a `Cache-Control` of its own.
        case reload
        /// Uses a stored response after the server has confirmed it. A fresh response with `immutable` needs no
        /// confirmation (RFC 8246). Sent with `Cache-Control: max-age=0`, for the caches on the way, unless the request
        /// has a `Cache-Control` of its own.
        case revalidate
        /// Uses a stored response whatever its age, or else the network.
        case preferStored
        /// Uses a stored response whatever its age, or else fails with an error of kind `.notStored`.
        case onlyStored
        /// Uses the network. Nothing is stored.
        case noStore
    }
}
