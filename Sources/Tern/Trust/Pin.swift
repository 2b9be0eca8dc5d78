#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a certificate chain must hold, besides leading to an anchor.
public struct Pin: Sendable, Hashable {
    enum Content: Hashable {
        /// SHA-256 of a SubjectPublicKeyInfo.
        case key(Data)
        /// SHA-256 of a certificate.
        case certificate(Data)
    }

    let content: Content

    /// A public key by the SHA-256 of its SubjectPublicKeyInfo, in base64, with or without `sha256/` before it: what
    /// `openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64` prints
    /// (RFC 7469 §2.4). A key outlives the certificates that are made for it.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the text is not the base64 of 32 bytes.
    public init(key text: String) throws(NetworkError) {
        let digits = text.hasPrefix("sha256/") ? text.dropFirst(7) : text[...]
        guard let hash = Data(base64Encoded: String(digits)), hash.count == 32 else {
            throw NetworkError(
                .invalidRequest, reason: "a pin is the base64 of 32 bytes, not \"\(text.printable(limit: 80))\"")
        }
        content = .key(hash)
    }

    private init(_ content: Content) { self.content = content }

    /// The public key of a certificate.
    public static func key(of certificate: Certificate) -> Pin { Pin(.key(certificate.keyHash)) }

    /// A certificate itself: its renewal needs a new pin.
    public static func certificate(_ certificate: Certificate) -> Pin { Pin(.certificate(certificate.fingerprint)) }

    func fits(_ certificate: Certificate) -> Bool {
        switch content {
        case .key(let hash): certificate.keyHash == hash
        case .certificate(let hash): certificate.fingerprint == hash
        }
    }
}

extension Pin: CustomStringConvertible {
    /// `sha256/…` for a key, `certificate sha256/…` for a certificate.
    public var description: String {
        switch content {
        case .key(let hash): "sha256/\(hash.base64EncodedString())"
        case .certificate(let hash): "certificate sha256/\(hash.base64EncodedString())"
        }
    }
}
