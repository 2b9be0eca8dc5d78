import Foundation
import Testing

@testable import TernJSON

/// Texts with lines and sorted names, beside a reference that lays out the compact text, and Foundation's encoder.
@Suite("JSON encoding: layouts")
struct EncodingLayoutTests {
    private func expectReference(
        _ value: some Encodable, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        // Few expectations: each takes a millisecond in a debug build.
        let wrong = try allFormattings.filter { formatting in
            let compact = try encodedText(value, formatting.intersection(.withoutEscapingSlashes))
            return try encodedText(value, formatting) != ReferenceLayout.text(compact.utf8, formatting)
        }
        #expect(wrong.map(\.rawValue) == [], sourceLocation: sourceLocation)
        let slashes = try encodedText(value, []).replacingOccurrences(of: "\\/", with: "/")
        #expect(try encodedText(value, .withoutEscapingSlashes) == slashes, sourceLocation: sourceLocation)
    }

    private func expectFoundation(
        _ value: some Encodable, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for formatting in allFormattings where formatting.contains(.sortedKeys) {
            try Encoders(formatting).expectSameText(value, sourceLocation: sourceLocation)
        }
    }

    @Test func randomCallsInAllLayouts() throws {
        for seed in 0..<500 {
            try expectReference(RandomActions(seed: UInt64(seed)))
            try expectFoundation(RandomActions(seed: UInt64(seed), hasMistakes: false))
        }
    }

    @Test func emptyValues() throws {
        try expectReference([Empty]())
        try expectReference([String: Int]())
        try expectReference([[Empty()], []])
        try expectReference(["b": [[Int]](), "a": [[]], "c": [[], [1]]])
        try expectReference(["b": Empty(), "a": Empty()])
        let value: JSONValue = ["b": [], "a": [:], "c": [[:], []]]
        try expectReference(value)
        try expectReference(
            Closure { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                _ = container.superEncoder(forKey: .b)
                _ = container.nestedUnkeyedContainer(forKey: .a)
                // Removed, so that the object within is empty again.
                var nested = container.nestedContainer(keyedBy: ShortKey.self, forKey: .c)
                try? nested.encode(Double.nan, forKey: .a)
                var list = container.nestedUnkeyedContainer(forKey: .d)
                try? list.encode(Double.nan)
            })
        #expect(try encodedText(Empty(), .prettyPrinted) == "{\n\n}")
        #expect(try encodedText([Empty()], .prettyPrinted) == "[\n  {\n\n  }\n]")
    }

    @Test func valuesWithoutLines() throws {
        for value in [JSONValue.null, true, 1, .string("a\n{}[],:"), .number(1.5)] { try expectReference(value) }
    }

    // MARK: Sorted names

    private func object(_ names: [String]) -> Closure {
        Closure { encoder in
            var container = encoder.container(keyedBy: AnyKey.self)
            for (index, name) in names.enumerated() { try container.encode(index, forKey: AnyKey(stringValue: name)) }
        }
    }

    @Test func namesThatDifferLate() throws {
        let names = [
            "", "a", "b", "ab", "ba", "abcdefg", "abcdefgh", "abcdefgi", "abcdefghi", "abcdefghij", "abcdefghii", "B",
            "abcdefgh\"", "abcdefgh ", "abcdefgh!", "abcdefgh#", "abcdefgh/", "abcdefgh\\", "abcdefgh\n", "a\n", "a\t",
            "a\u{0}", "a\u{0}b", "\u{0}", "\u{1F}", "\u{7F}", "é", "e\u{301}", "ea", "漢字", "漢", "🙂", "🙃",
            "\\", "/", "\"",
            "abcdefgé", "abcdefg漢", "abcdefg/", "abcdefg\"x", "abcdefg\\x", " ", "!",
        ]
        var generator = Generator(state: 1)
        for _ in 0..<300 {
            let count = Int.random(in: 0...names.count, using: &generator)
            let some = Array(names.shuffled(using: &generator).prefix(count))
            try expectReference(object(some))
            // Foundation compares names by another rule if they have decomposed characters.
            try expectFoundation(object(some.filter { $0 != "e\u{301}" }))
        }
    }

    @Test func theSameNamesInOtherOrders() throws {
        var generator = Generator(state: 2)
        for count in [1, 2, 3, 7, 31, 32, 33, 40, 100, 257] {
            let names = (0..<count).map { "name-\($0 * 7_919 % 1_000)-\($0)" }
            try expectReference((0..<20).map { _ in object(names.shuffled(using: &generator)) })
            try expectReference([object(names), object(names), object(names.reversed()), object(names.sorted())])
        }
    }

