import Foundation
import Synchronization
import Testing

@testable import TernJSON

/// Containers that outlive the decoding they come from. The address sanitizer sees uses of freed memory.
@Suite("JSON: containers that outlive the decoding", .serialized)
struct DecodingLifetimeTests {
    private let decoder = TernJSONDecoder()

    enum Keys: String, CodingKey {
        case a
        case b
        case list
        case missing
    }

    /// Keeps what it is decoded from.
    struct Keeper: Decodable {
        let decoder: any Decoder
        var keyed: KeyedDecodingContainer<Keys>?
        var unkeyed: (any UnkeyedDecodingContainer)?
        var single: (any SingleValueDecodingContainer)?
        var parent: (any Decoder)?

        init(from decoder: any Decoder) throws {
            self.decoder = decoder
            guard decoder.userInfo.isEmpty else { return }
            keyed = try decoder.container(keyedBy: Keys.self)
            unkeyed = try keyed?.nestedUnkeyedContainer(forKey: .list)
            single = try decoder.singleValueContainer()
            parent = try keyed?.superDecoder(forKey: .missing)
        }
    }

    private func text(_ number: Int) -> [UInt8] {
        Array(
            "{\"a\":\"text number \(number) of some length\",\"b\":\(number),\"list\":[1,{\"a\":\"inner\"},[\"x\"]]}"
                .utf8)
    }

    private func check(_ keeper: Keeper, _ number: Int) throws {
        let container = try #require(keeper.keyed)
        #expect(try container.decode(String.self, forKey: .a) == "text number \(number) of some length")
        #expect(try container.decode(Int.self, forKey: .b) == number)
        #expect(container.allKeys == [.a, .b, .list])
        var list = try #require(keeper.unkeyed)
        #expect(try list.decode(Int.self) == 1)
        #expect(try list.nestedContainer(keyedBy: Keys.self).decode(String.self, forKey: .a) == "inner")
        #expect(try list.decode([String].self) == ["x"])
        #expect(list.isAtEnd)
        #expect(try keeper.decoder.container(keyedBy: Keys.self).decode(Int.self, forKey: .b) == number)
        #expect(throws: DecodingError.self) { try container.decode(Int.self, forKey: .a) }
        #expect(try keeper.single?.decode([String: JSONValue].self).count == 3)
        #expect(keeper.parent?.codingPath.last?.stringValue == "missing")
    }

    @Test("they stay valid after the bytes are gone and other texts were decoded")
    func kept() throws {
        var keepers: [Keeper] = []
        for number in 0..<20 {
            keepers.append(try decoder.decode(Keeper.self, from: text(number)))
            _ = try decoder.decode([String: JSONValue].self, from: text(1_000 + number))
        }
        for (number, keeper) in keepers.enumerated() { try check(keeper, number) }
    }

    @Test("a decoder alone stays valid, and gives containers that do")
    func decoderOnly() throws {
        var generous = decoder
        generous.userInfo[try #require(CodingUserInfoKey(rawValue: "x"))] = 1
        var containers: [KeyedDecodingContainer<Keys>] = []
        for number in 0..<10 {
            let keeper = try generous.decode(Keeper.self, from: text(number))
            containers.append(try keeper.decoder.container(keyedBy: Keys.self))
        }
        for (number, container) in containers.enumerated() {
            #expect(try container.decode(Int.self, forKey: .b) == number)
            #expect(try container.superDecoder(forKey: .list).unkeyedContainer().count == 3)
        }
    }

    @Test("states are freed after their last container")
    func freed() throws {
        for _ in 0..<3 {
            try autoreleasing { _ = try (0..<50).map { try decoder.decode(Keeper.self, from: text($0)) } }
        }
        for _ in 0..<1_000 where DecodingPark.isUsed { _ = try decoder.decode(Int.self, from: "1") }
        #expect(DecodingPark.size == 0)
    }

    private func autoreleasing(_ work: () throws -> Void) rethrows { try work() }

    @Test("a container that is kept during the decoding is not used for another object")
    func keptInside() throws {
        struct Pair: Decodable {
            let sums: [Int]
            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                var containers: [KeyedDecodingContainer<Keys>] = []
                while !list.isAtEnd { containers.append(try list.nestedContainer(keyedBy: Keys.self)) }
                sums = try containers.reversed().map { try $0.decode(Int.self, forKey: .b) }
            }
        }
        let list = "[" + (0..<500).map { "{\"b\":\($0)}" }.joined(separator: ",") + "]"
        #expect(try decoder.decode(Pair.self, from: list).sums == Array((0..<500).reversed()))
    }

