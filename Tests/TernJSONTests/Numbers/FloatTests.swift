import Foundation
import Testing

@testable import TernJSON

/// Random numbers that are the same in each run.
struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

@Suite("JSON: numbers with a fraction")
struct FloatTests {
    private let decoder = TernJSONDecoder()
    /// `TERN_LONG=1` makes the random tests 25 times as long.
    private let rounds = ProcessInfo.processInfo.environment["TERN_LONG"] == nil ? 200_000 : 5_000_000

    /// Decodes many numbers at once: one text for each would measure the test.
    private func doubles(_ texts: [String]) throws -> [Double] {
        try decoder.decode([Double].self, from: "[" + texts.joined(separator: ",") + "]")
    }

    @Test("doubles of random bits come back from their shortest text")
    func shortestDoubles() throws {
        var generator = Generator(state: 1)
        for _ in 0..<rounds / 10_000 {
            let values = (0..<10_000).map { _ in Double(bitPattern: generator.next()) }.filter(\.isFinite)
            let decoded = try doubles(values.map { "\($0)" })
            for (value, result) in zip(values, decoded) where value.bitPattern != result.bitPattern {
                Issue.record("\(value) became \(result)")
            }
        }
    }

    @Test("doubles are those of strtod, whatever the number of digits and the exponent")
    func randomDecimals() throws {
        var generator = Generator(state: 2)
        for _ in 0..<rounds / 10_000 {
            let texts = (0..<10_000).map { _ in Self.randomDecimal(using: &generator, exponents: -330...300) }
                .filter { unsafe strtod($0, nil).isFinite }
            let decoded = try doubles(texts)
            for (text, result) in zip(texts, decoded) where unsafe strtod(text, nil).bitPattern != result.bitPattern {
                Issue.record("\(text) became \(result)")
            }
        }
    }

    @Test("floats are those of strtof: they are rounded once")
    func randomFloats() throws {
        var generator = Generator(state: 3)
        for _ in 0..<rounds / 10_000 {
            let texts = (0..<10_000).map { _ in Self.randomDecimal(using: &generator, exponents: -60...18) }
            let decoded = try decoder.decode([Float].self, from: "[" + texts.joined(separator: ",") + "]")
            for (text, result) in zip(texts, decoded) where unsafe strtof(text, nil).bitPattern != result.bitPattern {
                Issue.record("\(text) became \(result)")
            }
        }
    }

    @Test("numbers exactly between two doubles, and just beside, are rounded to even or to the nearer one")
    func halves() throws {
        var generator = Generator(state: 4)
        for _ in 0..<200 {
            let value = Double(bitPattern: generator.next() & 0x7FEF_FFFF_FFFF_FFFF)
            guard value.isFinite, value > 1e-300, value < 1e300 else { continue }
            let half = Self.exactHalf(above: value)
            for text in [half, half + "0000", half + "1", String(half.dropLast()) + "4999"] {
                let expected = unsafe strtod(text, nil)
                #expect(try doubles([text])[0].bitPattern == expected.bitPattern, "\(text)")
            }
        }
    }

    #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
    @Test("each half of 16 bits comes back, and halves are rounded once")
    func float16() throws {
        for bits in UInt16(0)..<0x7C00 {
            let value = Float16(bitPattern: bits)
            #expect(try decoder.decode(Float16.self, from: "\(Float(value))") == value)
        }
        // Through Float, this would be rounded to a tie first, and then to even.
        #expect(try decoder.decode(Float16.self, from: "1.00048828125000000001") == 1.0009765625)
        #expect(throws: DecodingError.self) { try decoder.decode(Float16.self, from: "65520") }
        #expect(try decoder.decode(Float16.self, from: "65519.9") == 65504)
        for text in ["1e5", "9e300", "1e309", "-1e99999", "100000.00000000000000000001"] {
            #expect(throws: DecodingError.self, "\(text)") { try decoder.decode(Float16.self, from: text) }
        }
        let zeros = String(repeating: "0", count: 30)
        for text in ["9e-300", "-1e-9", "2.9e-8", "0e9", "1e-99999", "0.\(zeros)12345678901234567890"] {
            #expect(try decoder.decode(Float16.self, from: text) == 0, "\(text)")
        }
        #expect(try decoder.decode(Float16.self, from: "3e-8") == .leastNonzeroMagnitude)
    }

