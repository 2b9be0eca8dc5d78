#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import CoreFoundation
import Foundation
#endif

/// The system's own tables for the charsets that are not decoded by ``TextDecoding`` itself.
enum CharsetConverter {
    #if canImport(Glibc) || canImport(Musl)
    /// Converts by `iconv`.
    static func string(from bytes: Span<UInt8>, charset: String) throws(TextDecoding.Problem) -> String {
        // A slash would be a suffix of glibc's own (`//TRANSLIT`), which alters text silently.
        guard !charset.isEmpty, charset.utf8.allSatisfy({ ByteSet.token.contains($0) || $0 == UInt8(ascii: ":") })
        else { throw .unknownCharset(charset) }
        guard let converter = unsafe open(charset) else { throw .unknownCharset(charset) }
        defer { unsafe iconv_close(converter) }
        // Most charsets grow by less than half; the loop takes what grows more.
        var chunk = [CChar](repeating: 0, count: max(256, min(bytes.count + bytes.count / 2, 1 << 20)))
        var output: [UInt8] = []
        let isWhole = unsafe bytes.withUnsafeBytes { source in
            // iconv's type is older than const: it never writes to its input.
            var from = unsafe UnsafeMutableRawPointer(mutating: source.baseAddress)?
                .assumingMemoryBound(to: CChar.self)
            var fromLeft = source.count
            var isFlushing = fromLeft == 0
            while true {
                let (failure, written) = unsafe chunk.withUnsafeMutableBufferPointer { target in
                    var (to, toLeft) = (target.baseAddress, target.count)
                    // Without an input, iconv writes what brings the output back to its first state.
                    let result =
                        isFlushing
                        ? unsafe iconv(converter, nil, nil, &to, &toLeft)
                        : unsafe iconv(converter, &from, &fromLeft, &to, &toLeft)
                    return (result == -1 ? errno : 0, target.count - toLeft)
                }
                for index in 0..<written { output.append(UInt8(bitPattern: chunk[index])) }
                if failure == E2BIG { continue }
                if failure != 0 { return false }
                if isFlushing { return true }
                isFlushing = true
            }
        }
        guard isWhole, let text = String(validating: output, as: UTF8.self) else {
            throw .invalidBytes(charset: charset)
        }
        return text
    }

    /// The system's tables; nil if it has none of that name.
    private static func open(_ charset: String) -> iconv_t? {
        #if canImport(Glibc)
        if let alias = CharsetAliases.name(of: charset) {
            let converter = unsafe iconv_open("UTF-8", alias)
            if Int(bitPattern: converter) != -1 { return unsafe converter }
            // Some distributions ship a part of the tables: the plain one may still be there.
        }
        #endif
        let converter = unsafe iconv_open("UTF-8", charset)
        return unsafe Int(bitPattern: converter) == -1 ? nil : converter
    }
    #else
    /// Converts by CoreFoundation.
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
