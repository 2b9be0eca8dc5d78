import Foundation
import Testing

@testable import TernJSON

@Suite("JSON: decimals")
struct DecimalTests {
    private let decoder = TernJSONDecoder()

    @Test(
        "the limits of the exponent",
        arguments: [
            "1e127", "10e127", "123e125", "99e127", "12345678901234567890e110", "1e-128", "12e-128", "123456789e-128",
            "10000000000000000000000000000000000000e127", "-1e127", "1.5e127", "100e-130", "1e128", "1e150",
        ])
    func exponents(text: String) throws {
        let value = try decoder.decode(Decimal.self, from: text)
        #expect(!value.isNaN)
        let double = try #require(Double(text))
        #expect(abs((value as NSDecimalNumber).doubleValue / double - 1) < 1e-12, "\(value)")
    }

    @Test("random decimals are those of Foundation's parser")
    func random() throws {
        var generator = Generator(state: 8)
        for _ in 0..<5_000 {
            var digits = String(Int.random(in: 1...9, using: &generator))
            for _ in 0..<Int.random(in: 0...36, using: &generator) {
                digits += String(Int.random(in: 0...9, using: &generator))
            }
            let text =
                (Bool.random(using: &generator) ? "-" : "") + digits
                + "e\(Int.random(in: -100...80, using: &generator))"
            #expect(try decoder.decode(Decimal.self, from: text) == Decimal(string: text), "\(text)")
        }
    }
}
