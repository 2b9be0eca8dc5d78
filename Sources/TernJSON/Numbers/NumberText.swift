/// Writes numbers in decimal to memory. The caller makes sure that there is room for `longest` bytes.
enum NumberText {
    /// More bytes than any number needs: 40 for an `Int128`, 26 for a `Double`, and what is stored beyond the end.
    static let longest = 48

    // MARK: Integers

    /// Writes an integer of at most 64 bits, and returns the number of bytes.
    @inline(__always)
    static func write<Value: FixedWidthInteger>(_ value: Value, to place: UnsafeMutablePointer<UInt8>) -> Int {
        if value >= 0 { return unsafe write(UInt64(truncatingIfNeeded: value), to: place) }
        unsafe place[0] = UInt8(ascii: "-")
        return unsafe write(UInt64(truncatingIfNeeded: value.magnitude), to: place + 1) &+ 1
    }

    /// Writes an integer, and returns the number of bytes.
    @inline(__always)
    static func write(_ value: UInt64, to place: UnsafeMutablePointer<UInt8>) -> Int {
        if value < 10 {
            unsafe place[0] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value)
            return 1
        }
        let count = digitCount(of: value)
        unsafe writeDigits(of: value, count: count, to: place)
        return count
    }

    /// Writes an integer of 128 bits, and returns the number of bytes.
    static func writeLong(_ value: UInt128, to place: UnsafeMutablePointer<UInt8>) -> Int {
        if let small = UInt64(exactly: value) { return unsafe write(small, to: place) }
        // 10^19 is the largest power of ten in 64 bits. The quotient is shorter than the value.
        let (rest, last) = value.quotientAndRemainder(dividingBy: 10_000_000_000_000_000_000)
        let count = unsafe writeLong(rest, to: place)
        unsafe writePadded(UInt64(truncatingIfNeeded: last), count: 19, to: place + count)
        return count &+ 19
    }

    /// Writes an integer of 128 bits with its sign, and returns the number of bytes.
    static func writeLong(_ value: Int128, to place: UnsafeMutablePointer<UInt8>) -> Int {
        if value >= 0 { return unsafe writeLong(value.magnitude, to: place) }
        unsafe place[0] = UInt8(ascii: "-")
        return unsafe writeLong(value.magnitude, to: place + 1) &+ 1
    }

    // MARK: Floating-point numbers

    /// Writes a finite number in its shortest form, and returns the number of bytes.
    @inline(__always)
    static func write(_ value: Double, to place: UnsafeMutablePointer<UInt8>) -> Int {
        let isNegative = value.sign == .minus
        if isNegative { unsafe place[0] = UInt8(ascii: "-") }
        let sign = isNegative ? 1 : 0
        if value == 0 {
            unsafe place[sign] = UInt8(ascii: "0")
            return sign &+ 1
        }
        let isLarge = value.magnitude > 0x1p53
        return unsafe sign &+ write(ShortestDecimal(value), isLarge: isLarge, to: place + sign)
    }

    /// Writes a finite number in the shortest form by the precision of a `Float`, and returns the number of bytes.
    static func write(_ value: Float, to place: UnsafeMutablePointer<UInt8>) -> Int {
        let isNegative = value.sign == .minus
        if isNegative { unsafe place[0] = UInt8(ascii: "-") }
        let sign = isNegative ? 1 : 0
        if value == 0 {
            unsafe place[sign] = UInt8(ascii: "0")
            return sign &+ 1
        }
        let isLarge = value.magnitude > 0x1p24
        return unsafe sign &+ write(ShortestDecimal(value), isLarge: isLarge, to: place + sign)
    }

    /// Writes a number in the form of Swift's `description`, without `.0`: `0.0001`, `1e-05`, `9007199254740992`,
    /// `1e+16`.
    private static func write(
        _ number: ShortestDecimal, isLarge: Bool, to place: UnsafeMutablePointer<UInt8>
    ) -> Int {
        let count = digitCount(of: number.digits)
        // The number of digits before the point.
        let point = count &+ number.exponent
        if isLarge || point < -3 { return unsafe writeScientific(number, count: count, to: place) }
        if number.exponent >= 0 {
            // At most 16 digits, of which those at the end can be zeros.
            unsafe store(zeros, at: place)
            unsafe store(zeros, at: place + 8)
            unsafe writeDigits(of: number.digits, count: count, to: place)
            return point
        }
        if point > 0 {
            // The digits before the point move by one byte. Both parts have at most 16.
            unsafe writeDigits(of: number.digits, count: count, to: place + 1)
            let whole = unsafe UnsafeRawPointer(place + 1).loadUnaligned(as: SIMD16<UInt8>.self)
            let fraction = unsafe UnsafeRawPointer(place + 1 + point).loadUnaligned(as: SIMD16<UInt8>.self)
            unsafe UnsafeMutableRawPointer(place).storeBytes(of: whole, as: SIMD16<UInt8>.self)
            unsafe UnsafeMutableRawPointer(place + 1 + point).storeBytes(of: fraction, as: SIMD16<UInt8>.self)
            unsafe place[point] = UInt8(ascii: ".")
            return count &+ 1
        }
        unsafe store(zeros, at: place)
        unsafe place[1] = UInt8(ascii: ".")
        unsafe writeDigits(of: number.digits, count: count, to: place + 2 - point)
        return 2 &- point &+ count
    }

    /// Eight times `0`.
    private static let zeros = UInt64(0x3030_3030_3030_3030)

    @inline(__always)
    private static func store(_ word: UInt64, at place: UnsafeMutablePointer<UInt8>) {
        unsafe UnsafeMutableRawPointer(place).storeBytes(of: word, as: UInt64.self)
    }

    /// Writes `d.ddde+xx`, with two or three digits of the exponent.
    private static func writeScientific(
        _ number: ShortestDecimal, count: Int, to place: UnsafeMutablePointer<UInt8>
    ) -> Int {
        unsafe writeDigits(of: number.digits, count: count, to: place + 1)
        unsafe place[0] = place[1]
        var end = 1
        if count > 1 {
            unsafe place[1] = UInt8(ascii: ".")
            end = count &+ 1
        }
        let power = count &+ number.exponent &- 1
        unsafe place[end] = UInt8(ascii: "e")
        unsafe place[end &+ 1] = power < 0 ? UInt8(ascii: "-") : UInt8(ascii: "+")
        let size = power.magnitude
        let digits = size < 100 ? 2 : 3
        unsafe writePadded(UInt64(size), count: digits, to: place + end + 2)
        return end &+ 2 &+ digits
    }

    // MARK: Digits

    @inline(__always)
    static func digitCount(of value: UInt64) -> Int {
        var rest = value
        var count = 1
        while rest >= 10 {
            if rest < 100 { return count &+ 1 }
            if rest < 1_000 { return count &+ 2 }
            if rest < 10_000 { return count &+ 3 }
            rest /= 10_000
            count &+= 4
        }
        return count
    }

    /// Writes a value with zeros before it, if it has less than `count` digits.
    @inline(__always)
    static func writePadded(_ value: UInt64, count: Int, to place: UnsafeMutablePointer<UInt8>) {
        var rest = value
        var end = count
        while end >= 2 {
            end &-= 2
            unsafe writePair(rest % 100, to: place + end)
            rest /= 100
        }
        if end == 1 { unsafe place[0] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10) }
    }

    /// Writes the digits of a value, whose number is known.
    @inline(__always)
    private static func writeDigits(of value: UInt64, count: Int, to place: UnsafeMutablePointer<UInt8>) {
        var rest = value
        var end = count
        // Halves of eight digits, because a division by 100 of 32 bits is faster than one of 64.
        while rest >= 100_000_000 {
            let (quotient, part) = rest.quotientAndRemainder(dividingBy: 100_000_000)
            rest = quotient
            end &-= 8
            unsafe writeEight(UInt32(truncatingIfNeeded: part), to: place + end)
        }
        var small = UInt32(truncatingIfNeeded: rest)
        while small >= 100 {
            end &-= 2
            unsafe writePair(UInt64(small % 100), to: place + end)
            small /= 100
        }
        if small >= 10 {
            unsafe writePair(UInt64(small), to: place)
        } else {
            unsafe place[0] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: small)
        }
    }

    @inline(__always)
    private static func writeEight(_ value: UInt32, to place: UnsafeMutablePointer<UInt8>) {
        let (high, low) = value.quotientAndRemainder(dividingBy: 10_000)
        unsafe writePair(UInt64(high / 100), to: place)
        unsafe writePair(UInt64(high % 100), to: place + 2)
        unsafe writePair(UInt64(low / 100), to: place + 4)
        unsafe writePair(UInt64(low % 100), to: place + 6)
    }

    /// Writes two digits of a value below 100.
    @inline(__always)
    private static func writePair(_ value: UInt64, to place: UnsafeMutablePointer<UInt8>) {
        // A literal inside the function is read-only data, without a check that it was initialised.
        let pairs: StaticString = """
            0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
            5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899
            """
        let offset = Int(truncatingIfNeeded: value) &* 2
        let pair = unsafe UnsafeRawPointer(pairs.utf8Start).loadUnaligned(fromByteOffset: offset, as: UInt16.self)
        unsafe UnsafeMutableRawPointer(place).storeBytes(of: pair, as: UInt16.self)
    }
}
