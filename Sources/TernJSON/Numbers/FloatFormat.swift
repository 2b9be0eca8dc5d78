/// A binary floating-point format of IEEE 754, for conversions from decimal that round once.
struct FloatFormat {
    /// The bits of the significand that are stored: without the leading one.
    let significandBits: Int
    let exponentBias: Int
    /// The biased exponent of infinity.
    let infiniteExponent: Int
    /// Powers of ten below give zero, and above give infinity, with each significand of 64 bits.
    let powers: ClosedRange<Int>
    /// The powers of ten with which a product of 64 bits can lie exactly between two values.
    let exactHalves: ClosedRange<Int>

    static var binary64: FloatFormat {
        FloatFormat(
            significandBits: 52, exponentBias: 1_023, infiniteExponent: 0x7FF, powers: -342...308, exactHalves: -4...23)
    }
    static var binary32: FloatFormat {
        FloatFormat(
            significandBits: 23, exponentBias: 127, infiniteExponent: 0xFF, powers: -64...38, exactHalves: -17...10)
    }
    static var binary16: FloatFormat {
        FloatFormat(
            significandBits: 10, exponentBias: 15, infiniteExponent: 0x1F, powers: -27...4, exactHalves: -26...5)
    }

    var infinity: UInt64 { UInt64(infiniteExponent) &<< UInt64(significandBits) }

    /// Returns the bits of the value nearest to `significand` × 10^`power`, ties to even, without the sign; nil if 128
    /// bits of the power do not decide it. The algorithm is that of Eisel and Lemire.
    @inline(__always)
    func bits(significand: UInt64, power: Int) -> UInt64? {
        if significand == 0 || power < powers.lowerBound { return 0 }
        if power > powers.upperBound { return infinity }
        let shift = significand.leadingZeroBitCount
        let digits = significand &<< UInt64(shift)
        let ten = PowersOfTen.significand(of: power)
        var (high, low) = digits.multipliedFullWidth(by: ten.high)
        let undecided = UInt64.max &>> UInt64(significandBits &+ 3)
        if high & undecided == undecided {
            let second = digits.multipliedFullWidth(by: ten.low).high
            let (sum, carries) = low.addingReportingOverflow(second)
            low = sum
            if carries { high &+= 1 }
            if low == .max && (power < -27 || power > 55) { return nil }
        }
        let top = Int(high &>> 63)
        var surplus = top &+ 61 &- significandBits
        var exponent = ((power &* 217_706) >> 16) &+ 63 &+ top &- shift &+ exponentBias
        if exponent <= 0 {
            // Subnormal: fewer bits stay.
            surplus &+= 1 &- exponent
            if surplus >= 64 { return 0 }
        }
        var value = high &>> UInt64(surplus)
        let isHalf = low <= 1 && value & 3 == 1 && value &<< UInt64(surplus) == high
        if isHalf && power >= exactHalves.lowerBound && power <= exactHalves.upperBound { value &= ~1 }
        value = (value &+ (value & 1)) &>> 1
        if exponent <= 0 { return value }
        if value >= 2 &<< UInt64(significandBits) {
            value = 1 &<< UInt64(significandBits)
            exponent &+= 1
        }
        if exponent >= infiniteExponent { return infinity }
        value &= ~(1 &<< UInt64(significandBits))
        return value | UInt64(exponent) &<< UInt64(significandBits)
    }

    /// Returns the bits of the value nearest to `top` × 2^`exponent`, ties to even, without the sign.
    ///
    /// - Parameters:
    ///   - top: 64 bits, the highest of which is set.
    ///   - isInexact: Whether the exact value is above, by less than the last bit.
    func bits(top: UInt64, exponent: Int, isInexact: Bool) -> UInt64 {
        let biased = exponent + 63 + exponentBias
        if biased >= infiniteExponent { return infinity }
        let surplus = 63 - significandBits + (biased <= 0 ? 1 - biased : 0)
        if surplus > 64 { return 0 }
        let kept = surplus == 64 ? 0 : top &>> UInt64(surplus)
        let rest = surplus == 64 ? top : top & ((1 &<< UInt64(surplus)) &- 1)
        let half: UInt64 = 1 &<< UInt64(surplus - 1)
        let goesUp = rest > half || rest == half && (isInexact || kept & 1 == 1)
        // A carry out of the significand is one more in the exponent, also from the subnormal values to the normal
        // ones.
        let rounded = kept &+ (goesUp ? 1 : 0)
        if biased <= 0 { return rounded }
        let result = UInt64(biased - 1) &<< UInt64(significandBits) &+ rounded
        return min(result, infinity)
    }
}
