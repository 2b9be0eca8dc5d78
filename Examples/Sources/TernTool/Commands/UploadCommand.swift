import ArgumentParser
import Tern
import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern upload`: sends a file as the body of a request, with live progress.
struct UploadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Upload a file, and write the body of the response to standard output.")

    @Argument(help: "The URL, http or https; https without a scheme.", transform: URLText.complete)
    var url: String

    @Argument(help: "The file to send.", completion: .file())
    var file: String

    @Option(name: [.customShort("X"), .long], help: "The method; POST by default.", transform: { Request.Method($0) })
    var method = Request.Method.post

    @OptionGroup var body: BodyOptions

    @OptionGroup var connection: ConnectionOptions

    func run() async throws {
        try await CommandRun.run { interrupt, terminal in
            let source = PathText.url(file)
            let client = Client(session: try connection.session(for: url, terminal))
            let task = client.upload(url, method: method, file: source, headers: connection.header.headers)
            interrupt.cancels(task)
            try await Deadline.run(connection.timeLimit, cancel: task.cancel) {
                try await follow(task, of: source, on: terminal)
            }
        }
    }

    private func follow(_ task: SessionTask<Data>, of source: URL, on terminal: Terminal) async throws {
        let bar = await TerminalBar(source.lastPathComponent, on: terminal)
        await bar.follow(task, .upload)
        let answer = try await task.value
        let time = task.metrics?.total ?? bar.elapsed
        let size = await bar.status.completed
        terminal.writeLine(
            "\(Terminal.plain(source.lastPathComponent)): \(ByteText.size(size)) sent in \(DurationText.span(time)), "
                + ByteText.rate(size, in: time))
        var output = body.output
        try output.write(answer)
        try output.finish()
    }
}
