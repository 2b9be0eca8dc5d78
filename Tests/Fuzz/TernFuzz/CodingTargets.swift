import Foundation
import Tern

extension FuzzTarget {
    /// The bodies that a parser of the system reads, or that are read in its place.
    static let coding = [
        FuzzTarget(
            name: "json", seeds: { _ in JSONFuzzing.seeds.map { Array($0.utf8) } }, tokens: JSONFuzzing.tokens,
            run: { input, _ in try JSONFuzzing.check(input) }),
        FuzzTarget(
            name: "json-types", seeds: { _ in TypedJSONFuzzing.seeds.map { Array($0.utf8) } },
            tokens: JSONFuzzing.tokens,
            run: { input, choice in try TypedJSONFuzzing.check(input, choice) }),
        FuzzTarget(
            name: "text", seeds: { _ in TextFuzzing.seeds },
            run: { input, choice in try TextFuzzing.check(Array(input), choice) }),
        FuzzTarget(
            name: "property-list", seeds: { _ in try PropertyListFuzzing.seeds() }, tokens: PropertyListFuzzing.tokens,
            run: { input, _ in try PropertyListFuzzing.check(input) }),
        FuzzTarget(
            name: "codings", seeds: { _ in try CodingFuzzing.seeds() },
            run: { input, choice in try CodingFuzzing.check(Array(input), choice) }),
    ]
}

/// A JSON text of any structure.
private enum JSONFuzzing {
    static let seeds = [
        #"{"a":[1,-2.5e3,true,false,null,"x\n\u00e9\ud83d\ude00"],"b":{"c":{}}}"#, "[]", "\"text\"", " 1 ",
        "[[[[[[1]]]]]]",
        #"[1.0,1e2,0.1e1,-0,1e-999,9223372036854775807,9223372036854775808,123456789012345678901234567890]"#,
        #"{"a":1,"a":2,"":{"\u0061":3}}"#, "\u{FEFF}[1]",
        String(repeating: "[", count: 300) + String(repeating: "]", count: 300),
    ]
    static let tokens = [
        "[", "]", "{", "}", ",", ":", "\"", "\\u", "\\ud83d", "\\ude00", "\\\"", "true", "null", "1e", "-", "0", ".5",
        "e+9", "\"a\":",
        "[]", "{}", " ", "\n", "\u{FEFF}", "\0",
    ]

    /// Returns a value with its integers as doubles.
    private static func numbers(_ value: JSONValue) -> JSONValue {
        switch value {
        case .integer(let integer): .number(Double(integer))
        case .array(let elements): .array(elements.map(numbers))
        case .object(let members): .object(members.mapValues(numbers))
        default: value
        }
    }

    static func check(_ input: Data) throws -> String {
        let value: JSONValue
        do {
            value = try TernJSONDecoder().decode(JSONValue.self, from: input)
        } catch let error as DecodingError {
            guard case .dataCorrupted(let context) = error else { return "rejected" }
            return "rejected \(context.debugDescription.prefix(8))"
        }
        let again = try TernJSONDecoder().decode(JSONValue.self, from: TernJSONEncoder().encode(value))
        // A double that is whole, such as that of `1e-999`, is written like an integer.
        try require(numbers(again) == numbers(value), "\(again) and not \(value)")
        // Foundation's decoder takes more texts, and the first of equal keys. Otherwise, both read a text to the same
        // value.
        if colons(in: input) == members(of: value),
            let other = try? JSONDecoder().decode([JSONValue].self, from: Data("[".utf8) + input + Data("]".utf8)).first
        {
            try require(isNear(numbers(other), numbers(value)), "\(other) and not \(value)")
        }
        return "accepted \(value.array?.count ?? -1) \(value.object?.count ?? -1)"
    }
}

extension JSONFuzzing {
    /// Returns the number of colons outside of strings: that of the members of a valid text, with equal keys counted
    /// each.
    private static func colons(in input: Data) -> Int {
        var count = 0
        var (isInString, isEscaped) = (false, false)
        for byte in input {
            if isEscaped {
                isEscaped = false
            } else if isInString {
                isEscaped = byte == UInt8(ascii: "\\")
                isInString = byte != UInt8(ascii: "\"")
            } else {
                isInString = byte == UInt8(ascii: "\"")
                count += byte == UInt8(ascii: ":") ? 1 : 0
            }
        }
        return count
    }

