#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import CoreFoundation
import Foundation
#endif

/// Converts charsets that ``TextDecoding`` does not decode itself, with the system's tables.
enum CharsetConverter {
    #if canImport(Glibc) || canImport(Musl)
    /// Converts with `iconv`.
    static func string(from bytes: Span<UInt8>, charset: String) throws(TextDecoding.Problem) -> String {
        guard isName(charset), let converter = unsafe open(to: "UTF-8", from: charset) else {
            throw .unknownCharset(charset)
        }
        defer { unsafe iconv_close(converter) }
        let output = unsafe bytes.withUnsafeBytes { unsafe run(converter, $0) }
        guard let output, let text = String(validating: output, as: UTF8.self) else {
            throw .invalidBytes(charset: charset)
        }
        return text
    }

    /// Returns whether the name can be given to `iconv`. A slash begins a suffix of glibc (`//TRANSLIT`), which alters
    /// text without an error.
    static func isName(_ charset: String) -> Bool {
        !charset.isEmpty && charset.utf8.allSatisfy { ByteSet.token.contains($0) || $0 == UInt8(ascii: ":") }
    }

    /// Converts all bytes.
    /// - Parameter replacement: The text for bytes that cannot be converted; nil to return no result then.
    static func run(
        _ converter: iconv_t, _ source: UnsafeRawBufferPointer, replacement: [UInt8]? = nil
    ) -> [UInt8]? {
        // Most charsets grow by less than half. The loop handles those that grow more.
        var chunk = [CChar](repeating: 0, count: max(256, min(source.count + source.count / 2, 1 << 20)))
        var output: [UInt8] = []
        // The type of iconv is older than const. It never writes to its input.
        var from = unsafe UnsafeMutableRawPointer(mutating: source.baseAddress)?
            .assumingMemoryBound(to: CChar.self)
        var fromLeft = source.count
        var isFlushing = fromLeft == 0
        while true {
            let (failure, written) = unsafe chunk.withUnsafeMutableBufferPointer { target in
                var (to, toLeft) = (target.baseAddress, target.count)
                // Without an input, iconv writes the bytes that return the output to its initial state.
                let result =
                    isFlushing
                    ? unsafe iconv(converter, nil, nil, &to, &toLeft)
                    : unsafe iconv(converter, &from, &fromLeft, &to, &toLeft)
                return (result == -1 ? errno : 0, target.count - toLeft)
            }
            for index in 0..<written { output.append(UInt8(bitPattern: chunk[index])) }
            if failure == E2BIG { continue }
            if failure == 0 {
                if isFlushing { return output }
                isFlushing = true
                continue
            }
            guard let replacement, fromLeft > 0 else { return nil }
            output += replacement
            // A sequence that is cut at the end counts as one character.
            let skipped = failure == EINVAL ? fromLeft : 1
            unsafe from = from?.advanced(by: skipped)
            fromLeft -= skipped
            if fromLeft == 0 { isFlushing = true }
        }
    }

    /// Opens the system's tables; nil if it has none of these names.
    static func open(to target: String, from source: String) -> iconv_t? {
        #if canImport(Glibc)
        let (to, from) = (CharsetAliases.name(of: target) ?? target, CharsetAliases.name(of: source) ?? source)
        let converter = unsafe iconv_open(to, from)
        if Int(bitPattern: converter) != -1 { return unsafe converter }
        // Some distributions ship only a part of the tables, so the plain name is tried, too.
        #endif
        let plain = unsafe iconv_open(target, source)
        return unsafe Int(bitPattern: plain) == -1 ? nil : plain
    }
    #else
    /// Converts with CoreFoundation.
    static func string(from bytes: Span<UInt8>, charset: String) throws(TextDecoding.Problem) -> String {
        let encoding = CFStringConvertIANACharSetNameToEncoding(charset as CFString)
        guard encoding != kCFStringEncodingInvalidId else { throw .unknownCharset(charset) }
        let foundationEncoding = String.Encoding(rawValue: CFStringConvertEncodingToNSStringEncoding(encoding))
        let text = unsafe bytes.withUnsafeBufferPointer { unsafe String(bytes: $0, encoding: foundationEncoding) }
        guard let text else { throw .invalidBytes(charset: charset) }
        return text
    }
    #endif
}

// The conversions that a web view needs besides strict decoding: text with replacement characters, and text encoded in
// the charset from which it came.

extension TextDecoding {
    /// Decodes a body and replaces bytes that are not text by U+FFFD. A byte order mark is not considered.
    ///
    /// - Throws: `Problem.unknownCharset` only.
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

    /// Returns the bytes of a text in a charset; nil if the charset cannot represent it or is unknown.
    package static func bytes(of text: String, charset: String) -> [UInt8]? {
        let name = charset.lowercased()
        switch name {
        case "utf-8", "utf8": return Array(text.utf8)
        case "us-ascii", "ascii": return text.utf8.allSatisfy { $0 < 0x80 } ? Array(text.utf8) : nil
        case _ where windows1252Names.contains(name):
            var bytes: [UInt8] = []
            for scalar in text.unicodeScalars {
                if let place = windows1252Block.firstIndex(where: { UInt32($0) == scalar.value }) {
                    bytes.append(UInt8(0x80 + place))
                } else if scalar.value <= 0xFF, !(0x80..<0xA0).contains(scalar.value) {
                    bytes.append(UInt8(scalar.value))
                } else {
                    return nil
                }
            }
            return bytes
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

    /// Converts text; nil for unknown names, and without a replacement for bytes that cannot be converted.
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

#if canImport(Glibc)
/// Names of charsets that mean more on the web than glibc's tables of the same name contain, and names that glibc does
/// not know (WHATWG Encoding §4.2).
///
/// glibc reads `\` and `~` of Shift_JIS as `¥` and `‾`, which breaks every JSON string with an escape, and the older
/// Chinese, Japanese and Korean tables lack letters that servers send under their names. The replacement is a superset
/// that differs in nothing else.
enum CharsetAliases {
    /// Returns glibc's name for a lower-case charset name; nil if the name itself is right.
    static func name(of charset: String) -> String? {
        switch charset {
        case "shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "csshiftjis", "ms932": "CP932"
        case "euc-jp", "x-euc-jp", "eucjp", "cseucpkdfmtjapanese": "EUC-JP-MS"
        case "gb2312", "gb_2312-80", "gb_2312", "csgb2312", "csiso58gb231280", "iso-ir-58", "chinese", "gbk", "x-gbk",
            "cp936", "windows-936", "euc-cn":
            "GB18030"
        case "euc-kr", "ks_c_5601-1987", "ks_c_5601-1989", "ksc5601", "ksc_5601", "korean", "csksc56011987", "cseuckr",
            "windows-949":
            "CP949"
        case "big5", "x-x-big5", "cn-big5", "csbig5": "BIG5-HKSCS"
        case "tis-620", "iso-8859-11", "iso8859-11", "dos-874": "WINDOWS-874"
        case "iso-8859-8-i", "csiso88598i", "logical": "ISO-8859-8"
        case "x-mac-roman", "mac", "csmacintosh": "MACINTOSH"
        case "x-mac-cyrillic", "x-mac-ukrainian": "MAC-CYRILLIC"
        case "x-cp1250", "x-cp1251", "x-cp1252", "x-cp1253", "x-cp1254", "x-cp1255", "x-cp1256", "x-cp1257", "x-cp1258":
            String(charset.dropFirst(2)).uppercased()
        default: nil
        }
    }
}
#endif
