/// Eight bytes of a text at once, as a little-endian word.
///
/// The tests for a byte are exact for the lowest byte that matches, which is all that the scanner needs.
enum ByteWords {
    static var ones: UInt64 { 0x0101_0101_0101_0101 }
    static var highBits: UInt64 { 0x8080_8080_8080_8080 }
    static var spaces: UInt64 { 0x2020_2020_2020_2020 }

    @unsafe @inline(__always)
    static func load(_ bytes: UnsafePointer<UInt8>) -> UInt64 {
        unsafe UInt64(littleEndian: UnsafeRawPointer(bytes).loadUnaligned(as: UInt64.self))
    }

    @unsafe @inline(__always)
    static func loadHalf(_ bytes: UnsafePointer<UInt8>) -> UInt32 {
        unsafe UInt32(littleEndian: UnsafeRawPointer(bytes).loadUnaligned(as: UInt32.self))
    }

    /// Returns the high bit of the first byte that ends a run of plain characters of a string: a quotation mark, a
    /// backslash or a control character. Bits above it can be set for others.
    @inline(__always)
    static func stringStops(_ word: UInt64) -> UInt64 {
        let quotes = word ^ (0x22 &* ones)
        let slashes = word ^ (0x5C &* ones)
        let isQuote = (quotes &- ones) & ~quotes
        let isSlash = (slashes &- ones) & ~slashes
        let isControl = (word &- spaces) & ~word
        return (isQuote | isSlash | isControl) & highBits
    }

    /// Returns the number of bytes before the first backslash; 8 if there is none.
    @inline(__always)
    static func countBeforeBackslash(_ word: UInt64) -> Int {
        let slashes = word ^ (0x5C &* ones)
        return ((slashes &- ones) & ~slashes & highBits).trailingZeroBitCount &>> 3
    }

    /// Returns the number of bytes at the beginning that are well-formed UTF-8 of a usual kind: eight characters of one
    /// byte, two of two bytes, or two of three bytes whose second byte is not limited. 0 for all others, which are to
    /// be checked byte by byte.
    @inline(__always)
    static func lengthOfUsualCharacters(_ word: UInt64) -> Int {
        if word & highBits == 0 { return 8 }
        // The first byte is the lowest one.
        if word & 0xC0C0_F0C0_C0F0 == 0x8080_E080_80E0 {
            // After E0 and ED, the second byte is limited.
            let (first, second) = (word & 0x0F, word &>> 24 & 0x0F)
            return first == 0 || first == 0xD || second == 0 || second == 0xD ? 0 : 6
        }
        // C0 and C1 begin no character.
        let isPair = word & 0xC0E0_C0E0 == 0x80C0_80C0 && word & 0x1E != 0 && word & 0x1E_0000 != 0
        return isPair ? 4 : 0
    }

    /// Returns whether a byte of ASCII is one of eight.
    @inline(__always)
    static func hasByte(_ byte: UInt8, in word: UInt64) -> Bool {
        let others = word ^ (UInt64(byte) &* ones)
        return (others &- ones) & ~others & highBits != 0
    }

    @inline(__always)
    static func areDigits(_ word: UInt64) -> Bool {
        let highs: UInt64 = 0xF0F0_F0F0_F0F0_F0F0
        return word & highs | ((word &+ 0x0606_0606_0606_0606) & highs) &>> 4 == 0x3333_3333_3333_3333
    }

    /// Returns the number that eight digits in ASCII write: pairs, then fours, then all.
    @inline(__always)
    static func number(ofDigits word: UInt64) -> UInt64 {
        let digits = word &- 0x3030_3030_3030_3030
        let pairs = digits &* 10 &+ digits &>> 8
        let mask: UInt64 = 0x0000_00FF_0000_00FF
        let outer = (pairs & mask) &* 0x000F_4240_0000_0064
        let inner = (pairs &>> 16 & mask) &* 0x0000_2710_0000_0001
        return (outer &+ inner) &>> 32
    }

    /// Returns whether two runs of bytes are equal.
    @unsafe @inline(__always)
    static func areEqual(_ first: UnsafePointer<UInt8>, _ second: UnsafePointer<UInt8>, count: Int) -> Bool {
        if count >= 8 {
            var index = 0
            while index <= count &- 8 {
                if unsafe load(first + index) != load(second + index) { return false }
                index &+= 8
            }
            return unsafe index == count || load(first + (count &- 8)) == load(second + (count &- 8))
        }
        if count >= 4 {
            return unsafe loadHalf(first) == loadHalf(second)
                && loadHalf(first + (count &- 4)) == loadHalf(second + (count &- 4))
        }
        var index = 0
        while index < count {
            if unsafe first[index] != second[index] { return false }
            index &+= 1
        }
        return true
    }

    /// Returns a hash of a key in 32 bits: of four bytes each at its beginning, middle and end.
    ///
    /// It is fast and not safe against chosen collisions: it only saves comparisons, and a search that meets many equal
    /// ones continues with an index, which has a seeded hash.
    @unsafe @inline(__always)
    static func keyHash(_ key: UnsafePointer<UInt8>, count: Int) -> UInt32 {
        var hash: UInt32
        if count >= 4 {
            let offset = count &- 4
            hash = unsafe loadHalf(key) &* 0x9E37_79B1
            hash = unsafe (hash ^ loadHalf(key + offset &>> 1)) &* 0x85EB_CA77
            hash = unsafe (hash ^ loadHalf(key + offset)) &* 0xC2B2_AE3D
        } else {
            hash = 0
            var index = 0
            while index < count {
                hash = unsafe (hash ^ UInt32(key[index])) &* 0x9E37_79B1
                index &+= 1
            }
        }
        return hash ^ hash &>> 16
    }
}