    /// Returns whether two values differ at most in the last bit of their numbers: Foundation rounds a number that is
    /// nearly whole to an integer, and then to a double (`1720368547757758080.1`).
    private static func isNear(_ left: JSONValue, _ right: JSONValue) -> Bool {
        switch (left, right) {
        case (.number(let left), .number(let right)): left == right || left.nextUp == right || left.nextDown == right
        case (.array(let left), .array(let right)): left.count == right.count && zip(left, right).allSatisfy(isNear)
        case (.object(let left), .object(let right)):
            left.count == right.count
                && left.allSatisfy { name, value in right[name].map { isNear(value, $0) } ?? false }
        default: left == right
        }
    }

    private static func members(of value: JSONValue) -> Int {
        switch value {
        case .array(let elements): elements.reduce(0) { $0 + members(of: $1) }
        case .object(let members): members.reduce(members.count) { $0 + Self.members(of: $1.value) }
        default: 0
        }
    }
}

/// JSON of a type with many kinds of properties.
private enum TypedJSONFuzzing {
    enum Kind: String, Codable, CodingKeyRepresentable, Hashable { case a, b }

    indirect enum Shape: Codable, Equatable {
        case circle(radius: Double)
        case group([Shape], name: String?)
    }

    final class Node: Codable {
        let name: String
        let next: Node?
        let others: [String: [Node]]?
    }

    struct Record: Codable {
        var text: String?
        var flag: Bool?
        var small: UInt8?
        var large: Int64?
        var huge: UInt64?
        var half: Float?
        var number: Double?
        var numbers: [Double]?
        var pair: [Int?]?
        var kinds: [Kind: Int]?
        var indexed: [Int: String]?
        var shape: Shape?
        var date: Date?
        var data: Data?
        var url: URL?
        var decimal: Decimal?
        var id: UUID?
        var value: JSONValue?
        var node: Node?
        var several: [Record]?
    }

    static let seeds = [
        #"{"text":"\u00e9","flag":true,"small":255,"large":-9223372036854775808,"huge":18446744073709551615,"half":0.1}"#,
        #"{"numbers":[1,2.5,-1e300],"pair":[1,null],"kinds":{"a":1,"b":2},"indexed":{"1":"x"},"number":5e-324}"#,
        #"{"shape":{"group":{"_0":[{"circle":{"radius":1}}],"name":null}},"date":"2026-11-28T22:45:01.5Z"}"#,
        #"{"data":"AAEC","url":"https://a.example/","decimal":1.25,"id":"6B29FC40-CA47-1067-B31D-00DD010662DA"}"#,
        #"{"value":{"a":[1]},"node":{"name":"","next":{"name":"x"},"others":{"k":[]}},"several":[{"flag":null},{}]}"#,
        #"{"text":"a","text":"b","sev\u0065ral":[{}],"number":1e400}"#,
    ]

    static func check(_ input: Data, _ choice: UInt64) throws -> String {
        var decoder = TernJSONDecoder()
        var encoder = TernJSONEncoder()
        decoder.dateDecodingStrategy = .iso8601
        encoder.dateEncodingStrategy = .iso8601WithFractionalSeconds
        if choice.isMultiple(of: 2) { decoder.keyDecodingStrategy = .convertFromSnakeCase }
        if choice.isMultiple(of: 3) { encoder.outputFormatting = [.sortedKeys, .prettyPrinted] }
        let record: Record
        do {
            record = try decoder.decode(Record.self, from: input)
        } catch {
            try require(error is DecodingError, "\(error)")
            return "rejected"
        }
        // A date outside of the years 1 to 9999 cannot be written.
        guard let text = try? encoder.encode(record) else { return "accepted" }
        decoder.keyDecodingStrategy = .useDefaultKeys
        let again = try encoder.encode(decoder.decode(Record.self, from: text))
        let values = try [text, again].map { try decoder.decode(JSONValue.self, from: $0) }
        try require(values[0] == values[1], "\(String(decoding: again, as: UTF8.self)) and not \(record)")
        return "accepted \(text.count / 16)"
    }
}

/// Text in any charset.
private enum TextFuzzing {
    static let labels = [
        "utf-8", "utf-16", "utf-16le", "utf-32", "iso-8859-1", "windows-1251", "shift_jis", "euc-jp", "iso-2022-jp",
        "gb18030",
        "big5", "euc-kr", "koi8-r", "iso-2022-kr", "utf-7", "utf-8,gbk", "unicode", "none", "hz-gb-2312", "iso-2022-cn",
    ]
    static let seeds: [[UInt8]] = [
        Array("naïve 漢 +AGE-".utf8), [0xFE, 0xFF, 0x00, 0x61], [0x93, 0xFA, 0x96, 0x7B], [0xA4, 0xA4, 0xC6, 0xFC],
        [0x1B, 0x24, 0x42, 0x46, 0x7C, 0x4B, 0x5C, 0x1B, 0x28, 0x42], [0x81, 0x30, 0x81, 0x30, 0xD6, 0xD0],
        [0x1B, 0x24, 0x29, 0x41, 0x0E, 0x56, 0x50, 0x0F], [0xE9, 0x80],
    ]

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let label = labels[Int(choice % UInt64(labels.count))]
        do throws(TextDecoding.Problem) {
            let text = try TextDecoding.text(from: input, label: label)
            precondition(text.utf8.count <= 16 * input.count + 16, "\(text.utf8.count) bytes of \(input.count)")
            return "\(label) accepted \(text.isEmpty)"
        } catch {
            guard case .invalidBytes = error else { throw Failure("\(error)") }
            return "\(label) rejected"
        }
    }
}