    @Test("a decoding inside a decoding has its own state")
    func nestedDecoding() throws {
        struct Inner: Decodable, Equatable { let a: Int }
        struct Outer: Decodable {
            let inner: Inner
            let b: Int
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Keys.self)
                let text = try container.decode(String.self, forKey: .a)
                inner = try TernJSONDecoder().decode(Inner.self, from: text)
                b = try container.decode(Int.self, forKey: .b)
            }
        }
        let outer = try decoder.decode(Outer.self, from: "{\"a\":\"{\\\"a\\\":1}\",\"b\":2}")
        #expect(outer.inner == Inner(a: 1))
        #expect(outer.b == 2)
    }

    @Test("many tasks use one decoder at once")
    func manyTasks() async throws {
        let decoder = decoder
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<64 {
                group.addTask {
                    var sum = 0
                    for round in 0..<50 {
                        let text = "{\"x\":\(number),\"y\":[\(round),{\"x\":1}]}"
                        let value = try decoder.decode(JSONValue.self, from: text)
                        sum += Int(value["x"]?.integer ?? -1)
                        sum += try decoder.decode(DecodingShapeTests.Point.self, from: "{\"y\":0,\"x\":\(round)}").x
                    }
                    return sum - 50 * number
                }
            }
            for try await sum in group { #expect(sum == 50 * 49 / 2) }
        }
    }

    @Test("an error that is thrown inside does not keep the state")
    func errors() throws {
        struct Failing: Decodable {
            init(from decoder: any Decoder) throws {
                _ = try decoder.container(keyedBy: Keys.self)
                throw CocoaError(.coderReadCorrupt)
            }
        }
        for _ in 0..<100 { #expect(throws: CocoaError.self) { try decoder.decode(Failing.self, from: "{}") } }
        for _ in 0..<1_000 where DecodingPark.isUsed { _ = try decoder.decode(Int.self, from: "1") }
        #expect(DecodingPark.size == 0)
    }

    @Test("decoding ends when its task is cancelled")
    func cancellation() async {
        let list = Array(("[" + String(repeating: "1,", count: 200_000) + "1]").utf8)
        let decoder = decoder
        let task = Task {
            // Waits for the cancellation, so that the decoding begins in a cancelled task.
            while !Task.isCancelled { await Task.yield() }
            return try decoder.decode([Int].self, from: list)
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        struct Element: Decodable {
            init(from decoder: any Decoder) throws { _ = try decoder.singleValueContainer().decodeNil() }
        }
        let short = Array(("[" + String(repeating: "1,", count: 20_000) + "1]").utf8)
        let other = Task {
            while !Task.isCancelled { await Task.yield() }
            return try decoder.decode([Element].self, from: short).count
        }
        other.cancel()
        await #expect(throws: CancellationError.self) { try await other.value }
    }

    @Test("decoding ends in a loop over scalars when its task is cancelled")
    func cancellationAmongScalars() async {
        struct Optionals: Decodable {
            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                while !list.isAtEnd { _ = try list.decodeIfPresent(Int8.self) }
            }
        }
        struct Numbers: Decodable {
            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                while !list.isAtEnd { _ = try list.decode(Int.self) }
            }
        }
        struct Members: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: DecodingKeyTests.AnyKey.self)
                for key in container.allKeys { _ = try container.decode(Int.self, forKey: key) }
            }
        }
        struct OptionalMembers: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: DecodingKeyTests.AnyKey.self)
                for key in container.allKeys { _ = try container.decodeIfPresent(Bool.self, forKey: key) }
            }
        }
        // Shorter than what the scanner reads before it looks at the task.
        let list = "[" + String(repeating: "1,", count: 20_000) + "1]"
        await endsEarly(Set<Int>.self, list)
        await endsEarly(Set<Double>.self, list)
        await endsEarly(Set<UInt8>.self, list)
        await endsEarly(Optionals.self, list)
        await endsEarly(Numbers.self, list)
        let object = "{" + (0..<5_000).map { "\"\($0)\":1" }.joined(separator: ",") + "}"
        await endsEarly([Int: Int].self, object)
        await endsEarly(Members.self, object)
        await endsEarly(OptionalMembers.self, object.replacing(":1", with: ":null"))
    }

    /// Calls of `init(from:)`, in the order of their time.
    private final class Calls: Sendable {
        @TaskLocal static var current: Calls?
        let count = Atomic(0)
    }

    /// A type whose `init(from:)` can take any time. The 20th ends its task.
    private struct Slow: Decodable {
        init(from decoder: any Decoder) throws {
            if Calls.current?.count.add(1, ordering: .relaxed).newValue == 20 {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            }
            _ = try decoder.singleValueContainer().decodeNil()
        }
    }

    @Test("few calls of types follow a cancellation, however short the text is")
    func cancellationAmongCalls() async throws {
        struct List: Decodable {
            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                while !list.isAtEnd { _ = try list.decode(Slow.self) }
            }
        }
        struct Object: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: DecodingKeyTests.AnyKey.self)
                for key in container.allKeys { _ = try container.decode(Slow.self, forKey: key) }
            }
        }
        struct Catching: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: DecodingKeyTests.AnyKey.self)
                for key in container.allKeys { _ = try? container.decode(Slow.self, forKey: key) }
            }
        }
        struct Holder: Decodable, Sendable { let slow: Slow? }
        let list = "[" + String(repeating: "1,", count: 999) + "1]"
        let object = "{" + (0..<1_000).map { "\"\($0)\":1" }.joined(separator: ",") + "}"
        let holders = "[" + String(repeating: "{\"slow\":1},", count: 999) + "{}]"
        func calls<Value: Decodable & Sendable>(_ type: Value.Type, _ text: String) async -> Int {
            let decoder = decoder
            let task = Task { () -> Int in
                let calls = Calls()
                #expect(throws: CancellationError.self) {
                    try Calls.$current.withValue(calls) { _ = try decoder.decode(type, from: text) }
                }
                return calls.count.load(ordering: .relaxed)
            }
            return await task.value
        }
        #expect((20...40).contains(await calls([Slow].self, list)))
        #expect((20...40).contains(await calls([Slow?].self, list)))
        #expect((20...40).contains(await calls(List.self, list)))
        #expect((20...40).contains(await calls([String: Slow].self, object)))
        #expect((20...40).contains(await calls(Object.self, object)))
        #expect((20...40).contains(await calls(Catching.self, object)))
        #expect((20...40).contains(await calls([Holder].self, holders)))
    }

    /// Decodes in a task that is cancelled before.
    private func endsEarly<Value: Decodable & Sendable>(
        _ type: Value.Type, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let decoder = decoder
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try decoder.decode(type, from: text)
        }
        task.cancel()
        await #expect(throws: CancellationError.self, sourceLocation: sourceLocation) { try await task.value }
    }
}
