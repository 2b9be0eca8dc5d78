/// What proves who sends a request. Its descriptions show no secret.
public struct Credential: Sendable, Hashable {
    enum Content: Hashable {
        case password(user: String, password: String)
        case token(String)
    }

    let content: Content

    /// A user name and a password, for the schemes Digest and Basic.
    public static func user(_ user: String, password: String) -> Credential {
        Credential(content: .password(user: user, password: password))
    }

    /// A token, for the scheme Bearer (RFC 6750).
    public static func bearer(_ token: String) -> Credential { Credential(content: .token(token)) }

    /// The user name; nil for a token.
    public var user: String? {
        if case .password(let user, _) = content { user } else { nil }
    }

    /// The credential that stands in a URL, as in `https://user:password@host/`.
    package init?(of target: Target) {
        guard target.user != nil || target.password != nil else { return nil }
        content = .password(user: target.user ?? "", password: target.password ?? "")
    }

    init(content: Content) { self.content = content }
}

extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind of credential; neither user name, password nor token.
    public var description: String {
        switch content {
        case .password: "Credential(user: <redacted>, password: <redacted>)"
        case .token: "Credential(bearer: <redacted>)"
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Nothing: what `dump` would show is secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
