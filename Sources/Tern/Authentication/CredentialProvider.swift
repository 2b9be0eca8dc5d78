/// Gives credentials to the requests of a session that are challenged.
///
/// ```swift
/// struct Vault: CredentialProvider {
///     func credential(for challenge: AuthenticationChallenge, of request: Request) async throws -> Credential? {
/// Every server that a URL or a redirect leads to can ask for a credential, and a proxy can, too.
///         guard challenge.source == .server, challenge.origin == "https://api.example.com:443",
///             challenge.previousFailures == 0
///         else { return nil }
///         return .user("ada", password: try await secret())
///     }
/// }
/// ```
public protocol CredentialProvider: Sendable {
    /// The credential for a challenge; nil if there is none, and the challenge is then the response.
    ///
    /// Every server that the request or a redirect leads to can ask for a credential. `challenge.origin` names the
    /// server, and `challenge.source` tells a server from a proxy. Tern accepts the challenge of a proxy only when the
    /// proxy received a plain http request whole. A 407 from any other server, or from a server behind a tunnel, is the
    /// response.
    ///
    /// Asked again with a higher `previousFailures` when the server refuses what was given; the same credential given
    /// twice ends that. Called in the task's own Swift task. What is thrown fails the task.
    @concurrent func credential(
        for challenge: AuthenticationChallenge, of request: Request
    ) async throws -> Credential?

    /// The credential to be sent before anybody asks for it: a token as Bearer, a user name and password as Basic, which
    /// only https keeps secret. nil, the default, waits for the challenge.
    @concurrent func preemptiveCredential(for request: Request) async throws -> Credential?
}

extension CredentialProvider {
    /// None: credentials are sent when they are asked for.
    @concurrent public func preemptiveCredential(for request: Request) async throws -> Credential? { nil }
}

/// Fixed credentials, each for one origin.
public struct FixedCredentials: CredentialProvider {
    let byOrigin: [String: Credential]
    private let isPreemptive: Bool

    /// Credentials by the URL they are for, such as `https://api.example.com`: scheme, host and port count, the path does
    /// not.
    ///
    /// - Parameter isPreemptive: Whether they are sent before they are asked for.
    /// - Throws: `NetworkError` of kind `.invalidRequest` for what is no http or https URL.
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

    /// The credential of the challenge's origin, once.
    @concurrent public func credential(
        for challenge: AuthenticationChallenge, of request: Request
    ) async throws -> Credential? {
        challenge.source == .server && challenge.previousFailures == 0 ? byOrigin[challenge.origin] : nil
    }

    /// The credential of the request's origin, if they are preemptive.
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
