/// Knows how one kind of credential is used, told to be spent, and renewed: an access token and its refresh token, say.
public protocol Authenticator: Sendable {
    /// What proves who is asking.
    associatedtype Credential: Sendable

    /// Puts a credential on a request, most often as `Authorization`.
    func apply(_ credential: Credential, to request: inout Request)

    /// A new credential, in place of one that is spent; nil: there is none yet.
    ///
    /// Never called twice at a time. Requests that it makes pass the interceptor by, whatever session they use: no
    /// refresh ever waits for itself.
    @concurrent func refresh(_ credential: Credential?) async throws -> Credential

    /// Whether a credential is about to run out: it is then renewed before it is used. False by default.
    func needsRefresh(_ credential: Credential) -> Bool

    /// Whether an error says that the server refused the credential. Status 401 by default.
    func isRefused(_ credential: Credential, by error: NetworkError) -> Bool
}

extension Authenticator {
    /// False: it is used until a server refuses it.
    public func needsRefresh(_ credential: Credential) -> Bool { false }

    /// Whether the status is 401 (RFC 9110 §15.5.2).
    public func isRefused(_ credential: Credential, by error: NetworkError) -> Bool { error.status == 401 }
}
