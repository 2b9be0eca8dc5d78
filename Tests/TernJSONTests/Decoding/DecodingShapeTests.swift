import Foundation
import Testing

@testable import TernJSON

/// Values that both decoders give.
@Suite("JSON: values as from Foundation's decoder")
struct DecodingShapeTests {
    private let compare = Comparison()

    struct Scalars: Codable, Equatable {
        var bool: Bool
        var int: Int
        var int8: Int8
        var int16: Int16
        var int32: Int32
        var int64: Int64
        var uint: UInt
        var uint8: UInt8
        var uint16: UInt16
        var uint32: UInt32
        var uint64: UInt64
        var float: Float
        var double: Double
        var string: String
    }

    struct Optionals: Codable, Equatable {
        var bool: Bool?
        var int: Int?
        var int8: Int8?
        var int16: Int16?
        var int32: Int32?
        var int64: Int64?
        var uint: UInt?
        var uint8: UInt8?
        var uint16: UInt16?
        var uint32: UInt32?
        var uint64: UInt64?
        var float: Float?
        var double: Double?
        var string: String?
        var list: [Int?]?
        var inner: Point?
    }

    struct Point: Codable, Equatable, Hashable {
        var x: Int
        var y: Int
    }

    indirect enum Tree: Codable, Equatable {
        case leaf(Int)
        case branch(left: Tree, right: Tree)
        case empty
    }

    enum Color: String, Codable, CodingKeyRepresentable {
        case red
        case green
    }

    enum Level: Int, Codable, CodingKeyRepresentable {
        case low = 1
        case high = 2
    }

    class Animal: Codable, Equatable {
        var name: String
        init(name: String) { self.name = name }
        static func == (left: Animal, right: Animal) -> Bool { left.name == right.name }
    }

