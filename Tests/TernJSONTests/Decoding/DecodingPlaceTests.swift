import Foundation
import Testing

@testable import TernJSON

@Suite("JSON: places of errors")
struct DecodingPlaceTests {
    private let decoder = TernJSONDecoder()

    struct User: Decodable {
        let login: String
        let id: Int
    }

    struct Post: Decodable {
        let title: String
        let user: User
    }

    private func place<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> (TernJSONErrorPlace, String) {
        do {
            _ = try decoder.decode(type, from: text)
        } catch let error as DecodingError {
            return (try #require(TernJSONErrorPlace(of: error)), "\(error)")
        }
        throw CocoaError(.featureUnsupported)
    }

    @Test("an error of a value says what was expected and found, and where")
    func mismatch() throws {
        let text = "[\n  {\"title\": \"ä\", \"user\": {\"login\": 7, \"id\": 1, \"x\": {\"y\": [1]}}}\n]"
        let (place, description) = try place([Post].self, text)
        #expect(place.line == 2)
        #expect(place.column == 36)
        #expect(place.offset == 38)
        #expect(place.excerpt == "{\"login\": ▸number◂, \"id\": number, \"x\": {…}}")
        #expect(description.contains("expected String, found a number at offset 38 (line 2, column 36)"))
    }

    @Test("an excerpt shows few members, and no values")
    func excerpt() throws {
        let members = (0..<20).map { "\"k\($0)\":\"secret\"" }.joined(separator: ",")
        let (place, description) = try place([String: Int].self, "{\"k\":1,\(members)}")
        #expect(place.excerpt == "{\"k\": number, \"k0\": ▸string◂, \"k1\": string, \"k2\": string, \"k3\": string, …}")
        #expect(!description.contains("secret"))
    }

    /// Keeps a decoder for each value, with the path that it must have.
    private struct Paths: Decodable {
        var decoders: [(decoder: any Decoder, path: [String])] = []

        init(from decoder: any Decoder) throws { try add(decoder, path: []) }

        private mutating func add(_ decoder: any Decoder, path: [String]) throws {
            decoders.append((decoder, path))
            if let container = try? decoder.container(keyedBy: DecodingKeyTests.AnyKey.self) {
                for key in container.allKeys {
                    try add(container.superDecoder(forKey: key), path: path + [key.stringValue])
                }
            } else if var list = try? decoder.unkeyedContainer() {
                while !list.isAtEnd {
                    let index = list.currentIndex
                    try add(list.superDecoder(), path: path + ["Index \(index)"])
                }
            }
        }
    }

    @Test("each value has its path, in whatever order the paths are asked for")
    func paths() throws {
        let numbers = (0..<130).map { "\($0)" }.joined(separator: ",")
        let members = (0..<200).map { "\"k\($0)\":\($0 % 50 == 0 ? "[\(numbers)]" : "{\"a\":[]}")" }
        let text = "[{},[[]],{\(members.joined(separator: ","))},[\(numbers)],\(numbers)]"
        var decoders = try decoder.decode(Paths.self, from: text).decoders
        #expect(decoders.count == 1_182)
        var generator = Generator(state: 8)
        for _ in 0..<3 {
            for (decoder, path) in decoders { #expect(decoder.codingPath.map(\.stringValue) == path) }
            decoders.shuffle(using: &generator)
        }
    }

    @Test("an excerpt begins with the element before the place", arguments: [0, 1, 63, 64, 65, 128, 500])
    func excerptOfLargeArray(index: Int) throws {
        var elements = Array(repeating: "1", count: 600)
        elements[index] = "[]"
        if index > 0 { elements[index - 1] = "\"1\"" }
        let (place, _) = try place([JSONNumber].self, "[" + elements.joined(separator: ",") + "]")
        let beginning = index == 0 ? "[▸[…]◂, " : index == 1 ? "[string, ▸[…]◂, " : "[…, string, ▸[…]◂, "
        #expect(place.excerpt.hasPrefix(beginning), "\(place.excerpt)")
    }

    /// A number, also in a string.
    struct JSONNumber: Decodable {
        let value: Int

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let number = try? container.decode(Int.self) {
                value = number
            } else {
                value = Int(try container.decode(String.self)) ?? 0
            }
        }
    }

    @Test("the object shows that has no value for a key")
    func missingKey() throws {
        let (place, _) = try place([Post].self, "[{\"title\": \"\", \"user\": {\"login\": \"secret\", \"x\": []}}]")
        #expect(place.excerpt == "▸{\"login\": string, \"x\": […]}◂")
        #expect(place.offset == 23)
    }

    @Test("control characters of keys do not show, and long ones are cut")
    func keys() throws {
        let long = String(repeating: "x", count: 100)
        let (place, _) = try place([String: Int].self, "{\"a\\u001b\\u202e\":null,\"\(long)\":1}")
        #expect(!place.excerpt.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x202E })
        #expect(place.excerpt.contains(String(repeating: "x", count: 40) + "…"))
    }

    @Test(
        "an error of syntax says what was expected, and where",
        arguments: [
            ("{\"a\":1,\n\"b\" 2}", 12, 2, 5, "expected ':' after a key", "{\"a\": number ▸"),
            ("[1,2", 4, 1, 5, "the text ends early", "[number, number ▸"),
            ("[1,2}", 4, 1, 5, "expected ',' or ']' in an array", "[number, number ▸"),
            ("{\"a\":tru}", 5, 1, 6, "expected true, false or null", "{\"a\": ▸"),
            ("", 0, 1, 1, "the text is empty", "▸"),
            ("[1,]", 3, 1, 4, "a comma is followed by no value", "[number ▸"),
            ("{\"a\":1,}", 7, 1, 8, "a comma is followed by no value", "{\"a\": number ▸"),
            ("[\"a\u{1}\"]", 3, 1, 4, "a control character in a string is not escaped", "[ ▸"),
            ("[01]", 1, 1, 2, "a number begins with a zero", "[ ▸"),
            ("1 x", 2, 1, 3, "other text follows the value", "▸"),
        ])
    func syntax(text: String, offset: Int, line: Int, column: Int, problem: String, excerpt: String) throws {
        let (place, description) = try place(JSONValue.self, text)
        #expect(place.offset == offset)
        #expect(place.line == line)
        #expect(place.column == column)
        #expect(place.excerpt == excerpt)
        #expect(description.contains("the text is not valid JSON: \(problem) at offset \(offset)"))
    }

    @Test("an error that a type throws has a place by its path")
    func ownErrors() throws {
        let (place, _) = try place([DecodingShapeTests.Color].self, "[\"red\",\n\"blue\"]")
        #expect(place.line == 2)
        #expect(place.excerpt == "[string, ▸string◂]")
    }

    @Test("other errors have no place")
    func noPlace() {
        #expect(TernJSONErrorPlace(of: CancellationError()) == nil)
        let context = DecodingError.Context(codingPath: [], debugDescription: "")
        #expect(TernJSONErrorPlace(of: DecodingError.dataCorrupted(context)) == nil)
    }
}
