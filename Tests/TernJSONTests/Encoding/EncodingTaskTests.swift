import Foundation
import TernJSON
import Testing

@Suite("JSON encoding: tasks", .timeLimit(.minutes(2)))
struct EncodingTaskTests {
    @Test func aCancelledTaskStops() async throws {
        let values: [@Sendable () throws -> Data] = [
            { try TernJSONEncoder().encode((0..<200_000).map { Double($0) }) },
            { try TernJSONEncoder().encode((0..<50_000).map { Point(x: Double($0), y: 1) }) },
            { try TernJSONEncoder().encode(JSONValue.array(Array(repeating: "text", count: 100_000))) },
            { try TernJSONEncoder().encode(Data(count: 1_000_000)) },
        ]
        for encode in values {
            let task = Task {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                return try encode()
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        let numbers = Array(repeating: 1, count: 60_000)
        // The task is cancelled before the second half is written, or before the names are sorted.
        let bodies: [(TernJSONEncoder.OutputFormatting, @Sendable (any Encoder) throws -> Void)] = [
            (
                .prettyPrinted,
                { encoder in
                    try numbers.encode(to: encoder)
                    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                    try numbers.encode(to: encoder)
                }
            ),
            (
                .sortedKeys,
                { encoder in
                    var container = encoder.container(keyedBy: ShortKey.self)
                    try container.encode(numbers, forKey: .b)
                    try container.encode(1, forKey: .a)
                    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                }
            ),
        ]
        for (formatting, body) in bodies {
            var encoder = TernJSONEncoder()
            encoder.outputFormatting = formatting
            let task = Task { [encoder] in try encoder.encode([Closure(body)]) }
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(String(decoding: try encoder.encode(["b", "a"]), as: UTF8.self).contains("\"a\""))
        }
        let short = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try TernJSONEncoder().encode([1]).count
        }
        #expect((try? await short.value) == 3)
    }

    /// Each call of `encode(to:)` can take any time: few of them follow a cancellation, however short the text is.
    @Test func aCancelledTaskCallsFewTypes() async throws {
        final class Calls { var count = 0 }
        struct Slow: Encodable {
            let calls: Calls
            func encode(to encoder: any Encoder) throws {
                calls.count += 1
                if calls.count == 20 { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
                var container = encoder.singleValueContainer()
                try container.encode(1)
            }
        }
        let bodies: [@Sendable ([Slow], any Encoder) throws -> Void] = [
            { try $0.encode(to: $1) },
            { values, encoder in
                var list = encoder.unkeyedContainer()
                for value in values { try list.encode(value) }
            },
            { values, encoder in
                var list = encoder.unkeyedContainer()
                for value in values { try? list.encode(value) }  // The failure stays.
            },
            { values, encoder in
                var object = encoder.container(keyedBy: AnyKey.self)
                for (index, value) in values.enumerated() {
                    try object.encode(value, forKey: AnyKey(stringLiteral: "\(index)"))
                }
            },
            { values, encoder in
                try Dictionary(uniqueKeysWithValues: values.enumerated().map { ("\($0)", $1) }).encode(to: encoder)
            },
        ]
        for body in bodies {
            let task = Task {
                let calls = Calls()
                let values = Array(repeating: Slow(calls: calls), count: 1_000)
                #expect(throws: CancellationError.self) {
                    try TernJSONEncoder().encode(Closure { try body(values, $0) })
                }
                return calls.count
            }
            #expect((20...40).contains(await task.value))
        }
    }

    @Test func manyTasksUseOneEncoder() async throws {
        let encoder = TernJSONEncoder()
        let expected = try encoder.encode([Primitives()])
        let tree = try encoder.encode(Tree(depth: 3, width: 3))
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    for _ in 0..<200 {
                        guard (try? encoder.encode([Primitives()])) == expected,
                            (try? encoder.encode(Tree(depth: 3, width: 3))) == tree
                        else { return false }
                    }
                    return true
                }
            }
            for await isSame in group { #expect(isSame) }
        }
    }
}