    final class Dog: Animal {
        var tricks: [String] = []
        private enum CodingKeys: String, CodingKey { case tricks }

        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            tricks = try container.decode([String].self, forKey: .tricks)
            try super.init(from: container.superDecoder())
        }
        static func == (left: Dog, right: Dog) -> Bool { left.name == right.name && left.tricks == right.tricks }
    }

    final class Cat: Animal {
        var lives = 0
        private enum CodingKeys: String, CodingKey { case lives }

        required init(from decoder: any Decoder) throws {
            lives = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .lives)
            try super.init(from: decoder)
        }
        static func == (left: Cat, right: Cat) -> Bool { left.name == right.name && left.lives == right.lives }
    }

    /// Nested containers by hand, with all their functions.
    struct Handmade: Decodable, Equatable {
        var keys: [String] = []
        var numbers: [Int] = []
        var deep = ""
        var isNil = false
        var counts: [Int] = []
        var absent = false

        enum Keys: String, CodingKey {
            case a
            case b
            case c
            case none
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            keys = container.allKeys.map(\.stringValue).sorted()
            isNil = try container.decodeNil(forKey: .c)
            absent = !container.contains(.none)
            var list = try container.nestedUnkeyedContainer(forKey: .a)
            counts.append(list.count ?? -1)
            while !list.isAtEnd {
                if try list.decodeNil() {
                    counts.append(list.currentIndex)
                    continue
                }
                if var inner = try? list.nestedUnkeyedContainer() {
                    while let value = try inner.decodeIfPresent(Int.self) { numbers.append(value) }
                } else {
                    numbers.append(try list.decode(Int.self))
                }
            }
            deep = try container.nestedContainer(keyedBy: Keys.self, forKey: .b).decode(String.self, forKey: .a)
            var other = try container.superDecoder(forKey: .a).unkeyedContainer()
            numbers.append(try other.superDecoder().singleValueContainer().decode(Int.self))
        }
    }

    @propertyWrapper
    struct Clamped: Codable, Equatable {
        var wrappedValue: Int
        init(wrappedValue: Int) { self.wrappedValue = wrappedValue }
        init(from decoder: any Decoder) throws { wrappedValue = min(10, try Int(from: decoder)) }
        func encode(to encoder: any Encoder) throws { try wrappedValue.encode(to: encoder) }
    }

    struct Wrapping: Codable, Equatable {
        @Clamped var value: Int
        var other: Int
    }

    struct Generic<Value: Codable & Equatable>: Codable, Equatable { var value: Value }

    @Test("scalars of each type in objects")
    func scalars() {
        let text = """
            {"bool":true,"int":-1,"int8":-8,"int16":-16,"int32":-32,"int64":-64,"uint":1,"uint8":8,"uint16":16,"uint32":32,\
            "uint64":18446744073709551615,"float":1.1,"double":2.2e10,"string":"a\\u00e9\\n"}
            """
        compare.same(Scalars.self, text)
        // In another order, with other members between.
        compare.same(
            Scalars.self,
            """
            {"string":"x","z":[{},[1]],"double":0.1,"float":3,"uint64":0,"uint32":1,"uint16":2,"uint8":3,"uint":4,"y":{"int":0},\
            "int64":5,"int32":6,"int16":7,"int8":8,"int":9,"bool":false}
            """)
    }

    @Test("optional members that are there, null or missing")
    func optionals() {
        compare.same(Optionals.self, "{}")
        let names = [
            "bool", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "float",
            "double",
            "string", "list", "inner",
        ]
        compare.same(Optionals.self, "{" + names.map { "\"\($0)\":null" }.joined(separator: ",") + "}")
        let numbers = names[1...12].map { "\"\($0)\":7" }.joined(separator: ",")
        compare.same(
            Optionals.self,
            "{\(numbers),\"bool\":false,\"string\":\"s\",\"list\":[1,null,2],\"inner\":{\"x\":1,\"y\":2}}")
    }

    @Test("arrays, sets and dictionaries")
    func collections() {
        compare.same([Int].self, "[]")
        compare.same([Int].self, "[1,2,3]")
        compare.same([Int8].self, "[1,-2,3]")
        compare.same([Double].self, "[1,2.5,-3e-7,1e300,123456789012345678901234567890]")
        compare.same([Float].self, "[1,2.5,-3e-7,1e30]")
        compare.same([Bool].self, "[true,false]")
        compare.same([String].self, "[\"\",\"a\",\"längerer Text mit 日本語\",\"\\ud83d\\ude00\\t\"]")
        compare.same([[Int]].self, "[[],[1],[2,3]]")
        compare.same([Int?].self, "[1,null,3]")
        compare.same([[String: Int]?].self, "[{\"a\":1},null]")
        compare.same([Point].self, "[{\"x\":1,\"y\":2},{\"y\":3,\"x\":4}]")
        compare.same(Set<Int>.self, "[1,2,2]")
        compare.same(ContiguousArray<String>.self, "[\"a\"]")
        compare.same([String: Int].self, "{\"a\":1,\"b\":2}")
        compare.same([String: String].self, "{\"a\":\"1\",\"\":\"2\"}")
        compare.same([String: Double].self, "{\"a\":1.5}")
        compare.same([String: Bool].self, "{\"a\":true}")
        compare.same([String: [String: [Int]]].self, "{\"a\":{\"b\":[1]},\"c\":{}}")
        compare.same([String: Point?].self, "{\"a\":{\"x\":1,\"y\":2},\"b\":null}")
        compare.same([Int: String].self, "{\"1\":\"a\",\"-2\":\"b\"}")
        compare.same([Color: Int].self, "{\"red\":1,\"green\":2}")
        compare.same([Level: Int].self, "{\"1\":1,\"2\":2}")
        compare.same([UUID: Int].self, "[\"6BA7B810-9DAD-11D1-80B4-00C04FD430C8\",1]")
        compare.same([Double: Int].self, "[1.5,1]")
    }

    @Test("single values at the top level")
    func fragments() {
        compare.same(Int.self, " 42 ")
        compare.same(String.self, "\"a\"")
        compare.same(Bool.self, "true")
        compare.same(Double.self, "-0.5e-3")
        compare.same(Int?.self, "null")
        compare.same(Int??.self, "null")
        compare.same(Color.self, "\"red\"")
        compare.same(Level.self, "2")
        compare.same([Color?].self, "[\"green\",null]")
        compare.same(Generic<Generic<[Int]>>.self, "{\"value\":{\"value\":[1]}}")
    }

    @Test("enumerations with associated values, and values that contain themselves")
    func enumerations() {
        compare.same(Tree.self, "{\"leaf\":{\"_0\":1}}")
        compare.same(
            Tree.self,
            "{\"branch\":{\"left\":{\"leaf\":{\"_0\":1}},\"right\":{\"branch\":{\"left\":{\"empty\":{}},\"right\":{\"leaf\":{\"_0\":2}}}}}}"
        )
        compare.same([Tree].self, "[{\"empty\":{}},{\"leaf\":{\"_0\":1}}]")
    }

    @Test("classes with a superclass")
    func inheritance() {
        compare.same(Dog.self, "{\"tricks\":[\"sit\"],\"super\":{\"name\":\"Rex\"}}")
        compare.same(Cat.self, "{\"name\":\"Tom\",\"lives\":7}")
        compare.same(Cat.self, "{\"lives\":7,\"name\":\"Tom\"}")
        compare.same([Cat].self, "[{\"lives\":7,\"name\":\"Tom\"},{\"name\":\"Tim\",\"lives\":1}]")
    }

    @Test("containers by hand, property wrappers")
    func handmade() {
        compare.same(Handmade.self, "{\"a\":[7,null,[2,3],4,null],\"b\":{\"a\":\"x\"},\"c\":null,\"d\":0}")
        compare.same(Handmade.self, "{\"c\":1,\"b\":{\"z\":0,\"a\":\"y\"},\"a\":[1,[]]}")
        compare.same(Wrapping.self, "{\"value\":70,\"other\":70}")
    }

    @Test("types of Foundation")
    func foundationTypes() {
        compare.same(Date.self, "730000000.25")
        compare.same(URL.self, "\"https://example.com/a?b=%20#c\"")
        compare.same([URL].self, "[\"https://example.com\",\"/relative\"]")
        compare.same(Data.self, "\"AQIDBA==\"")
        compare.same([Data].self, "[\"\",\"AA==\"]")
        compare.same(Decimal.self, "3.14159265358979323846264338327950288")
        compare.same([Decimal].self, "[0,-1,1e20,0.1,123456789012345678901234567890]")
        compare.same(UUID.self, "\"6BA7B810-9DAD-11D1-80B4-00C04FD430C8\"")
        compare.same(
            Measurement<UnitLength>.self,
            "{\"value\":5,\"unit\":{\"symbol\":\"m\",\"converter\":{\"coefficient\":1,\"constant\":0}}}")
        compare.same(Locale.self, "{\"identifier\":\"en_US\"}")
        compare.same(CGRect.self, "[[1,2],[3.5,4]]")
        compare.same(Range<Int>.self, "[1,5]")
        compare.same(ClosedRange<Double>.self, "[1.5,5]")
        compare.same(IndexSet.self, "{\"indexes\":[{\"location\":1,\"length\":3}]}")
        compare.same(DateComponents.self, "{\"year\":2026,\"month\":11}")
        compare.same(Int128.self, "170141183460469231731687303715884105727")
        compare.same(Duration.self, "[0,1500]")
    }

    @Test("dates and data with each strategy")
    func strategies() {
        var compare = Comparison()
        compare.ours.dateDecodingStrategy = .secondsSince1970
        compare.foundation.dateDecodingStrategy = .secondsSince1970
        compare.same(Date.self, "1700000000.125")
        compare.same([Date?].self, "[1,null]")
        compare.ours.dateDecodingStrategy = .millisecondsSince1970
        compare.foundation.dateDecodingStrategy = .millisecondsSince1970
        compare.same(Date.self, "1700000000125")
        compare.ours.dateDecodingStrategy = .iso8601
        compare.foundation.dateDecodingStrategy = .iso8601
        for text in [
            "2026-11-28T22:45:01Z", "1969-12-31T23:59:59Z", "2000-02-29T00:00:00Z",
            "2026-11-28T22:45:01+02:00", "2026-01-01T00:30:00-0130",
        ] {
            compare.same(Date.self, "\"\(text)\"")
            compare.same(Generic<Date?>.self, "{\"value\":\"\(text)\"}")
        }
        compare.ours.dateDecodingStrategy = .custom { Date(timeIntervalSince1970: try Double(from: $0) * 60) }
        compare.foundation.dateDecodingStrategy = .custom { Date(timeIntervalSince1970: try Double(from: $0) * 60) }
        compare.same([Date].self, "[1,2]")
        compare.ours.dataDecodingStrategy = .deferredToData
        compare.foundation.dataDecodingStrategy = .deferredToData
        compare.same(Data.self, "[1,2,255]")
        compare.ours.dataDecodingStrategy = .custom { Data(try String(from: $0).utf8) }
        compare.foundation.dataDecodingStrategy = .custom { Data(try String(from: $0).utf8) }
        compare.same([Data].self, "[\"abc\"]")
        compare.ours.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        compare.foundation.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        compare.same([Double].self, "[1,\"inf\",\"-inf\"]")
        compare.same([Float].self, "[1,\"inf\",\"-inf\"]")
        compare.sameError([Double].self, "[1,\"infinite\"]")
        #expect((try? compare.ours.decode([Double].self, from: "[\"nan\"]"))?[0].isNaN == true)
    }

    @Test("white space and escapes change nothing")
    func layout() {
        compare.same(Point.self, "\r\n{\n    \"x\" :\t1 ,\r\n        \"y\"  : 2\n}\n\n")
        compare.same(Point.self, "{\"\\u0078\":1,\"y\":2}")
        compare.same([String: Int].self, "{\"\\u0061\\n\":1}")
        compare.same(String.self, "\"\\/\\b\\f\\n\\r\\t\\\\\\\"\\u0000\"")
    }

    struct Info: Decodable, Equatable {
        let text: String
        init(from decoder: any Decoder) throws {
            let key = try #require(CodingUserInfoKey(rawValue: "key"))
            text = decoder.userInfo[key] as? String ?? "none"
        }
    }

    @Test("values of userInfo reach the types")
    func userInfo() throws {
        var compare = Comparison()
        let key = try #require(CodingUserInfoKey(rawValue: "key"))
        compare.ours.userInfo[key] = "here"
        compare.foundation.userInfo[key] = "here"
        compare.same([Info].self, "[{},{}]")
        #expect(try TernJSONDecoder().decode(Info.self, from: "{}").text == "none")
    }

    @Test("each form of the input gives the same value")
    func inputs() throws {
        let text = "{\"x\":1,\"y\":-2}"
        let decoder = TernJSONDecoder()
        let value = Point(x: 1, y: -2)
        #expect(try decoder.decode(Point.self, from: text) == value)
        #expect(try decoder.decode(Point.self, from: Data(text.utf8)) == value)
        #expect(try decoder.decode(Point.self, from: Array(text.utf8)) == value)
        let bytes = Array(text.utf8)
        let decoded = try unsafe decoder.decode(Point.self, from: bytes.span.bytes)
        #expect(decoded == value)
        #expect(try decoder.decode(Point.self, from: Data("xx\(text)".utf8).dropFirst(2)) == value)
        #expect(throws: DecodingError.self) { try decoder.decode(Point.self, from: Data()) }
        #expect(throws: DecodingError.self) { try decoder.decode(Point.self, from: "") }
    }
}
