import Foundation
import TernTesting
import Testing

@testable import Tern

@Suite("JSONValue: reading", .timeLimit(.minutes(1)))
struct JSONValueReadingTests {
    private func value(_ text: String) throws -> JSONValue {
        try JSONCoding().decode(JSONValue.self, from: Data(text.utf8))
    }

    // MARK: Syntax

    @Test(arguments: [
        "", " ", "[", "]", "{", "}", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "[1]x", "[1],", "{\"a\"}",
        "{\"a\":}", "{\"a\":1,}",
        "{a:1}", "{'a':1}", "{1:1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{\"a\":1]", "[1}", "{,}", "{\"a\":1,,\"b\":2}",
        "[1,,2]",
        "nul", "nulll", "tru", "True", "NaN", "Infinity", "-Infinity", "undefined", "01", "-01", "-", "+1", ".5", "1.",
        "-.5", "1e",
        "1e+", "1.e1", "0x10", "1_000", "1e1.5", "--1", "1 000", "0e", "1eE2", "- 1", "\"", "\"a", "\"\\\"",
        "\"\\x41\"",
        "\"\\u12\"", "\"\\u12g4\"", "\"\\U0041\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800\\n\"",
        "\"\\udc00\\ud800\"", "\"a\nb\"", "\"a\tb\"", "\"\u{0}\"", "\"\u{1F}\"", "'a'", "[1]\u{0}", "\u{C}[1]",
        "\u{B}1", "\u{A0}1",
        "[1]\u{FEFF}", "/*x*/1", "1//x", "[\"a\"", "[\"a\":1]", "{\"a\":1:2}", "\u{2028}1", "*", "a", "1a", "[1a]",
        "[a]", "\"a\"\"b\"",
        "1e999", "-1e999", "[1e400]", "1e99999999999999999999",
    ])
    func textsThatAreNoJSONAreRefused(text: String) {
        #expect(throws: DecodingError.self) { try value(text) }
    }

