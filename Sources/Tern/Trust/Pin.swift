#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A key or a certificate that a certificate chain must contain, besides leading to an anchor.
public struct Pin: Sendable, Hashable {
    enum Content: Hashable {
        /// The SHA-256 of a SubjectPublicKeyInfo.
        case key(Data)
        /// The SHA-256 of a certificate.
        case certificate(Data)
    }

    let content: Content

    /// Creates a pin from the SHA-256 of a public key's SubjectPublicKeyInfo, in base64, with or without the prefix
    /// `sha256/`.
    ///
    /// `openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64` prints
    /// the text (RFC 7469 §2.4). A key outlives the certificates that are made for it.
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

    /// Returns a pin of a certificate's public key.
    public static func key(of certificate: Certificate) -> Pin { Pin(.key(certificate.keyHash)) }

    /// Returns a pin of the certificate itself. A renewed certificate needs a new pin.
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

/// The result of comparing a policy's pins with a chain that leads to its anchors.
enum TrustVerdict: Hashable {
    case accepted
    /// Accepted although no pin matches; the text is reported.
    case reported(String)
    /// Refused, with the reason.
    case refused(String)
}

extension TrustPolicy {
    /// Compares the pins with a certificate chain.
    ///
    /// - Parameters:
    ///   - host: The host of the connection.
    ///   - chain: The verified chain, the server's own certificate first. Without verification, the chain that the
    ///     server sent.
    ///   - now: The time to compare with the expiry of the pins.
    func verdict(on chain: [Certificate], of host: String, now: Date) -> TrustVerdict {
        guard let pins else { return .accepted }
        if let pinsExpire, pinsExpire <= now { return .accepted }
        // Without verification, a server proves possession of its own key only, and of none of the other certificates
        // it sends.
        let candidates = pinScope == .leaf || anchors == .none ? chain.prefix(1) : chain[...]
        if candidates.contains(where: { certificate in pins.contains { $0.fits(certificate) } }) { return .accepted }
        let found = candidates.map { "\($0)" }.joined(separator: ", ")
        let expected = pins.isEmpty ? "nothing, for there are no pins" : pins.map { "\($0)" }.joined(separator: " or ")
        let reason = "no pin for \(host) fits: found \(found.isEmpty ? "no certificate" : found); expected \(expected)"
        return isReportOnly ? .reported(reason) : .refused(reason)
    }
}
