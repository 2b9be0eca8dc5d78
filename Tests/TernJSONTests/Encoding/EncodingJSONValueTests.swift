import Foundation
import TernJSON
import Testing

@Suite("JSON encoding: JSONValue")
struct EncodingJSONValueTests {
    private let value: JSONValue = [
        "null": nil, "bool": true, "integer": -9_007_199_254_740_993, "number": 1.5, "string": "a\"/\u{1}",
        "array": [1, [], [:], ["x": [nil]]], "object": ["é": "ü"],
    ]

    @Test func theTextIsThatOfFoundation() throws {
        try expectSameText(value)
        try expectSameText(["k": [value]])
        for fragment in [JSONValue.null, true, 1, 1.5, "x", [], [:]] { try expectSameText(fragment) }
    }

    @Test func numbersFollowTheSetting() throws {
        var encoder = TernJSONEncoder()
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "+", negativeInfinity: "-", nan: "n")
        let text = try encoder.encode(JSONValue.array([.number(.nan), .number(-.infinity)]))
        #expect(String(decoding: text, as: UTF8.self) == #"["n","-"]"#)
    }

    @Test func namesAreNotConverted() throws {
        var encoder = TernJSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let text = try encoder.encode(JSONValue.object(["userName": 1]))
        #expect(String(decoding: text, as: UTF8.self) == #"{"userName":1}"#)
    }
}