    @Test func eachValueIsRead() throws {
        let texts: [(String, JSONValue)] = [
            ("null", nil), (" true ", true), ("\r\n\tfalse", false), ("0", 0), ("-0", 0), ("-1", -1), ("[]", []),
            ("{}", [:]),
            ("[ ]", []), ("{ }", [:]), ("9223372036854775807", 9_223_372_036_854_775_807),
            ("-9223372036854775808", .integer(.min)),
            ("9223372036854775808", 9_223_372_036_854_775_808.0),
            ("-9223372036854775809", -9_223_372_036_854_775_808.0),
            ("1.5", 1.5), ("-1.5e3", -1_500), ("1E2", 100), ("1e-2", 0.01), ("1e+2", 100), ("0.1e1", 1),
            ("1e-999", 0.0), ("9007199254740993.0", 9_007_199_254_740_993),
            ("0.00000000000000000000000000012e29", 12), ("1.50e1", 15), ("9.3e18", 9.3e18),
            ("0e5", 0),
            ("123456789012345678901234567890", 123456789012345678901234567890.0), ("\"\"", ""), ("\"a\"", "a"),
            ("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\u{8}\u{C}\n\r\t"),
            ("\"\\u0041\\u00e9\\u20AC\\u0000\"", "A\u{E9}\u{20AC}\0"),
            ("\"\\ud83d\\ude00x\"", "\u{1F600}x"), ("\"\u{7F}\u{E9}\u{10FFFF}\"", "\u{7F}\u{E9}\u{10FFFF}"),
            ("[1,[2,[3]],{\"a\":[4]}]", [1, [2, [3]], ["a": [4]]]),
            ("{\"a\":{\"b\":{}},\"c\":[{}]}", ["a": ["b": [:]], "c": [[:]]]),
            ("{\"a\":1,\"a\":2}", ["a": 2]), ("{\"\":0}", ["": 0]), ("\u{FEFF}1", 1),
        ]
        for (text, expected) in texts { #expect(try value(text) == expected, "\(text)") }
    }

    @Test func bytesThatAreNotUTF8AreRefused() {
        for bytes: [UInt8] in [
            [0xFF], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE9],
        ] {
            for text in [[0x22] + bytes + [0x22], [0x5B] + bytes + [0x5D], [0x22, 0x5C, 0x6E] + bytes + [0x22]] {
                #expect(throws: DecodingError.self, "\(text)") {
                    try JSONCoding().decode(JSONValue.self, from: Data(text))
                }
            }
        }
    }

    @Test(arguments: [
        String.Encoding.utf8, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian, .utf32BigEndian,
    ])
    func wideEncodingsAreRead(encoding: String.Encoding) throws {
        let data = try #require("{\"\u{E9}\":[1,\"\u{1F600}\"]}".data(using: encoding))
        #expect(try JSONCoding().decode(JSONValue.self, from: data) == ["\u{E9}": [1, "\u{1F600}"]])
    }

    @Test func aSliceIsRead() throws {
        #expect(try JSONCoding().decode(JSONValue.self, from: Data("xx[1]".utf8).dropFirst(2)) == [1])
    }

    // MARK: Cost

    @Test func depthIsLimited() throws {
        for (start, end) in [("[", "]"), ("{\"a\":", "}")] {
            func nested(_ depth: Int) -> String {
                String(repeating: start, count: depth) + "1" + String(repeating: end, count: depth)
            }
            #expect(try value(nested(512)) != nil)
            #expect(throws: DecodingError.self) { try value(nested(513)) }
            #expect(throws: DecodingError.self) { try value(String(repeating: start, count: 1_000_000)) }
        }
    }

    /// Foundation's decoder takes 17 minutes for this.
    @Test func deepAndWideTextsTakeLinearTime() throws {
        let nested = String(repeating: "[", count: 500) + String(repeating: "]", count: 500)
        let text = "[" + Array(repeating: nested, count: 1_000).joined(separator: ",") + "]"
        #expect(try value(text).array?.count == 1_000)
        let wide =
            String(repeating: "[", count: 500) + "true" + String(repeating: ",true", count: 200_000)
            + String(repeating: "]", count: 500)
        #expect(try value(wide)[0] != nil)
    }

    @Test func longTokensTakeLinearTime() throws {
        let count = 1_000_000
        #expect(try value("\"" + String(repeating: "\\n", count: count) + "\"").string?.utf8.count == count)
        #expect(try value("0." + String(repeating: "1", count: count)).number == 1.0 / 9)
        #expect(throws: DecodingError.self) { try value(String(repeating: "1", count: count)) }
    }

    @Test func longDecodingLooksAtCancellationAndAtItsDeadline() async throws {
        let text = "[0" + String(repeating: ",0", count: 5_000) + "]"
        let task = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            #expect(throws: CancellationError.self) { try value(text) }
            #expect(throws: CancellationError.self) {
                try JSONDecoder().decode([String: JSONValue].self, from: Data("{\"a\":\(text)}".utf8))
            }
        }
        await task.value
        #expect(throws: DecodingLimit.Passed.self) { try DecodingLimit.withDeadline(1) { try value(text) } }
    }

    // MARK: Beside Foundation's decoder

    /// The way in which a decoder has to find out the kind of a value.
    private struct Reference: Decodable {
        let value: JSONValue

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                value = .null
            } else if let bool = try? container.decode(Bool.self) {
                value = .bool(bool)
            } else if let integer = try? container.decode(Int64.self) {
                value = .integer(integer)
            } else if let number = try? container.decode(Double.self) {
                value = .number(number)
            } else if let string = try? container.decode(String.self) {
                value = .string(string)
            } else if let array = try? container.decode([Reference].self) {
                value = .array(array.map(\.value))
            } else {
                value = .object(try container.decode([String: Reference].self).mapValues(\.value))
            }
        }
    }

    private struct Part: Decodable {
        let part: JSONValue
    }

    @Test(arguments: 1...20)
    func randomTextsAreReadAsFoundationReadsThem(seed: UInt64) throws {
        var writer = RandomJSON(state: seed)
        for _ in 0..<100 {
            let text = writer.text()
            let expected = try JSONDecoder().decode(Reference.self, from: Data(text.utf8)).value
            #expect(try value(text) == expected, "\(text)")
            // As a part of another type, it is read by Foundation's decoder.
            let part = try JSONDecoder().decode(Part.self, from: Data("{\"part\":\(text)}".utf8)).part
            #expect(part == expected, "\(text)")
            var damaged = Array(text.utf8)
            damaged[Int(writer.next() % UInt64(damaged.count))] = UInt8(truncatingIfNeeded: writer.next() % 128)
            let other = try? JSONCoding().decode(JSONValue.self, from: Data(damaged))
            // Foundation's decoder takes a comma before the end of an array or object, and more.
            guard let other else { continue }
            let reference = try JSONDecoder().decode(Reference.self, from: Data(damaged)).value
            // A number that is nearly whole is rounded to an integer there.
            #expect(Self.numbers(reference) == Self.numbers(other), "\(String(decoding: damaged, as: UTF8.self))")
        }
    }

    /// Returns a value with its integers as doubles.
    private static func numbers(_ value: JSONValue) -> JSONValue {
        switch value {
        case .integer(let integer): .number(Double(integer))
        case .array(let elements): .array(elements.map(numbers))
        case .object(let members): .object(members.mapValues(numbers))
        default: value
        }
    }

    private struct RandomJSON: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }

        mutating func text(depth: Int = 0) -> String {
            switch next() % (depth > 5 ? 5 : 8) {
            case 0: return ["null", "true", "false"].randomElement(using: &self) ?? ""
            case 1: return "\(Int64(truncatingIfNeeded: Int(next()) << Int(next() % 33)) - Int64(next()))"
            case 2: return "\(Double(Int64(next()) - (1 << 30)) / 1_024)e\(Int(next() % 40) - 20)"
            case 3, 4: return string()
            case 5, 6:
                let elements = (0..<next() % 5).map { _ in text(depth: depth + 1) }
                return "[ \(elements.joined(separator: " ,\n"))]"
            default:
                let members = (0..<next() % 5).map { "\"\($0)\(string().dropFirst()) : \(text(depth: depth + 1))" }
                return "{\(members.joined(separator: ",")) }"
            }
        }

        private mutating func string() -> String {
            let pieces = ["a", "\\n", "\\u00E9", "\\ud83d\\uDE00", "\u{20AC}", "\\\"", "\\\\", "/", "\u{1F600}", "0"]
            return "\"" + (0..<next() % 6).map { _ in pieces.randomElement(using: &self) ?? "" }.joined() + "\""
        }
    }
}

