import ArgumentParser
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern download`: a response to a file, with live progress.
struct DownloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Download to a file.",
        discussion: """
            Without -o the file is named as the server suggests, in the current folder; what is there stays, and the \
            new file gets a number. A failed or cancelled download leaves nothing behind, unless --resume is given.
            """)

    @Argument(help: "The URL, http or https.")
    var url: String

    @Option(name: [.short, .long], help: "The file to write; one that exists is replaced at the end.")
    var output: String?

    @Flag(help: "Keep what has come of a download that ends early, and continue it the next time.")
    var resume = false

    @OptionGroup var header: HeaderOptions

    func run() async throws {
        try await CommandRun.run { interrupt, terminal in
            let client = Client(headers: header.headers)
            if resume {
                let file = URL(filePath: try await name(client))
                try await ResumableDownload(url: url, file: file, client: client).run(interrupt, terminal)
            } else {
                let task = start(client)
                interrupt.cancels(task)
                try await DownloadReport.follow(task, named: output, on: terminal)
            }
        }
    }

    private func start(_ client: Client) -> SessionTask<URL> {
        if let output { return client.download(url, to: URL(filePath: output)) }
        return client.download(url, options: Download.Options(existing: .keepBoth)) { _, head in
            URL(filePath: head.suggestedFilename)
        }
    }

    /// A download that may have to be continued needs its name before it begins.
    private func name(_ client: Client) async throws -> String {
        if let output { return output }
        do {
            return try await client.head(url).suggestedFilename
        } catch {
            guard error.kind == .status else { throw error }
            throw ResumableDownload.Conflict(
                description: "the server does not tell the file's name beforehand, give one with -o: \(error)")
        }
    }
}

/// The end of a download, told to a person.
enum DownloadReport {
    /// Shows a download's progress, and waits for its file.
    static func follow(_ task: SessionTask<URL>, named name: String?, on terminal: Terminal) async throws {
        // The name is the server's where none was given: it comes with the head.
        var path = name ?? "download"
        if name == nil, let head = await task.response { path = head.suggestedFilename }
        let bar = await TerminalBar(URL(filePath: path).lastPathComponent, on: terminal)
        await bar.follow(task)
        let file = try await task.value
        let metrics = task.metrics
        let time = metrics?.total ?? bar.elapsed
        let size = await bar.figures.completed
        let rate = ByteText.rate(metrics?.receivedBytes ?? size, in: time)
        terminal.say(
            "\(name ?? file.lastPathComponent): \(ByteText.size(size)) in \(DurationText.span(time)), \(rate)")
    }
}
