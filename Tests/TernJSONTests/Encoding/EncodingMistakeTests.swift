import Foundation
import Synchronization
import TernJSON
import Testing

/// Values that cannot be encoded.
@Suite("JSON encoding: mistakes", .timeLimit(.minutes(2)))
struct EncodingMistakeTests {
    private struct Failing: Error, CustomStringConvertible { var description: String { "failing" } }

    private struct Holder<Value: Encodable>: Encodable {
        var before = 1
        var value: Value
        var after = 2
    }

    private func throwing(_ container: Bool = true) -> Closure {
        Closure { encoder in
            if container {
                var container = encoder.container(keyedBy: ShortKey.self)
                try container.encode(1, forKey: .a)
            }
            throw Failing()
        }
    }

    private func refusing() -> Closure {
        Closure { encoder in
            throw EncodingError.invalidValue(
                1, EncodingError.Context(codingPath: encoder.codingPath, debugDescription: "refused"))
        }
    }

    @Test func errorsAreTheSameAsFoundations() {
        let encoders = Encoders()
        encoders.expectSameError(Double.nan)
        encoders.expectSameError(Float.infinity)
        encoders.expectSameError(Point(x: .nan, y: 0))
        encoders.expectSameError(Point(x: 0, y: -.infinity))
        encoders.expectSameError([Point(x: 0, y: 0), Point(x: 0, y: .nan)])
        encoders.expectSameError(Holder(value: Double.nan))
        encoders.expectSameError(Holder(value: Float.nan))
        encoders.expectSameError(Holder(value: Point(x: .nan, y: 0)))
        encoders.expectSameError(Holder(value: [Point(x: 0, y: 1), Point(x: .nan, y: 0)]))
        encoders.expectSameError(Holder(value: Holder(value: Double.infinity)))
        encoders.expectSameError(Holder(value: Holder(value: Holder(value: Float.nan))))
        encoders.expectSameError(Holder(value: Double?.some(.nan)))
        encoders.expectSameError([Holder(value: Point(x: .nan, y: 0))])
        encoders.expectSameError([Double?.some(.nan)])
        encoders.expectSameError(Date(timeIntervalSinceReferenceDate: .nan))
        encoders.expectSameError(Holder(value: Date(timeIntervalSinceReferenceDate: .nan)))
        encoders.expectSameError([Date(timeIntervalSinceReferenceDate: .infinity)])
        encoders.expectSameError(throwing())
        encoders.expectSameError(Holder(value: throwing()))
        encoders.expectSameError(Holder(value: throwing(false)))
        encoders.expectSameError([throwing()])
        encoders.expectSameError(["k": throwing()])
        encoders.expectSameError(Holder(value: refusing()))
        encoders.expectSameError(Holder(value: [Holder(value: refusing())]))
        encoders.expectSameError(["k": refusing()])
        encoders.expectSameError(Closure { _ in })
        encoders.expectSameError(
            Closure { encoder in
                var container = encoder.container(keyedBy: AnyKey.self)
                try container.encode(Double.nan, forKey: AnyKey(intValue: 3))
            })
        encoders.expectSameError(
            Closure { encoder in
                var container = encoder.unkeyedContainer()
                try container.encode(1)
                try container.encode(Double.nan)
            })
        encoders.expectSameError(
            Closure { encoder in
                var container = encoder.singleValueContainer()
                try container.encode(Double.nan)
            })
        encoders.expectSameError(
            Closure { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                try Point(x: .nan, y: 0).encode(to: container.superEncoder(forKey: .b))
            })
        encoders.expectSameError(Holder(value: Wrapped(percent: 1, point: Point(x: .nan, y: 1))))
        let snake = Encoders {
            $0.keyEncodingStrategy = .convertToSnakeCase
            $1.keyEncodingStrategy = .convertToSnakeCase
        }
        snake.expectSameError(
            Closure { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                try container.encode(Point(x: .nan, y: 0), forKey: .userName)
            })
    }

