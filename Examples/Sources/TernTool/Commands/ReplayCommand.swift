import ArgumentParser
import Tern
import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern replay`: the exchanges of a HAR file, without their servers.
struct ReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "List the entries of a HAR file, or write a recorded body.",
        discussion: """
            Without an entry, one line for each: its number, method, status, size, time and URL. With a number, the body \
            of that entry. With a URL, the body that a GET request for it gets from the file alone, redirects included.

            Reads the files of 'tern get --har', and those that browsers and debugging proxies export. Secrets in them are \
            hidden, unless --reveal is given.
            """)

    @Argument(help: "The file; - is standard input.", completion: .file(extensions: ["har"]))
    var file: String

    @Argument(help: ArgumentHelp("The number of an entry, or a URL.", valueName: "entry"))
    var entry: String?

    @Flag(help: "Show secrets.")
    var reveal = false

    @OptionGroup var body: BodyOptions

    func run() async throws {
        try await CommandRun.run { interrupt, _ in
            let redaction = reveal ? Recording.Redaction.none : .secrets
            let recording = try read(redaction)
            guard let entry else { return try list(recording) }
            if let number = Int(entry) { return try write(try Self.content(of: number, in: recording)) }
            // An entry can be asked for again, and a redirect can lead to it a second time.
            let stub = StubTransport(replaying: recording, repeatsLast: true, redaction: redaction)
            let task = Client(session: Session(stub: stub)).task(.get, URLText.complete(entry))
            interrupt.cancels(task)
            try write(try await task.value)
        }
    }

    private func read(_ redaction: Recording.Redaction) throws -> Recording {
        let data = try FileText.bytes(of: file)
        do {
            return try Recording(har: data, redaction: redaction)
        } catch let error as DecodingError {
            throw Failure(file: file, error)
        }
    }

    private func list(_ recording: Recording) throws {
        let lines = recording.exchanges.enumerated().map { "\($0 + 1)  \(ReplayLine.text($1))\n" }
        try Output.write(Data(lines.joined().utf8))
    }

    /// Returns the body of the entry with a number, from 1.
    static func content(of number: Int, in recording: Recording) throws -> Data {
        guard number > 0, number <= recording.exchanges.count else {
            throw ValidationError("the file has \(recording.exchanges.count) entries, and no entry \(number)")
        }
        return recording.exchanges[number - 1].response?.body?.data ?? Data()
    }

    private func write(_ data: Data) throws {
        var output = body.output
        try output.write(data)
        try output.finish()
    }

    /// The error of a file that is no HAR file, or cannot be written.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(file: String, _ error: any Error) {
            let context: DecodingError.Context? =
                switch error as? DecodingError {
                case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
                    .dataCorrupted(let context):
                    context
                default: nil
                }
            let name = file == "-" ? "standard input" : file
            description = Terminal.plain("\(name): \(context?.debugDescription ?? "\(error)")")
        }
    }
}

/// Writes an exchange of a recording as a line. Pure.
enum ReplayLine {
    /// Returns the method, the status, the size, the time and the URL. A failure has its kind in place of a status.
    static func text(_ exchange: Recording.Exchange) -> String {
        let response = exchange.response
        let result = response.map { "\($0.status)" } ?? exchange.failure?.kind ?? "-"
        let kept = Int64(response?.body?.data.count ?? 0)
        let size = response?.cut.map { $0.wholeSize ?? kept } ?? kept
        let parts = [
            exchange.request.method, result, ByteText.size(size) + (response?.cut == nil ? "" : " (a part)"),
            exchange.details?.total.map(DurationText.span) ?? "-", exchange.request.url,
        ]
        return Terminal.plain(parts.joined(separator: "  "))
    }
}
