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

    /// Whether it can be given to `iconv`: a slash would be a suffix of glibc's own (`//TRANSLIT`), which alters text
    /// silently.
    static func isName(_ charset: String) -> Bool {
        !charset.isEmpty && charset.utf8.allSatisfy { ByteSet.token.contains($0) || $0 == UInt8(ascii: ":") }
    }

    /// Converts all bytes.
    /// - Parameter replacement: what stands for bytes that cannot be converted; nil: there is no result then.
    static func run(
        _ converter: iconv_t, _ source: UnsafeRawBufferPointer, replacement: [UInt8]? = nil
    ) -> [UInt8]? {
        // Most charsets grow by less than half; the loop takes what grows more.
        var chunk = [CChar](repeating: 0, count: max(256, min(source.count + source.count / 2, 1 << 20)))
        var output: [UInt8] = []
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
            if failure == 0 {
                if isFlushing { return output }
                isFlushing = true
                continue
            }
            guard let replacement, fromLeft > 0 else { return nil }
            output += replacement
            // A sequence that the end cuts off is one character that is missing.
            let skipped = failure == EINVAL ? fromLeft : 1
            unsafe from = from?.advanced(by: skipped)
            fromLeft -= skipped
            if fromLeft == 0 { isFlushing = true }
        }
    }

    /// The system's tables; nil if it has none of these names.
    static func open(to target: String, from source: String) -> iconv_t? {
        #if canImport(Glibc)
        let (to, from) = (CharsetAliases.name(of: target) ?? target, CharsetAliases.name(of: source) ?? source)
        let converter = unsafe iconv_open(to, from)
        if Int(bitPattern: converter) != -1 { return unsafe converter }
        // Some distributions ship a part of the tables: the plain one may still be there.
        #endif
        let plain = unsafe iconv_open(target, source)
        return unsafe Int(bitPattern: plain) == -1 ? nil : plain
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