    /// Foundation's paths leave out what is given here in brackets.
    @Test func pathsAreComplete() {
        func expect(_ value: some Encodable, _ path: String, sourceLocation: SourceLocation = #_sourceLocation) {
            let error = failure { _ = try TernJSONEncoder().encode(value) }
            #expect(error == "invalidValue at " + path, sourceLocation: sourceLocation)
        }
        // The index of a number in an array of numbers.
        expect(Holder(value: [1, 2, Double.nan]), "value.[2]")
        expect([Float.nan], "[0]")
        // The key of a nested container.
        expect(Shape.circle(radius: .nan), "circle.radius")
        expect(
            Closure { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                var nested = container.nestedContainer(keyedBy: AnyKey.self, forKey: .userName)
                try nested.encode(1, forKey: "x")
                try container.encode(2, forKey: .a)
                try nested.encode(Point(x: .nan, y: 0), forKey: "y")
            }, "userName.y.x")
        // The key of a dictionary.
        expect(["k": Double.nan], "k")
        expect(["a\"b/\n": ["k": [Float.nan]]], "a\"b/\n.k.[0]")
        expect([5: Double.nan], "[5]")
        expect([Color.darkBlue: Point(x: .nan, y: 0)], "dark blue/navy.x")
        expect(["k": Decimal.nan], "k")
        expect(["k": JSONValue.array([1, ["x": .number(.nan)]])], "k.[1].x")
    }

    @Test func thePathOfAnEncoder() throws {
        var paths: [String] = []
        let probe = Closure { encoder in
            paths.append(path(encoder.codingPath))
            var container = encoder.container(keyedBy: ShortKey.self)
            paths.append(path(container.codingPath))
            paths.append(path(container.nestedUnkeyedContainer(forKey: .b).codingPath))
            let early = container.superEncoder(forKey: .d)
            paths.append(path(early.codingPath))
            try container.encode(1, forKey: .a)
            paths.append(path(early.codingPath))
            var list = container.nestedUnkeyedContainer(forKey: .c)
            try list.encode(0)
            paths.append(path(list.nestedContainer(keyedBy: AnyKey.self).codingPath))
        }
        _ = try TernJSONEncoder().encode(["k": [probe]])
        #expect(paths == ["k.[0]", "k.[0]", "k.[0].b", "k.[0].d", "k.[0].d", "k.[0].c.[1]"])
    }

