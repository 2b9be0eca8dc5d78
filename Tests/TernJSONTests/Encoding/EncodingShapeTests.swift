import Foundation
import TernJSON
import Testing

@Suite("JSON encoding: shapes, beside Foundation's encoder")
struct EncodingShapeTests {
    @Test func primitives() throws {
        try expectSameText(Primitives())
        try expectSameText(LongIntegers())
        try expectSameText(true)
        try expectSameText(false)
        try expectSameText(7)
        try expectSameText(UInt64.max)
        try expectSameText(Int128.min)
        try expectSameText("fragment")
        try expectSameText(1.25)
        try expectSameText(Float(1.1))
        try expectSameText(Int?.none)
        try expectSameText(Int?.some(3))
        try expectSameText([Int8.min, 0, .max])
        try expectSameText([UInt8.min, .max])
        try expectSameText([Float(1), 0.1, 1e10])
        try expectSameText([true, false])
        try expectSameText([Int64.min, .max])
        try expectSameText([Int32.min, .max])
        try expectSameText([Int16.min, .max])
        try expectSameText([UInt64.max, 0])
        try expectSameText([UInt32.max, 0])
        try expectSameText([UInt16.max, 0])
        try expectSameText([UInt.max, 0])
        try expectSameText([UInt128.max, 0])
    }

    @Test func optionals() throws {
        try expectSameText(Optionals())
        try expectSameText(Optionals.none)
        try expectSameText(ExplicitNull(value: nil))
        try expectSameText(ExplicitNull(value: 1))
        try expectSameText([ExplicitNull(value: nil), ExplicitNull(value: 2)])
        try expectSameText([1, nil, 2] as [Int?])
        try expectSameText(["a": nil, "b": "c"] as [String: String?])
    }

    @Test func containers() throws {
        try expectSameText(Nested())
        try expectSameText([[[]], [[1]], []] as [[[Int]]])
        try expectSameText([] as [String])
        try expectSameText([:] as [String: Int])
        try expectSameText(["": 0, "a": 1, "A": 2, "é": 3, "e\u{301}x": 4, "b/c": 5, "\"": 6, "\n": 7, "~": 8])
        try expectSameText(["x": ["y": ["z": 1.5]]])
        try expectSameText(["x": Point()])
        try expectSameText(Empty())
        try expectSameText([Empty(), Empty()])
        try expectSameText(Flattened())
        try expectSameText([Flattened(), Flattened()])
        try expectSameText(Tree(depth: 4, width: 3))
        try expectSameText(Set([Point()]))
        try expectSameText(ContiguousArray([1, 2, 3]))
        try expectSameText(1..<5)
        try expectSameText([Point(): 1])
        try expectSameText([["a": 1], ["b": 2]])
    }

    @Test func dictionariesOfOtherKeys() throws {
        try expectSameText([1: "one", -2: "two"])
        try expectSameText([Color.red: 1, .darkBlue: 2])
        try expectSameText([Color.green: [Color.red: Point()]])
    }

    @Test func enumerations() throws {
        try expectSameText(Shape.none)
        try expectSameText(Shape.circle(radius: 1.5))
        try expectSameText(Shape.rectangle(1, 2))
        try expectSameText(Shape.group([.none, .circle(radius: 0), .group([])]))
        try expectSameText([Color.red, .darkBlue])
        try expectSameText([Level.low, .high])
        try expectSameText(Identifier(rawValue: "id/1"))
        try expectSameText([Identifier(rawValue: "a"): 1])
    }

    @Test func classes() throws {
        try expectSameText(Animal())
        try expectSameText(Dog())
        try expectSameText(Cat())
        try expectSameText([Dog(), Dog()])
        try expectSameText(["cat": Cat()])
    }

    @Test func propertyWrappers() throws {
        try expectSameText(Wrapped())
        try expectSameText([Wrapped(), Wrapped()])
    }

    @Test func typesOfFoundation() throws {
        try expectSameText(SystemValues())
        try expectSameText([SystemValues()])
        try expectSameText(Decimal(string: "0.00000000000000000000000000000001"))
        try expectSameText([Decimal(0), -1, Decimal(sign: .minus, exponent: 50, significand: 12)])
        try expectSameText([UUID(), UUID()])
        try expectSameText(Measurement(value: 5, unit: UnitLength.meters))
        try expectSameText(DateInterval(start: Date(timeIntervalSince1970: 0), duration: 5))
        try expectSameText(DateComponents(year: 2026, month: 11))
        try expectSameText(IndexSet([1, 2, 5]))
        try expectSameText(CharacterSet.decimalDigits)
        try expectSameText(TimeZone(identifier: "UTC"))
        try expectSameText(Locale(identifier: "de_CH"))
    }

