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
        guard charset.utf8.allSatisfy({ ByteSet.token.contains($0) || $0 == UInt8(ascii: ":") }) else { return nil }
        return convert(Array(text.utf8), to: charset, from: "UTF-8", replacement: nil)
    }

    /// Without a replacement, bytes that cannot be converted give nil, as names that are not known do.
    private static func convert(
        _ bytes: [UInt8], to target: String, from source: String, replacement: [UInt8]?
    ) -> [UInt8]? {
        guard let converter = unsafe open(to: target, from: source) else { return nil }
        defer { unsafe iconv_close(converter) }
        var chunk = [CChar](repeating: 0, count: max(256, min(bytes.count + bytes.count / 2, 1 << 20)))
        var output: [UInt8] = []
        let isWhole = unsafe bytes.withUnsafeBytes { buffer in
            // iconv's type is older than const: it never writes to its input.
            var from = unsafe UnsafeMutableRawPointer(mutating: buffer.baseAddress)?
                .assumingMemoryBound(to: CChar.self)
            var fromLeft = buffer.count
            var isFlushing = fromLeft == 0
            while true {
                let (failure, written) = unsafe chunk.withUnsafeMutableBufferPointer { target in
                    var (to, toLeft) = (target.baseAddress, target.count)
                    let result =
                        isFlushing
                        ? unsafe iconv(converter, nil, nil, &to, &toLeft)
                        : unsafe iconv(converter, &from, &fromLeft, &to, &toLeft)
                    return (result == -1 ? errno : 0, target.count - toLeft)
                }
                for index in 0..<written { output.append(UInt8(bitPattern: chunk[index])) }
                if failure == E2BIG { continue }
                if failure == 0 {
                    if isFlushing { return true }
                    isFlushing = true
                    continue
                }
                guard let replacement, fromLeft > 0 else { return false }
                output += replacement
                // A sequence that the end cuts off is one character that is missing.
                let skipped = failure == EINVAL ? fromLeft : 1
                unsafe from = from?.advanced(by: skipped)
                fromLeft -= skipped
                if fromLeft == 0 { isFlushing = true }
            }
        }
        return isWhole ? output : nil
    }

    private static func open(to target: String, from source: String) -> iconv_t? {
        #if canImport(Glibc)
        let (to, from) = (CharsetAliases.name(of: target) ?? target, CharsetAliases.name(of: source) ?? source)
        let converter = unsafe iconv_open(to, from)
        if Int(bitPattern: converter) != -1 { return unsafe converter }
        // Some distributions ship a part of the tables: the plain one may still be there.
        #endif
        let plain = unsafe iconv_open(target, source)
        return unsafe Int(bitPattern: plain) == -1 ? nil : plain
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