    @Test func namesOfATypeAreSortedWithOthers() throws {
        try expectReference(
            Closure { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                for key in [ShortKey.userName, .slash, .d, .dash, .super, .a] { try container.encode(1, forKey: key) }
                var other = encoder.container(keyedBy: AnyKey.self)
                for name in ["a", "b", "userNamf", "super", "a/b", "0"] {
                    try other.encode(2, forKey: AnyKey(stringValue: name))
                }
            })
    }

    @Test func objectsThatAreSortedWithin() throws {
        // Objects in order around ones that are not, and the reverse.
        let inner = object(["b", "a"])
        let outer = Closure { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode([inner, object(["a", "b"]), inner], forKey: .a)
            try container.encode(["x": inner], forKey: .b)
            try container.encode(inner, forKey: .c)
        }
        try expectReference(outer)
        try expectFoundation([outer, outer])
        try expectReference(
            Closure { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                try container.encode(outer, forKey: .c)
                try container.encode(object(["a"]), forKey: .b)
                try container.encode([outer], forKey: .a)
            })
    }

    @Test func manyLevelsTakeLinearTime() throws {
        func nested(_ level: Int) -> Closure {
            Closure { encoder in
                var objects = [encoder.container(keyedBy: ShortKey.self)]
                for place in 1..<level {
                    try objects[place - 1].encode("text", forKey: .b)
                    objects.append(objects[place - 1].nestedContainer(keyedBy: ShortKey.self, forKey: .a))
                }
            }
        }
        try expectReference(nested(500))
        try expectFoundation(nested(100))
        let many = (0..<200_000).map { ["k\($0 * 7_919 % 200_000)": $0] }
        #expect(try encodedText(many.reduce(into: [:]) { $0.merge($1) { $1 } }, .sortedKeys).count > 2_000_000)
    }

    @Test func membersThatThrowAreLeftOut() throws {
        let value = Closure { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(object(["z", "y"]), forKey: .c)
            // A value that throws has sorted and other objects, and members before the one that throws.
            try? container.encode([object(["b", "a"]), Closure { _ in throw CancellationError() }], forKey: .b)
            try? container.encode(
                Closure { inner in
                    var nested = inner.container(keyedBy: ShortKey.self)
                    try nested.encode(object(["b", "a"]), forKey: .d)
                    var deep = nested.nestedContainer(keyedBy: ShortKey.self, forKey: .a)
                    try deep.encode(1, forKey: .c)
                    try deep.encode(1, forKey: .b)
                    throw CancellationError()
                }, forKey: .a)
            var single = container.superEncoder(forKey: .dash).singleValueContainer()
            try? single.encode(
                Closure { inner in
                    var nested = inner.container(keyedBy: ShortKey.self)
                    try nested.encode(object(["b", "a"]), forKey: .d)
                    try nested.encode(1, forKey: .a)
                    throw CancellationError()
                })
            try single.encode(object(["d", "c"]))
            try container.encode(object(["x", "w"]), forKey: .a)
        }
        try expectReference(value)
        #expect(
            try encodedText(value, .sortedKeys)
                == #"{"a":{"w":1,"x":0},"a-b":{"c":1,"d":0},"c":{"y":1,"z":0}}"#)
    }

    @Test func noBytesOfATextAreKept() throws {
        for formatting in allFormattings {
            var options = TernJSONEncoder()
            options.outputFormatting = formatting
            let storage = EncodingStorage()
            for _ in 0..<2 {
                storage.begin(options)
                let value = ["secret-b": ["secret": "secret"], "secret-a": [:], "a": [:]]
                try storage.writer.writeTopLevel([value, value])
                try storage.writer.finish()
                let count = storage.writer.count
                #expect(count > 0)
                let context = unsafe storage.state.pointee.context
                let hasNotes = unsafe context.pointee.notes.count > 0
                if storage.writer.needsSorting {
                    #expect(try unsafe context.pointee.sorter.sort(storage.writer).count == count)
                }
                #expect(storage.end())
                let bytes = unsafe UnsafeBufferPointer(start: storage.state.pointee.bytes, count: count)
                #expect(unsafe bytes.allSatisfy { $0 == 0 })
                guard hasNotes else { continue }
                let (notes, result) = unsafe (context.pointee.notes.elements, context.pointee.sorter.result.elements)
                #expect(unsafe UnsafeBufferPointer(start: notes, count: 4).allSatisfy { $0.key == 0 && $0.end == 0 })
                #expect(unsafe UnsafeBufferPointer(start: result, count: count).allSatisfy { $0 == 0 })
            }
        }
    }
}
