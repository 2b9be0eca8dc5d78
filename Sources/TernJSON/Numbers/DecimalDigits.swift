/// The digits of a number as it is written, for the conversions that 64 bits do not decide.
///
/// The value is `digits` × 10^`exponent`. Reading takes time in proportion to the text, and memory for ``limit``
/// digits.
struct DecimalDigits {
    /// No `Double` needs more digits to decide between two values; further ones only tell that the value is above.
    static let limit = 800

    var isNegative = false
    /// The values 0–9, without zeros at the beginning and at the end. Empty for zero.
    var digits: [UInt8] = []
    /// The power of ten of the last digit.
    var exponent = 0
    /// Whether digits other than zero were left out.
    var isTruncated = false

    /// Reads a number that obeys the grammar of RFC 8259 §6.
    init(text: Span<UInt8>) {
        var index = 0
        var zeros = 0
        var hasPoint = false
        if index < text.count, text[index] == UInt8(ascii: "-") {
            isNegative = true
            index += 1
        }
        while index < text.count {
            let byte = text[index]
            if byte == UInt8(ascii: ".") {
                hasPoint = true
            } else if byte.isDigit {
                if hasPoint { exponent -= 1 }
                if byte != UInt8(ascii: "0") {
                    append(byte & 0x0F, after: zeros)
                    zeros = 0
                } else if !digits.isEmpty || isTruncated {
                    zeros += 1
                }
            } else {
                break
            }
            index += 1
        }
        exponent += zeros
        if index < text.count { exponent += Self.exponent(in: text, from: index + 1) }
        exponent += omitted
    }

    /// Creates the digits of a number that fits into 64 bits.
    init(significand: UInt64, exponent: Int, isNegative: Bool) {
        self.isNegative = isNegative
        self.exponent = exponent
        guard significand != 0 else { return }
        digits = "\(significand)".utf8.map { $0 & 0x0F }
        while digits.last == 0 {
            digits.removeLast()
            self.exponent += 1
        }
    }

    /// The number of digits that were left out at the end.
    private var omitted = 0

    private mutating func append(_ digit: UInt8, after zeros: Int) {
        let room = Self.limit - digits.count
        if zeros >= room {
            // Filled up, so that what is left out is below the last digit.
            digits.append(contentsOf: repeatElement(0, count: room))
            isTruncated = true
            omitted += zeros - room + 1
        } else {
            digits.append(contentsOf: repeatElement(0, count: zeros))
            digits.append(digit)
        }
    }

    /// The exponent from which digits are left out: no text is long enough to balance it, and sums with it do not
    /// overflow.
    static var largestExponent: Int { .max / 16 }

    /// Returns the exponent after an `e`.
    private static func exponent(in text: Span<UInt8>, from start: Int) -> Int {
        var index = start
        var isNegative = false
        if index < text.count, !text[index].isDigit {
            isNegative = text[index] == UInt8(ascii: "-")
            index += 1
        }
        var value = 0
        while index < text.count {
            if value < largestExponent { value = value * 10 + Int(text[index] & 0x0F) }
            index += 1
        }
        return isNegative ? -value : value
    }

    /// The magnitude, if the number is whole and fits into 128 bits.
    var wholeMagnitude: UInt128? {
        if digits.isEmpty { return 0 }
        guard exponent >= 0, !isTruncated, digits.count + exponent <= 39 else { return nil }
        var value: UInt128 = 0
        for digit in digits {
            guard let next = Self.times10(value, plus: digit) else { return nil }
            value = next
        }
        for _ in 0..<exponent {
            guard let next = Self.times10(value, plus: 0) else { return nil }
            value = next
        }
        return value
    }

    private static func times10(_ value: UInt128, plus digit: UInt8) -> UInt128? {
        let (product, overflows) = value.multipliedReportingOverflow(by: 10)
        let (sum, carries) = product.addingReportingOverflow(UInt128(digit))
        return overflows || carries ? nil : sum
    }

    /// Returns the bits of the nearest value, ties to even, without the sign.
    func bits(in format: FloatFormat) -> UInt64 {
        if digits.isEmpty { return 0 }
        // Far beyond the format, the numbers below would be large.
        let powerOfFirstDigit = digits.count + exponent - 1
        if powerOfFirstDigit > format.powers.upperBound { return format.infinity }
        if powerOfFirstDigit < format.powers.lowerBound { return 0 }
        if let bits = bitsOfFirstDigits(in: format) { return bits }
        var numerator = BigNatural(digits: digits)
        var exponent = exponent
        if isTruncated {
            numerator.multiply(by: 10, adding: 1)
            exponent -= 1
        }
        if exponent >= 0 {
            numerator.multiplyByPowerOfFive(exponent)
            let (top, shift, isInexact) = numerator.topBits()
            return format.bits(top: top, exponent: shift + exponent, isInexact: isInexact)
        }
        var denominator = BigNatural(digits: [1])
        denominator.multiplyByPowerOfFive(-exponent)
        let (quotient, shift, isInexact) = numerator.quotient(by: denominator)
        return format.bits(top: quotient, exponent: shift + exponent, isInexact: isInexact)
    }
}

extension DecimalDigits {
    /// Returns the bits if the digits after the 19th cannot change them.
    private func bitsOfFirstDigits(in format: FloatFormat) -> UInt64? {
        guard digits.count > 19 else { return nil }
        var significand: UInt64 = 0
        for digit in digits.prefix(19) { significand = significand &* 10 &+ UInt64(digit) }
        let power = exponent + digits.count - 19
        guard let low = format.bits(significand: significand, power: power),
            let high = format.bits(significand: significand + 1, power: power)
        else { return nil }
        return low == high ? low : nil
    }
}

extension UInt8 {
    var isDigit: Bool { self &- 0x30 < 10 }
}
