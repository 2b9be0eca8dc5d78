/// The byte classes and comparisons of RFC 9110 that header fields need.
enum HTTPBytes {
    static let carriageReturn: UInt8 = 0x0D
    static let lineFeed: UInt8 = 0x0A

    /// Returns whether a byte is a `tchar` of RFC 9110 §5.6.2: a letter, a digit, or one of ``!#$%&'*+-.^_`|~``.
    @inline(__always)
    static func isToken(_ byte: UInt8) -> Bool {
        // One bit for each byte below 128.
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        if byte >= 0x80 { return false }
        return (byte < 0x40 ? low : high) &>> UInt64(byte & 0x3F) & 1 == 1
    }

    @inline(__always)
    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    @inline(__always)
    static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    /// Returns whether a byte may stand in a field value or a reason phrase: every byte except the controls, and the
    /// tab (RFC 9110 §5.5).
    @inline(__always)
    static func isText(_ byte: UInt8) -> Bool { (byte >= 0x20 && byte != 0x7F) || byte == 0x09 }

    /// Returns whether a head can contain an authority.
    static func isAuthority(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy { isAuthority($0) } }

    static func isAuthority(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, 0x7F..., UInt8(ascii: ","), UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"),
            UInt8(ascii: "@"), UInt8(ascii: "\\"):
            false
        default: true
        }
    }

    /// Returns the value 0–15 of a hexadecimal digit; nil for another byte.
    @inline(__always)
    static func hexValue(_ byte: UInt8) -> Int64? {
        if byte &- 0x30 < 10 { return Int64(byte &- 0x30) }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? Int64(letter) + 10 : nil
    }

    // Eight bytes in one word, the first in the lowest bits.
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highs: UInt64 = 0x8080_8080_8080_8080

    @unsafe @inline(__always)
    private static func word(_ base: UnsafeRawPointer, at index: Int) -> UInt64 {
        unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt64.self))
    }

    /// Returns a word that is not 0 if, and only if, a byte is below 0x20 or equals 0x7F.
    @inline(__always)
    private static func controls(in word: UInt64) -> UInt64 {
        let below = (word &- ones &* 0x20) & ~word & highs
        let delete = word ^ (ones &* 0x7F)
        return below | ((delete &- ones) & ~delete & highs)
    }

    /// Returns the index of the first byte that may not stand in a field value; nil if all may. Reads eight bytes at a
    /// time.
    @unsafe @inline(__always)
    static func firstControl(_ base: UnsafeRawPointer, in range: Range<Int>) -> Int? {
        var index = range.lowerBound
        while index &+ 8 <= range.upperBound {
            if unsafe controls(in: word(base, at: index)) != 0 {
                if let control = unsafe firstControl(base, oneByOne: index..<(index &+ 8)) { return control }
            }
            index &+= 8
        }
        if index >= range.upperBound { return nil }
        if range.upperBound >= 8 {
            // The last eight bytes, with blanks in place of those before `index`.
            let maskOfEarlier = (UInt64(1) &<< UInt64(8 &* (8 &- (range.upperBound &- index)))) &- 1
            let last = unsafe word(base, at: range.upperBound &- 8)
            if controls(in: last & ~maskOfEarlier | ones &* 0x20 & maskOfEarlier) == 0 { return nil }
        }
        return unsafe firstControl(base, oneByOne: index..<range.upperBound)
    }

    @unsafe
    private static func firstControl(_ base: UnsafeRawPointer, oneByOne range: Range<Int>) -> Int? {
        for index in range where unsafe !isText(base.load(fromByteOffset: index, as: UInt8.self)) { return index }
        return nil
    }

    /// Returns the index after the `tchar` bytes at the start of a range. Reads letters and hyphens, of which most
    /// names consist, eight at a time.
    @unsafe @inline(__always)
    static func endOfToken(_ base: UnsafeRawPointer, in range: Range<Int>) -> Int {
        var index = range.lowerBound
        while index &+ 8 <= range.upperBound {
            let bytes = unsafe word(base, at: index)
            // Letters in lower case are 0x61 to 0x7A. A sum does not reach the next byte, because the high bits are 0.
            let folded = (bytes | ones &* 0x20) & ~highs
            let letters = (folded &+ ones &* 0x1F) & ~(folded &+ ones &* 0x05) & ~bytes
            let hyphen = bytes ^ (ones &* 0x2D)
            let hyphens = ~(((hyphen & ~highs) &+ ~highs) | hyphen)
            let others = ~(letters | hyphens) & highs
            if others == 0 {
                index &+= 8
                continue
            }
            index &+= others.trailingZeroBitCount &>> 3
            break
        }
        while index < range.upperBound, unsafe isToken(base.load(fromByteOffset: index, as: UInt8.self)) { index &+= 1 }
        return index
    }

    /// Returns whether bytes are equal to a text in lower case, whatever the case of their letters. The text consists
    /// of letters, digits and hyphens.
    @unsafe @inline(__always)
    static func equals(_ base: UnsafeRawPointer, in range: Range<Int>, to text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        let start = unsafe text.utf8Start
        for index in 0..<range.count {
            let byte = unsafe base.load(fromByteOffset: range.lowerBound &+ index, as: UInt8.self)
            // A hyphen or a digit is also what a control byte becomes; token bytes and values contain none.
            if unsafe byte | 0x20 != start[index] { return false }
        }
        return true
    }

    /// Returns a range without the blanks at its ends.
    @unsafe @inline(__always)
    static func trimmed(_ base: UnsafeRawPointer, _ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, unsafe isBlank(base.load(fromByteOffset: start, as: UInt8.self)) { start &+= 1 }
        while start < end, unsafe isBlank(base.load(fromByteOffset: end &- 1, as: UInt8.self)) { end &-= 1 }
        return start..<end
    }

    /// Takes the next element of a comma-separated list (RFC 9110 §5.6.1), without the blanks around it, and moves
    /// `position` behind its comma. Returns nil at the end. An element can be empty.
    @unsafe
    static func nextElement(_ base: UnsafeRawPointer, from position: inout Int, to end: Int) -> Range<Int>? {
        guard position <= end else { return nil }
        var comma = position
        while comma < end, unsafe base.load(fromByteOffset: comma, as: UInt8.self) != UInt8(ascii: ",") { comma += 1 }
        defer { position = comma + 1 }
        return unsafe trimmed(base, position..<comma)
    }

    /// Returns the decimal number that the bytes state; nil if a byte is not a digit, or if they are not 1 to 18, which
    /// fit into 64 bits.
    @unsafe
    static func number(_ base: UnsafeRawPointer, in range: Range<Int>) -> Int64? {
        guard 1...18 ~= range.count else { return nil }
        var number: Int64 = 0
        for index in range {
            let byte = unsafe base.load(fromByteOffset: index, as: UInt8.self)
            guard isDigit(byte) else { return nil }
            number = number * 10 + Int64(byte &- 0x30)
        }
        return number
    }
}
