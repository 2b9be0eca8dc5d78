/// Provides the credentials for requests of a session that are challenged.
///
/// ```swift
/// struct Vault: CredentialProvider {
///     func credential(for challenge: AuthenticationChallenge, of request: Request) async throws -> Credential? {
///         // Every server that a URL or a redirect leads to can ask for a credential, and a proxy can, too.
///         guard challenge.source == .server, challenge.origin == "https://api.example.com:443",
///             challenge.previousFailures == 0
///         else { return nil }
///         return .user("ada", password: try await secret())
///     }
/// }
/// ```
public protocol CredentialProvider: Sendable {
    /// Returns the credential for a challenge; nil if there is none, so that the challenge becomes the response.
    ///
    /// Every server that the request or a redirect leads to can ask for a credential. `challenge.origin` names the
    /// server, and `challenge.source` distinguishes a server from a proxy. Tern accepts the challenge of a proxy only
    /// when the proxy received a plain http request whole. A 407 from any other server, or from a server behind a
    /// tunnel, is the response.
    ///
    /// Called again with a higher `previousFailures` when the server refuses the credential. Returning the same
    /// credential twice makes the challenge the response. Called in the task's own Swift task, or in a child of it,
    /// which is cancelled when a time limit is reached. An error thrown here fails the task.
    @concurrent func credential(
        for challenge: AuthenticationChallenge, of request: Request
    ) async throws -> Credential?

    /// Returns the credential to send before a challenge: Bearer for a token, Basic for a user name and password. Only
    /// https keeps it secret. The default, nil, waits for the challenge.
    @concurrent func preemptiveCredential(for request: Request) async throws -> Credential?
}

extension CredentialProvider {
    /// Returns nil: credentials are sent only in answer to a challenge.
    @concurrent public func preemptiveCredential(for request: Request) async throws -> Credential? { nil }
}

/// Fixed credentials, each for one origin.
public struct FixedCredentials: CredentialProvider {
    let byOrigin: [String: Credential]
    private let isPreemptive: Bool

    /// Creates a provider from credentials by URL, such as `https://api.example.com`. Scheme, host and port count; the
    /// path does not.
    ///
    /// - Parameter isPreemptive: A Boolean value that indicates whether credentials are sent before a challenge.
    /// - Throws: `NetworkError` of kind `.invalidRequest` for a text that is not an http or https URL.
    public init(_ credentials: [String: Credential], isPreemptive: Bool = false) throws(NetworkError) {
        var byOrigin: [String: Credential] = [:]
        for (url, credential) in credentials {
            do throws(Target.Problem) {
                byOrigin[try Target(absolute: url).origin] = credential
            } catch {
                throw NetworkError(.invalidRequest, reason: "no credential can be for this: \(error.reason)")
            }
        }
        self.byOrigin = byOrigin
        self.isPreemptive = isPreemptive
    }

    /// Returns the credential of the challenge's origin, once for each request.
    @concurrent public func credential(
        for challenge: AuthenticationChallenge, of request: Request
    ) async throws -> Credential? {
        challenge.source == .server && challenge.previousFailures == 0 ? byOrigin[challenge.origin] : nil
    }

    /// Returns the credential of the request's origin, if credentials are preemptive.
    @concurrent public func preemptiveCredential(for request: Request) async throws -> Credential? {
        isPreemptive ? byOrigin[request.target.origin] : nil
    }
}

extension FixedCredentials: CustomStringConvertible, CustomReflectable {
    /// The origins, without user names, passwords and tokens.
    public var description: String { "FixedCredentials(\(byOrigin.keys.sorted().joined(separator: ", ")))" }

    /// An empty mirror. Without it, `dump` would show the secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
