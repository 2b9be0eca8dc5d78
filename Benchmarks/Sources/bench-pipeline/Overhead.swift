import Tern
import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How many pictures the pipeline can see to when nothing is to be fetched and nothing to be decoded.
enum Overhead {
    /// - Parameter count: Pictures of one round. Fewer let a profiler of instructions come to an end.
    static func run(count: Int = 20_000) async throws {
        let decoder = try EmptyDecoder()
        var (rates, costs): ([Double], [Double]) = ([], [])
        for round in 0..<7 {
            let pipeline = ImagePipeline.bare { $0.decoders = ImageDecoders([decoder]) }
            let bytes = Data([1, 2, 3, 4])
            let requests = (0..<count).map { ImageRequest(.data("\(round)-\($0)") { bytes }) }
            let start = Moment()
            let tasks = requests.map { pipeline.task(for: $0) }
            for task in tasks { _ = try await task.image }
            let end = Moment()
            // The first round warms up.
            guard round > 0 else { continue }
            rates.append(Double(count) / (end.wall - start.wall) * 1e9)
            costs.append((end.process - start.process) / Double(count) / 1e3)
        }
        say("overhead.tasks/s", rates.median)
        say("overhead.best", rates.max() ?? .nan)
        say("overhead-processor.µs", costs.median)
    }
}
