import TernConcurrency
import Testing

@testable import TernImages

extension ImagePipeline {
    var runningCount: Int { jobs.count }

    /// Returns the state that a pipeline still holds for its loads. Empty once all loads have ended.
    func leftovers() -> [String] {
        var left: [String] = []
        func check(_ name: String, _ count: Int) { if count != 0 { left.append("\(name): \(count)") } }
        check("jobs", jobs.count)
        check("imageLoads", imageLoads.count)
        check("encodedLoads", encodedLoads.count)
        check("loadOf", loadOf.count)
        check("chunks", chunks.count)
        check("writes", disk.writes.withLock { $0.tasks.count })
        check("scrollWaiters", scrollWaiters.count)
        for (stage, queue) in zip(LoadStage.allCases, queues) {
            check("\(stage) running", queue.running)
            check("\(stage) waiting", queue.waiting)
        }
        #if os(Linux)
        check("previews", previews.count)
        #endif
        return left
    }

    /// Waits for the last steps of loads that have ended, and returns what is left.
    ///
    /// The time limit applies only to failures: the machine may delay any thread for seconds.
    func settledLeftovers() async -> [String] {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(20)
        repeat {
            await waitForMessages()
            if leftovers().isEmpty { return [] }
            await Task.yield()
        } while clock.now < end
        return leftovers()
    }
}

extension PipelineKit {
    /// Expects that no state of any load is left.
    func expectNothingLeft(sourceLocation: SourceLocation = #_sourceLocation) async {
        let left = await pipeline.settledLeftovers()
        #expect(left == [], sourceLocation: sourceLocation)
    }
}