    @Test("numbers between two halves of 16 bits are rounded to even or to the nearer one")
    func halvesOfFloat16() throws {
        var texts: [String] = []
        var expected: [Float16] = []
        for bits in UInt16(0)..<0x7BFF {
            let (low, high) = (Float16(bitPattern: bits), Float16(bitPattern: bits + 1))
            // Exact in 25 digits, which are shortened to those that count.
            var middle = String(format: "%.25f", (Double(low) + Double(high)) / 2)
            while middle.hasSuffix("00") { middle.removeLast() }
            texts += [middle, middle + "00000000000000000001"]
            expected += [bits & 1 == 0 ? low : high, high]
            // Just below, in 16 digits.
            texts.append(String(format: "%.15e", (Double(low) + Double(high)) / 2 * (1 - 1e-12)))
            expected.append(low)
        }
        let decoded = try decoder.decode([Float16].self, from: "[" + texts.joined(separator: ",") + "]")
        #expect(decoded.count == expected.count)
        for index in expected.indices where decoded[index] != expected[index] {
            Issue.record("\(texts[index]) became \(decoded[index]), expected \(expected[index])")
        }
    }
    #endif

    @Test(
        "the limits of Double",
        arguments: [
            ("1.7976931348623157e308", Double.greatestFiniteMagnitude), ("5e-324", .leastNonzeroMagnitude),
            ("2.4703282292062327e-324", 0), ("2.4703282292062328e-324", .leastNonzeroMagnitude),
            ("2.2250738585072011e-308", Double(bitPattern: 0x000F_FFFF_FFFF_FFFF)), ("0e999999999999999999", 0),
            ("1e-400", 0),
            ("9007199254740993", 9_007_199_254_740_992), ("0.000000000000000000000000000001e30", 1),
            ("-0.0", 0), ("18446744073709551615", 18_446_744_073_709_551_615.0),
            ("123456789012345678901234567890", 123_456_789_012_345_678_901_234_567_890.0),
        ])
    func limits(text: String, value: Double) throws {
        #expect(try doubles([text])[0] == value)
    }

    @Test("the sign of zero stays")
    func negativeZero() throws {
        #expect(try doubles(["-0", "-0.0", "-1e-400"]).allSatisfy { $0.sign == .minus })
    }

    @Test(
        "numbers beyond the largest are errors",
        arguments: ["1e309", "-1e400", "1.7976931348623159e308", "1e99999999999"])
    func overflow(text: String) throws {
        #expect(throws: DecodingError.self) { try doubles([text]) }
        #expect(throws: DecodingError.self) { try decoder.decode(Float.self, from: "1e39") }
    }

    @Test("numbers of a million digits are read once")
    func longNumbers() throws {
        let zeros = String(repeating: "0", count: 1_000_000)
        #expect(try doubles(["1" + zeros + "e-1000000"])[0] == 1)
        #expect(try doubles(["0." + zeros + "1e1000001"])[0] == 1)
        #expect(try doubles(["1." + zeros + "1"])[0] == 1)
        #expect(try decoder.decode(Int.self, from: "7" + zeros + "e-1000000") == 7)
        #expect(try doubles(["9007199254740993." + zeros + "1"])[0] == 9_007_199_254_740_994)
    }

    static func randomDecimal(using generator: inout Generator, exponents: ClosedRange<Int>) -> String {
        let count = Int.random(in: 1...(Bool.random(using: &generator) ? 19 : 40), using: &generator)
        var digits = String(Int.random(in: 1...9, using: &generator))
        for _ in 1..<max(count, 2) { digits += String(Int.random(in: 0...9, using: &generator)) }
        let exponent = Int.random(in: exponents, using: &generator) - count / 2
        let point = Int.random(in: 0...digits.count, using: &generator)
        switch point {
        case 0: return "0.\(digits)e\(exponent)"
        case digits.count: return "\(digits)e\(exponent)"
        default: return "\(digits.prefix(point)).\(digits.dropFirst(point))E\(exponent >= 0 ? "+" : "")\(exponent)"
        }
    }

    /// Returns the exact decimal digits of the middle between a value and the next one.
    private static func exactHalf(above value: Double) -> String {
        // significand × 2^exponent, with one bit more.
        var significand = (value.significandBitPattern | (value.isNormal ? 1 << 52 : 0)) * 2 + 1
        var exponent = Int(value.exponentBitPattern) - 1_075 - 1
        while significand & 1 == 0 {
            significand >>= 1
            exponent += 1
        }
        var digits = "\(significand)".utf8.reversed().map { Int($0) - 48 }
        // Multiplies by 2, or by 5 with a shift of the point.
        func multiply(by factor: Int) {
            var carry = 0
            for index in digits.indices {
                carry += digits[index] * factor
                digits[index] = carry % 10
                carry /= 10
            }
            while carry > 0 {
                digits.append(carry % 10)
                carry /= 10
            }
        }
        for _ in 0..<abs(exponent) { multiply(by: exponent > 0 ? 2 : 5) }
        let text = digits.reversed().map(String.init).joined()
        if exponent >= 0 { return text + ".0" }
        let scale = -exponent
        if text.count > scale { return text.dropLast(scale) + "." + text.suffix(scale) }
        return "0." + String(repeating: "0", count: scale - text.count) + text
    }
}
