/// A user name and password, or a token, that identifies the sender of a request. Its descriptions show no secret.
public struct Credential: Sendable, Hashable {
    enum Content: Hashable {
        case password(user: String, password: String)
        case token(String)

        /// Compares the bytes: a server that refuses a password can accept one that is only canonically equivalent.
        static func == (left: Self, right: Self) -> Bool {
            switch (left, right) {
            case (.password(let user, let password), .password(let otherUser, let otherPassword)):
                user.hasSameBytes(as: otherUser) && password.hasSameBytes(as: otherPassword)
            case (.token(let token), .token(let other)): token.hasSameBytes(as: other)
            case (.password, .token), (.token, .password): false
            }
        }
    }

    let content: Content

    /// Creates a credential from a user name and a password, for the schemes Digest and Basic.
    public static func user(_ user: String, password: String) -> Credential {
        Credential(content: .password(user: user, password: password))
    }

    /// Creates a credential from a token, for the scheme Bearer (RFC 6750).
    public static func bearer(_ token: String) -> Credential { Credential(content: .token(token)) }

    /// The user name; nil for a token.
    public var user: String? {
        if case .password(let user, _) = content { user } else { nil }
    }

    /// Creates the credential that a URL contains, as in `https://user:password@host/`; nil without one.
    package init?(of target: Target) {
        guard target.user != nil || target.password != nil else { return nil }
        content = .password(user: target.user ?? "", password: target.password ?? "")
    }

    init(content: Content) { self.content = content }
}

extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind of the credential, without user name, password or token.
    public var description: String {
        switch content {
        case .password: "Credential(user: <redacted>, password: <redacted>)"
        case .token: "Credential(bearer: <redacted>)"
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// An empty mirror. Without it, `dump` would show the secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