    @Test func misuseIsAnError() {
        func expect(_ value: some Encodable, sourceLocation: SourceLocation = #_sourceLocation) {
            #expect(throws: EncodingError.self, sourceLocation: sourceLocation) {
                try TernJSONEncoder().encode(value)
            }
        }
        // Foundation stops the process for each of these.
        expect(
            Closure { encoder in
                _ = encoder.container(keyedBy: ShortKey.self)
                _ = encoder.unkeyedContainer()
            })
        expect(
            Closure { encoder in
                var container = encoder.unkeyedContainer()
                try container.encode(1)
                var object = encoder.container(keyedBy: ShortKey.self)
                try object.encode(1, forKey: .a)
            })
        expect(
            Closure { encoder in
                var container = encoder.singleValueContainer()
                try container.encode(1)
                try container.encode(2)
            })
        expect(
            Closure { encoder in
                var container = encoder.singleValueContainer()
                try container.encode("x")
                _ = encoder.container(keyedBy: ShortKey.self)
            })
        expect(
            Closure { encoder in
                var container = encoder.singleValueContainer()
                try container.encodeNil()
                _ = encoder.unkeyedContainer()
            })
        expect(
            Closure { encoder in
                var container = encoder.singleValueContainer()
                try container.encode([1])
                try container.encode("x")
            })
        expect(
            Closure { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                try container.encode(1, forKey: .a)
                var single = encoder.singleValueContainer()
                try single.encode(1)
            })
        // Also if a type catches the error.
        expect([
            Closure { encoder in
                _ = encoder.container(keyedBy: ShortKey.self)
                var list = encoder.unkeyedContainer()
                try? list.encode(1)
                _ = list.nestedContainer(keyedBy: ShortKey.self).codingPath
                _ = list.nestedUnkeyedContainer().count
                try? Point().encode(to: list.superEncoder())
            }
        ])
    }

    /// Foundation stops the process for the first two.
    @Test func misuseThatHasAResult() throws {
        func text(_ body: @escaping (any Encoder) throws -> Void) throws -> String {
            String(decoding: try TernJSONEncoder().encode(Closure(body)), as: UTF8.self)
        }
        #expect(
            try text { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                try container.encode(1, forKey: .a)
                var nested = container.nestedUnkeyedContainer(forKey: .a)
                try nested.encode(2)
            } == #"{"a":[2]}"#)
        #expect(
            try text { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                var list = container.nestedUnkeyedContainer(forKey: .a)
                try list.encode(1)
                var object = container.nestedContainer(keyedBy: ShortKey.self, forKey: .a)
                try object.encode(2, forKey: .b)
                try list.encode(3)
            } == #"{"a":{"b":2}}"#)
        #expect(
            try text { encoder in
                var container = encoder.container(keyedBy: ShortKey.self)
                _ = try? container.encode(throwing(), forKey: .a)
                try container.encode(2, forKey: .b)
            } == #"{"b":2}"#)
    }

    /// Values that fail at every point: before a byte of them is written, and after.
    private var failures: [(name: String, write: (inout any UnkeyedEncodingContainer) throws -> Void)] {
        let closures: [(String, Closure)] = [
            ("nothing", Closure { _ in throw Failing() }),
            (
                "empty object",
                Closure { encoder in
                    _ = encoder.container(keyedBy: ShortKey.self)
                    throw Failing()
                }
            ),
            ("object", throwing()),
            (
                "array",
                Closure { encoder in
                    var list = encoder.unkeyedContainer()
                    try list.encode(1)
                    throw Failing()
                }
            ),
            (
                "string",
                Closure { encoder in
                    var single = encoder.singleValueContainer()
                    try single.encode("x")
                    throw Failing()
                }
            ),
            (
                "deep",
                Closure { encoder in
                    var object = encoder.container(keyedBy: ShortKey.self)
                    var list = object.nestedUnkeyedContainer(forKey: .a)
                    try list.encode(Double.nan)
                }
            ),
        ]
        return [
            ("double", { try $0.encode(Double.nan) }), ("float", { try $0.encode(-Float.infinity) }),
            ("doubles", { try $0.encode([Double.nan]) }), ("later double", { try $0.encode([1, Double.nan]) }),
            ("dictionary", { try $0.encode(["k": Double.nan]) }),
            ("contents", { try $0.encode(contentsOf: [Double.nan]) }),
        ] + closures.map { name, value in (name, { try $0.encode(value) }) }
    }

    /// A type that goes on after an element threw an error encodes the others.
    @Test func elementsThatFailLeaveNothing() throws {
        for format: TernJSONEncoder.OutputFormatting in [
            [], .sortedKeys, .prettyPrinted, [.prettyPrinted, .sortedKeys],
        ] {
            var encoder = TernJSONEncoder()
            encoder.outputFormatting = format
            for failure in failures {
                // Each bit is an element: 1 for one that fails.
                for fails in 0..<16 {
                    func fill(_ list: inout any UnkeyedEncodingContainer) throws {
                        for place in 0..<4 {
                            if fails >> place & 1 == 0 {
                                try list.encode(place)
                            } else {
                                #expect(throws: (any Error).self) { try failure.write(&list) }
                            }
                        }
                    }
                    let expected = (0..<4).filter { fails >> $0 & 1 == 0 }
                    func check(_ value: some Encodable, like other: some Encodable) throws {
                        let text = String(decoding: try encoder.encode(value), as: UTF8.self)
                        #expect(text == String(decoding: try encoder.encode(other), as: UTF8.self), "\(failure.name)")
                    }
                    let array = Closure { encoder in
                        var list = encoder.unkeyedContainer()
                        try fill(&list)
                        #expect(list.count == expected.count)
                    }
                    try check(array, like: expected)
                    try check([array, array], like: [expected, expected])
                    let object = Closure { encoder in
                        var object = encoder.container(keyedBy: ShortKey.self)
                        var list = object.nestedUnkeyedContainer(forKey: .b)
                        try fill(&list)
                        try object.encode(1, forKey: .a)
                    }
                    let like = Closure { encoder in
                        var object = encoder.container(keyedBy: ShortKey.self)
                        try object.encode(expected, forKey: .b)
                        try object.encode(1, forKey: .a)
                    }
                    try check(object, like: like)
                }
            }
        }
    }

    @Test func anEscapedEncoderIsHarmless() throws {
        final class Store {
            var encoders: [any Encoder] = []
            var objects: [KeyedEncodingContainer<ShortKey>] = []
            var arrays: [any UnkeyedEncodingContainer] = []
            var singles: [any SingleValueEncodingContainer] = []
        }
        let store = Store()
        for round in 0..<50 {
            let value = Closure { encoder in
                store.encoders.append(encoder)
                var container = encoder.container(keyedBy: ShortKey.self)
                store.objects.append(container)
                var list = container.nestedUnkeyedContainer(forKey: .a)
                try list.encode(1)
                store.arrays.append(list)
                store.objects.append(list.nestedContainer(keyedBy: ShortKey.self))
                let other = container.superEncoder(forKey: .b)
                store.encoders.append(other)
                store.singles.append(other.singleValueContainer())
                try list.encode(2)
                store.arrays.append(list)
            }
            let text = try TernJSONEncoder().encode(round % 2 == 0 ? [value] : [value, value])
            let single = #"{"a":[1,{},2],"b":{}}"#
            #expect(String(decoding: text, as: UTF8.self) == (round % 2 == 0 ? "[\(single)]" : "[\(single),\(single)]"))
            // Others encode meanwhile.
            _ = try TernJSONEncoder().encode(Primitives())
            for index in store.objects.indices {
                #expect(throws: (any Error).self) { try store.objects[index].encode(1, forKey: .c) }
                _ = store.objects[index].codingPath
                _ = store.objects[index].nestedContainer(keyedBy: ShortKey.self, forKey: .c)
                _ = store.objects[index].superEncoder()
            }
            for index in store.arrays.indices {
                #expect(throws: (any Error).self) { try store.arrays[index].encode(1) }
                _ = store.arrays[index].count
                _ = store.arrays[index].nestedUnkeyedContainer()
            }
            for encoder in store.encoders {
                #expect(throws: (any Error).self) { try Point().encode(to: encoder) }
                _ = encoder.codingPath
                _ = encoder.unkeyedContainer()
            }
            for index in store.singles.indices {
                #expect(throws: (any Error).self) { try store.singles[index].encode(1) }
            }
            if round % 7 == 0 { (store.encoders, store.objects, store.arrays, store.singles) = ([], [], [], []) }
        }
    }

    @Test func aContainerThatOutlivesItsValueIsStillWritten() throws {
        var kept: KeyedEncodingContainer<ShortKey>?
        let first = Closure { encoder in
            kept = encoder.container(keyedBy: ShortKey.self)
            try kept?.encode(1, forKey: .a)
        }
        let second = Closure { encoder in
            try kept?.encode(2, forKey: .b)
            try "x".encode(to: encoder)
        }
        let text = try TernJSONEncoder().encode([first, second])
        #expect(String(decoding: text, as: UTF8.self) == #"[{"a":1,"b":2},"x"]"#)
    }

    // MARK: Depth

    private final class Node: Encodable {
        var next: Node?

        enum CodingKeys: CodingKey { case next }
    }

    private struct Direct: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(self)
        }
    }

    private struct Through: Encodable {
        func encode(to encoder: any Encoder) throws { try [self].encode(to: encoder) }
    }

    private struct Table: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(["k": [self]], forKey: .a)
        }
    }

    @Test func endlessValuesAreErrors() {
        let node = Node()
        node.next = node
        #expect(failure { _ = try TernJSONEncoder().encode(node) } == "invalidValue at ")
        #expect(failure { _ = try TernJSONEncoder().encode(Direct()) } == "invalidValue at ")
        #expect(failure { _ = try TernJSONEncoder().encode(Through()) } == "invalidValue at ")
        #expect(failure { _ = try TernJSONEncoder().encode(Table()) } == "invalidValue at ")
        node.next = nil
    }

    @Test func containersNest512Levels() throws {
        func nested(_ depth: Int) -> Closure {
            Closure { encoder in
                var containers = [encoder.unkeyedContainer()]
                for level in 1..<depth { containers.append(containers[level - 1].nestedUnkeyedContainer()) }
            }
        }
        #expect(try TernJSONEncoder().encode(nested(512)).count == 1_024)
        #expect(failure { _ = try TernJSONEncoder().encode(nested(513)) } == "invalidValue at ")
        var value = JSONValue.array([])
        for _ in 0..<511 { value = .array([value]) }
        #expect(try TernJSONEncoder().encode(value).count == 1_024)
        value = .array([value])
        #expect(failure { _ = try TernJSONEncoder().encode(value) } == "invalidValue at ")
    }

    @Test func anEndlessValueFitsOnASmallStack() {
        final class Result: Sendable { let errors = Mutex<[String?]>([]) }
        let result = Result()
        let thread = Thread {
            let node = Node()
            node.next = node
            let errors = [
                failure { _ = try TernJSONEncoder().encode(node) },
                failure { _ = try TernJSONEncoder().encode(Direct()) },
                failure { _ = try TernJSONEncoder().encode(Through()) },
                failure { _ = try TernJSONEncoder().encode(Table()) },
            ]
            result.errors.withLock { $0 = errors }
            node.next = nil
        }
        // The address sanitizer puts variables elsewhere, so that the encoder cannot see how much of the stack is used.
        let isSanitized = unsafe dlsym(nil, "__asan_init") != nil
        thread.stackSize = isSanitized ? 64 << 20 : 512 << 10
        thread.start()
        while !thread.isFinished { Thread.sleep(forTimeInterval: 0.01) }
        #expect(result.errors.withLock { $0 } == Array(repeating: "invalidValue at ", count: 4))
    }
}
