import Foundation
import TernJSON
import Testing

/// Types that keep encoders and containers, catch errors, and write late.
@Suite("JSON encoding: containers that live on, and caught errors", .timeLimit(.minutes(1)))
struct EncodingEscapeTests {
    private enum Key: String, CodingKey { case a, b, c }

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ text: String) { stringValue = text }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private struct Closure: Encodable {
        let body: (any Encoder) throws -> Void

        func encode(to encoder: any Encoder) throws { try body(encoder) }
    }

    private struct Failure: Error {}

    private func text(_ body: @escaping (any Encoder) throws -> Void) throws -> String {
        var encoder = TernJSONEncoder()
        let plain = String(decoding: try encoder.encode(Closure(body: body)), as: UTF8.self)
        encoder.outputFormatting = .sortedKeys
        // The same value, arranged anew.
        let sorted = try encoder.encode(Closure(body: body))
        let values = try [Data(plain.utf8), sorted].map { try TernJSONDecoder().decode(JSONValue.self, from: $0) }
        #expect(values[0] == values[1])
        return plain
    }

    @Test func aContainerThatIsMadeAfterTheEndThrows() throws {
        var saved: (any Encoder)?
        var keyed: KeyedEncodingContainer<Key>?
        _ = try text { encoder in
            saved = encoder
            keyed = encoder.container(keyedBy: Key.self)
        }
        var late = try #require(saved).container(keyedBy: Key.self)
        var nested = keyed?.nestedContainer(keyedBy: Key.self, forKey: .b)
        (saved, keyed) = (nil, nil)
        // Others use the memory that was kept.
        for _ in 0..<20 { _ = try text { try ["a": 1].encode(to: $0) } }
        #expect(throws: EncodingError.self) { try late.encode(1, forKey: .a) }
        #expect(throws: EncodingError.self) { try nested?.encode(1, forKey: .a) }
    }

    @Test func aContainerOfALateTextOutlivesTheEncoding() throws {
        var kept: [KeyedEncodingContainer<Key>] = []
        let result = try text { encoder in
            var container = encoder.container(keyedBy: Key.self)
            for _ in 0..<12 {
                let late = container.superEncoder(forKey: .a)
                try container.encode(1, forKey: .b)
                kept.append(late.container(keyedBy: Key.self))
            }
        }
        #expect(result.contains("\"b\":1"))
        for index in kept.indices {
            #expect(throws: EncodingError.self) { try kept[index].encode(2, forKey: .a) }
            #expect(kept[index].codingPath.count <= 1)
        }
    }

    @Test func aValueThatThrowsLeavesNothingBehind() throws {
        let failing: [(String, (inout any SingleValueEncodingContainer) throws -> Void)] = [
            ("array", { try $0.encode([1.0, .nan]) }), ("dictionary", { try $0.encode(["a": Double.nan]) }),
            ("value", { try $0.encode(JSONValue.array([1, .object(["a": .number(.nan)])])) }),
            (
                "type",
                { container in
                    try container.encode(
                        Closure { encoder in
                            var inner = encoder.container(keyedBy: Key.self)
                            _ = inner.nestedUnkeyedContainer(forKey: .a)
                            throw Failure()
                        })
                }
            ),
        ]
        for (name, fail) in failing {
            let fallback = Closure { encoder in
                var container = encoder.singleValueContainer()
                do { try fail(&container) } catch { try container.encodeNil() }
            }
            let nothing = Closure { encoder in
                var container = encoder.singleValueContainer()
                // The test is that the error is caught.
                try? fail(&container)
            }
            let result = try text { encoder in
                var list = encoder.unkeyedContainer()
                try list.encode(fallback)
                try list.encode(nothing)
                try list.encode(2)
            }
            #expect(result == "[null,{},2]", "\(name)")
            let object = try text { encoder in
                var container = encoder.container(keyedBy: Key.self)
                try container.encode(fallback, forKey: .b)
                try container.encode(1, forKey: .a)
            }
            #expect(object == "{\"b\":null,\"a\":1}", "\(name)")
        }
    }

    @Test func aMemberIsRemovedOnce() throws {
        let result = try text { encoder in
            var container = encoder.container(keyedBy: Key.self)
            let copy = container
            // The tests are that the errors are caught.
            try? container.encode(
                Closure { _ in
                    var outer = copy
                    try outer.encode(Closure { _ in throw Failure() }, forKey: .b)
                }, forKey: .a)
            try container.encode(1, forKey: .c)
        }
        #expect(try TernJSONDecoder().decode(JSONValue.self, from: result)["c"] == 1)
    }

    /// In time proportional to the number of groups: the square would take more than the time limit.
    @Test func manyGroupsAndManyLateValuesTakeLinearTime() throws {
        let count = 60_000
        let groups = try text { encoder in
            var container = encoder.container(keyedBy: AnyKey.self)
            for number in 0..<count {
                var group = container.nestedContainer(keyedBy: Key.self, forKey: AnyKey("k\(number)"))
                try group.encode(number, forKey: .a)
            }
        }
        #expect(try TernJSONDecoder().decode([String: [String: Int]].self, from: groups).count == count)
        let late = try text { encoder in
            var list = encoder.unkeyedContainer()
            let encoders = (0..<count).map { _ in list.superEncoder() }
            for (number, encoder) in encoders.enumerated() { try number.encode(to: encoder) }
        }
        #expect(try TernJSONDecoder().decode([Int].self, from: late) == Array(0..<count))
    }

    @Test func aPathIsThatOfALateValue() throws {
        var paths: [[String]] = []
        _ = try text { encoder in
            var container = encoder.container(keyedBy: Key.self)
            var list = container.nestedUnkeyedContainer(forKey: .a)
            try list.encode(0)
            let late = list.superEncoder()
            try container.encode(1, forKey: .b)
            var object = late.container(keyedBy: Key.self)
            try object.encode(2, forKey: .c)
            let inner = object.superEncoder(forKey: .a)
            try object.encode(3, forKey: .b)
            var value = inner.singleValueContainer()
            try value.encode(4)
            paths.append((late.codingPath + object.codingPath + inner.codingPath).map(\.stringValue))
        }
        #expect(paths.first == ["a", "Index 1", "a", "Index 1", "a", "Index 1", "a"])
    }
}
