/// The shortest decimal number that reads back as a given floating-point number, and of those the closest one.
///
/// The algorithm is Schubfach (Raffaele Giulietti, "The Schubfach way to render doubles", 2020): the bounds of the
/// numbers that round to the value are multiplied by one power of ten, rounded to odd, and compared as integers. It has
/// no loop and no case that needs longer numbers.
struct ShortestDecimal: Equatable {
    /// The digits as a whole number, without zeros at the end. At most 17 digits.
    var digits: UInt64
    /// The power of ten of the last digit.
    var exponent: Int

    private init(candidate digits: UInt64, exponent: Int) {
        (self.digits, self.exponent) = (digits, exponent)
        removeZeros()
    }

    /// Finds the number for a finite value other than zero. The sign is ignored.
    init(_ value: Double) {
        let bits = value.bitPattern
        let fraction = bits & ((1 << 52) - 1)
        let biased = Int(truncatingIfNeeded: bits >> 52) & 0x7FF
        var significand = fraction
        var power = -1_074
        if biased != 0 {
            significand |= 1 << 52
            power = biased - 1_075
            if let whole = Self.whole(significand, power: power, digits: 52) {
                self.init(candidate: whole, exponent: 0)
                return
            }
            if let thousandths = Self.thousandths(value.magnitude) {
                self.init(candidate: thousandths, exponent: -3)
                return
            }
        }
        let isCloserBelow = fraction == 0 && biased > 1
        let scale = Self.scale(power: power, isCloserBelow: isCloserBelow)
        let factor = Self.roundedUpFactor(-scale.exponent)
        let interval = Interval(significand, isCloserBelow: isCloserBelow) { quarters in
            Self.roundedToOdd(high: factor.high, low: factor.low, times: quarters &<< scale.shift)
        }
        let result = interval.shortest(exponent: scale.exponent)
        self.init(candidate: result.digits, exponent: result.exponent)
    }

    /// Finds the number for a finite value other than zero, by the precision of a `Float`. The sign is ignored.
    init(_ value: Float) {
        let bits = value.bitPattern
        let fraction = UInt64(bits & ((1 << 23) - 1))
        let biased = Int(truncatingIfNeeded: bits >> 23) & 0xFF
        var significand = fraction
        var power = -149
        if biased != 0 {
            significand |= 1 << 23
            power = biased - 150
            if let whole = Self.whole(significand, power: power, digits: 23) {
                self.init(candidate: whole, exponent: 0)
                return
            }
        }
        let isCloserBelow = fraction == 0 && biased > 1
        let scale = Self.scale(power: power, isCloserBelow: isCloserBelow)
        let factor = Self.roundedUpHalfFactor(-scale.exponent)
        let interval = Interval(significand, isCloserBelow: isCloserBelow) { quarters in
            Self.roundedToOdd(factor, quarters &<< scale.shift)
        }
        let result = interval.shortest(exponent: scale.exponent)
        self.init(candidate: result.digits, exponent: result.exponent)
    }

    // MARK: The interval

    /// The bounds of the numbers that round to a value, and the value, in quarters of a unit of the last digit.
    private struct Interval {
        let lower: UInt64
        let value: UInt64
        let upper: UInt64

        @inline(__always)
        init(_ significand: UInt64, isCloserBelow: Bool, scaled: (UInt64) -> UInt64) {
            // The bounds themselves round to even: they count only for an even significand.
            let excluded = significand & 1
            lower = scaled(4 &* significand &- (isCloserBelow ? 1 : 2)) &+ excluded
            value = scaled(4 &* significand)
            upper = scaled(4 &* significand &+ 2) &- excluded
        }

        /// Returns the number with one digit less if the interval has exactly one, else the closer one of its two
        /// neighbours.
        @inline(__always)
        func shortest(exponent: Int) -> (digits: UInt64, exponent: Int) {
            let floor = value &>> 2
            if floor >= 10 {
                let tens = floor / 10
                let hasLower = lower <= 40 &* tens
                let hasUpper = 40 &* tens &+ 40 <= upper
                if hasLower != hasUpper { return (tens &+ (hasUpper ? 1 : 0), exponent &+ 1) }
            }
            let hasLower = lower <= 4 &* floor
            let hasUpper = 4 &* floor &+ 4 <= upper
            if hasLower != hasUpper { return (floor &+ (hasUpper ? 1 : 0), exponent) }
            let middle = 4 &* floor &+ 2
            let roundsUp = value > middle || (value == middle && floor & 1 != 0)
            return (floor &+ (roundsUp ? 1 : 0), exponent)
        }
    }

