/// Finds its way in JSON that a writer has made, with lines or without.
///
/// Places are checked against the end, although the text is well-formed as far as it goes.
@safe
struct WrittenText {
    let bytes: UnsafeBufferPointer<UInt8>

    init(_ bytes: UnsafeBufferPointer<UInt8>) { unsafe self.bytes = bytes }

    var count: Int { unsafe bytes.count }

    /// The byte at a place; 0 at the end.
    @inline(__always)
    subscript(_ place: Int) -> UInt8 { unsafe place >= 0 && place < bytes.count ? bytes[place] : 0 }

    /// Returns the bytes of a range, which is cut at the end.
    func slice(_ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: bytes[range.clamped(to: 0..<count)])
    }

    /// Returns the place after a string whose first quote is at a place.
    func endOfString(at start: Int) -> Int {
        var place = start + 1
        let count = count
        while place &+ 8 <= count {
            let word = unsafe UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: place, as: UInt64.self)
            let marks = Self.quotesAndBackslashes(UInt64(littleEndian: word))
            if marks == 0 {
                place &+= 8
                continue
            }
            place &+= marks.trailingZeroBitCount &>> 3
            if self[place] == UInt8(ascii: "\"") { return place &+ 1 }
            place &+= 2
        }
        while place < count {
            switch self[place] {
            case UInt8(ascii: "\""): return place &+ 1
            case UInt8(ascii: "\\"): place &+= 2
            default: place &+= 1
            }
        }
        return count
    }

    /// Returns a word whose high bits mark quotes and backslashes. Above the lowest mark there can be wrong ones.
    @inline(__always)
    private static func quotesAndBackslashes(_ word: UInt64) -> UInt64 {
        let ones = UInt64(0x0101_0101_0101_0101)
        let quotes = (word ^ 0x2222_2222_2222_2222) &- ones
        let backslashes = (word ^ 0x5C5C_5C5C_5C5C_5C5C) &- ones
        return (quotes | backslashes) & ~word & 0x8080_8080_8080_8080
    }

    /// Returns the first place that is not in white space, from a place between values.
    @inline(__always)
    func afterSpace(_ start: Int) -> Int {
        var place = start
        while Self.isSpace(self[place]) { place &+= 1 }
        return place
    }

    /// Returns whether a byte is one of the two kinds of white space that a writer makes.
    @inline(__always)
    private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") }

    /// Returns the place of the value of a member, from the place after its name.
    func startOfValue(afterName place: Int) -> Int { afterSpace(afterSpace(place) + 1) }

    /// Returns the place after a number, true, false or null.
    func endOfScalar(at start: Int) -> Int {
        var place = start
        while place < count {
            switch self[place] {
            case UInt8(ascii: ","), UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: "\n"): return place
            default: place += 1
            }
        }
        return place
    }

    /// Returns the place after a value.
    func endOfValue(at start: Int) -> Int {
        var place = start
        var depth = 0
        while place < count {
            switch self[place] {
            case UInt8(ascii: "\""): place = endOfString(at: place)
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                place += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                place += 1
            case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: " "), UInt8(ascii: "\n"): place += 1
            default: place = endOfScalar(at: place)
            }
            if depth <= 0 { return place }
        }
        return place
    }

    /// Returns the number of elements of an array.
    func elementCount(at start: Int) -> Int {
        var place = afterSpace(start + 1)
        var elements = 0
        while place < count, self[place] != UInt8(ascii: "]") {
            elements += 1
            place = afterSpace(endOfValue(at: place))
            if self[place] == UInt8(ascii: ",") { place = afterSpace(place + 1) }
        }
        return elements
    }

    /// Returns the text of a string, whose range includes the quotes.
    func name(_ range: Range<Int>) -> String { String(decoding: unescaped(range), as: UTF8.self) }

    /// Returns the bytes of a string without escapes. The range includes the quotes.
    func unescaped(_ range: Range<Int>) -> [UInt8] {
        let content = unsafe slice(
            min(range.lowerBound + 1, range.upperBound)..<max(range.lowerBound + 1, range.upperBound - 1))
        guard unsafe content.contains(UInt8(ascii: "\\")) else { return unsafe Array(content) }
        var result: [UInt8] = []
        var place = 0
        while place < content.count {
            let byte = unsafe content[place]
            guard byte == UInt8(ascii: "\\"), place + 1 < content.count else {
                result.append(byte)
                place += 1
                continue
            }
            let escape = unsafe content[place + 1]
            place += 2
            switch escape {
            case UInt8(ascii: "n"): result.append(0x0A)
            case UInt8(ascii: "r"): result.append(0x0D)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0C)
            case UInt8(ascii: "u"):
                // Only control characters are written this way: `\u00XX`.
                let digits = unsafe content[min(place + 2, content.count)..<min(place + 4, content.count)]
                unsafe result.append(UInt8(String(decoding: unsafe digits, as: UTF8.self), radix: 16) ?? 0)
                place += 4
            default: result.append(escape)
            }
        }
        return result
    }

    /// Returns the path to the value at a place.
    func path(to target: Int) -> [any CodingKey] {
        var levels: [(isObject: Bool, index: Int, name: Range<Int>)] = []
        var place = 0
        var expectsName = false
        while place < min(target, count) {
            switch self[place] {
            case UInt8(ascii: "{"):
                levels.append((true, 0, 0..<0))
                expectsName = true
                place += 1
            case UInt8(ascii: "["):
                levels.append((false, 0, 0..<0))
                expectsName = false
                place += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                _ = levels.popLast()
                place += 1
            case UInt8(ascii: ","):
                if !levels.isEmpty { levels[levels.count - 1].index += 1 }
                expectsName = levels.last?.isObject ?? false
                place += 1
            case UInt8(ascii: "\""):
                let end = endOfString(at: place)
                if expectsName, !levels.isEmpty { levels[levels.count - 1].name = place..<end }
                expectsName = false
                place = end
            case UInt8(ascii: ":"), UInt8(ascii: " "), UInt8(ascii: "\n"): place += 1
            default: place = endOfScalar(at: place)
            }
        }
        return levels.map { level in
            level.isObject ? PathKey(name: name(level.name)) : PathKey(index: level.index)
        }
    }
}
