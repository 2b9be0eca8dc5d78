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

/// Blocks of base64 between lines that name them (RFC 7468).
enum PEMBlocks {
    static func decode(_ pem: Data, label: String) -> [Data] {
        let (start, end) = ("-----BEGIN \(label)-----", "-----END \(label)-----")
        var blocks: [Data] = []
        var lines: [Substring]?
        for line in String(decoding: pem, as: UTF8.self).split(whereSeparator: \.isNewline) {
            switch line.trimmingPrefix(/\s+/).prefix(64) {
            case let text where text.hasPrefix(start):
                lines = []
            case let text where text.hasPrefix(end):
                let text = lines?.joined().filter { !$0.isWhitespace } ?? ""
                if let bytes = Data(base64Encoded: text), !bytes.isEmpty { blocks.append(bytes) }
                lines = nil
            default:
                lines?.append(line)
            }
        }
        return blocks
    }
}

/// The little of DER (X.690) that finds a certificate's public key.
struct DERReader {
    fileprivate var rest: ArraySlice<UInt8>

    private static let sequence: UInt8 = 0x30

    /// The SubjectPublicKeyInfo, its own tag and length included; nil for bytes that are no certificate.
    static func publicKey(ofCertificate bytes: [UInt8]) -> ArraySlice<UInt8>? {
        var outer = DERReader(rest: bytes[...])
        guard let certificate = outer.next(), certificate.tag == sequence, outer.rest.isEmpty else { return nil }
        var parts = DERReader(rest: certificate.value)
        guard let signed = parts.next(), signed.tag == sequence else { return nil }
        var fields = DERReader(rest: signed.value)
        // version [0], if it is not the first; serial number, signature, issuer, validity, subject; then the key.
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
            // More than four bytes of length are no certificate, and none is the form without a length, which DER forbids.
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
