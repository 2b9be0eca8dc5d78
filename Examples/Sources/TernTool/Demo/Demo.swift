import ArgumentParser
import Tern
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern demo`: the main features with live progress.
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
            // Owned here: the signal cancels it, and it cleans up before it ends.
            let demo = Task { try await Demo(stage: stage, steps: steps).run() }
            interrupt.performs { demo.cancel() }
            guard try await demo.value else { throw ExitCode.failure }
        }
    }
}

/// A step of the demo. It returns its result in one line, or throws.
struct DemoStep: Sendable {
    let title: String
    let run: @Sendable (DemoStage) async throws -> String
}

/// Runs steps in sequence, reports each, and prints a summary.
struct Demo {
    let stage: DemoStage
    let steps: [DemoStep]

    /// The steps against the demo's own server.
    static let ownSteps = [
        DemoStep(title: "typed GET", run: RequestSteps.typedGet),
        DemoStep(title: "POST of JSON", run: RequestSteps.post),
        DemoStep(title: "64 GETs at once", run: RequestSteps.concurrentGets),
        DemoStep(title: "lines, streamed", run: StreamSteps.lines),
        DemoStep(title: "events, reconnected", run: StreamSteps.events),
        DemoStep(title: "download of 200 MB", run: DownloadSteps.pausedDownload),
        DemoStep(title: "download, continued", run: DownloadSteps.continuedDownload),
        DemoStep(title: "upload of 100 MB", run: StreamSteps.upload),
        DemoStep(title: "WebSocket", run: SocketSteps.echo),
        DemoStep(title: "cancelled download", run: DownloadSteps.cancelledDownload),
        DemoStep(title: "picture in a view", run: ImageSteps.blocks),
        DemoStep(title: "failure: status", run: FailureSteps.notFound),
        DemoStep(title: "failure: refused", run: FailureSteps.refused),
        DemoStep(title: "the registry's events", run: FailureSteps.events),
    ]

    /// The steps against an address that the user gives.
    static let addressSteps = [
        DemoStep(title: "HEAD", run: AddressSteps.head),
        DemoStep(title: "GET", run: AddressSteps.get),
        DemoStep(title: "download", run: AddressSteps.download),
        DemoStep(title: "stream", run: AddressSteps.stream),
    ]

    /// Runs all steps, and returns a Boolean value that indicates whether all succeeded. Throws if the Swift task is
    /// cancelled.
    func run() async throws -> Bool {
        do {
            try Output.writeLine("Tern against \(stage.url)\n")
            var summary = DemoSummary()
            for step in steps {
                let outcome = await perform(step)
                try Task.checkCancellation()
                try Output.writeLine(outcome.line)
                summary.outcomes.append(outcome)
            }
            try Output.writeLine("\n" + summary.table)
            try await stage.leave()
            return summary.isSuccess
        } catch {
            try await stage.leave()
            throw error
        }
    }

    private func perform(_ step: DemoStep) async -> DemoOutcome {
        let start = ContinuousClock.now
        do {
            let text = try await step.run(stage)
            return DemoOutcome(title: step.title, text: text, isSuccess: true, time: .now - start)
        } catch {
            return DemoOutcome(title: step.title, text: "\(error)", isSuccess: false, time: .now - start)
        }
    }
}

/// The result of a step.
struct DemoOutcome {
    let title: String
    let text: String
    let isSuccess: Bool
    let time: Duration

    /// The result in one line, printed as soon as the step has ended.
    var line: String { "\(isSuccess ? "ok    " : "FAILED")  \(Columns.left(title, DemoSummary.titleWidth))  \(text)" }
}

/// The environment of the steps of a demo.
struct DemoStage: Sendable {
    let session: Session
    let client: Client
    /// The demo's own server; nil for an address that the user gives.
    let server: LoopbackServer?
    /// The address that the user gave.
    let url: String
    /// The folder for the demo's files, removed at its end.
    let folder: URL
    let terminal: Terminal
    /// Counts the events of the registry, from before the first step.
    let events: Task<EventCount, Never>

    init(url: String?, terminal: Terminal) throws {
        var configuration = Session.Configuration()
        configuration.maximumConnectionsPerHost = 64
        if let url {
            server = nil
            self.url = url
            session = Session(configuration: configuration)
            client = Client(session: session)
        } else {
            // The loopback is reached directly, regardless of proxies in the environment.
            configuration.proxies = .none
            let picture = Array(try ImageSteps.png())
            let server = try LoopbackServer { exchange in
                if exchange.request.path == SocketSteps.path {
                    try exchange.acceptWebSocket(subprotocol: "demo")
                    return try exchange.echoMessages()
                }
                guard exchange.request.path == ImageSteps.path else { return try LoopbackServer.answerDemo(exchange) }
                try exchange.respond(headers: [("Content-Type", "image/png")], body: picture)
            }
            self.server = server
            self.url = server.url.absoluteString
            session = Session(configuration: configuration)
            client = Client(baseURL: server.url, session: session)
        }
        self.terminal = terminal
        let unique = UInt64.random(in: 0 ... .max)
        folder = FileManager.default.temporaryDirectory.appending(path: "tern-demo-\(unique)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let events = session.tasks.events
        // Ends with the session, which `leave` invalidates.
        self.events = Task {
            var count = EventCount()
            for await event in events { count.add(event) }
            return count
        }
    }

    func file(_ name: String) -> URL { folder.appending(path: name) }

    /// Returns the names of the files in the demo's folder.
    func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }

    /// Ends all work and removes all files.
    func leave() async throws {
        await session.invalidateAndCancel()
        server?.stop()
        try FileManager.default.removeItem(at: folder)
    }
}

/// The reason why a step failed.
struct DemoFailure: Error, CustomStringConvertible {
    let description: String

    /// Throws unless the condition holds.
    static func unless(_ condition: Bool, _ reason: @autoclosure () -> String) throws(DemoFailure) {
        if !condition { throw DemoFailure(description: reason()) }
    }
}

/// The table at the end of a demo. Pure.
struct DemoSummary {
    static let titleWidth = 21

    var outcomes: [DemoOutcome] = []

    /// Whether all steps succeeded.
    var isSuccess: Bool { outcomes.allSatisfy(\.isSuccess) }

    var table: String {
        let timeWidth = 9
        let rule = String(repeating: "-", count: Self.titleWidth + timeWidth + 12)
        var lines = [row("step", result: "result", time: "time"), rule]
        for outcome in outcomes {
            lines.append(
                row(outcome.title, result: outcome.isSuccess ? "ok" : "FAILED", time: DurationText.span(outcome.time)))
        }
        let good = outcomes.count { $0.isSuccess }
        let total = outcomes.reduce(.zero) { $0 + $1.time }
        lines.append(rule)
        lines.append(
            row(
                "\(good) of \(outcomes.count) steps", result: isSuccess ? "ok" : "FAILED",
                time: DurationText.span(total)))
        return lines.joined(separator: "\n")

        func row(_ title: String, result: String, time: String) -> String {
            "\(Columns.left(title, Self.titleWidth))  \(Columns.left(result, 8))  \(Columns.right(time, timeWidth))"
        }
    }
}
