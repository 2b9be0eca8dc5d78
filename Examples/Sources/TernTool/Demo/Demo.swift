import Tern

/// Something that the demo does: it tells what came of it in one line, or throws.
struct DemoStep: Sendable {
    let title: String
    let run: @Sendable (DemoStage) async throws -> String
}

/// Runs steps one after the other, tells each, and sums up.
struct Demo {
    let stage: DemoStage
    let steps: [DemoStep]

    /// Against the demo's own server.
    static let ownSteps = [
        DemoStep(title: "typed GET", run: RequestSteps.typedGet),
        DemoStep(title: "POST of JSON", run: RequestSteps.post),
        DemoStep(title: "64 GETs at once", run: RequestSteps.concurrentGets),
        DemoStep(title: "lines, streamed", run: StreamSteps.lines),
        DemoStep(title: "download of 200 MB", run: DownloadSteps.pausedDownload),
        DemoStep(title: "download, continued", run: DownloadSteps.continuedDownload),
        DemoStep(title: "upload of 100 MB", run: StreamSteps.upload),
        DemoStep(title: "cancelled download", run: DownloadSteps.cancelledDownload),
        DemoStep(title: "picture in a view", run: PictureSteps.blocks),
        DemoStep(title: "failure: status", run: FailureSteps.notFound),
        DemoStep(title: "failure: refused", run: FailureSteps.refused),
        DemoStep(title: "the registry's events", run: FailureSteps.events),
    ]

    /// Against an address of the user's.
    static let addressSteps = [
        DemoStep(title: "HEAD", run: AddressSteps.head),
        DemoStep(title: "GET", run: AddressSteps.get),
        DemoStep(title: "download", run: AddressSteps.download),
        DemoStep(title: "stream", run: AddressSteps.stream),
    ]

    /// Whether every step did what it should. Throws when the surrounding Swift task is cancelled.
    func run() async throws -> Bool {
        do {
            try Output.say("Tern against \(stage.url)\n")
            var summary = DemoSummary()
            for step in steps {
                let outcome = await perform(step)
                try Task.checkCancellation()
                try Output.say(outcome.line)
                summary.outcomes.append(outcome)
            }
            try Output.say("\n" + summary.table)
            try await stage.leave()
            return summary.isGood
        } catch {
            try await stage.leave()
            throw error
        }
    }

    private func perform(_ step: DemoStep) async -> DemoOutcome {
        let start = ContinuousClock.now
        do {
            let text = try await step.run(stage)
            return DemoOutcome(title: step.title, text: text, isGood: true, time: .now - start)
        } catch {
            return DemoOutcome(title: step.title, text: "\(error)", isGood: false, time: .now - start)
        }
    }
}

/// What came of a step.
struct DemoOutcome {
    let title: String
    let text: String
    let isGood: Bool
    let time: Duration

    /// One line, told as soon as the step has ended.
    var line: String { "\(isGood ? "ok    " : "FAILED")  \(Columns.left(title, DemoSummary.titleWidth))  \(text)" }
}
