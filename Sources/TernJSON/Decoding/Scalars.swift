/// Strings, Booleans and numbers.
extension DecodingCore {
    // MARK: Strings

    @inline(__always)
    func string(at index: Int) throws -> String {
        let token = token(index)
        guard token.kind == .string else { throw mismatch(String.self, at: index) }
        return string(token)
    }

    /// Returns the text of a string or key.
    @inline(__always)
    func string(_ token: Token) -> String {
        if token.flags & Token.Flags.hasEscapes != 0 { return unescaped(token) }
        let utf8 = unsafe UnsafeBufferPointer(start: bytes + Int(token.start), count: token.length)
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            // The scanner has checked the text.
            let isASCII = token.flags & Token.Flags.isNotASCII == 0
            let span = unsafe UTF8Span(unchecked: Span(_unsafeElements: utf8), isKnownASCII: isASCII)
            return String(copying: span)
        }
        return unsafe String(decoding: utf8, as: UTF8.self)
    }

    /// Returns the text of a string with escapes. The scanner has checked these.
    @inline(never)
    private func unescaped(_ token: Token) -> String {
        let count = token.length
        let source = unsafe UnsafeBufferPointer(start: bytes + Int(token.start), count: count)
        // The text is never longer than its escapes.
        return unsafe String(unsafeUninitializedCapacity: count) { target in
            var read = 0
            var written = 0
            while read < count {
                if read + 8 <= count, let first = source.baseAddress, let place = target.baseAddress {
                    // There is at least as much room in the target as is left of the source.
                    let word = unsafe ByteWords.load(first + read)
                    unsafe UnsafeMutableRawPointer(place + written).storeBytes(of: word.littleEndian, as: UInt64.self)
                    let plain = ByteWords.countBeforeBackslash(word)
                    read += plain
                    written += plain
                    if plain > 0 { continue }
                }
                let byte = unsafe source[read]
                if byte != UInt8(ascii: "\\") {
                    unsafe target[written] = byte
                    read += 1
                    written += 1
                    continue
                }
                let name = unsafe source[read + 1]
                read += 2
                guard name == UInt8(ascii: "u") else {
                    unsafe target[written] = Self.character(ofEscape: name)
                    written += 1
                    continue
                }
                var value = unsafe Self.codeUnit(source, at: read)
                read += 4
                if value & 0xFC00 == 0xD800 {
                    value = unsafe 0x1_0000 + (value & 0x3FF) << 10 + Self.codeUnit(source, at: read + 2) & 0x3FF
                    read += 6
                }
                for byte in UTF8.encode(Unicode.Scalar(value) ?? "\u{FFFD}") ?? UTF8.encodedReplacementCharacter {
                    unsafe target[written] = byte
                    written += 1
                }
            }
            return written
        }
    }

    /// Returns the character of an escape with one letter, without a branch for each: their order cannot be predicted.
    @inline(__always)
    private static func character(ofEscape name: UInt8) -> UInt8 {
        // Four bits for each of b, f, n, r and t: b is the second letter, so that its bits are those of number 1.
        let controls: UInt64 = 0x09D0_A000_C080
        let control = UInt8(truncatingIfNeeded: controls &>> UInt64((name & 0x1E) &<< 1)) & 0x0F
        return name >= UInt8(ascii: "b") ? control : name
    }

    @unsafe @inline(__always)
    private static func codeUnit(_ source: UnsafeBufferPointer<UInt8>, at index: Int) -> UInt32 {
        var value: UInt32 = 0
        for offset in 0..<4 { value = unsafe value &<< 4 | UInt32(source[index + offset].hexadecimalValue & 0x0F) }
        return value
    }

    // MARK: Booleans

    @inline(__always)
    func boolean(at index: Int) throws -> Bool {
        let kind = token(index).kind
        if kind == .yes { return true }
        if kind == .no { return false }
        throw mismatch(Bool.self, at: index, nullIsMismatch: true)
    }

    // MARK: Integers

    @inline(__always)
    func integer<Value: FixedWidthInteger>(at index: Int, as type: Value.Type = Value.self) throws -> Value {
        let token = token(index)
        if token.kind == .integer {
            if !token.isNegative {
                if let value = Value(exactly: token.payload) { return value }
            } else if token.payload <= 1 &<< 63,
                let value = Value(exactly: Int64(truncatingIfNeeded: 0 &- token.payload))
            {
                return value
            }
        }
        return try unusualInteger(at: index, as: type)
    }

    /// Reads whole numbers with a fraction or an exponent, and those beyond 64 bits.
    @inline(never)
    private func unusualInteger<Value: FixedWidthInteger>(at index: Int, as type: Value.Type) throws -> Value {
        guard token(index).isNumber else { throw mismatch(type, at: index) }
        let digits = digits(at: index)
        if let magnitude = digits.wholeMagnitude {
            if !digits.isNegative {
                if let value = Value(exactly: magnitude) { return value }
            } else if magnitude <= 1 << 127,
                let value = Value(exactly: Int128(truncatingIfNeeded: 0 &- magnitude))
            {
                return value
            }
        }
        throw corrupted("the number is not a whole number that fits into \(type)", at: index)
    }

    /// Returns the digits of a number.
    func digits(at index: Int) -> DecimalDigits {
        let token = token(index)
        if token.kind == .longNumber {
            let text = unsafe UnsafeBufferPointer(start: bytes + Int(token.start), count: token.length)
            return unsafe DecimalDigits(text: Span(_unsafeElements: text))
        }
        let exponent = token.kind == .decimal ? Int(token.exponent) : 0
        return DecimalDigits(significand: token.payload, exponent: exponent, isNegative: token.isNegative)
    }

    // MARK: Floating point

    @inline(__always)
    func double(at index: Int) throws -> Double {
        let token = token(index)
        let magnitude: Double
        if token.kind == .integer {
            magnitude = Double(token.payload)
        } else if token.kind == .decimal {
            let power = Int(token.exponent)
            if token.payload <= 1 &<< 53 && power >= -22 && power <= 22 {
                // Both are exact, so that the result is rounded once.
                let significand = Double(token.payload)
                magnitude =
                    power < 0 ? significand / Self.powersOfTen[0 &- power] : significand * Self.powersOfTen[power]
            } else if let bits = FloatFormat.binary64.bits(significand: token.payload, power: power),
                bits < FloatFormat.binary64.infinity
            {
                magnitude = Double(bitPattern: bits)
            } else {
                return try unusualFloat(at: index, as: Double.self, format: .binary64) { Double(bitPattern: $0) }
            }
        } else {
            return try unusualFloat(at: index, as: Double.self, format: .binary64) { Double(bitPattern: $0) }
        }
        return token.isNegative ? -magnitude : magnitude
    }

    /// The powers that a `Double` holds exactly.
    private static let powersOfTen: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20,
        1e21, 1e22,
    ]

    /// Returns the bits of a usual number without its sign; nil for a number of many digits or beyond the format, and
    /// for other values.
    private func magnitude(of token: Token, in format: FloatFormat) -> UInt64? {
        guard token.kind == .integer || token.kind == .decimal else { return nil }
        let power = token.kind == .decimal ? Int(token.exponent) : 0
        let bits = format.bits(significand: token.payload, power: power)
        return bits.flatMap { $0 < format.infinity ? $0 : nil }
    }

    func float(at index: Int) throws -> Float {
        let token = token(index)
        if let bits = magnitude(of: token, in: .binary32) {
            let value = Float(bitPattern: UInt32(truncatingIfNeeded: bits))
            return token.isNegative ? -value : value
        }
        return try unusualFloat(at: index, as: Float.self, format: .binary32) {
            Float(bitPattern: UInt32(truncatingIfNeeded: $0))
        }
    }

    #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
    func half(at index: Int) throws -> Float16 {
        let token = token(index)
        if let bits = magnitude(of: token, in: .binary16) {
            let value = Float16(bitPattern: UInt16(truncatingIfNeeded: bits))
            return token.isNegative ? -value : value
        }
        return try unusualFloat(at: index, as: Float16.self, format: .binary16) {
            Float16(bitPattern: UInt16(truncatingIfNeeded: $0))
        }
    }
    #endif

    /// Reads numbers that 128 bits do not decide, and the strings for infinity and NaN.
    @inline(never)
    private func unusualFloat<Value: BinaryFloatingPoint>(
        at index: Int, as type: Value.Type, format: FloatFormat, make: (UInt64) -> Value
    ) throws -> Value {
        guard token(index).isNumber else {
            if let value: Value = nonConformingFloat(at: index) { return value }
            throw mismatch(type, at: index)
        }
        let digits = digits(at: index)
        let bits = digits.bits(in: format)
        guard bits < format.infinity else { throw corrupted("the number does not fit into \(type)", at: index) }
        return digits.isNegative ? -make(bits) : make(bits)
    }

    private func nonConformingFloat<Value: BinaryFloatingPoint>(at index: Int) -> Value? {
        guard token(index).kind == .string,
            case .convertFromString(let positive, let negative, let nan) =
                unsafe storage.pointee.settings.values.floats
        else { return nil }
        switch string(token(index)) {
        case positive: return .infinity
        case negative: return -.infinity
        case nan: return .nan
        default: return nil
        }
    }
}
