import Foundation
import Testing

@testable import TernJSON

@Suite("JSON: values of unknown structure")
struct JSONValueTests {
    private let decoder = TernJSONDecoder()

    @Test("each kind of value")
    func kinds() throws {
        let text =
            "{\"n\":null,\"t\":true,\"f\":false,\"i\":-3,\"d\":0.5,\"s\":\"x\\n\",\"a\":[1,[],{}],\"o\":{\"k\":[{\"l\":1}]}}"
        let value = try decoder.decode(JSONValue.self, from: text)
        let expected: JSONValue = [
            "n": nil, "t": true, "f": false, "i": -3, "d": 0.5, "s": "x\n", "a": [1, [], [:]], "o": ["k": [["l": 1]]],
        ]
        #expect(value == expected)
        #expect(value["o"]?["k"]?[0]?["l"]?.integer == 1)
    }

    @Test(
        "whole numbers of 64 bits are integers, however they are written",
        arguments: [
            ("1.0", JSONValue.integer(1)), ("1e2", .integer(100)), ("-0", .integer(0)),
            ("9223372036854775807", .integer(.max)),
            ("-9223372036854775808", .integer(.min)), ("9223372036854775808", .number(0x1p63)), ("1.5", .number(1.5)),
            ("9007199254740993.0", .integer(9_007_199_254_740_993)), ("1e30", .number(1e30)), ("100e-2", .integer(1)),
            ("12345678901234567890123e-10", .number(1_234_567_890_123.456_789_012_3)),
            ("-9223372036854775809", .number(-0x1p63)),
        ])
    func numbers(text: String, value: JSONValue) throws {
        #expect(try decoder.decode(JSONValue.self, from: text) == value)
    }

    @Test(
        "numbers of both kinds are equal if their values are",
        arguments: [
            (JSONValue.integer(1), JSONValue.number(1), true), (.integer(0), .number(-0.0), true),
            (.integer(-3), .number(-3.5), false), (.integer(.max), .number(0x1p63), false),
            (.integer(.min), .number(-0x1p63), true), (.integer(1 << 53 + 1), .number(0x1p53), false),
            (.integer(1 << 62), .number(0x1p62), true), (.integer(0), .number(.nan), false),
            (.integer(0), .bool(false), false), (.number(0), .number(-0.0), true),
            (.number(.nan), .number(.nan), false),
            (.integer(.max), .number(.infinity), false), (.integer(1), .string("1"), false),
            (.array([.integer(1)]), .array([.number(1)]), true),
            (.object(["a": .integer(2)]), .object(["a": .number(2)]), true), (.object([:]), .array([]), false),
        ])
    func equality(left: JSONValue, right: JSONValue, isEqual: Bool) {
        #expect((left == right) == isEqual)
        #expect((right == left) == isEqual)
        #expect(Set([left, right]).count == (isEqual ? 1 : 2))
        if isEqual {
            #expect(left.hashValue == right.hashValue)
            #expect(left.integer == right.integer)
            #expect(left.number == right.number)
        }
    }

    @Test(
        "a value is equal to itself after encoding and decoding",
        arguments: [1.0, -0.0, 0x1p53, 0x1p60, 1e17, 1e18, -0x1p63, 0x1p63, 1e30, 0.1])
    func roundTrip(number: Double) throws {
        let value: JSONValue = ["number": .number(number), "list": [.number(number), 1]]
        #expect(try decoder.decode(JSONValue.self, from: TernJSONEncoder().encode(value)) == value)
        #expect(try decoder.decode(JSONValue.self, from: JSONEncoder().encode(value)) == value)
        #expect(try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(value)) == value)
    }

    @Test("large whole numbers are encoded with all digits", arguments: [0x1p60, 0x1p60 + 256, -0x1p62 - 1_024])
    func largeNumbers(number: Double) throws {
        let value: JSONValue = [.number(number)]
        let text = try JSONEncoder().encode(value)
        #expect(String(decoding: text, as: UTF8.self) == "[\(Int64(number))]")
        #expect(try decoder.decode(JSONValue.self, from: text) == value)
    }

    struct Holder: Codable, Equatable {
        let value: JSONValue
        let list: [JSONValue]
        let map: [String: JSONValue]
        let optional: JSONValue?
    }

    @Test("as a part of another type, with each decoder and encoder")
    func parts() throws {
        let text = "{\"value\":{\"a\":[1,2.5,null]},\"list\":[true,\"x\",{}],\"map\":{\"k\":[]},\"optional\":null}"
        let ours = try decoder.decode(Holder.self, from: text)
        let theirs = try JSONDecoder().decode(Holder.self, from: Data(text.utf8))
        #expect(ours == theirs)
        #expect(try decoder.decode(Holder.self, from: JSONEncoder().encode(ours)) == ours)
        var snake = decoder
        snake.keyDecodingStrategy = .convertFromSnakeCase
        #expect(try snake.decode(JSONValue.self, from: "{\"a_b\":{\"c_d\":1}}") == ["a_b": ["c_d": 1]])
    }

    @Test("values nest 512 levels deep, and are freed without overflow of the stack")
    func depth() async throws {
        let text = String(repeating: "[{\"a\":", count: 256) + "1" + String(repeating: "}]", count: 256)
        // A task's thread has the smallest stack.
        let decoder = decoder
        let isEqual = try await Task.detached {
            let value = try decoder.decode(JSONValue.self, from: text)
            return try value == decoder.decode(JSONValue.self, from: text) && value.removingNulls == value
        }.value
        #expect(isEqual)
    }

    @Test("random values come back from Foundation's encoder")
    func random() throws {
        var generator = Generator(state: 7)
        for _ in 0..<2_000 {
            let value = Self.value(depth: 0, using: &generator)
            let data = try JSONEncoder().encode([value])
            #expect(try decoder.decode([JSONValue].self, from: data) == [value])
        }
    }

    private static func value(depth: Int, using generator: inout Generator) -> JSONValue {
        switch Int.random(in: 0..<(depth < 5 ? 8 : 5), using: &generator) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &generator))
        case 2:
            return .integer(
                Int64.random(in: .min ... .max, using: &generator) >> Int64.random(in: 0...63, using: &generator))
        case 3:
            let number = Double.random(in: -1e10...1e10, using: &generator)
            return number.rounded() == number ? .null : .number(number)
        case 4: return .string(text(using: &generator))
        case 5, 6:
            return .array(
                (0..<Int.random(in: 0...5, using: &generator)).map { _ in value(depth: depth + 1, using: &generator) })
        default:
            var members: [String: JSONValue] = [:]
            for _ in 0..<Int.random(in: 0...5, using: &generator) {
                members[text(using: &generator)] = value(depth: depth + 1, using: &generator)
            }
            return .object(members)
        }
    }

    private static func text(using generator: inout Generator) -> String {
        let characters: [Character] = [
            "a", "b", "\"", "\\", "/", "\n", "é", "日", "\u{1F600}", "\u{0}", "\u{2028}", " ",
        ]
        return String(
            (0..<Int.random(in: 0...20, using: &generator)).compactMap { _ in
                characters.randomElement(using: &generator)
            })
    }
}
