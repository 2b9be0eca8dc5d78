import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The digest of a whole file, with which a download is verified.
///
/// ```swift
/// options.digest = .sha256("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
/// ```
///
/// A text is read as hexadecimal digits or as base64. A download whose digest is neither, or has the wrong length,
/// fails with `.invalidRequest` before anything is sent.
public struct FileDigest: Sendable, Hashable {
    /// A hash function.
    public enum Algorithm: String, Sendable, Hashable, CaseIterable {
        /// MD5 (RFC 1321). It finds damage, and no forgery.
        case md5
        /// SHA-1 (FIPS 180-4). It finds damage, and no forgery.
        case sha1
        /// SHA-256 (FIPS 180-4).
        case sha256
        /// SHA-512 (FIPS 180-4).
        case sha512

        /// The length of a digest in bytes.
        public var length: Int {
            switch self {
            case .md5: 16
            case .sha1: 20
            case .sha256: 32
            case .sha512: 64
            }
        }
    }

    /// The hash function.
    public let algorithm: Algorithm
    /// The digest; empty if it was created from an invalid text.
    public let bytes: Data

    /// Creates a digest from its bytes.
    public init(_ algorithm: Algorithm, bytes: Data) {
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Creates a digest from hexadecimal digits or base64.
    public init(_ algorithm: Algorithm, _ text: String) {
        self.algorithm = algorithm
        let digits = Array(text.utf8)
        if digits.count == 2 * algorithm.length, let bytes = Self.hexadecimal(digits) {
            self.bytes = bytes
        } else {
            bytes = Data(base64Encoded: text) ?? Data()
        }
    }

    /// Returns the SHA-256 digest that a text states.
    public static func sha256(_ text: String) -> FileDigest { FileDigest(.sha256, text) }

    /// Returns the SHA-1 digest that a text states.
    public static func sha1(_ text: String) -> FileDigest { FileDigest(.sha1, text) }

    /// Returns the MD5 digest that a text states.
    public static func md5(_ text: String) -> FileDigest { FileDigest(.md5, text) }

    /// Returns the SHA-512 digest that a text states.
    public static func sha512(_ text: String) -> FileDigest { FileDigest(.sha512, text) }

    /// The digest in hexadecimal digits, in lower case, in the form of `sha256sum`.
    public var hexadecimal: String { Hexadecimal.lowercase(Array(bytes)) }

    /// Whether the digest has the length of its function.
    var isValid: Bool { bytes.count == algorithm.length }

    private static func hexadecimal(_ digits: [UInt8]) -> Data? {
        var bytes = Data()
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension FileDigest: CustomStringConvertible {
    /// The name of the function, a colon, and the digest in hexadecimal digits.
    public var description: String { "\(algorithm.rawValue):\(hexadecimal)" }
}

extension FileDigest {
    /// Returns the digest that a response states for the whole file; nil for none. `Repr-Digest` (RFC 9530 §3) comes
    /// before `Content-MD5` (RFC 1864), which is the digest of the body and thus of the file only in a response of
    /// status 200.
    ///
    /// The digests of a response with a content coding are those of the encoded bytes, which are not the file's.
    init?(of headers: Headers, status: Int) {
        guard !headers.contains("Content-Encoding") else { return nil }
        if let found = Self.representation(headers.values(for: "Repr-Digest")) {
            self = found
            return
        }
        let values = headers.values(for: "Content-MD5")
        guard status == 200, values.count == 1, let bytes = Data(base64Encoded: values[0]) else { return nil }
        self.init(.md5, bytes: bytes)
        if !isValid { return nil }
    }

    /// The longest field that is read, in bytes.
    private static let longestField = 4 << 10

    /// Parses a dictionary of digests, `sha-256=:…:, sha-512=:…:`. Members of other functions and with parameters that
    /// are no digests are ignored. A malformed digest of SHA-256 counts as none.
    private static func representation(_ values: [String]) -> FileDigest? {
        let text = values.joined(separator: ",")
        guard !text.isEmpty, text.utf8.count <= longestField else { return nil }
        var found: FileDigest?
        for member in text.split(separator: ",") {
            let member = member.filter { $0 != " " && $0 != "\t" }
            guard let equals = member.firstIndex(of: "=") else { continue }
            let algorithm: Algorithm
            switch member[..<equals].lowercased() {
            case "sha-256": algorithm = .sha256
            case "sha-512": algorithm = .sha512
            default: continue
            }
            let value = member[member.index(after: equals)...].prefix { $0 != ";" }
            guard value.count > 2, value.hasPrefix(":"), value.hasSuffix(":"),
                let bytes = Data(base64Encoded: String(value.dropFirst().dropLast())), bytes.count == algorithm.length
            else { continue }
            if found == nil || algorithm == .sha256 { found = FileDigest(algorithm, bytes: bytes) }
        }
        return found
    }
}
