import ArgumentParser
import Tern
import TernHTTPCache
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern get`, and `tern` without a command: writes the body to standard output as it arrives.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Send a request and write the body of its response to standard output.",
        usage: "tern [get] [METHOD] URL [ITEM …] [options]",
        discussion: """
            The options of curl, and the items of HTTPie: Name:value is a header field, name==value a parameter of the query, \
            name=text and name:=json are values of a JSON object, name=@file and name:=@file take them from a file, and \
            name@file is a file of a form. A backslash takes away the meaning of : = and @.

            A status outside 200–299 is an error; what the server says to it is written too, unless -f is given. \
            Characters that control a terminal are escaped where standard output is one, unless --raw is given.

            Unlike curl, tern follows redirects without -L, keeps the line ends of -d @FILE, and writes the head of -i to \
            standard error. Unlike HTTPie, it reads standard input only for @-, and takes -F, -d and --json as curl does.
            """)

    @Argument(
        help: ArgumentHelp(
            "[METHOD] URL [ITEM …]. Without a scheme, the URL is http for localhost and addresses, and https for other hosts.",
            valueName: "url"))
    var words: [String]

    @OptionGroup var options: GetOptions

    func validate() throws { try options.send.check(RequestWords(words)) }

    func run() async throws {
        try await CommandRun.run(connection.messages) { interrupt, terminal in
            var words = try RequestWords(words)
            var connection = connection
            connection.takeUser(from: &words.url)
            let place = try save.place()
            let (request, sent) = try send.request(words, headers: connection.header.headers)
            var recorder: Recorder?
            let session = try connection.session(for: words.url, terminal) {
                if cache { $0.cache = HTTPCache.shared }
            } makeSession: {
                guard har != nil else { return Session(configuration: $0) }
                let new = Recorder($0, redaction: connection.reveal ? .none : .secrets)
                recorder = new
                return Session(configuration: $0, recorder: new)
            }
            connection.tell(request, sending: sent, save.curlWords(at: place), on: terminal)
            do {
                if let download = try save.download(request, from: words.url, in: session) {
                    interrupt.cancels(download.task)
                    try await Deadline.run(connection.timeLimit, cancel: download.task.cancel) {
                        try await follow(download, on: terminal)
                    }
                } else {
                    // A device that cannot be opened is told before anything is sent.
                    let output = try options.body.output(at: place)
                    let stream = session.stream(request)
                    interrupt.cancels(stream.task)
                    try await Deadline.run(connection.timeLimit, cancel: stream.task.cancel) {
                        try await write(stream, to: output, on: terminal)
                    }
                }
            } catch {
                // A failure is what such a file is for. The first error is the one to tell.
                try? save(recorder, on: terminal)
                throw error
            }
            try save(recorder, on: terminal)
        }
    }

    /// Writes what was recorded to the file of `--har`.
    private func save(_ recorder: Recorder?, on terminal: Terminal) throws {
        guard let recorder, let har else { return }
        do {
            try recorder.recording.writeHAR(to: PathText.url(har), redaction: connection.reveal ? .none : .secrets)
        } catch {
            throw ReplayCommand.Failure(file: har, error)
        }
    }

    private var send: SendOptions { options.send }
    private var save: SaveOptions { options.save }
    private var connection: ConnectionOptions { options.connection }
    private var cache: Bool { options.cache }
    private var har: String? { options.har }
    private var include: Bool { options.include }

    /// Writes the body, and with `-i` the rest to standard error. With `-I`, writes the head to the output.
    private func write(_ stream: ResponseStream, to output: BodyOutput, on terminal: Terminal) async throws {
        var output = output
        do {
            let head = try await stream.response
            try tell(head, on: terminal)
            for try await chunk in stream.chunks { try output.write(chunk) }
            try output.finish()
            await tellEnd(of: head, stream.task.metrics, on: terminal)
        } catch let error as NetworkError where error.kind == .status {
            if let head = error.response { try tell(head, on: terminal) }
            if !send.fail {
                try output.write(error.body)
                try output.finish()
            }
            if include, let metrics = error.metrics { terminal.writeLine(MetricsLine.text(metrics)) }
            throw error
        }
    }

    /// Writes the body to its file, and with `-i` the rest to standard error.
    private func follow(_ download: SaveOptions.Started, on terminal: Terminal) async throws {
        do {
            try await DownloadReport.follow(download, on: terminal)
        } catch let error as NetworkError where error.kind == .status {
            if let head = error.response { try tell(head, on: terminal) }
            if include, let metrics = error.metrics { terminal.writeLine(MetricsLine.text(metrics)) }
            throw error
        }
        guard let head = await download.task.response else { return }
        try tell(head, on: terminal)
        await tellEnd(of: head, download.task.metrics, on: terminal)
    }

    /// Waits until the response is in the cache, to which it is written after its last byte.
    private func tellEnd(of head: ResponseHead, _ metrics: TaskMetrics?, on terminal: Terminal) async {
        if include, let metrics { terminal.writeLine(MetricsLine.text(metrics)) }
        if cache { await HTTPCache.shared.flush() }
        if include, let trace = head.cacheTrace { terminal.writeLine(Terminal.plain("\(trace)")) }
    }

    private func tell(_ head: ResponseHead, on terminal: Terminal) throws {
        let phrase = head.reasonPhrase.isEmpty ? "" : " \(head.reasonPhrase)"
        var lines = [Terminal.plain("\(head.version.rawValue) \(head.status)\(phrase)")]
        lines += head.headers.map { Terminal.plain("\($0.name): \($0.value)") }
        if include { terminal.writeLine(lines.joined(separator: "\n") + "\n") }
        // It is the result.
        if send.head { try Output.writeLine(lines.joined(separator: "\n") + "\n") }
    }
}

/// The options of `tern get`, and of `tern` without a command.
struct GetOptions: ParsableArguments {
    @Flag(
        name: [.customShort("i"), .long],
        help: "Tell the status, the header fields and what was measured, on standard error.")
    var include = false

    @OptionGroup var send: SendOptions
    @OptionGroup var save: SaveOptions

    @Flag(help: "Use and fill the cache of stored responses ('tern cache').")
    var cache = false

    @Option(
        help: ArgumentHelp(
            "Write each request and its response to a HAR file, redirects and failures included, without secrets; browsers and 'tern replay' show it. The body is then in memory until it is whole, and in the file at most its first 16 MiB.",
            valueName: "file"),
        completion: .file(extensions: ["har"]))
    var har: String?

    @OptionGroup var body: BodyOptions
    @OptionGroup var connection: ConnectionOptions

    func validate() throws {
        // Fails before anything is sent.
        if let har { try PathText.checkFile(har, of: "--har") }
        if send.head, save.output != nil || save.remoteName || save.serverName {
            throw ValidationError("-I writes the head to standard output: -o, -O and -J are for a body")
        }
    }
}

/// The tool as the completion scripts show it: the options of `tern get` are offered without a command, too.
struct CompletionRoot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: TernTool.configuration.commandName, version: TernTool.configuration.version,
        subcommands: TernTool.configuration.subcommands)

    @OptionGroup var options: GetOptions
}