    /// Returns the value as an integer if it is one below 2^53 (2^24), which needs no search.
    @inline(__always)
    private static func whole(_ significand: UInt64, power: Int, digits: Int) -> UInt64? {
        guard power <= 0, power >= -digits else { return nil }
        let shift = UInt64(truncatingIfNeeded: -power)
        return significand & ((1 &<< shift) &- 1) == 0 ? significand &>> shift : nil
    }

    /// Returns the number of thousandths that a value other than zero is, such as a price, if it reads back from them.
    ///
    /// No two numbers of at most 15 digits are the same value, so that no other one can be shorter. This takes a third
    /// of the time of a search.
    @inline(__always)
    private static func thousandths(_ value: Double) -> UInt64? {
        guard value >= 0.001 && value < 1e12 else { return nil }
        let count = Int(value * 1_000 + 0.5)
        return Double(count) / 1_000 == value ? UInt64(truncatingIfNeeded: count) : nil
    }

    /// Returns floor(log10(2^power)), for 3/4 of that power if the value below is closer, and the shift that brings the
    /// product to the same place for each power. The multipliers are log10(2), log10(4/3) and log2(10) in fixed point,
    /// exact in this range.
    @inline(__always)
    private static func scale(power: Int, isCloserBelow: Bool) -> (exponent: Int, shift: UInt64) {
        let exponent = (power &* 1_262_611 &- (isCloserBelow ? 524_031 : 0)) >> 22
        let shift = power &+ ((-exponent &* 1_741_647) >> 19) &+ 1
        return (exponent, UInt64(truncatingIfNeeded: shift))
    }

    // MARK: Products

    /// Returns 10^exponent to 128 bits, rounded up.
    @inline(__always)
    private static func roundedUpFactor(_ exponent: Int) -> (high: UInt64, low: UInt64) {
        let factor = PowersOfTen.significand(of: exponent)
        // 5^55 is the largest power that 128 bits hold. The table's powers from -27 to -1 are rounded up already.
        if exponent >= -27 && exponent <= 55 { return factor }
        let (low, carries) = factor.low.addingReportingOverflow(1)
        return (factor.high &+ (carries ? 1 : 0), low)
    }

    /// Returns 10^exponent to 64 bits, rounded up.
    @inline(__always)
    private static func roundedUpHalfFactor(_ exponent: Int) -> UInt64 {
        let factor = PowersOfTen.significand(of: exponent).high
        return exponent >= 0 && exponent <= 27 ? factor : factor &+ 1
    }

    /// Returns the upper 64 bits of the product of 192 bits. The last bit is also set if any lower bit is.
    @inline(__always)
    private static func roundedToOdd(high: UInt64, low: UInt64, times value: UInt64) -> UInt64 {
        let lower = low.multipliedFullWidth(by: value)
        let upper = high.multipliedFullWidth(by: value)
        let (middle, carries) = upper.low.addingReportingOverflow(lower.high)
        return (upper.high &+ (carries ? 1 : 0)) | (middle > 1 ? 1 : 0)
    }

    /// Returns the upper 32 bits of the product of 96 bits, as above.
    @inline(__always)
    private static func roundedToOdd(_ factor: UInt64, _ value: UInt64) -> UInt64 {
        let product = factor.multipliedFullWidth(by: value)
        return product.high | (product.low >> 32 > 1 ? 1 : 0)
    }

    // MARK: Zeros

    /// Removes the zeros at the end, eight at a time: short numbers such as 0.5 have up to 16.
    @inline(__always)
    private mutating func removeZeros() {
        guard digits % 10 == 0 else { return }
        while digits >= 100_000_000, digits % 100_000_000 == 0 {
            digits /= 100_000_000
            exponent &+= 8
        }
        if digits % 10_000 == 0 {
            digits /= 10_000
            exponent &+= 4
        }
        if digits % 100 == 0 {
            digits /= 100
            exponent &+= 2
        }
        if digits % 10 == 0 {
            digits /= 10
            exponent &+= 1
        }
    }
}
