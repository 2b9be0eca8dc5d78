import ArgumentParser
import Tern
import TernHTTPCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern get`: writes the body to standard output as it arrives.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Send a request and write the body of its response to standard output.",
        discussion:
            "A status outside 200–299 is an error; what the server says to it is written too. Characters that control a terminal are escaped where standard output is one, unless --raw is given."
    )

    @Argument(help: "The URL, http or https; https without a scheme.", transform: URLText.complete)
    var url: String

    @Flag(
        name: [.customShort("i"), .long],
        help: "Tell the status, the header fields and what was measured, on standard error.")
    var include = false

    @Option(
        name: [.customShort("X"), .long], help: "The method; GET, or POST where there is data.",
        transform: { Request.Method($0) })
    var method: Request.Method?

    @Option(
        name: [.customShort("d"), .long],
        help:
            "A body to send, or @FILE or @- for its bytes, as application/x-www-form-urlencoded unless -H says otherwise."
    )
    var data: String?

    @Option(name: [.short, .long], help: "The file to write, complete or not at all; - is standard output.")
    var output: String?

    @Flag(help: "Use and fill the cache of stored responses ('tern cache').")
    var cache = false

    @OptionGroup var body: BodyOptions

    @OptionGroup var connection: ConnectionOptions

    func validate() throws { try PathText.check(output) }

    func run() async throws {
        try await CommandRun.run { interrupt, terminal in
            let request = try request()
            let session = try connection.session(for: url, terminal) { if cache { $0.cache = HTTPCache.shared } }
            if let output, !PathText.isStandardOutput(output) {
                let task = session.download(request, to: PathText.url(output))
                interrupt.cancels(task)
                return try await Deadline.run(connection.timeLimit, cancel: task.cancel) {
                    try await DownloadReport.follow(task, named: output, on: terminal)
                }
            }
            let stream = session.stream(request)
            interrupt.cancels(stream.task)
            try await Deadline.run(connection.timeLimit, cancel: stream.task.cancel) {
                try await write(stream, on: terminal)
            }
        }
    }

    /// Writes the body to standard output, and with `-i` the rest to standard error.
    private func write(_ stream: ResponseStream, on terminal: Terminal) async throws {
        do {
            let head = try await stream.response
            if include { tell(head, on: terminal) }
            var output = body.output
            for try await chunk in stream.chunks { try output.write(chunk) }
            try output.finish()
            if include, let metrics = stream.task.metrics { terminal.writeLine(MetricsLine.text(metrics)) }
            // The response is written to the disk after its last byte.
            if cache { await HTTPCache.shared.flush() }
            if include, let trace = head.cacheTrace { terminal.writeLine(Terminal.plain("\(trace)")) }
        } catch let error as NetworkError where error.kind == .status {
            if include, let head = error.response { tell(head, on: terminal) }
            var output = body.output
            try output.write(error.body)
            try output.finish()
            if include, let metrics = error.metrics { terminal.writeLine(MetricsLine.text(metrics)) }
            throw error
        }
    }

    private func request() throws -> Request {
        let headers = connection.header.headers
        guard let data else { return try Request(method ?? .get, url, headers: headers) }
        let body = try BodyText.body(data, contentType: "application/x-www-form-urlencoded")
        return try Request(method ?? .post, url, headers: headers, body: body)
    }

    private func tell(_ head: ResponseHead, on terminal: Terminal) {
        let phrase = head.reasonPhrase.isEmpty ? "" : " \(head.reasonPhrase)"
        terminal.writeLine(Terminal.plain("\(head.version.rawValue) \(head.status)\(phrase)"))
        for field in head.headers { terminal.writeLine(Terminal.plain("\(field.name): \(field.value)")) }
        terminal.writeLine("")
    }
}