    @Test func keysInSnakeCase() throws {
        try expectSameText(ManyFields())
        let encoders = Encoders(.sortedKeys) {
            $0.keyEncodingStrategy = .convertToSnakeCase
            $1.keyEncodingStrategy = .convertToSnakeCase
        }
        try encoders.expectSameText(ManyFields())
        try encoders.expectSameText(["someKey": Primitives()])
        try encoders.expectSameText(Shape.group([.circle(radius: 1)]))
        try encoders.expectSameText(Dog())
        try encoders.expectSameText(Flattened())
        // The table of one setting is not used for another one.
        try expectSameText(ManyFields())
    }

    @Test func snakeCaseOfRandomNames() throws {
        var generator = Generator(state: 11)
        let letters = Array("abcXYZ019_ éÉßǅσΣ\u{301}İı")
        let encoders = Encoders(.sortedKeys) {
            $0.keyEncodingStrategy = .convertToSnakeCase
            $1.keyEncodingStrategy = .convertToSnakeCase
        }
        for _ in 0..<3_000 {
            let name = String(
                (0..<Int.random(in: 0...9, using: &generator)).map { _ in
                    letters.randomElement(using: &generator) ?? "a"
                })
            try encoders.expectSameText(
                Closure { encoder in
                    var container = encoder.container(keyedBy: AnyKey.self)
                    try container.encode(1, forKey: AnyKey(stringValue: name))
                })
        }
    }

    @Test func keysByAFunction() throws {
        let encoders = Encoders(.sortedKeys) {
            $0.keyEncodingStrategy = .custom { AnyKey(stringValue: path($0).uppercased()) }
            $1.keyEncodingStrategy = .custom { AnyKey(stringValue: path($0).uppercased()) }
        }
        try encoders.expectSameText(Primitives())
        try encoders.expectSameText([Point(), Point()])
        try encoders.expectSameText(["userName": Point()])
        try encoders.expectSameText([Dog(), Dog()])
        try encoders.expectSameText(Shape.circle(radius: 1))
    }

    /// Foundation's encoder leaves out the keys of nested containers and of dictionaries within other values.
    @Test func aFunctionForKeysGetsTheWholePath() throws {
        var encoder = TernJSONEncoder()
        encoder.keyEncodingStrategy = .custom { AnyKey(stringValue: path($0).uppercased()) }
        let text = String(decoding: try encoder.encode(Shape.group([.circle(radius: 1)])), as: UTF8.self)
        #expect(text == #"{"GROUP":{"GROUP._0":[{"GROUP._0.[0].CIRCLE":{"GROUP._0.[0].CIRCLE.RADIUS":1}}]}}"#)
    }

    /// The keys of a dictionary are data. Foundation's encoder of Swift 6.3 converts those that are not strings.
    @Test func keysOfADictionaryAreNotConverted() throws {
        var encoder = TernJSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        #expect(String(decoding: try encoder.encode(["userName": 1]), as: UTF8.self) == #"{"userName":1}"#)
        let named = [Identifier(rawValue: "x")]
        #expect(String(decoding: try encoder.encode([named]), as: UTF8.self) == #"[["x"]]"#)
        #expect(String(decoding: try encoder.encode([CamelKey.userName: 1]), as: UTF8.self) == #"{"userName":1}"#)
        encoder.keyEncodingStrategy = .custom { _ in AnyKey(stringValue: "x") }
        #expect(String(decoding: try encoder.encode([7: 1]), as: UTF8.self) == #"{"7":1}"#)
    }

    @Test func largeObjectsAreSorted() throws {
        var generator = Generator(state: 12)
        let letters = Array("aAbB0_/\"\n\u{1}é漢🙂")
        func names(_ count: Int) -> [String] {
            (0..<count).map { _ in
                "prefix"
                    + String(
                        (0..<Int.random(in: 0...6, using: &generator)).map { _ in
                            letters.randomElement(using: &generator) ?? "a"
                        })
            }
        }
        for count in [2, 3, 20, 32, 33, 60, 500] {
            for _ in 0..<20 {
                let value = [names(count), names(count)].map { names in
                    Closure { encoder in
                        var container = encoder.container(keyedBy: AnyKey.self)
                        for name in names { try container.encode(name.count, forKey: AnyKey(stringValue: name)) }
                    }
                }
                try Encoders().expectSameText(value)
                try Encoders([.sortedKeys, .prettyPrinted]).expectSameText(value)
            }
        }
    }

