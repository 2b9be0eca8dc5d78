import ArgumentParser
import Tern

/// `tern demo`: the main job, watched.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Watch Tern work: requests, live progress and transfers.",
        discussion: "Against a server of its own on this machine's loopback, or a URL of yours.")

    @Argument(help: "A URL to get, download and stream, in place of the demo's own server.")
    var url: String?

    func run() async throws {
        try await CommandRun.run { interrupt, terminal in
            let stage = try DemoStage(url: url, terminal: terminal)
            let steps = url == nil ? Demo.ownSteps : Demo.addressSteps
            // Owned here: the signal cancels it, and it cleans up behind itself before it ends.
            let demo = Task { try await Demo(stage: stage, steps: steps).run() }
            interrupt.performs { demo.cancel() }
            guard try await demo.value else { throw ExitCode.failure }
        }
    }
}
