import Synchronization

/// The settings of a request that few requests have. Immutable: a change makes another object.
///
/// One reference: a copy of a request retains one object, not one for each setting. The transport reads it, too.
package final class RequestOptions: Sendable {
    struct Fields: Sendable {
        var timeouts: Timeouts?
        var label: String?
        /// nil in place of an empty one, for a smaller object.
        var userInfo: Request.UserInfo?
        var maximumBodySize: Int?
        var expectsContinue = false
        var unixSocketPath: String?
        var interceptors: [any Interceptor] = []
        var policy: (any SessionPolicy)?
        var cookies: CookieUse?
        var cache = Request.CacheChoice.useProtocol
        var isLive = false
        var onQueueChange: (@Sendable (_ isQueued: Bool) -> Void)?
        /// Whether Tern's own event streams and durable transfers send the request again (`Request.isRetriedByCaller`).
        var isRetriedByCaller = false
        /// Whether a server has moved the request to another origin, now or earlier (`move(to:)`).
        var hasLeftOrigin = false
        var bufferLimit: Int?
        var chunkLimit: Int?
        var onInterimResponse: (@Sendable (ResponseHead) -> Void)?
        var avoidsHTTP2 = false
        var sendsDefaultFields = true
        var http3: Session.Configuration.HTTP3Use?
        var validation: ResponseValidation?
        var redirects: Session.Configuration.Redirects?
        var trust: TrustPolicy?
        /// The request's trust policy and its origin, while a redirect has led to another origin.
        var suspendedTrust: Request.OriginTrust?
        var credentials: (any CredentialProvider)?
        /// Identifies the request's own provider and policy. An authorization that one owner obtained is never sent
        /// for another.
        var credentialScope: UInt64?
        /// The headers that the client added.
        var clientHeaders: ClientHeaders?
    }

    let fields: Fields

    init(_ fields: Fields) { self.fields = fields }

    /// Creates the value that all requests of a client share.
    convenience init(_ headers: ClientHeaders) {
        var fields = Fields()
        fields.clientHeaders = headers
        self.init(fields)
    }

    private static let lastCredentialScope = Atomic<UInt64>(0)

    /// Returns the identity of a provider or a policy of one request.
    static func nextCredentialScope() -> UInt64 {
        lastCredentialScope.wrappingAdd(1, ordering: .relaxed).newValue
    }
}
