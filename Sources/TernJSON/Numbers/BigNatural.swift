/// A natural number of any size, for the exact conversion of the few decimal numbers that 128 bits do not decide.
///
/// It has at most some thousand bits, so that plain algorithms do.
struct BigNatural {
    /// The lowest first; the last one is not zero.
    private var limbs: [UInt32] = []

    /// Creates a number from its decimal digits, values 0–9.
    init(digits: [UInt8]) {
        for digit in digits { multiply(by: 10, adding: UInt32(digit)) }
    }

    mutating func multiply(by factor: UInt32, adding summand: UInt32) {
        var carry = UInt64(summand)
        for index in limbs.indices {
            carry += UInt64(limbs[index]) * UInt64(factor)
            limbs[index] = UInt32(truncatingIfNeeded: carry)
            carry >>= 32
        }
        if carry > 0 { limbs.append(UInt32(truncatingIfNeeded: carry)) }
    }

    mutating func multiplyByPowerOfFive(_ power: Int) {
        // 5^13 is the largest power of 32 bits.
        for _ in 0..<power / 13 { multiply(by: 1_220_703_125, adding: 0) }
        for _ in 0..<power % 13 { multiply(by: 5, adding: 0) }
    }

    private var bitWidth: Int { limbs.isEmpty ? 0 : limbs.count * 32 - (limbs.last?.leadingZeroBitCount ?? 0) }

    private mutating func shiftLeft(by bits: Int) {
        guard bits > 0, !limbs.isEmpty else { return }
        let small = UInt64(bits % 32)
        if small > 0 {
            var carry: UInt64 = 0
            for index in limbs.indices {
                carry |= UInt64(limbs[index]) << small
                limbs[index] = UInt32(truncatingIfNeeded: carry)
                carry >>= 32
            }
            if carry > 0 { limbs.append(UInt32(truncatingIfNeeded: carry)) }
        }
        limbs.insert(contentsOf: repeatElement(0, count: bits / 32), at: 0)
    }

    private func isLess(than other: BigNatural) -> Bool {
        if limbs.count != other.limbs.count { return limbs.count < other.limbs.count }
        for index in limbs.indices.reversed() where limbs[index] != other.limbs[index] {
            return limbs[index] < other.limbs[index]
        }
        return false
    }

    /// Subtracts a number that is not larger.
    private mutating func subtract(_ other: BigNatural) {
        var borrow: Int64 = 0
        for index in limbs.indices {
            let digit = index < other.limbs.count ? Int64(other.limbs[index]) : 0
            let difference = Int64(limbs[index]) - digit - borrow
            borrow = difference < 0 ? 1 : 0
            limbs[index] = UInt32(truncatingIfNeeded: difference)
        }
        while limbs.last == 0 { limbs.removeLast() }
    }

    /// Returns the highest 64 bits, the power of two of their last one, and whether there are others below that are
    /// set. The number must not be zero.
    func topBits() -> (top: UInt64, exponent: Int, isInexact: Bool) {
        let exponent = bitWidth - 64
        var copy = self
        if exponent < 0 { copy.shiftLeft(by: -exponent) }
        let offset = max(exponent, 0)
        var top: UInt64 = 0
        for bit in 0..<64 where copy.isSet(offset + bit) { top |= 1 &<< UInt64(bit) }
        let isInexact = (0..<offset).contains { copy.isSet($0) }
        return (top, exponent, isInexact)
    }

    private func isSet(_ bit: Int) -> Bool {
        bit / 32 < limbs.count && limbs[bit / 32] >> UInt32(bit % 32) & 1 == 1
    }

    /// Returns 64 bits of the quotient, the highest of which is set, the power of two of their last one, and whether
    /// there is a remainder. Both numbers must not be zero.
    func quotient(by divisor: BigNatural) -> (top: UInt64, exponent: Int, isInexact: Bool) {
        var remainder = self
        var divisor = divisor
        var difference = bitWidth - divisor.bitWidth
        if difference > 0 { divisor.shiftLeft(by: difference) } else { remainder.shiftLeft(by: -difference) }
        if remainder.isLess(than: divisor) {
            remainder.shiftLeft(by: 1)
            difference -= 1
        }
        // Now the quotient of both is 1..<2.
        var top: UInt64 = 0
        for _ in 0..<64 {
            top <<= 1
            if !remainder.isLess(than: divisor) {
                remainder.subtract(divisor)
                top |= 1
            }
            remainder.shiftLeft(by: 1)
        }
        return (top, difference - 63, !remainder.limbs.isEmpty)
    }
}
