import Testing

@testable import TernImages

extension ImagePipeline {
    var runningCount: Int { running.count }

    /// What a pipeline still holds of its loads: nothing once all of them have ended.
    func leftovers() -> [String] {
        var left: [String] = []
        func check(_ name: String, _ count: Int) { if count != 0 { left.append("\(name): \(count)") } }
        check("running", running.count)
        check("images", images.count)
        check("originals", originals.count)
        check("loadOf", loadOf.count)
        check("feeds", feeds.count)
        check("stores", stores.count)
        check("scrollWaiters", scrollWaiters.count)
        for (stage, queue) in zip(LoadStage.allCases, queues) {
            check("\(stage) running", queue.running)
            check("\(stage) waiting", queue.waiting)
        }
        #if os(Linux)
        check("previewers", previewers.count)
        #endif
        return left
    }

    /// Waits for the last steps of loads that have ended, and says what is left even so.
    ///
    /// The time is for what fails alone: the machine may hold any thread up for seconds.
    func settledLeftovers() async -> [String] {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(20)
        repeat {
            await served()
            if leftovers().isEmpty { return [] }
            await Task.yield()
        } while clock.now < end
        return leftovers()
    }
}

extension PipelineKit {
    /// Nothing of any load is left.
    func expectNothingLeft(sourceLocation: SourceLocation = #_sourceLocation) async {
        let left = await pipeline.settledLeftovers()
        #expect(left == [], sourceLocation: sourceLocation)
    }
}
