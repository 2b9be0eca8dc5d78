import Foundation
import TernJSON
import Testing

/// Containers that are used in another order than that of the text.
@Suite("JSON encoding: order of containers, beside Foundation's encoder")
struct EncodingOrderTests {
    private func expectSameText(
        sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping (any Encoder) throws -> Void
    ) throws {
        for formatting in [TernJSONEncoder.OutputFormatting.sortedKeys, [.sortedKeys, .prettyPrinted]] {
            let encoders = Encoders(formatting)
            try encoders.expectSameText(Closure(body), sourceLocation: sourceLocation)
            try encoders.expectSameText([Closure(body), Closure(body)], sourceLocation: sourceLocation)
            try encoders.expectSameText(["k": Closure(body)], sourceLocation: sourceLocation)
        }
    }

    @Test func aNestedContainerIsWrittenAfterItsParent() throws {
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            var nested = container.nestedContainer(keyedBy: AnyKey.self, forKey: .a)
            try nested.encode(1, forKey: "one")
            try container.encode("parent", forKey: .b)
            try nested.encode([2, 3], forKey: "two")
            try container.encode(Point(), forKey: .c)
            try nested.encode(Point(), forKey: "three")
        }
        try expectSameText { encoder in
            var container = encoder.unkeyedContainer()
            var nested = container.nestedUnkeyedContainer()
            try container.encode(1)
            try nested.encode("late")
            try nested.encode(1.5)
            try container.encode(2)
            try nested.encodeNil()
        }
    }

    @Test func twoNestedContainersAlternate() throws {
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            var first = container.nestedUnkeyedContainer(forKey: .a)
            var second = container.nestedContainer(keyedBy: AnyKey.self, forKey: .b)
            for index in 0..<20 {
                try first.encode(index)
                try second.encode(index, forKey: AnyKey(stringValue: "k\(index)"))
            }
            #expect(first.count == 20)
        }
        try expectSameText { encoder in
            var container = encoder.unkeyedContainer()
            var all = (0..<5).map { _ in container.nestedContainer(keyedBy: AnyKey.self) }
            for round in 0..<3 {
                for index in all.indices.reversed() { try all[index].encode(round, forKey: AnyKey(intValue: round)) }
            }
            #expect(container.count == 5)
        }
    }

    @Test func lateContainersHaveLateContainers() throws {
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            var middle = container.nestedContainer(keyedBy: ShortKey.self, forKey: .a)
            var inner = middle.nestedUnkeyedContainer(forKey: .a)
            try inner.encode(0)
            try container.encode(1, forKey: .b)
            try inner.encode(1)
            try middle.encode(2, forKey: .b)
            try inner.encode(2)
            var late = middle.nestedContainer(keyedBy: ShortKey.self, forKey: .c)
            try middle.encode(3, forKey: .d)
            try late.encode(4, forKey: .a)
            try inner.encode(3)
            try container.encode(Point(), forKey: .c)
            try late.encode(Point(), forKey: .b)
        }
    }

    @Test func superEncodersInAnyOrder() throws {
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(1, forKey: .a)
            try Point().encode(to: container.superEncoder())
            try Point().encode(to: container.superEncoder(forKey: .b))
            try container.encode(2, forKey: .c)
        }
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            let early = container.superEncoder()
            let other = container.superEncoder(forKey: .b)
            try container.encode(1, forKey: .a)
            try [1, 2].encode(to: other)
            try Point().encode(to: early)
        }
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            let early = container.superEncoder(forKey: .d)
            try container.encode(1, forKey: .a)
            var single = early.singleValueContainer()
            try single.encode("late")
        }
        // An encoder that is not used is an empty object.
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            _ = container.superEncoder()
            try container.encode(1, forKey: .a)
        }
        try expectSameText { encoder in
            var container = encoder.unkeyedContainer()
            try Point().encode(to: container.superEncoder())
            try container.encode(1)
            _ = container.superEncoder()
        }
    }

    @Test func containersOfOneKindAreOne() throws {
        try expectSameText { encoder in
            var first = encoder.container(keyedBy: ShortKey.self)
            try first.encode(1, forKey: .a)
            var second = encoder.container(keyedBy: AnyKey.self)
            try second.encode(2, forKey: "x")
            try first.encode(3, forKey: .b)
            try second.encode(4, forKey: "b")
        }
        try expectSameText { encoder in
            var first = encoder.unkeyedContainer()
            try first.encode(1)
            var second = encoder.unkeyedContainer()
            try second.encode(2)
            try first.encode(3)
            #expect(second.count == 3)
        }
        try expectSameText { encoder in
            var first = encoder.container(keyedBy: ShortKey.self)
            var nested = first.nestedContainer(keyedBy: ShortKey.self, forKey: .a)
            try nested.encode(1, forKey: .a)
            var second = encoder.container(keyedBy: ShortKey.self)
            try second.encode(2, forKey: .b)
            try nested.encode(3, forKey: .c)
        }
    }

    @Test func nestedContainersOfOneKeyAreOne() throws {
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            for index in 0..<30 {
                var nested = container.nestedContainer(keyedBy: AnyKey.self, forKey: index % 2 == 0 ? .a : .b)
                try nested.encode(index, forKey: AnyKey(intValue: index))
            }
        }
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: AnyKey.self)
            for index in 0..<30 {
                var nested = container.nestedUnkeyedContainer(forKey: AnyKey(intValue: index % 3))
                try nested.encode(Point(x: Double(index), y: 0))
            }
        }
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(["x": 1], forKey: .a)
            var nested = container.nestedContainer(keyedBy: AnyKey.self, forKey: .a)
            try nested.encode(2, forKey: "y")
        }
    }

    @Test func aValueAddsToTheOnesBefore() throws {
        try expectSameText { encoder in
            try Point().encode(to: encoder)
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(1, forKey: .a)
        }
        try expectSameText { encoder in
            try ["x": 1, "y": 2].encode(to: encoder)
            try ["z": 3].encode(to: encoder)
        }
        try expectSameText { encoder in
            var single = encoder.singleValueContainer()
            try single.encode(Point())
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(1, forKey: .a)
        }
        try expectSameText { encoder in
            var container = encoder.unkeyedContainer()
            try container.encode(1)
            try [2, 3].encode(to: encoder)
        }
    }

    @Test func theLastValueOfAKeyCounts() throws {
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            for round in 0..<3 {
                try container.encode(round, forKey: .a)
                try container.encode([round], forKey: .b)
                try container.encode(Point(x: Double(round), y: 0), forKey: .c)
            }
        }
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: AnyKey.self)
            for round in 0..<300 { try container.encode(round, forKey: AnyKey(intValue: round % 100)) }
        }
        let value = Closure { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(1, forKey: .a)
            try container.encode(2, forKey: .b)
            try container.encode("last", forKey: .a)
        }
        #expect(String(decoding: try TernJSONEncoder().encode(value), as: UTF8.self) == #"{"a":"last","b":2}"#)
    }

    @Test func aValueThatThrowsLeavesNothing() throws {
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(1, forKey: .a)
            #expect(throws: EncodingError.self) { try container.encode(Double.nan, forKey: .b) }
            #expect(throws: EncodingError.self) { try container.encode([Point(x: 0, y: .nan)], forKey: .c) }
            try container.encode(2, forKey: .d)
        }
        try expectSameText { encoder in
            var container = encoder.unkeyedContainer()
            #expect(throws: EncodingError.self) { try container.encode([[1, .nan]]) }
            try container.encode(2)
            #expect(throws: EncodingError.self) { try container.encode(Float.infinity) }
            #expect(container.count == 1)
        }
    }

    @Test func anEmptyValueIsAnObject() throws {
        try expectSameText { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(Closure { _ in }, forKey: .a)
            try container.encode([Closure { _ in }, Closure { _ in }], forKey: .b)
            var single = container.superEncoder(forKey: .c).singleValueContainer()
            try single.encode(Closure { _ in })
        }
    }

    @Test func aChildMayWriteToItsParent() throws {
        let value = Closure { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            var list = container.nestedUnkeyedContainer(forKey: .b)
            var parent = container
            try container.encode(
                Closure { inner in
                    try parent.encode(1, forKey: .c)
                    try list.encode(5)
                    var late = inner.container(keyedBy: ShortKey.self)
                    try late.encode(2, forKey: .d)
                    try parent.encode(3, forKey: .a)
                }, forKey: .userName)
        }
        var encoder = TernJSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = String(decoding: try encoder.encode(value), as: UTF8.self)
        #expect(text == #"{"a":3,"b":[5],"c":1,"userName":{"d":2}}"#)
    }

    @Test func manyLateValuesTakeLinearTime() throws {
        // 40,000 late values of 200 containers, each of which is asked for again and again.
        let value = Closure { encoder in
            var container = encoder.container(keyedBy: AnyKey.self)
            for index in 0..<40_000 {
                var nested = container.nestedUnkeyedContainer(forKey: AnyKey(intValue: index % 200))
                try nested.encode(index)
            }
        }
        let text = try TernJSONEncoder().encode(value)
        let back = try JSONDecoder().decode([String: [Int]].self, from: text)
        #expect(back.count == 200)
        #expect(back["7"]?.count == 200)
        #expect(back["7"]?.last == 39_807)
    }

    @Test func randomOrders() throws {
        for seed in 0..<2_000 {
            let body: (any Encoder) throws -> Void = { encoder in
                var generator = Generator(state: UInt64(seed))
                var objects = [encoder.container(keyedBy: AnyKey.self)]
                var arrays: [any UnkeyedEncodingContainer] = []
                var names = 0
                for _ in 0..<Int.random(in: 1...25, using: &generator) {
                    names += 1
                    let key = AnyKey(stringValue: "k\(names)")
                    let object = Int.random(in: 0..<objects.count, using: &generator)
                    let array = arrays.isEmpty ? nil : Int.random(in: 0..<arrays.count, using: &generator)
                    switch Int.random(in: 0..<8, using: &generator) {
                    case 0: objects.append(objects[object].nestedContainer(keyedBy: AnyKey.self, forKey: key))
                    case 1: arrays.append(objects[object].nestedUnkeyedContainer(forKey: key))
                    case 2: if let array { objects.append(arrays[array].nestedContainer(keyedBy: AnyKey.self)) }
                    case 3: if let array { arrays.append(arrays[array].nestedUnkeyedContainer()) }
                    case 4: try objects[object].encode(Point(), forKey: key)
                    case 5: if let array { try arrays[array].encode([1, 2]) }
                    case 6: if let array { try arrays[array].encode("text") }
                    default: try objects[object].encode(names, forKey: key)
                    }
                    if let array { #expect(arrays[array].count >= 0) }
                }
            }
            try Encoders().expectSameText(Closure(body))
        }
    }
}
