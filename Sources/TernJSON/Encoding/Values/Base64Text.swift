/// Writes bytes in Base64 (RFC 4648 §4).
enum Base64Text {
    /// The size of a part, which is a multiple of the six bytes that are written at once.
    static let partSize = 3_072
    /// The number of digits of a part if each of them is an escaped slash, and some more.
    static let longestPart = 2 * 4 * partSize / 3 + 32

    /// The two digits of each number of 12 bits. The first one is the lower byte.
    private static let pairs: [UInt16] = {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        return digits.flatMap { first in digits.map { second in UInt16(first) | UInt16(second) << 8 } }
    }()

    /// Writes a part of some bytes, and returns the number of digits. Only the last part can have padding.
    static func write(
        _ bytes: UnsafeRawBufferPointer, part: Range<Int>, escapesSlashes: Bool, to place: UnsafeMutablePointer<UInt8>
    ) -> Int {
        unsafe pairs.withUnsafeBufferPointer { pairs in
            let target = UnsafeMutableRawPointer(place)
            var writer = unsafe Writer(pairs: pairs, escapesSlashes: escapesSlashes, target: target)
            unsafe writer.write(bytes, part: part)
            return unsafe writer.target - target
        }
    }

    @safe
    private struct Writer {
        let pairs: UnsafeBufferPointer<UInt16>
        let escapesSlashes: Bool
        private(set) var target: UnsafeMutableRawPointer

        mutating func write(_ bytes: UnsafeRawBufferPointer, part: Range<Int>) {
            var place = part.lowerBound
            // A word is read of which the last two bytes are not used.
            let end = min(part.upperBound, bytes.count &- 2)
            while place &+ 6 <= end {
                let word = unsafe UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
                let first = pair(word &>> 52) | pair(word &>> 40) &<< 16
                append(first | pair(word &>> 28) &<< 32 | pair(word &>> 16) &<< 48, count: 8)
                place &+= 6
            }
            while place &+ 3 <= part.upperBound {
                let first = unsafe UInt64(bytes[place]) &<< 16 | UInt64(bytes[place &+ 1]) &<< 8
                let group = unsafe first | UInt64(bytes[place &+ 2])
                append(pair(group &>> 12) | pair(group) &<< 16, count: 4)
                place &+= 3
            }
            let left = part.upperBound &- place
            if left > 0 {
                // One or two bytes, and padding.
                let second = left > 1 ? unsafe UInt64(bytes[place &+ 1]) : 0
                let group = unsafe UInt64(bytes[place]) &<< 16 | second &<< 8
                append(pair(group &>> 12) | pair(group) &<< 16, count: left &+ 1)
                unsafe target.storeBytes(of: 0x3D3D, as: UInt16.self)
                unsafe target += 3 &- left
            }
        }

        /// Returns the digits of the lowest 12 bits.
        @inline(__always)
        private func pair(_ value: UInt64) -> UInt64 {
            unsafe UInt64(pairs[Int(truncatingIfNeeded: value & 0xFFF)])
        }

        /// Appends digits, of which the first is the lowest byte of a word.
        @inline(__always)
        private mutating func append(_ digits: UInt64, count: Int) {
            unsafe target.storeBytes(of: digits.littleEndian, as: UInt64.self)
            let slashes = (digits ^ EncodingState.escapedSlashes) &- 0x0101_0101_0101_0101
            // Only a slash sets the highest bit of its byte.
            if escapesSlashes && slashes & 0x8080_8080_8080_8080 != 0 {
                appendEscaped(digits, slashes: slashes & 0x8080_8080_8080_8080, count: count)
            } else {
                unsafe target += count
            }
        }

        /// Appends digits with slashes, the highest bits of which are set in a word.
        private mutating func appendEscaped(_ digits: UInt64, slashes: UInt64, count: Int) {
            var (digits, slashes, left) = (digits, slashes, count)
            while slashes != 0 {
                unsafe target.storeBytes(of: digits.littleEndian, as: UInt64.self)
                let place = slashes.trailingZeroBitCount &>> 3
                guard place < left else { break }
                unsafe target.storeBytes(of: UInt16(0x2F5C).littleEndian, toByteOffset: place, as: UInt16.self)
                unsafe target += place &+ 2
                left &-= place &+ 1
                // Shifted by 64 if the slash was the last digit.
                digits = digits >> UInt64(8 &* (place &+ 1))
                slashes = slashes >> UInt64(8 &* (place &+ 1))
            }
            unsafe target.storeBytes(of: digits.littleEndian, as: UInt64.self)
            unsafe target += left
        }
    }
}