/// A property list in XML or binary form.
private enum PropertyListFuzzing {
    private struct Value: Codable {
        var name: String?
        var numbers: [Double]?
        var data: Data?
        var date: Date?
        var children: [Value]?
        var members: [String: Value]?
    }

    static let tokens = [
        "<dict>", "</dict>", "<array>", "</array>", "<key>", "</key>", "<string>", "</string>", "<true/>", "<data>",
        "<date>",
        "<![CDATA[", "]]>", "<!--", "-->", "&amp;", "&#65;", "<!DOCTYPE plist>", "bplist00",
    ]

    static func seeds() throws -> [[UInt8]] {
        let leaf = Value(
            name: "é&", numbers: [1, -2.5, 1e300], data: Data([1, 2, 3]), date: Date(timeIntervalSince1970: 1))
        let value = Value(name: "a", children: [leaf, leaf], members: ["x": leaf, "ü": Value(name: "")])
        return try [PropertyListDecoder.PropertyListFormat.xml, .binary].map { format in
            let encoder = PropertyListEncoder()
            encoder.outputFormat = format
            return Array(try encoder.encode(value))
        }
    }

    static func check(_ input: Data) throws -> String {
        let list: Data
        do { list = try PropertyListCheck.checked(input) } catch { return "refused \("\(error)".prefix(30))" }
        do {
            let value = try PropertyListDecoder().decode(Value.self, from: list)
            return "accepted \(value.children?.count ?? -1) \(value.members?.count ?? -1)"
        } catch {
            return "rejected"
        }
    }
}

/// A compressed body, whole and in pieces.
private enum CodingFuzzing {
    private static let codings = [
        ["gzip"], ["deflate"], ["br"], ["zstd"], ["deflate", "gzip"], ["gzip", "deflate", "gzip"], ["br", "gzip"],
        ["zstd", "deflate"],
    ]

    static func seeds() throws -> [[UInt8]] {
        let text = "hello, compressed world, hello, compressed world"
        let zlib = "eJzLSM3JyddRSM7PLShKLS5OTVEozy/KSQEAaLII3g=="
        let others = [
            zlib, "H4sIAAAAAAACA8tIzcnJ11FIzs8tKEotLk5NUSjPL8pJAQAInjQ1FwAAAA==", "obAAwC8JQlaWg2wCTJZwUUdy+kHvAA==",
            "KLUv/SQXuQAAaGVsbG8sIGNvbXByZXNzZWQgd29ybGQANxEW",
            "H4sIAAAAAAACA6uYc9rj7MmT1wM9zp3X1fDS1fPzDdQ4r3/Kk5EhYxPHPQDttoAkHwAAAA==",
        ].compactMap { Data(base64Encoded: $0) }
        return others.map(Array.init) + [Array(text.utf8)]
    }

    static func check(_ input: [UInt8], _ choice: UInt64) throws -> String {
        let codings = codings[Int(choice % UInt64(codings.count))]
        let whole = decoded(codings, [Data(input)])
        let pieces = decoded(codings, input.map { Data([$0]) })
        try require(
            whole.isComplete == pieces.isComplete, "whole: \(whole.isComplete), in pieces: \(pieces.isComplete)")
        if whole.isComplete { try require(whole.body == pieces.body, "the bodies differ") }
        try require(whole.body.count <= 1 << 16, "\(whole.body.count) bytes")
        return "\(codings) \(whole.isComplete ? "accepted" : "rejected") \(whole.body.isEmpty)"
    }

    private static func decoded(_ codings: [String], _ chunks: [Data]) -> (body: Data, isComplete: Bool) {
        let decoder = ContentDecoder(codings, host: "fuzz.test", limit: 1 << 16)
        var body = Data()
        for chunk in chunks {
            decoder.add([chunk])
            while case let chunks = decoder.next(), !chunks.isEmpty { for chunk in chunks { body += chunk } }
        }
        return (body, decoder.failureOfEnd == nil)
    }
}
