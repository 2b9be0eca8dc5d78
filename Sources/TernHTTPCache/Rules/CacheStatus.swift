import Tern

/// The record of how a cache handled a request, and its text as a `Cache-Status` field (RFC 9211).
struct CacheHandling: Sendable, Hashable {
    /// The result of looking for a stored response.
    enum Result: Sendable, Hashable {
        /// The request was answered without the network.
        case hit(CacheReason)
        /// The request was sent, for this reason.
        case forwarded(CacheReason)
        /// The request was sent, and a stale response answered it in place of an error, for the first reason.
        case staleAfterError(CacheReason, forwarded: CacheReason)
    }

    var result: Result
    /// The status of the response to the forwarded request; nil without one.
    var forwardedStatus: Int?
    /// The action after the response; nil without one.
    var outcome: CacheReason?
    /// Whether the response was stored.
    var isStored = false
    /// Whether the request shared the response of another one.
    var isCollapsed = false
    /// The remaining freshness lifetime of the response; negative if it is stale, nil if it is not known.
    var timeToLive: Duration?

    /// The value of the `forward` parameter (RFC 9211 §2.2).
    private static func forward(_ reason: CacheReason) -> String {
        switch reason {
        case .method: "method"
        case .nothingStored: "uri-miss"
        case .noVariant: "vary-miss"
        case .stale, .mustValidate: "stale"
        case .partial: "partial"
        case .requestNoStore, .originCondition, .rangeNotSupported: "bypass"
        case .requestNoCache, .requestMaxAge, .requestMinFresh, .reload, .revalidate: "request"
        default: "miss"
        }
    }

    /// Returns the member of the field for this cache.
    ///
    /// - Parameter name: The name of the cache. Written as a token if it is one, or else as a string.
    func text(name: String) -> String {
        var text = Self.item(name)
        switch result {
        case .hit(let reason):
            text += "; hit"
            if let ttl = ttlText { text += ttl }
            if reason != .fresh { text += "; detail=\(Self.item(reason.rawValue))" }
        case .forwarded(let reason):
            text += "; fwd=\(Self.forward(reason))"
            if let forwardedStatus { text += "; fwd-status=\(forwardedStatus)" }
            if let ttl = ttlText { text += ttl }
            if isStored { text += "; stored" }
            if isCollapsed { text += "; collapsed" }
            if let outcome, outcome != .stored { text += "; detail=\(Self.item(outcome.rawValue))" }
        case .staleAfterError(let reason, let forwarded):
            text += "; fwd=\(Self.forward(forwarded))"
            if let forwardedStatus { text += "; fwd-status=\(forwardedStatus)" }
            if let ttl = ttlText { text += ttl }
            text += "; detail=\(Self.item(reason.rawValue))"
        }
        return text
    }

    private var ttlText: String? {
        timeToLive.map { "; ttl=\($0.components.seconds)" }
    }

    /// Writes a token or a string of structured fields (RFC 9651 §3.3). Characters that a string cannot have are left
    /// out.
    private static func item(_ text: String) -> String {
        let bytes = Array(text.utf8)
        if let first = bytes.first, (0x61...0x7A).contains(first.asciiLowercased) || first == 0x2A,
            bytes.allSatisfy({ ByteSet.token.contains($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") })
        {
            return text
        }
        var result: [UInt8] = [.quote]
        for byte in bytes where (0x20...0x7E).contains(byte) {
            if byte == .quote || byte == .backslash { result.append(.backslash) }
            result.append(byte)
        }
        return String(decoding: result + [.quote], as: UTF8.self)
    }
}
