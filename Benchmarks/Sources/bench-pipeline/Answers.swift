import Tern
import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How long the pipeline's actor takes to answer while every core decodes.
enum Answers {
    static func run(_ picture: Data) async throws {
        let pipeline = ImagePipeline.bare { $0.memoryLimit = 1 << 20 }
        let work = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                // Twice as many as there are threads, so that none of them is ever without a picture.
                for index in 0..<(2 * ImageExecutor.shared.threadCount) {
                    group.addTask {
                        var number = 0
                        while !Task.isCancelled {
                            number += 1
                            _ = try await pipeline.image(from: ImageRequest(.data("\(index)-\(number)") { picture }))
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        try await Task.sleep(for: .milliseconds(200))
        let before = Moment()
        var times: [Double] = []
        for _ in 0..<3_000 {
            try await Task.sleep(for: .milliseconds(1))
            let start = Moment.wall()
            await pipeline.forgetFailures()
            times.append((Moment.wall() - start) / 1e6)
        }
        let after = Moment()
        work.cancel()
        // It ends with its cancellation, an error.
        _ = await work.result
        say("answers-p99.ms", times.percentile(0.99))
        say("answers-worst.ms", times.percentile(1))
        say("answers-cores", (after.process - before.process) / (after.wall - before.wall))
    }
}
