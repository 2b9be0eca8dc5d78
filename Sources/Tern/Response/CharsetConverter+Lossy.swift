#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import CoreFoundation
import Foundation
#endif

// What a web view needs beside strict decoding: text with replacement characters, and text that goes back into the charset
// from which it came.

extension TextDecoding {
    /// Decodes a body and puts U+FFFD where its bytes are no text. A byte order mark is not looked for.
    ///
    /// - Throws: `Problem.unknownCharset` alone.
    package static func replacing(_ bytes: [UInt8], charset: String) throws(Problem) -> String {
        let name = charset.lowercased()
        if name == "utf-8" || name == "utf8" { return String(decoding: bytes, as: UTF8.self) }
        do {
            return try string(from: bytes.span, charset: name)
        } catch {
            if case .unknownCharset = error { throw error }
        }
        return try CharsetConverter.replacing(bytes, charset: name)
    }

    /// The bytes of a text in a charset; nil where the charset cannot hold it, or is not known.
    package static func bytes(of text: String, charset: String) -> [UInt8]? {
        let name = charset.lowercased()
        switch name {
        case "utf-8", "utf8": return Array(text.utf8)
        case "us-ascii", "ascii": return text.utf8.allSatisfy { $0 < 0x80 } ? Array(text.utf8) : nil
        case "iso-8859-1", "iso_8859-1", "iso8859-1", "latin1", "latin-1", "l1":
            guard text.unicodeScalars.allSatisfy({ $0.value <= 0xFF }) else { return nil }
            return text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        default: return CharsetConverter.bytes(of: text, charset: name)
        }
    }
}

#if canImport(Glibc) || canImport(Musl)
extension CharsetConverter {
    fileprivate static func replacing(
        _ bytes: [UInt8], charset: String
    ) throws(TextDecoding.Problem) -> String {
        guard let output = convert(bytes, to: "UTF-8", from: charset, replacement: Array("\u{FFFD}".utf8)) else {
            throw .unknownCharset(charset)
        }
        return String(decoding: output, as: UTF8.self)
    }

    fileprivate static func bytes(of text: String, charset: String) -> [UInt8]? {
        guard isName(charset) else { return nil }
        return convert(Array(text.utf8), to: charset, from: "UTF-8", replacement: nil)
    }

    /// Nil for names that are not known, and without a replacement for bytes that cannot be converted.
    private static func convert(
        _ bytes: [UInt8], to target: String, from source: String, replacement: [UInt8]?
    ) -> [UInt8]? {
        guard let converter = unsafe open(to: target, from: source) else { return nil }
        defer { unsafe iconv_close(converter) }
        return unsafe bytes.withUnsafeBytes { unsafe run(converter, $0, replacement: replacement) }
    }
}
#else
extension CharsetConverter {
    fileprivate static func replacing(
        _ bytes: [UInt8], charset: String
    ) throws(TextDecoding.Problem) -> String {
        guard let encoding = encoding(charset) else { throw .unknownCharset(charset) }
        var text: NSString?
        let options: [StringEncodingDetectionOptionsKey: Any] = [
            .suggestedEncodingsKey: [encoding.rawValue], .useOnlySuggestedEncodingsKey: true, .allowLossyKey: true,
            .lossySubstitutionKey: "\u{FFFD}",
        ]
        _ = unsafe NSString.stringEncoding(
            for: Data(bytes), encodingOptions: options, convertedString: &text, usedLossyConversion: nil)
        return text.map { String($0) } ?? String(decoding: bytes, as: UTF8.self)
    }

    fileprivate static func bytes(of text: String, charset: String) -> [UInt8]? {
        encoding(charset).flatMap { text.data(using: $0, allowLossyConversion: false) }.map { Array($0) }
    }

    private static func encoding(_ charset: String) -> String.Encoding? {
        let encoding = CFStringConvertIANACharSetNameToEncoding(charset as CFString)
        guard encoding != kCFStringEncodingInvalidId else { return nil }
        return String.Encoding(rawValue: CFStringConvertEncodingToNSStringEncoding(encoding))
    }
}
#endif
