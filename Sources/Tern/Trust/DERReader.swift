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
