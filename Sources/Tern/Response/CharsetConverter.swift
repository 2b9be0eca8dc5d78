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
    static func string(from bytes: [UInt8], charset: String) throws(TextDecoding.Problem) -> String {
        // A slash would be a suffix of glibc's own (`//TRANSLIT`), which alters text silently.
        guard !charset.isEmpty, charset.utf8.allSatisfy({ $0.isTokenCharacter || $0 == UInt8(ascii: ":") }) else {
            throw .unknownCharset(charset)
        }
        let converter = unsafe iconv_open("UTF-8", charset)
        guard Int(bitPattern: converter) != -1 else { throw .unknownCharset(charset) }
        defer { unsafe iconv_close(converter) }
        var input = bytes.map { CChar(bitPattern: $0) }
        var output: [UInt8] = []
        // Most charsets grow by less than half; the loop takes what grows more.
        var chunk = [CChar](repeating: 0, count: max(256, min(bytes.count + bytes.count / 2, 1 << 20)))
        var consumed = 0
        var isFlushing = false
        while true {
            let (failure, used, written) = unsafe input[consumed...].withUnsafeMutableBufferPointer { source in
                unsafe chunk.withUnsafeMutableBufferPointer { target in
                    var (from, fromLeft) = (source.baseAddress, source.count)
                    var (to, toLeft) = (target.baseAddress, target.count)
                    // Without an input, iconv writes what brings the output back to its first state.
                    let result =
                        isFlushing
                        ? unsafe iconv(converter, nil, nil, &to, &toLeft)
                        : unsafe iconv(converter, &from, &fromLeft, &to, &toLeft)
                    let failure: Int32 = result == -1 ? errno : 0
                    return (failure, source.count - fromLeft, target.count - toLeft)
                }
            }
            consumed += isFlushing ? 0 : used
            output += chunk[..<written].lazy.map { UInt8(bitPattern: $0) }
            if failure == 0 {
                if isFlushing { break }
                isFlushing = true
            } else if failure != E2BIG {
                throw .invalidBytes(charset: charset)
            }
        }
        guard let text = String(validating: output, as: UTF8.self) else { throw .invalidBytes(charset: charset) }
        return text
    }
    #else
    /// Converts by CoreFoundation.
    static func string(from bytes: [UInt8], charset: String) throws(TextDecoding.Problem) -> String {
        let encoding = CFStringConvertIANACharSetNameToEncoding(charset as CFString)
        guard encoding != kCFStringEncodingInvalidId else { throw .unknownCharset(charset) }
        let foundationEncoding = String.Encoding(rawValue: CFStringConvertEncodingToNSStringEncoding(encoding))
        guard let text = String(bytes: bytes, encoding: foundationEncoding) else {
            throw .invalidBytes(charset: charset)
        }
        return text
    }
    #endif
}
