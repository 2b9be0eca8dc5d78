/// Checks that bytes in pieces of any size are UTF-8 (RFC 3629), and finds an error with its first byte. Pure.
package struct UTF8Checker: Sendable, Hashable {
    /// The number of continuation bytes that are missing, and the range of the next one.
    private var missing = 0
    private var lower: UInt8 = 0x80
    private var upper: UInt8 = 0xBF

    package init() {}

    /// Whether the bytes so far end with a whole character.
    package var isComplete: Bool { missing == 0 }

    /// Takes the next bytes. Returns whether they can be the beginning of a text.
    package mutating func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress else { return true }
        let count = bytes.count
        var position = 0
        while position < count {
            if missing == 0 {
                while position + 8 <= count {
                    let word = unsafe base.loadUnaligned(fromByteOffset: position, as: UInt64.self)
                    guard word & 0x8080_8080_8080_8080 == 0 else { break }
                    position += 8
                }
                guard position < count else { return true }
            }
            guard unsafe take(base.load(fromByteOffset: position, as: UInt8.self)) else { return false }
            position += 1
        }
        return true
    }

    /// Takes the next byte (RFC 3629 §4: no overlong form, no surrogate, nothing above U+10FFFF).
    private mutating func take(_ byte: UInt8) -> Bool {
        if missing > 0 {
            guard byte >= lower, byte <= upper else { return false }
            missing -= 1
            (lower, upper) = (0x80, 0xBF)
            return true
        }
        switch byte {
        case 0x00...0x7F: break
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, lower) = (2, 0xA0)
        case 0xED: (missing, upper) = (2, 0x9F)
        case 0xE1...0xEF: missing = 2
        case 0xF0: (missing, lower) = (3, 0x90)
        case 0xF1...0xF3: missing = 3
        case 0xF4: (missing, upper) = (3, 0x8F)
        default: return false
        }
        return true
    }
}
