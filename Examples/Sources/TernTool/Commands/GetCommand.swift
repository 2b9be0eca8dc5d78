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
        discussion: "A status outside 200–299 is an error; what the server says to it is written too.")

    @Argument(help: "The URL, http or https.")
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
        help: "A body to send, as application/x-www-form-urlencoded unless -H says otherwise.")
    var data: String?

    @Flag(help: "Use and fill the cache of stored responses ('tern cache').")
    var cache = false

    @OptionGroup var header: HeaderOptions

    func run() async throws {
        try await CommandRun.run { interrupt, terminal in
            let session = cache ? CacheCommand.makeSession(.shared) : Session.shared
            let stream = session.stream(try request())
            interrupt.cancels(stream.task)
            do {
                let head = try await stream.response
                if include { tell(head, on: terminal) }
                for try await chunk in stream.chunks { try Output.write(chunk) }
                if include, let metrics = stream.task.metrics { terminal.writeLine(MetricsLine.text(metrics)) }
                // The response is written to the disk after its last byte.
                if cache { await HTTPCache.shared.flush() }
                if include, let trace = head.cacheTrace { terminal.writeLine(Terminal.plain("\(trace)")) }
            } catch let error as NetworkError where error.kind == .status {
                if include, let head = error.response { tell(head, on: terminal) }
                try Output.write(error.body)
                if include, let metrics = error.metrics { terminal.writeLine(MetricsLine.text(metrics)) }
                throw error
            }
        }
    }

    private func request() throws(NetworkError) -> Request {
        guard let data else { return try Request(method ?? .get, url, headers: header.headers) }
        let body = Request.Body.data(Data(data.utf8), contentType: "application/x-www-form-urlencoded")
        return try Request(method ?? .post, url, headers: header.headers, body: body)
    }

    private func tell(_ head: ResponseHead, on terminal: Terminal) {
        let phrase = head.reasonPhrase.isEmpty ? "" : " \(head.reasonPhrase)"
        terminal.writeLine(Terminal.plain("\(head.version.rawValue) \(head.status)\(phrase)"))
        for field in head.headers { terminal.writeLine(Terminal.plain("\(field.name): \(field.value)")) }
        terminal.writeLine("")
    }
}
