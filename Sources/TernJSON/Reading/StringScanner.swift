/// Finds the end of strings.
extension Scanner {
    /// Finds the end of the string that begins at `start`, after its quotation mark.
    ///
    /// - Parameter flags: Receives the flags of the token.
    /// - Returns: The place of the quotation mark at the end.
    @unsafe @inline(__always)
    func endOfString(
        from start: UnsafePointer<UInt8>, flags: inout UInt8
    ) throws(ScanFailure) -> UnsafePointer<UInt8> {
        var place = unsafe start
        var seen: UInt64 = 0
        while unsafe end - place >= 8 {
            let word = unsafe ByteWords.load(place)
            let stops = ByteWords.stringStops(word)
            if stops == 0 {
                seen |= word
                unsafe place += 8
                continue
            }
            let bits = stops.trailingZeroBitCount
            seen |= word & ((1 &<< UInt64(truncatingIfNeeded: bits & 0x38)) &- 1)
            unsafe place += bits &>> 3
            if unsafe place[0] == UInt8(ascii: "\"") {
                if seen & ByteWords.highBits != 0 {
                    flags |= Token.Flags.isNotASCII
                    try unsafe checkUTF8(start, place)
                }
                return unsafe place
            }
            break
        }
        return try unsafe endOfUnusualString(from: place, start: start, seen: seen, flags: &flags)
    }

    /// Continues with a string that has escapes, or is at the end of the text.
    @unsafe @inline(never)
    private func endOfUnusualString(
        from first: UnsafePointer<UInt8>, start: UnsafePointer<UInt8>, seen: UInt64, flags: inout UInt8
    ) throws(ScanFailure) -> UnsafePointer<UInt8> {
        var place = unsafe first
        var seen = seen
        while unsafe place < end {
            while unsafe end - place >= 8 {
                let word = unsafe ByteWords.load(place)
                let stops = ByteWords.stringStops(word)
                let bits = stops == 0 ? 64 : stops.trailingZeroBitCount & 0x38
                seen |= bits == 64 ? word : word & (1 &<< UInt64(truncatingIfNeeded: bits) &- 1)
                unsafe place += bits &>> 3
                if bits < 64 { break }
            }
            guard unsafe place < end else { break }
            let byte = unsafe place[0]
            if byte == UInt8(ascii: "\\") {
                flags |= Token.Flags.hasEscapes
                if try unsafe skipEscape(&place) >= 0x80 { flags |= Token.Flags.isNotASCII }
                continue
            }
            if byte == UInt8(ascii: "\"") {
                if seen & ByteWords.highBits != 0 {
                    flags |= Token.Flags.isNotASCII
                    try unsafe checkUTF8(start, place)
                }
                return unsafe place
            }
            if byte < 0x20 { throw unsafe failure(.controlCharacter, at: place) }
            seen |= UInt64(byte)
            unsafe place += 1
        }
        throw unsafe failure(.endsEarly, at: end)
    }

    /// Moves behind an escape sequence, two for a character beyond U+FFFF. Returns the character for `\u`, otherwise 0.
    @unsafe @inline(__always)
    private func skipEscape(_ place: inout UnsafePointer<UInt8>) throws(ScanFailure) -> UInt32 {
        guard unsafe end - place >= 2 else { throw unsafe failure(.endsEarly, at: end) }
        let name = unsafe place[1]
        if name != UInt8(ascii: "u") {
            // Without a branch for each: their order cannot be predicted.
            let names = name < 0x40 ? Self.escapesBelow64 : name < 0x80 ? Self.escapesFrom64 : 0
            guard names &>> UInt64(name & 0x3F) & 1 != 0 else { throw unsafe failure(.badEscape, at: place) }
            unsafe place += 2
            return 0
        }
        let unit = try unsafe codeUnit(place)
        if unit & 0xF800 != 0xD800 {
            unsafe place += 6
            return unit
        }
        // The first half of a character must be followed by the second one.
        guard unit < 0xDC00, unsafe end - place >= 8, unsafe place[6] == UInt8(ascii: "\\"),
            unsafe place[7] == UInt8(ascii: "u"), try unsafe codeUnit(place + 6) & 0xFC00 == 0xDC00
        else { throw unsafe failure(.loneSurrogate, at: place) }
        unsafe place += 12
        return unit
    }

    /// A bit for each of the characters `"` and `/`.
    private static var escapesBelow64: UInt64 { 1 &<< 0x22 | 1 &<< 0x2F }
    /// A bit for each of the characters `\`, b, f, n, r and t, counted from 64.
    private static var escapesFrom64: UInt64 {
        1 &<< 0x1C | 1 &<< 0x22 | 1 &<< 0x26 | 1 &<< 0x2E | 1 &<< 0x32 | 1 &<< 0x34
    }

    /// Returns the number that the four digits after `\u` write.
    @unsafe @inline(__always)
    private func codeUnit(_ place: UnsafePointer<UInt8>) throws(ScanFailure) -> UInt32 {
        guard unsafe end - place >= 6 else { throw unsafe failure(.endsEarly, at: end) }
        var value: UInt32 = 0
        for index in 2..<6 {
            let digit = unsafe place[index].hexadecimalValue
            if digit > 15 { throw unsafe failure(.badEscape, at: place) }
            value = value &<< 4 | UInt32(digit)
        }
        return value
    }

    @unsafe @inline(never)
    private func checkUTF8(_ start: UnsafePointer<UInt8>, _ stop: UnsafePointer<UInt8>) throws(ScanFailure) {
        let place = unsafe UTF8Check.firstError(start, stop)
        if unsafe place != stop { throw unsafe failure(.badUTF8, at: place) }
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit; 255 for another byte.
    @inline(__always)
    var hexadecimalValue: UInt8 {
        if self &- 0x30 < 10 { return self &- 0x30 }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : 255
    }
}
