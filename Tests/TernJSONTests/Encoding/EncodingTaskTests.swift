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