    @Test func anEncoderIsUsedWithinAnother() throws {
        let value = Closure { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(1, forKey: .a)
            try container.encode(
                String(decoding: try TernJSONEncoder().encode([Primitives()]), as: UTF8.self), forKey: .b)
            try container.encode(Point(), forKey: .c)
        }
        for _ in 0..<3 {
            let text = try TernJSONEncoder().encode([value, value])
            #expect(try JSONDecoder().decode([[String: RandomValue]].self, from: text).count == 2)
        }
    }

    @Test func userInfoIsPassed() throws {
        let key = try #require(CodingUserInfoKey(rawValue: "k"))
        var encoder = TernJSONEncoder()
        encoder.userInfo[key] = 5
        let text = try encoder.encode(
            Closure { encoder in
                var container = encoder.singleValueContainer()
                try container.encode(encoder.userInfo[key] as? Int)
            })
        #expect(String(decoding: text, as: UTF8.self) == "5")
    }

    @Test func namesAreInTheOrderOfWriting() throws {
        let text = String(decoding: try TernJSONEncoder().encode(Primitives()), as: UTF8.self)
        #expect(text.hasPrefix(#"{"bool":true,"string":"text","int":-1,"int8":-128,"#))
    }

    @Test func randomValues() throws {
        var generator = Generator(state: 2_026)
        for round in 0..<20_000 {
            let value = RandomValue.make(depth: 4, using: &generator)
            let formatting: TernJSONEncoder.OutputFormatting =
                round.isMultiple(of: 10) ? [.prettyPrinted, .sortedKeys] : []
            var encoder = TernJSONEncoder()
            encoder.outputFormatting = formatting
            let text = try encoder.encode(value)
            let back = try JSONDecoder().decode(RandomValue.self, from: text)
            if back != value {
                Issue.record("\(value) was written as \(String(decoding: text, as: UTF8.self))")
                return
            }
        }
    }
}

enum CamelKey: String, Codable, CodingKeyRepresentable { case userName }

/// A value of any form, which encodes itself with containers.
indirect enum RandomValue: Codable, Equatable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([RandomValue])
    case object([String: RandomValue])

    static func make(depth: Int, using generator: inout Generator) -> RandomValue {
        switch Int.random(in: 0..<(depth == 0 ? 5 : 9), using: &generator) {
        case 0: return .null
        case 1: return .bool(.random(using: &generator))
        case 2:
            return .integer(Int(truncatingIfNeeded: generator.next() >> UInt64.random(in: 0...63, using: &generator)))
        case 3:
            let value = Double(bitPattern: generator.next())
            return .number(value.isFinite ? value + 0.5 : 0.5)
        case 4: return .string(text(using: &generator))
        case 5, 6:
            let count = Int.random(in: 0...4, using: &generator)
            return .array((0..<count).map { _ in make(depth: depth - 1, using: &generator) })
        default:
            var object: [String: RandomValue] = [:]
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                object[text(using: &generator)] = make(depth: depth - 1, using: &generator)
            }
            return .object(object)
        }
    }

    static func text(using generator: inout Generator) -> String {
        var text = ""
        for _ in 0..<Int.random(in: 0...20, using: &generator) {
            let value: UInt32 =
                switch Int.random(in: 0..<6, using: &generator) {
                case 0: .random(in: 0...0x1F, using: &generator)
                case 1: [0x22, 0x5C, 0x2F, 0x7F].randomElement(using: &generator) ?? 0
                case 2: .random(in: 0x80...0x3000, using: &generator)
                case 3: .random(in: 0x1_0000...0x10_FFFF, using: &generator)
                default: .random(in: 0x20...0x7E, using: &generator)
                }
            text.unicodeScalars.append(Unicode.Scalar(value) ?? "?")
        }
        return text
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([RandomValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: RandomValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value): try value.encode(to: encoder)
        case .integer(let value): try value.encode(to: encoder)
        case .number(let value):
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case .string(let value): try value.encode(to: encoder)
        case .array(let values):
            var container = encoder.unkeyedContainer()
            for value in values { try container.encode(value) }
        case .object(let members):
            var container = encoder.container(keyedBy: AnyKey.self)
            for (name, value) in members { try container.encode(value, forKey: AnyKey(stringValue: name)) }
        }
    }

    static func == (left: RandomValue, right: RandomValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let one), .bool(let other)): one == other
        case (.integer(let one), .integer(let other)): one == other
        case (.number(let one), .number(let other)): one == other
        // A large whole number is written like an integer.
        case (.number(let one), .integer(let other)), (.integer(let other), .number(let one)): one == Double(other)
        case (.string(let one), .string(let other)): Array(one.utf8) == Array(other.utf8)
        case (.array(let one), .array(let other)): one == other
        case (.object(let one), .object(let other)): one == other
        default: false
        }
    }
}
