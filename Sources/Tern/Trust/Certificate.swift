#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An X.509 certificate (RFC 5280), as an anchor or a pin.
public struct Certificate: Sendable, Hashable {
    /// The certificate in DER form.
    public let der: Data
    /// The SHA-256 of its public key, as pins name it: of the SubjectPublicKeyInfo in DER form (RFC 7469 §2.4), 32 bytes.
    public let keyHash: Data

    /// A certificate in DER form.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the bytes are no certificate.
    public init(der: Data) throws(NetworkError) {
        guard let key = DERReader.publicKey(ofCertificate: Array(der)) else {
            throw NetworkError(.invalidRequest, reason: "\(der.count) bytes are no certificate in DER form")
        }
        self.der = der
        keyHash = Data(DigestFunction.hash(Array(key), .sha256))
    }

    /// The certificates of a file or text in PEM form (RFC 7468), in their order; what else stands there is passed over.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when there is none, or one cannot be read.
    public static func load(pem: Data) throws(NetworkError) -> [Certificate] {
        var certificates: [Certificate] = []
        for der in PEMBlocks.decode(pem, label: "CERTIFICATE") { certificates.append(try Certificate(der: der)) }
        guard !certificates.isEmpty else {
            throw NetworkError(.invalidRequest, reason: "there is no certificate in PEM form among \(pem.count) bytes")
        }
        return certificates
    }

    /// The SHA-256 of the whole certificate, 32 bytes.
    public var fingerprint: Data { Data(DigestFunction.hash(Array(der), .sha256)) }
}

extension Certificate: CustomStringConvertible {
    /// The pin of its key: `sha256/…`.
    public var description: String { "sha256/\(keyHash.base64EncodedString())" }
}
