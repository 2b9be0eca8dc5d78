import Synchronization
import Tern
import TernImages
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Ten thousand tasks want the same picture: from the answer to the delivery to each.
enum Coalescing {
    private static let count = 10_000

    static func run() async throws {
        let picture = Array(try Row.picture(1))
        var (late, last): ([Double], [Double]) = ([], [])
        for _ in 0..<7 {
            let (times, fetches) = try await round(picture)
            guard fetches == 1 else { throw Failure("\(fetches) fetches") }
            late.append(times.percentile(0.99) / 1e6)
            last.append(times.percentile(1) / 1e6)
        }
        say("coalescing-p99.ms", late.median)
        say("coalescing-last.ms", last.median)
    }

    private static func round(_ picture: [UInt8]) async throws -> ([Double], Int) {
        let (gate, answered, fetches) = (LoopbackServer.Gate(), Held(0.0), Held(0))
        let server = try LoopbackServer { exchange in
            fetches.update { $0 += 1 }
            try exchange.wait(for: gate)
            answered.update { $0 = Moment.wall() }
            try exchange.respond(headers: [("Content-Type", "image/jpeg")], body: picture)
        }
        defer { server.stop() }
        let pipeline = ImagePipeline.bare()
        let request = ImageRequest(server.baseURL, targetSize: PixelSize(width: 200, height: 200))
        let started = Held(0)
        let ends = try await withThrowingTaskGroup(of: Double.self) { group in
            for _ in 0..<count {
                group.addTask {
                    started.update { $0 += 1 }
                    _ = try await pipeline.image(from: request)
                    return Moment.wall()
                }
            }
            while started.value < count { try await Task.sleep(for: .milliseconds(5)) }
            // All have joined.
            try await Task.sleep(for: .milliseconds(300))
            gate.open()
            return try await group.reduce(into: [Double]()) { $0.append($1) }
        }
        return (ends.map { $0 - answered.value }, fetches.value)
    }
}

/// A value that several threads change.
final class Held<Value: Sendable>: Sendable {
    private let content: Mutex<Value>
    init(_ value: Value) { content = Mutex(value) }
    var value: Value { content.withLock { $0 } }
    func update(_ change: (inout sending Value) -> Void) { content.withLock { change(&$0) } }
}
