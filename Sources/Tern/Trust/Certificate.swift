#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An X.509 certificate (RFC 5280) to use as an anchor or a pin.
public struct Certificate: Sendable, Hashable {
    /// The certificate in DER form.
    public let der: Data
    /// The SHA-256 of the public key, as pins use it: of the SubjectPublicKeyInfo in DER form (RFC 7469 §2.4), 32
    /// bytes.
    public let keyHash: Data

    /// Creates a certificate from its DER form.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the bytes are not a certificate.
    public init(der: Data) throws(NetworkError) {
        guard let key = DERReader.publicKey(ofCertificate: Array(der)) else {
            throw NetworkError(.invalidRequest, reason: "\(der.count) bytes are no certificate in DER form")
        }
        self.der = der
        keyHash = Data(DigestFunction.hash(Array(key), .sha256))
    }

    /// Returns the certificates of a text in PEM form (RFC 7468), in order. Other text is ignored.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when there is none, or one cannot be read.
    public static func load(pem: Data) throws(NetworkError) -> [Certificate] {
        var certificates: [Certificate] = []
        for der in PEMBlocks.decode(pem, label: "CERTIFICATE") {
            guard let der else {
                let reason = "a certificate in PEM form after \(certificates.count) others cannot be read"
                throw NetworkError(.invalidRequest, reason: reason)
            }
            certificates.append(try Certificate(der: der))
        }
        guard !certificates.isEmpty else {
            throw NetworkError(.invalidRequest, reason: "there is no certificate in PEM form among \(pem.count) bytes")
        }
        return certificates
    }

    /// The SHA-256 of the whole certificate, 32 bytes.
    public var fingerprint: Data { Data(DigestFunction.hash(Array(der), .sha256)) }
}

extension Certificate: CustomStringConvertible {
    /// The pin of the certificate's key: `sha256/…`.
    public var description: String { "sha256/\(keyHash.base64EncodedString())" }
}

/// A certificate with its private key, to present to servers that request one. Its descriptions show neither key nor
/// password.
public struct ClientIdentity: Sendable, Hashable {
    enum Content: Hashable {
        case pem(certificates: Data, key: Data)
        case pkcs12(Data)
    }

    let content: Content
    let password: String?

    /// Creates an identity from a certificate, the certificates that lead to its authority, and its key, in PEM form.
    ///
    /// - Parameters:
    ///   - certificates: The certificates, the identity's own first.
    ///   - key: The private key (PKCS#8, PKCS#1 or SEC 1).
    ///   - password: The password of an encrypted key; nil for a key that is not encrypted.
    public static func pem(certificates: Data, key: Data, password: String? = nil) -> ClientIdentity {
        ClientIdentity(content: .pem(certificates: certificates, key: key), password: password)
    }

    /// Creates an identity from a PKCS#12 file with a certificate and its key (RFC 7292).
    public static func pkcs12(_ bytes: Data, password: String) -> ClientIdentity {
        ClientIdentity(content: .pkcs12(bytes), password: password)
    }

    private init(content: Content, password: String?) {
        self.content = content
        self.password = password
    }
}

extension ClientIdentity: CustomStringConvertible, CustomReflectable {
    /// The form of the identity, without its content.
    public var description: String {
        switch content {
        case .pem: "ClientIdentity(PEM)"
        case .pkcs12: "ClientIdentity(PKCS#12)"
        }
    }

    /// An empty mirror. Without it, `dump` would show the key.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Reads the parts of DER (X.690) that lead to a certificate's public key.
struct DERReader {
    fileprivate var rest: ArraySlice<UInt8>

    private static let sequence: UInt8 = 0x30

    /// Returns the SubjectPublicKeyInfo with its tag and length; nil for bytes that are not a certificate.
    static func publicKey(ofCertificate bytes: [UInt8]) -> ArraySlice<UInt8>? {
        var outer = DERReader(rest: bytes[...])
        guard let certificate = outer.next(), certificate.tag == sequence, outer.rest.isEmpty else { return nil }
        var parts = DERReader(rest: certificate.value)
        guard let signed = parts.next(), signed.tag == sequence else { return nil }
        var fields = DERReader(rest: signed.value)
        // version [0], unless it is the first; serial number, signature, issuer, validity, subject; then the key.
        guard var field = fields.next() else { return nil }
        if field.tag == 0xA0 {
            guard let serial = fields.next() else { return nil }
            field = serial
        }
        guard field.tag == 0x02 else { return nil }
        for _ in 0..<4 {
            guard let next = fields.next(), next.tag == sequence else { return nil }
        }
        guard let key = fields.next(), key.tag == sequence else { return nil }
        return key.whole
    }

    private struct Element {
        let tag: UInt8
        let value: ArraySlice<UInt8>
        let whole: ArraySlice<UInt8>
    }

    private mutating func next() -> Element? {
        guard let tag = rest.first, let first = rest.dropFirst().first else { return nil }
        var header = 2
        var length = Int(first)
        if first & 0x80 != 0 {
            let count = Int(first & 0x7F)
            // No certificate needs more than four bytes of length. DER forbids the form without a length.
            guard (1...4).contains(count), rest.count >= 2 + count else { return nil }
            length = rest.dropFirst(2).prefix(count).reduce(0) { $0 << 8 | Int($1) }
            header += count
        }
        guard rest.count >= header + length else { return nil }
        let whole = rest.prefix(header + length)
        rest = rest.dropFirst(header + length)
        return Element(tag: tag, value: whole.dropFirst(header), whole: whole)
    }
}

/// Decodes the base64 blocks of PEM text (RFC 7468).
enum PEMBlocks {
    /// Returns the blocks in order; nil for one that has no end or is not base64.
    static func decode(_ pem: Data, label: String) -> [Data?] {
        let (start, end) = ("-----BEGIN \(label)-----", "-----END \(label)-----")
        var blocks: [Data?] = []
        var lines: [Substring]?
        for line in String(decoding: pem, as: UTF8.self).split(whereSeparator: \.isNewline) {
            switch line.trimmingPrefix(/\s+/).prefix(64) {
            case let text where text.hasPrefix(start):
                if lines != nil { blocks.append(nil) }
                lines = []
            case let text where text.hasPrefix(end):
                let text = lines?.joined().filter { !$0.isWhitespace } ?? ""
                let bytes = Data(base64Encoded: text)
                blocks.append(bytes?.isEmpty == false ? bytes : nil)
                lines = nil
            default:
                lines?.append(line)
            }
        }
        if lines != nil { blocks.append(nil) }
        return blocks
    }
}
