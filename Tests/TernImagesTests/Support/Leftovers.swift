import TernConcurrency
import Testing

@testable import TernImages

extension ImagePipeline {
    var runningCount: Int { imageJobs.count + dataJobs.count }

    /// The number of loads that wait until scrolling has settled.
    var scrollingCount: Int { scrollDebouncer.waiting.count }

    /// The numbers of loads that hold a slot of a stage and that wait for one.
    func counts(at stage: LoadStage) -> (running: Int, waiting: Int) {
        let queue = queues[stage.rawValue]
        return (queue.running, queue.waiting)
    }

    /// The number of loads that wait for a slot of a stage.
    func waitingCount(at stage: LoadStage) -> Int { counts(at: stage).waiting }

    #if os(Linux)
    /// The previews that running loads decode.
    var previews: [PreviewDecoding] { workingJobs.values.compactMap { ($0 as? DecodeImageJob)?.preview } }
    #endif

    /// Returns the state that a pipeline still holds for its loads. Empty once all loads have ended.
    func leftovers() -> [String] {
        var left: [String] = []
        func check(_ name: String, _ count: Int) { if count != 0 { left.append("\(name): \(count)") } }
        check("workingJobs", workingJobs.count)
        check("imageJobs", imageJobs.count)
        check("dataJobs", dataJobs.count)
        check("writes", disk.writes.withLock { $0.tasks.count })
        check("loads that wait for scrolling", scrollingCount)
        for (stage, queue) in zip(LoadStage.allCases, queues) {
            check("\(stage) running", queue.running)
            check("\(stage) waiting", queue.waiting)
        }
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
