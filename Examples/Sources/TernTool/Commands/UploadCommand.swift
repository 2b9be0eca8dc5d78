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

    @Argument(
        help: "The URL; without a scheme, http for localhost and addresses, and https for other hosts.",
        transform: URLText.complete)
    var url: String

    @Argument(help: "The file to send.", completion: .file())
    var file: String

    @Option(
        name: [.customShort("X"), .customLong("method"), .customLong("request")], help: "The method; POST by default.",
        transform: { Request.Method($0) })
    var method = Request.Method.post

    @OptionGroup var body: BodyOptions

    @OptionGroup var connection: ConnectionOptions

    func run() async throws {
        try await CommandRun.run(connection.messages) { interrupt, terminal in
            var (url, connection) = (url, connection)
            connection.takeUser(from: &url)
            let source = PathText.url(file)
            try FileText.checkReadable(file)
            let client = Client(session: try connection.session(for: url, terminal))
            connection.tell(
                try client.request(method, url, headers: connection.header.headers),
                sending: SentBody(file: file), on: terminal)
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
        let answer: Data
        do throws(NetworkError) {
            answer = try await task.value
        } catch {
            // The words of the server about the refusal.
            try write(error.body)
            throw error
        }
        let time = task.metrics?.total ?? bar.elapsed
        let size = await bar.status.completed
        terminal.tell(
            "\(Terminal.plain(source.lastPathComponent)): \(ByteText.size(size)) sent in \(DurationText.span(time)), "
                + ByteText.rate(size, in: time))
        try write(answer)
    }

    private func write(_ answer: Data) throws {
        var output = body.output
        try output.write(answer)
        try output.finish()
    }
}
