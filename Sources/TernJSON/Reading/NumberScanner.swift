/// Reads numbers (RFC 8259 §6).
extension Scanner {
    /// Reads the number at `start`, and writes its token.
    ///
    /// - Returns: The place after the number.
    @unsafe @inline(__always)
    func number(
        at start: UnsafePointer<UInt8>, token: UnsafeMutablePointer<Token>
    ) throws(ScanFailure) -> UnsafePointer<UInt8> {
        var place = unsafe start
        var flags: UInt8 = 0
        if unsafe place[0] == UInt8(ascii: "-") {
            flags = Token.Flags.isNegative
            unsafe place += 1
        }
        let first = unsafe place
        // Beyond 19 digits the significand wraps around, and is read again later.
        var significand: UInt64 = 0
        while unsafe place < end {
            let digit = unsafe place[0] &- 0x30
            if digit > 9 { break }
            significand = significand &* 10 &+ UInt64(digit)
            unsafe place += 1
        }
        var digits = unsafe place - first
        if digits != 1 {
            if digits == 0 { throw unsafe failure(place == end ? .endsEarly : .badNumber, at: place) }
            if unsafe first[0] == 0x30 { throw unsafe failure(.leadingZero, at: first) }
        }
        let offset = unsafe UInt32(truncatingIfNeeded: start - base)
        guard unsafe place < end, unsafe place[0] == UInt8(ascii: ".") || place[0] | 0x20 == UInt8(ascii: "e") else {
            if digits <= 19 {
                unsafe token.initialize(to: Token(.integer, flags: flags, start: offset, payload: significand))
            } else {
                unsafe writeLongInteger(from: start, first: first, to: place, flags: flags, token: token)
            }
            return unsafe place
        }
        var exponent = 0
        if unsafe place[0] == UInt8(ascii: ".") {
            unsafe place += 1
            let fraction = unsafe place
            while unsafe end - place >= 8 {
                let word = unsafe ByteWords.load(place)
                if !ByteWords.areDigits(word) { break }
                significand = significand &* 100_000_000 &+ ByteWords.number(ofDigits: word)
                unsafe place += 8
            }
            while unsafe place < end {
                let digit = unsafe place[0] &- 0x30
                if digit > 9 { break }
                significand = significand &* 10 &+ UInt64(digit)
                unsafe place += 1
            }
            let count = unsafe place - fraction
            if count == 0 { throw unsafe failure(place == end ? .endsEarly : .badNumber, at: place) }
            exponent = -count
            digits += count
            if unsafe digits > 19 && first[0] == 0x30 {
                // Zeros at the beginning do not count.
                var zero = unsafe fraction
                while unsafe zero < place, unsafe zero[0] == 0x30 { unsafe zero += 1 }
                digits = unsafe place - zero
            }
        }
        if unsafe place < end, unsafe place[0] | 0x20 == UInt8(ascii: "e") {
            exponent += try unsafe scanExponent(&place)
        }
        if digits > 19 {
            let length = unsafe UInt64(truncatingIfNeeded: place - start)
            unsafe token.initialize(to: Token(.longNumber, flags: flags, start: offset, payload: length))
        } else {
            // With 19 digits, anything beyond is zero or infinite in each format.
            let power = Int16(truncatingIfNeeded: max(-20_000, min(20_000, exponent)))
            unsafe token.initialize(
                to: Token(.decimal, flags: flags, exponent: power, start: offset, payload: significand))
        }
        return unsafe place
    }

    /// Reads an exponent with its sign.
    @unsafe @inline(__always)
    private func scanExponent(_ place: inout UnsafePointer<UInt8>) throws(ScanFailure) -> Int {
        unsafe place += 1
        var isNegative = false
        if unsafe place < end, unsafe place[0] == UInt8(ascii: "-") || place[0] == UInt8(ascii: "+") {
            isNegative = unsafe place[0] == UInt8(ascii: "-")
            unsafe place += 1
        }
        let first = unsafe place
        var value = 0
        while unsafe place < end {
            let digit = unsafe place[0] &- 0x30
            if digit > 9 { break }
            if value < DecimalDigits.largestExponent { value = value &* 10 &+ Int(digit) }
            unsafe place += 1
        }
        if unsafe place == first { throw unsafe failure(place == end ? .endsEarly : .badNumber, at: place) }
        return isNegative ? -value : value
    }

    /// Writes an integer of 20 digits that fits into 64 bits, or a long number.
    @unsafe @inline(never)
    private func writeLongInteger(
        from start: UnsafePointer<UInt8>, first: UnsafePointer<UInt8>, to place: UnsafePointer<UInt8>, flags: UInt8,
        token: UnsafeMutablePointer<Token>
    ) {
        let offset = unsafe UInt32(truncatingIfNeeded: start - base)
        if unsafe place - first == 20 {
            var value: UInt64 = 0
            var fits = true
            for index in 0..<20 {
                let (product, overflows) = value.multipliedReportingOverflow(by: 10)
                let (sum, carries) = unsafe product.addingReportingOverflow(UInt64(first[index] &- 0x30))
                value = sum
                if overflows || carries { fits = false }
            }
            if fits {
                unsafe token.initialize(to: Token(.integer, flags: flags, start: offset, payload: value))
                return
            }
        }
        let length = unsafe UInt64(truncatingIfNeeded: place - start)
        unsafe token.initialize(to: Token(.longNumber, flags: flags, start: offset, payload: length))
    }
}
