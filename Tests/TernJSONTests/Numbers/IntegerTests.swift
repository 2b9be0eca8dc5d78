import Foundation
import Testing

@testable import TernJSON

@Suite("JSON: whole numbers")
struct IntegerTests {
    private let decoder = TernJSONDecoder()

    private func check<Value: FixedWidthInteger & Decodable>(_ type: Value.Type) throws {
        for value in [Value.min, .max, 0, 1, Value.max / 2, Value.min / 2] {
            #expect(try decoder.decode(type, from: "\(value)") == value)
            #expect(try decoder.decode(type, from: "\(value).0") == value)
            if value != 0 { #expect(try decoder.decode(type, from: "\(value)0e-1") == value) }
        }
        #expect(throws: DecodingError.self) { try decoder.decode(type, from: "\(Value.max)0") }
        #expect(throws: DecodingError.self) { try decoder.decode(type, from: "\(Value.max).5") }
        #expect(throws: DecodingError.self) { try decoder.decode(type, from: "-\(Value.max)0") }
        #expect(throws: DecodingError.self) { try decoder.decode(type, from: "1e99999") }
        #expect(throws: DecodingError.self) { try decoder.decode(type, from: "1e-1") }
        #expect(try decoder.decode(type, from: "-0") == 0)
        #expect(try decoder.decode(type, from: "0.0e99999") == 0)
        #expect(try decoder.decode(type, from: "1e2") == 100)
        #expect(try decoder.decode(type, from: "1200e-2") == 12)
        if Value.min == 0 {
            #expect(throws: DecodingError.self) { try decoder.decode(type, from: "-1") }
        }
    }

    @Test("the limits of each type are exact, also with a fraction or an exponent")
    func limits() throws {
        try check(Int8.self)
        try check(Int16.self)
        try check(Int32.self)
        try check(Int64.self)
        try check(Int.self)
        try check(Int128.self)
        try check(UInt8.self)
        try check(UInt16.self)
        try check(UInt32.self)
        try check(UInt64.self)
        try check(UInt.self)
        try check(UInt128.self)
    }

    @Test("a number next to the limits does not fit")
    func overflow() throws {
        #expect(throws: DecodingError.self) { try decoder.decode(Int64.self, from: "9223372036854775808") }
        #expect(throws: DecodingError.self) { try decoder.decode(Int64.self, from: "-9223372036854775809") }
        #expect(throws: DecodingError.self) { try decoder.decode(UInt64.self, from: "18446744073709551616") }
        let beyond = "340282366920938463463374607431768211456"
        #expect(throws: DecodingError.self) { try decoder.decode(UInt128.self, from: beyond) }
        let negative = "-170141183460469231731687303715884105729"
        #expect(throws: DecodingError.self) { try decoder.decode(Int128.self, from: negative) }
    }

    @Test("decimals are exact to 38 digits, and those beyond are errors")
    func decimals() throws {
        let texts = [
            "0", "-0", "0.1", "1234567890.0987654321", "12345678901234567890123456789012345678", "1e127", "-5e-100",
            "99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001", "1E2", "-17.50",
        ]
        for text in texts {
            let decimal = try decoder.decode(Decimal.self, from: text)
            #expect(decimal == Decimal(string: text), "\(text)")
        }
        #expect(throws: DecodingError.self) { try decoder.decode(Decimal.self, from: "1e200") }
        #expect(throws: DecodingError.self) { try decoder.decode(Decimal.self, from: "1e99999999") }
        #expect(try decoder.decode(Decimal.self, from: "1e-300") == 0)
        let long = "1.00000000000000000000000000000000000000000000000000000000000000000000001"
        #expect(try decoder.decode(Decimal.self, from: long) == 1)
        let nines = String(repeating: "9", count: 60)
        #expect(try decoder.decode(Decimal.self, from: nines) == Decimal(string: "1e60"))
    }
}
