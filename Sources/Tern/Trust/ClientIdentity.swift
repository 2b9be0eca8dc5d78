#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A certificate with its private key, to show to servers that ask for one. Its descriptions show neither key nor password.
public struct ClientIdentity: Sendable, Hashable {
    enum Content: Hashable {
        case pem(certificates: Data, key: Data)
        case pkcs12(Data)
    }

    let content: Content
    let password: String?

    /// A certificate, with those that lead to its authority behind it, and its key, in PEM form.
    ///
    /// - Parameters:
    ///   - certificates: The certificates, the identity's own first.
    ///   - key: The private key (PKCS#8, PKCS#1 or SEC 1).
    ///   - password: Of an encrypted key; nil for one that is not.
    public static func pem(certificates: Data, key: Data, password: String? = nil) -> ClientIdentity {
        ClientIdentity(content: .pem(certificates: certificates, key: key), password: password)
    }

    /// A certificate and its key in one PKCS#12 file (RFC 7292).
    public static func pkcs12(_ bytes: Data, password: String) -> ClientIdentity {
        ClientIdentity(content: .pkcs12(bytes), password: password)
    }

    private init(content: Content, password: String?) {
        self.content = content
        self.password = password
    }
}

extension ClientIdentity: CustomStringConvertible, CustomReflectable {
    /// The form of the identity, and nothing of what is in it.
    public var description: String {
        switch content {
        case .pem: "ClientIdentity(PEM)"
        case .pkcs12: "ClientIdentity(PKCS#12)"
        }
    }

    /// Nothing: what `dump` would show is secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