@Suite("JSONCoding", .timeLimit(.minutes(1)))
struct JSONCodingTests {
    private struct Part: Decodable {
        var part: JSONValue
    }

    private func session(_ body: String) -> Session {
        Session(stub: StubTransport(["GET /x": .data(Data(body.utf8), contentType: "application/json")]))
    }

    @Test func bodiesAreReadByTheReader() async throws {
        let nested = String(repeating: "{\"a\":", count: 500) + "true" + String(repeating: "}", count: 500)
        let request = try Request(.get, "https://a.example/x")
        let many = "[" + Array(repeating: nested, count: 300).joined(separator: ",") + "]"
        let one = try await session(many).response(for: request, decode: BodyDecoder<JSONValue>.json)
        #expect(one.value[299] != nil)
        let list = try await session(many).response(for: request, decode: BodyDecoder<[JSONValue]>.json)
        #expect(list.value.count == 300)
        let object = "{\"a\":\(many)}"
        let members = try await session(object).response(
            for: request, decode: BodyDecoder<[String: JSONValue]?>.automatic)
        #expect(members.value?["a"]?.array?.count == 300)
        let error = await #expect(throws: NetworkError.self) {
            try await session("[1]").response(for: request, decode: BodyDecoder<[String: JSONValue]>.json)
        }
        #expect(error?.kind == .decoding && error?.underlying is DecodingError)
        let cleaned = try await session(many).response(
            for: request, decode: BodyDecoder<JSONValue>.json(removingPrefix: "", removesNulls: true))
        #expect(cleaned.value.array?.count == 300)
    }

    /// A decoder with other rules reads what they say.
    @Test func otherRulesOfSyntaxAreKept() throws {
        let coding = JSONCoding.foundation {
            let decoder = JSONDecoder()
            decoder.allowsJSON5 = true
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            return decoder
        }
        let text = Data("{a: 'b'}".utf8)
        #expect(try coding.decode(JSONValue.self, from: text) == ["a": "b"])
        #expect(throws: DecodingError.self) { try JSONCoding().decode(JSONValue.self, from: text) }
        let part = try coding.decode(Part.self, from: Data("{part: {a_b: {c_d: 1}}}".utf8)).part
        #expect(part == ["a_b": ["c_d": 1]])
    }

    /// Without the limit, these 11 KB take more than 5 seconds.
    @Test func deepPartsAreRefusedBeforeTheyTakeLong() throws {
        let (start, end) = (String(repeating: "[", count: 500), String(repeating: "]", count: 500))
        let text = "{\"part\":\(start)true\(String(repeating: ",true", count: 2_000))\(end)}"
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Part.self, from: Data(text.utf8)) }
        let objects = String(repeating: "{\"a\":", count: 500) + "1" + String(repeating: "}", count: 500)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(Part.self, from: Data("{\"part\":\(objects)}".utf8))
        }
        let arrays = "{\"part\":\(start)\(end)}"
        #expect(try JSONDecoder().decode(Part.self, from: Data(arrays.utf8)).part[0] != nil)
        let shallow = String(repeating: "{\"a\":[", count: 30) + "1,true" + String(repeating: "]}", count: 30)
        #expect(try JSONDecoder().decode(Part.self, from: Data("{\"part\":\(shallow)}".utf8)).part["a"] != nil)
    }

    @Test func theTotalLimitCoversDecoding() async throws {
        var limited = try Request(.get, "https://a.example/x")
        limited.timeouts.total = .milliseconds(200)
        let request = limited
        let late = BodyDecoder<String> { _, _ in
            // Returns once its time is over.
            while !DecodingLimit.hasPassed { try Task.checkCancellation() }
            return "late"
        }
        let error = await #expect(throws: NetworkError.self) {
            try await session("1").response(for: request, decode: late)
        }
        #expect(error?.kind == .totalTimedOut && error?.timeoutPhase == .total)
        limited.timeouts.total = .seconds(3_600)
        let answer = try await session("1").response(for: limited, decode: BodyDecoder<JSONValue>.json)
        #expect(answer.value == 1)
    }

    @Test func aDecoderThatIsCancelledIsNoDamage() async throws {
        let request = try Request(.get, "https://a.example/x")
        let cancelled = BodyDecoder<String> { _, _ in
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            try Task.checkCancellation()
            return ""
        }
        let task = Task { try await session("1").response(for: request, decode: cancelled) }
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        #expect(error?.kind == .cancelled)
    }
}
