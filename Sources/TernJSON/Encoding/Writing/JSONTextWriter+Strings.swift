/// Strings are copied 32 bytes at a time. From the first block that has a byte to escape, they are copied by words, and
/// the bytes of a word that has one to escape are looked up.
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
        let count = text.count
        // Room for the quotes and for what is stored beyond the end.
        reserve(count &+ 40)
        let target = unsafe end
        unsafe target[0] = UInt8(ascii: "\"")
        var written = 0
        if count > 0, let source = text.baseAddress {
            written = unsafe copyUnescaped(source, count: count, to: target + 1)
            if written < count { return unsafe writeEscaped(source + written, count: count &- written, from: written) }
        }
        unsafe target[count &+ 1] = UInt8(ascii: "\"")
        self.count &+= count &+ 2
    }

    /// Copies bytes up to those that have to be escaped, and returns their number. It can be smaller than the number of
    /// bytes up to the first escape.
    ///
    /// Blocks overlap at the end, which takes less time than smaller ones.
    @inline(__always)
    private func copyUnescaped(
        _ source: UnsafePointer<UInt8>, count: Int, to target: UnsafeMutablePointer<UInt8>
    ) -> Int {
        let slashes = unsafe state.pointee.slashes
        let (source, target) = unsafe (UnsafeRawPointer(source), UnsafeMutableRawPointer(target))
        if count >= 32 {
            var place = 0
            while true {
                let block = unsafe source.loadUnaligned(fromByteOffset: place, as: SIMD4<UInt64>.self)
                if Self.hasEscapes(block, slashes: slashes) { return place }
                unsafe target.storeBytes(of: block, toByteOffset: place, as: SIMD4<UInt64>.self)
                if place &+ 32 == count { return count }
                place = min(place &+ 32, count &- 32)
            }
        }
        if count >= 16 {
            let first = unsafe source.loadUnaligned(as: SIMD2<UInt64>.self)
            let last = unsafe source.loadUnaligned(fromByteOffset: count &- 16, as: SIMD2<UInt64>.self)
            if Self.hasEscapes(SIMD4(lowHalf: first, highHalf: last), slashes: slashes) { return 0 }
            unsafe target.storeBytes(of: first, as: SIMD2<UInt64>.self)
            unsafe target.storeBytes(of: last, toByteOffset: count &- 16, as: SIMD2<UInt64>.self)
        } else if count >= 8 {
            let first = unsafe source.loadUnaligned(as: UInt64.self)
            let last = unsafe source.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
            if Self.escapes(in: first, slashes: slashes) | Self.escapes(in: last, slashes: slashes) != 0 { return 0 }
            unsafe target.storeBytes(of: first, as: UInt64.self)
            unsafe target.storeBytes(of: last, toByteOffset: count &- 8, as: UInt64.self)
        } else {
            let word = unsafe Self.shortWord(source, count: count)
            // The bytes beyond the end are zeros, which look like control characters.
            let all = (UInt64(1) &<< UInt64(8 &* count)) &- 1
            if Self.escapes(in: word, slashes: slashes) & all != 0 { return 0 }
            unsafe target.storeBytes(of: word.littleEndian, as: UInt64.self)
        }
        return count
    }

    /// Returns a word whose high bits mark the bytes to escape. Above the lowest mark there can be wrong ones.
    ///
    /// A quote is a control character when the bit of 2 is changed, and no other character is. Bytes above 0x7F have no
    /// marks.
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

    /// Returns one to seven bytes, followed by zeros.
    @inline(__always)
    private static func shortWord(_ source: UnsafeRawPointer, count: Int) -> UInt64 {
        if count >= 4 {
            let first = unsafe UInt32(littleEndian: source.loadUnaligned(as: UInt32.self))
            let last = unsafe UInt32(littleEndian: source.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
            return UInt64(first) | UInt64(last) &<< UInt64(8 &* (count &- 4))
        }
        let middle = count &>> 1
        return unsafe UInt64(source.load(as: UInt8.self))
            | UInt64(source.load(fromByteOffset: middle, as: UInt8.self)) &<< UInt64(8 &* middle)
            | UInt64(source.load(fromByteOffset: count &- 1, as: UInt8.self)) &<< UInt64(8 &* (count &- 1))
    }

    /// Writes the rest of a string whose first bytes and quote were stored, and of which some bytes are escaped.
    ///
    /// Up to 32 bytes are looked up in a table, each of whose words is stored as a whole: where escapes are frequent,
    /// this is faster than to branch for each. Where they are not, the next one is searched.
    @inline(never)
    private func writeEscaped(_ source: UnsafePointer<UInt8>, count: Int, from stored: Int) {
        self.count &+= stored &+ 1
        let table = unsafe state.pointee.escapes
        var source = unsafe source
        var left = count
        var target = unsafe end
        while left >= 16 {
            unsafe target = makeRoom(at: target, left: left)
            let start = unsafe target
            let count = min(left & ~15, 32)
            unsafe target = Self.lookUp(source, count: count, in: table, to: start)
            unsafe source += count
            left &-= count
            if unsafe target - start < count &+ 4 {
                let skipped = unsafe copyWords(source, count: left, to: &target)
                unsafe source += skipped
                left &-= skipped
            }
        }
        unsafe target = makeRoom(at: target, left: left)
        for index in 0..<left { unsafe Self.append(table[Int(source[index])], to: &target) }
        unsafe target[0] = UInt8(ascii: "\"")
        unsafe self.count = target - state.pointee.bytes &+ 1
    }

    /// Copies words up to one with an escape, and returns the number of bytes.
    @inline(__always)
    private func copyWords(
        _ source: UnsafePointer<UInt8>, count: Int, to target: inout UnsafeMutablePointer<UInt8>
    ) -> Int {
        let slashes = unsafe state.pointee.slashes
        var place = 0
        while place &+ 8 <= count {
            let word = unsafe UnsafeRawPointer(source).loadUnaligned(fromByteOffset: place, as: UInt64.self)
            unsafe UnsafeMutableRawPointer(target).storeBytes(of: word, toByteOffset: place, as: UInt64.self)
            if Self.escapes(in: word, slashes: slashes) != 0 { break }
            place &+= 8
        }
        unsafe target += place
        return place
    }

    /// Writes a multiple of 16 bytes with escapes, and returns the place after them.
    // Inlined, the compiler would sum up the lengths a second time, for the difference of the places.
    @inline(never)
    private static func lookUp(
        _ source: UnsafePointer<UInt8>, count: Int, in table: UnsafeMutablePointer<UInt64>,
        to target: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        var target = unsafe target
        for block in stride(from: 0, to: count, by: 16) {
            for index in 0..<16 { unsafe append(table[Int(source[block &+ index])], to: &target) }
        }
        return unsafe target
    }

    @inline(__always)
    private static func append(_ entry: UInt64, to target: inout UnsafeMutablePointer<UInt8>) {
        unsafe UnsafeMutableRawPointer(target).storeBytes(of: entry.littleEndian, as: UInt64.self)
        unsafe target += Int(truncatingIfNeeded: entry &>> 56)
    }

    /// Makes room for 32 bytes with escapes, the other bytes of a string without, and what is stored beyond its end.
    /// Returns the place of the next byte, which can have moved.
    @inline(__always)
    private func makeRoom(at place: UnsafeMutablePointer<UInt8>, left: Int) -> UnsafeMutablePointer<UInt8> {
        let needed = left &+ 5 &* 32 &+ 32
        guard unsafe place - state.pointee.bytes &+ needed > state.pointee.limit else { return unsafe place }
        unsafe count = place - state.pointee.bytes
        reserve(needed)
        return unsafe end
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
