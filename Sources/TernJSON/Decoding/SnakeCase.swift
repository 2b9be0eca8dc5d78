#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Converts keys from snake case, with the rule of Foundation's decoder.
enum SnakeCase {
    /// Returns `oneTwoThree` for `one_two_three`. Underscores at the beginning and at the end stay.
    static func camelCase(of key: String) -> String {
        if let result = plainCamelCase(of: key) { return result }
        guard let first = key.firstIndex(where: { $0 != "_" }), let last = key.lastIndex(where: { $0 != "_" }) else {
            return key
        }
        let words = key[first...last].split(separator: "_")
        guard words.count > 1 else { return key }
        let camel = words[0].lowercased() + words[1...].map(\.capitalized).joined()
        return key[..<first] + camel + key[key.index(after: last)...]
    }

    /// Returns a hash of the letters of a key in ASCII, which the conversion does not change: without underscores and
    /// case.
    @unsafe
    static func hash(_ key: UnsafePointer<UInt8>, count: Int) -> UInt32 {
        var hash: UInt32 = 0
        for index in 0..<count {
            let byte = unsafe key[index]
            if byte == UInt8(ascii: "_") { continue }
            hash = (hash ^ UInt32(byte | 0x20)) &* 0x9E37_79B1
            hash ^= hash &>> 15
        }
        return hash
    }

    /// Converts keys of ASCII letters, with digits only at the end of words: in these, a word has one capital. Nil for
    /// others.
    private static func plainCamelCase(of key: String) -> String? {
        let isPlain = key.utf8.allSatisfy { byte in
            byte == UInt8(ascii: "_") || byte.isDigit || (byte | 0x20) &- 0x61 < 26
        }
        guard isPlain else { return nil }
        let utf8 = Array(key.utf8)
        guard let first = utf8.firstIndex(where: { $0 != UInt8(ascii: "_") }),
            let last = utf8.lastIndex(where: { $0 != UInt8(ascii: "_") }),
            utf8[first...last].contains(UInt8(ascii: "_"))
        else { return key }
        var result = Array(utf8[..<first])
        var isFirstWord = true
        var isAtStart = true
        var wasDigit = false
        for byte in utf8[first...last] {
            if byte == UInt8(ascii: "_") {
                isFirstWord = false
                isAtStart = true
                wasDigit = false
                continue
            }
            if byte.isDigit {
                wasDigit = true
            } else if wasDigit && !isFirstWord {
                return nil
            }
            let isCapital = isAtStart && !isFirstWord
            result.append(byte.isDigit ? byte : isCapital ? byte & ~0x20 : byte | 0x20)
            isAtStart = false
        }
        return String(decoding: result + utf8[(last + 1)...], as: UTF8.self)
    }
}
