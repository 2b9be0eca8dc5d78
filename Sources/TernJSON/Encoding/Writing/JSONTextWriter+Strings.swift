/// Strings are copied 32 and eight bytes at a time. The bytes of a word that has one to escape are looked up.
extension JSONTextWriter {
    /// Writes a string with its quotes and escapes.
    @inline(__always)
    func write(_ string: String) {
        let isDone: Void? = unsafe string.utf8.withContiguousStorageIfAvailable { unsafe write(utf8: $0) }
        if isDone == nil { writeBridged(string) }
    }

    /// A string of Objective-C is copied first.
    @inline(never)
    private func writeBridged(_ string: String) {
        var string = string
        string.withUTF8 { unsafe write(utf8: $0) }
    }

    @inline(never)
    func write(utf8 text: UnsafeBufferPointer<UInt8>) {
        var left = text.count
        // Room for the quotes and for a word that is stored beyond the end; each escape makes more.
        reserve(left &+ 40)
        var target = unsafe end
        unsafe target[0] = UInt8(ascii: "\"")
        unsafe target += 1
        guard var source = text.baseAddress else {
            unsafe target[0] = UInt8(ascii: "\"")
            count &+= 2
            return
        }
        let slashes = unsafe state.pointee.slashes
        while left >= 32 {
            let block = unsafe UnsafeRawPointer(source).loadUnaligned(as: SIMD4<UInt64>.self)
            if Self.hasEscapes(block, slashes: slashes) { break }
            unsafe UnsafeMutableRawPointer(target).storeBytes(of: block, as: SIMD4<UInt64>.self)
            unsafe target += 32
            unsafe source += 32
            left &-= 32
        }
        while left >= 8 {
            let word = unsafe UnsafeRawPointer(source).loadUnaligned(as: UInt64.self)
            unsafe UnsafeMutableRawPointer(target).storeBytes(of: word, as: UInt64.self)
            unsafe source += 8
            left &-= 8
            if Self.escapes(in: word, slashes: slashes) == 0 {
                unsafe target += 8
            } else {
                unsafe target = writeEscaped(source - 8, count: 8, at: target, left: left)
            }
        }
        if left > 0 {
            let word = unsafe Self.lastWord(source, left: left, of: text.count)
            unsafe UnsafeMutableRawPointer(target).storeBytes(of: word.littleEndian, as: UInt64.self)
            // The bytes beyond the end are zeros, which look like control characters.
            if Self.escapes(in: word, slashes: slashes) & ((1 &<< UInt64(8 &* left)) &- 1) == 0 {
                unsafe target += left
            } else {
                unsafe target = writeEscaped(source, count: left, at: target, left: 0)
            }
        }
        unsafe target[0] = UInt8(ascii: "\"")
        unsafe count = target - state.pointee.bytes &+ 1
    }

    /// Returns a word whose high bits mark the bytes to escape. Above the lowest mark there can be wrong ones.
    ///
    /// A quote is a control character when the bit of 2 is changed, and no other character is. Bytes above 0x7F have no marks.
    @inline(__always)
    private static func escapes(in word: UInt64, slashes: UInt64) -> UInt64 {
        let ones = UInt64(0x0101_0101_0101_0101)
        let marks =
            ((word ^ 0x0202_0202_0202_0202) &- 0x2121_2121_2121_2121) | ((word ^ EncodingState.backslashes) &- ones)
            | ((word ^ slashes) &- ones)
        return marks & ~word & 0x8080_8080_8080_8080
    }

    /// Returns whether any of 32 bytes is escaped.
    @inline(__always)
    private static func hasEscapes(_ block: SIMD4<UInt64>, slashes: UInt64) -> Bool {
        let ones = SIMD4<UInt64>(repeating: 0x0101_0101_0101_0101)
        let controls = (block ^ SIMD4(repeating: 0x0202_0202_0202_0202)) &- SIMD4(repeating: 0x2121_2121_2121_2121)
        let backslashes = (block ^ SIMD4(repeating: EncodingState.backslashes)) &- ones
        let marks = (controls | backslashes | ((block ^ SIMD4(repeating: slashes)) &- ones)) & ~block
        return (marks[0] | marks[1] | marks[2] | marks[3]) & 0x8080_8080_8080_8080 != 0
    }

    /// Returns the last one to seven bytes of a text, followed by zeros.
    @inline(__always)
    private static func lastWord(_ source: UnsafePointer<UInt8>, left: Int, of count: Int) -> UInt64 {
        if count >= 8 {
            let word = unsafe UnsafeRawPointer(source + left - 8).loadUnaligned(as: UInt64.self)
            return UInt64(littleEndian: word) &>> UInt64(8 &* (8 &- left))
        }
        var word = UInt64(0)
        var index = left
        while index > 0 {
            index &-= 1
            word = unsafe word &<< 8 | UInt64(source[index])
        }
        return word
    }

    /// Writes bytes of which some are escaped, makes room for the rest of the string, and returns the place after them.
    ///
    /// Each byte is a word of a table that is stored as a whole. Where escapes are frequent, this is faster than to branch for each.
    @inline(__always)
    private func writeEscaped(
        _ source: UnsafePointer<UInt8>, count: Int, at place: UnsafeMutablePointer<UInt8>, left: Int
    ) -> UnsafeMutablePointer<UInt8> {
        var target = unsafe place
        // Six bytes for each, and what is stored beyond the end of the string.
        let needed = 6 &* count &+ left &+ 24
        if unsafe target - state.pointee.bytes &+ needed > state.pointee.limit {
            unsafe self.count = target - state.pointee.bytes
            reserve(needed)
            unsafe target = unsafe end
        }
        let table = unsafe state.pointee.escapes
        for index in 0..<count {
            let entry = unsafe table[Int(source[index])]
            unsafe UnsafeMutableRawPointer(target).storeBytes(of: entry.littleEndian, as: UInt64.self)
            unsafe target += Int(truncatingIfNeeded: entry &>> 56)
        }
        return unsafe target
    }
}

/// The texts of the 256 bytes in a string.
enum EscapeTable {
    /// Allocates a table: the text from the lowest byte, at most six bytes, and its length in the highest byte.
    static func make() -> UnsafeMutablePointer<UInt64> {
        let table = UnsafeMutablePointer<UInt64>.allocate(capacity: 256)
        for byte in 0..<256 { unsafe table[byte] = UInt64(byte) | 1 << 56 }
        let digits = Array("0123456789abcdef".utf8)
        for byte in 0..<0x20 {
            let text = Array("\\u00".utf8) + [digits[byte >> 4], digits[byte & 15]]
            unsafe table[byte] = entry(text)
        }
        for (byte, letter) in [(0x08, "b"), (0x09, "t"), (0x0A, "n"), (0x0C, "f"), (0x0D, "r")] {
            unsafe table[byte] = entry(Array("\\\(letter)".utf8))
        }
        unsafe table[0x22] = entry(Array("\\\"".utf8))
        unsafe table[0x5C] = entry(Array("\\\\".utf8))
        unsafe setSlash(isEscaped: true, in: table)
        return unsafe table
    }

    static func setSlash(isEscaped: Bool, in table: UnsafeMutablePointer<UInt64>) {
        unsafe table[0x2F] = entry(Array((isEscaped ? "\\/" : "/").utf8))
    }

    private static func entry(_ text: [UInt8]) -> UInt64 {
        text.reversed().reduce(0) { $0 << 8 | UInt64($1) } | UInt64(text.count) << 56
    }
}
