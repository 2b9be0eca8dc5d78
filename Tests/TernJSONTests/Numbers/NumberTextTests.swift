import Foundation
import Testing

@testable import TernJSON

@Suite("JSON encoding: numbers")
struct NumberTextTests {
    /// Returns what Foundation writes: the description without `.0`.
    private func expected(_ description: String) -> String {
        description.hasSuffix(".0") ? String(description.dropLast(2)) : description
    }

    private func text(_ value: some Encodable) throws -> String {
        String(decoding: try TernJSONEncoder().encodeToBytes(value), as: UTF8.self)
    }

    private func written(_ value: Double) -> String {
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: NumberText.longest) { place in
            guard let start = place.baseAddress else { return "" }
            let count = unsafe NumberText.write(value, to: start)
            return unsafe String(decoding: place.prefix(count), as: UTF8.self)
        }
    }

    private func written(_ value: Float) -> String {
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: NumberText.longest) { place in
            guard let start = place.baseAddress else { return "" }
            let count = unsafe NumberText.write(value, to: start)
            return unsafe String(decoding: place.prefix(count), as: UTF8.self)
        }
    }

    @Test func specialDoubles() throws {
        let values: [Double] = [
            0, -0.0, 1, -1, 0.1, 0.5, 1e16, 1e17, 1e-4, 1e-5, 123_456.789, .leastNonzeroMagnitude,
            -.leastNonzeroMagnitude, 2.2250738585072014e-308,
            Double.leastNormalMagnitude.nextDown, .greatestFiniteMagnitude, .leastNormalMagnitude, 0x1p53, 0x1p53 + 2,
            0x1p54,
            0x1p54 + 4, 0x1p54 - 2, 9_007_199_254_740_992, 12_345_678_901_234_568, 1e15, 1e22, 1e23, 1e100, 1.5e300,
            9.5367431640625e-07, 4.35, 0.3, 2.0 / 3, 1 / 3, 100, 1_000_000, 99_999_999, 100_000_000, 1e8 + 0.5,
            0.001, 0.0001, 0.00012345, 0.000099999, 1.7976931348623157e308, 8.41e21, 1.8014398509481984e16,
        ]
        for value in values { #expect(written(value) == expected(value.description)) }
    }

    @Test func specialFloats() throws {
        let values: [Float] = [
            0, -0.0, 1, 0.1, 16_777_216, 16_777_215, 16_777_218, 0x1p24, 0x1p25, 1e10, 1e-4, 1e-5,
            .leastNormalMagnitude.nextDown,
            .leastNonzeroMagnitude, .greatestFiniteMagnitude, .leastNormalMagnitude, 3.4028235e38, 8_388_608.5, 0.3,
            1_000_000, 9.999999e9,
        ]
        for value in values { #expect(written(value) == expected(value.description)) }
    }

    @Test func powersOfTwoAndTen() {
        var doubles: [Double] = []
        for exponent in -1_074...1_023 { doubles.append(Double(sign: .plus, exponent: exponent, significand: 1)) }
        for exponent in -323...308 {
            for digit in 1...9 { if let value = Double("\(digit)e\(exponent)") { doubles.append(value) } }
        }
        doubles += doubles.flatMap { [$0.nextUp, $0.nextDown] }
        #expect(doubles.filter { $0.isFinite && written($0) != expected($0.description) } == [])
        var floats = (-149...127).map { Float(sign: .plus, exponent: $0, significand: 1) }
        floats += floats.flatMap { [$0.nextUp, $0.nextDown] }
        #expect(floats.filter { $0.isFinite && written($0) != expected($0.description) } == [])
    }

    @Test func randomDoublesReadBack() {
        var generator = Generator(state: 1)
        var wrong = 0
        for round in 0..<300_000 {
            let value: Double =
                switch round % 4 {
                case 0: Double.random(in: -1_000...1_000, using: &generator)
                case 1: Double(Int.random(in: 0...100_000, using: &generator)) / 100
                case 2: Double(Int64(bitPattern: generator.next()) >> Int64.random(in: 0...62, using: &generator))
                default: Double(bitPattern: generator.next())
                }
            guard value.isFinite else { continue }
            let text = written(value)
            if text != expected(value.description) || Double(text)?.bitPattern != value.bitPattern { wrong += 1 }
        }
        #expect(wrong == 0)
    }

    /// Numbers of at most three digits after the point are written without a search.
    @Test func thousandthsAndTheirNeighbours() {
        var generator = Generator(state: 5)
        var counts: [Int64] = [1, 9, 10, 999, 1_000, 1_001, 999_999_999_999_999, 1_000_000_000_000_001]
        for _ in 0..<100_000 {
            let shift = Int64.random(in: 0...49, using: &generator)
            counts.append(Int64.random(in: 1...1_100_000_000_000_000, using: &generator) >> shift)
        }
        var wrong: [Double] = []
        for count in counts {
            let value = Double(count) / 1_000
            for value in [value, -value, value.nextUp, value.nextDown, value.nextUp.nextUp]
            where written(value) != expected(value.description) {
                wrong.append(value)
            }
        }
        #expect(wrong == [])
    }

    @Test func randomFloatsReadBack() {
        var generator = Generator(state: 2)
        var wrong = 0
        for _ in 0..<300_000 {
            let value = Float(bitPattern: UInt32(truncatingIfNeeded: generator.next()))
            guard value.isFinite else { continue }
            let text = written(value)
            if text != expected(value.description) || Float(text)?.bitPattern != value.bitPattern { wrong += 1 }
        }
        #expect(wrong == 0)
    }

    #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
    @Test func allHalvesReadBack() throws {
        var wrong = 0
        for bits in UInt16.min...UInt16.max {
            let value = Float16(bitPattern: bits)
            guard value.isFinite else { continue }
            let text = try text(value)
            // Foundation's decoder reads a Float and rounds it.
            let isSame = Float(text).map { Float16($0).bitPattern == bits } ?? false
            if text != expected(value.description) || !isSame { wrong += 1 }
        }
        #expect(wrong == 0)
        #expect(try text([Float16(0.1), 1]) == "[0.1,1]")
    }
    #endif

    @Test func integers() throws {
        var generator = Generator(state: 3)
        var edges: [Int64] = [0, .min, .max]
        var power: Int64 = 1
        for _ in 0..<19 {
            edges += [power, power - 1, power + 1, -power, -power + 1, -power - 1]
            power = power &* 10
        }
        for _ in 0..<20_000 {
            edges.append(Int64(bitPattern: generator.next()) >> Int64.random(in: 0...63, using: &generator))
        }
        // Few expectations: each takes a millisecond in a debug build.
        var wrong: [Int64] = []
        for value in edges {
            let isRight =
                try text(value) == value.description
                && text(UInt64(bitPattern: value)) == UInt64(bitPattern: value).description
                && text(Int16(truncatingIfNeeded: value)) == Int16(truncatingIfNeeded: value).description
            if !isRight { wrong.append(value) }
        }
        #expect(wrong.isEmpty)
        for value in Int8.min...Int8.max { #expect(try text([value]) == "[\(value)]") }
    }

    @Test func integersOf128Bits() throws {
        var generator = Generator(state: 4)
        var values: [UInt128] = [0, .max, UInt128(UInt64.max), UInt128(UInt64.max) + 1]
        var power: UInt128 = 1
        for _ in 0..<39 {
            values += [power, power &- 1, power &+ 1]
            power = power &* 10
        }
        for _ in 0..<5_000 {
            let wide = UInt128(generator.next()) << 64 | UInt128(generator.next())
            values.append(wide >> UInt128.random(in: 0...127, using: &generator))
        }
        var wrong: [UInt128] = []
        for value in values {
            let signed = Int128(truncatingIfNeeded: value)
            let isRight =
                try text(value) == value.description && text(signed) == signed.description
                && text(0 &- signed) == (0 &- signed).description
            if !isRight { wrong.append(value) }
        }
        #expect(wrong.isEmpty)
    }
}
