import Foundation
import Testing

@testable import TernJSON

@Suite("JSON: keys")
struct DecodingKeyTests {
    private let decoder = TernJSONDecoder()

    struct Triple: Codable, Equatable {
        var a: Int
        var b: Int?
        var c: Int
    }

    struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// The members of an object in the order of `allKeys`.
    struct Members: Decodable, Equatable {
        var names: [String] = []
        var values: [Int] = []
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: AnyKey.self)
            for key in container.allKeys {
                names.append(key.stringValue)
                values.append(try container.decode(Int.self, forKey: key))
            }
        }
    }

    // MARK: Keys that occur twice

    @Test("the last value counts in every order of the text and of the type")
    func duplicates() throws {
        var generator = Generator(state: 6)
        for _ in 0..<2_000 {
            var last: [String: Int] = [:]
            var members: [String] = []
            for number in 0..<Int.random(in: 3...12, using: &generator) {
                let key = ["a", "b", "c", "\\u0061", "dd", "e"].randomElement(using: &generator) ?? "a"
                last[key == "\\u0061" ? "a" : key] = number
                members.append("\"\(key)\":\(number)")
            }
            guard let a = last["a"], let c = last["c"] else { continue }
            let text = "{\(members.joined(separator: ","))}"
            let expected = Triple(a: a, b: last["b"], c: c)
            #expect(try decoder.decode(Triple.self, from: text) == expected, "\(text)")
            #expect(try decoder.decode([Triple].self, from: "[\(text),\(text)]") == [expected, expected])
            #expect(try decoder.decode([String: Int].self, from: text) == last)
            #expect(try decoder.decode([String: Int?].self, from: text) == last.mapValues { $0 })
            #expect(try decoder.decode(JSONValue.self, from: text) == .object(last.mapValues { .integer(Int64($0)) }))
            let all = try decoder.decode(Members.self, from: text)
            #expect(Set(all.names).count == all.names.count)
            #expect(Dictionary(uniqueKeysWithValues: zip(all.names, all.values)) == last)
        }
    }

    @Test("the keys of an object are given once, in the order of the text")
    func order() throws {
        let members = try decoder.decode(Members.self, from: "{\"z\":1,\"a\":2,\"z\":3,\"m\":4,\"a\":5}")
        #expect(members.names == ["z", "a", "m"])
        #expect(members.values == [3, 5, 4])
        #expect(try decoder.decode(Members.self, from: "{\"z\":1,\"a\":2}").names == ["z", "a"])
    }

    @Test("the last value counts, also if it is null or of another kind")
    func lastIsNull() throws {
        #expect(try decoder.decode(Triple.self, from: "{\"a\":1,\"b\":2,\"c\":3,\"b\":null}").b == nil)
        #expect(throws: DecodingError.self) { try decoder.decode(Triple.self, from: "{\"a\":1,\"c\":3,\"a\":\"x\"}") }
        #expect(try decoder.decode(Triple.self, from: "{\"a\":\"x\",\"c\":3,\"a\":1}").a == 1)
        #expect(try decoder.decode([String: Int].self, from: "{\"a\":\"x\",\"c\":3,\"a\":1}") == ["a": 1, "c": 3])
        #expect(throws: DecodingError.self) { try decoder.decode([String: Int].self, from: "{\"a\":1,\"a\":\"x\"}") }
    }

    @Test("keys in nested objects do not count for those around them")
    func nestedDuplicates() throws {
        let text = "{\"a\":1,\"x\":{\"a\":2,\"a\":3},\"c\":4,\"y\":[{\"c\":5}]}"
        #expect(try decoder.decode(Triple.self, from: text) == Triple(a: 1, b: nil, c: 4))
    }

    @Test("the last value counts after the conversion of keys")
    func convertedDuplicates() throws {
        struct Value: Decodable { var someKey: Int }
        var decoder = decoder
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        #expect(try decoder.decode(Value.self, from: "{\"someKey\":1,\"some_key\":2}").someKey == 2)
        #expect(try decoder.decode(Value.self, from: "{\"some_key\":2,\"someKey\":1}").someKey == 1)
    }

    // MARK: Conversion

    static let snakeCases = [
        "", "_", "__", "a", "A", "one", "oneTwo", "one_two", "one_two_three", "_one_two", "one_two_", "__one_two__",
        "one__two",
        "ONE_TWO", "One_Two", "one_TWO", "one_2", "one_2two", "one_two2", "url_2_x3y", "é_ö", "straße_ß", "a_b", "_a",
        "a_", "one-two_x",
        "one_two-three", "日_本", "user_id", "userID", "user_ID", "_URL_of", "x_1st", "1_2", "e\u{301}_e\u{301}a", "ﬁ_ﬁx",
        "i_İ", "a b_c d",
    ]

    @Test("keys are converted from snake case as by Foundation", arguments: snakeCases)
    func snakeCase(key: String) throws {
        let foundation = JSONDecoder()
        foundation.keyDecodingStrategy = .convertFromSnakeCase
        var decoder = decoder
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let text = "{\"\(key)\":1}"
        let theirs = try foundation.decode(Members.self, from: Data(text.utf8))
        #expect(try decoder.decode(Members.self, from: text) == theirs)
    }

    struct Snake: Codable, Equatable {
        var firstName: String
        var userIDs: [String: Int]
        var innerValues: [DecodingShapeTests.Color: Inner]?
        var byNumber: [Int: Int]?
        struct Inner: Codable, Equatable { var deepValue: Int? }
    }

    @Test("keys of types are converted, those of dictionaries of strings are not")
    func snakeCaseTypes() {
        var compare = Comparison()
        compare.ours.keyDecodingStrategy = .convertFromSnakeCase
        compare.foundation.keyDecodingStrategy = .convertFromSnakeCase
        compare.same(Snake.self, "{\"first_name\":\"a\",\"userIDs\":{\"some_key\":1,\"otherKey\":2}}")
        compare.same(
            Snake.self,
            """
            {"first_name":"a","userIDs":{"a_b":1},"inner_values":{"red":{"deep_value":3},"green":{"deepValue":4}},\
            "by_number":{"1":2}}
            """)
        compare.same([String: [String: Snake.Inner]].self, "{\"a_b\":{\"c_d\":{\"deep_value\":1}}}")
        compare.same([String: [Snake.Inner]].self, "{\"a_b\":[{\"deep_value\":1}]}")
    }

    @Test("keys are converted by a function, which gets their path")
    func customConversion() {
        struct Upper: Codable, Equatable {
            var name: String
            var list: [Upper]

            enum CodingKeys: String, CodingKey {
                case name = "NAME"
                case list = "LIST"
            }
        }
        var compare = Comparison()
        let convert: @Sendable ([any CodingKey]) -> any CodingKey = { path in
            AnyKey(stringValue: (path.last?.stringValue ?? "").uppercased() + (path.count > 7 ? "x" : ""))
        }
        compare.ours.keyDecodingStrategy = .custom(convert)
        compare.foundation.keyDecodingStrategy = .custom(convert)
        compare.same(
            Upper.self, "{\"name\":\"a\",\"list\":[{\"Name\":\"b\",\"list\":[]},{\"list\":[],\"nAME\":\"c\"}]}")
        compare.sameError(Upper.self, "{\"name\":\"a\",\"list\":[{\"Name\":\"b\",\"list\":[{\"name\":1}]}]}")
        compare.sameError(Upper.self, "{\"name\":\"a\",\"list\":[{\"list\":[]}]}")
    }

    /// Decodes a value of unknown structure, and a member of the same object.
    struct ValueAndMember: Decodable {
        let rawValue: JSONValue
        let bigNumber: Int

        enum CodingKeys: CodingKey { case bigNumber }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            rawValue = try JSONValue(from: decoder)
            bigNumber = try container.decode(Int.self, forKey: .bigNumber)
        }
    }

    private func path<Value: Decodable>(
        _ type: Value.Type, _ text: String, keys: TernJSONDecoder.KeyDecodingStrategy
    ) -> [String] {
        var decoder = decoder
        decoder.keyDecodingStrategy = keys
        do {
            _ = try decoder.decode(type, from: text)
        } catch DecodingError.dataCorrupted(let context) {
            return context.codingPath.map(\.stringValue)
        } catch {
            return ["\(error)"]
        }
        return []
    }

    @Test("the names in a value of unknown structure are not converted, also not in the path of an error")
    func valuesOfUnknownStructure() {
        struct Holder: Decodable { let someValue: JSONValue }
        let text = "{\"some_value\":[{\"big_number\":1e400}]}"
        #expect(
            path(JSONValue.self, text, keys: .convertFromSnakeCase) == ["some_value", "Index 0", "big_number"])
        #expect(path(Holder.self, text, keys: .convertFromSnakeCase) == ["someValue", "Index 0", "big_number"])
        let convert: @Sendable ([any CodingKey]) -> any CodingKey = { path in
            #expect(path.map(\.stringValue) == ["some_value"])
            return AnyKey(stringValue: "someValue")
        }
        #expect(path(Holder.self, text, keys: .custom(convert)) == ["someValue", "Index 0", "big_number"])
        // Those of the same object are, where a type reads its members.
        #expect(path(ValueAndMember.self, "{\"big_number\":1.5}", keys: .convertFromSnakeCase) == ["bigNumber"])
    }

    // MARK: Large objects

    private func object(_ count: Int, key: (Int) -> String = { "key\($0)" }) -> String {
        "{" + (0..<count).map { "\"\(key($0))\":\($0)" }.joined(separator: ",") + "}"
    }

    @Test("large objects: every key is found, in any order", arguments: [1, 63, 64, 65, 255, 256, 257, 1_000, 5_000])
    func largeObjects(count: Int) throws {
        struct Reversed: Decodable {
            var sum = 0
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: AnyKey.self)
                for key in container.allKeys.reversed() { sum += try container.decode(Int.self, forKey: key) }
                if container.contains(AnyKey(stringValue: "none")) { sum = -1 }
                if try container.decodeIfPresent(Int.self, forKey: AnyKey(stringValue: "key")) != nil { sum = -1 }
            }
        }
        let text = object(count)
        #expect(try decoder.decode(Reversed.self, from: text).sum == count * (count - 1) / 2)
        #expect(try decoder.decode(Members.self, from: text).values == Array(0..<count))
    }

    @Test("an index is made after many comparisons, so that the work is in proportion to the size")
    func index() throws {
        // The type asks for the keys from the last to the first: each look-up would compare all others.
        struct Reversed: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: AnyKey.self)
                for key in container.allKeys.reversed() { _ = try container.decode(Int.self, forKey: key) }
            }
        }
        func seconds(_ count: Int) throws -> Double {
            // Keys of the same length, beginning and end have the same hash.
            let text = object(count) { "beginning-\(10_000_000 + $0)-the-end" }
            let clock = ContinuousClock()
            let times = try (0..<3).map { _ in
                try clock.measure { _ = try decoder.decode(Reversed.self, from: text) } / Duration.seconds(1)
            }
            return times.min() ?? 0
        }
        let (short, long) = (try seconds(4_000), try seconds(32_000))
        // Eight times as long if linear, 64 times if quadratic.
        #expect(long < short * 24, "\(short) s and \(long) s")
    }

    @Test("keys are compared by their bytes")
    func canonicalEquivalence() throws {
        struct Accent: Decodable {
            var value: Int?
            enum CodingKeys: String, CodingKey { case value = "\u{E9}" }
        }
        #expect(try decoder.decode(Accent.self, from: "{\"\u{E9}\":1}").value != nil)
        #expect(try decoder.decode(Accent.self, from: "{\"e\u{301}\":1}").value == nil)
    }

    @Test("keys of many lengths are told apart")
    func lengths() throws {
        for length in 0...40 {
            let key = String(repeating: "k", count: length)
            for other in [key + "k", String(key.dropLast()) + "j", "j" + key.dropFirst()] where other != key {
                let members = try decoder.decode(Members.self, from: "{\"\(key)\":1,\"\(other)\":2,\"\(key)\":3}")
                #expect(members.names == [key, other])
                #expect(members.values == [3, 2])
            }
        }
    }
}
