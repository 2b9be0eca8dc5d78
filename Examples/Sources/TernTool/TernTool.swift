import ArgumentParser
import Tern

/// The `tern` command: Tern in a terminal, and an example of each of its uses.
@main
struct TernTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tern",
        abstract: "Requests, file transfers and pictures over HTTP, with live progress.",
        usage: """
            tern [METHOD] URL [ITEM …] [options]
            tern <subcommand> …
            """,
        discussion: """
            'tern URL' is 'tern get URL'. A URL without a scheme is http for localhost and for addresses, and https for \
            every other host. Ctrl-C cancels cleanly, and the exit code is 130.

            'tern --generate-completion-script bash', zsh or fish writes completions for a shell.

            Exit codes: 0 done, 3 a file, 4 the network, 5 TLS, 6 authentication, 7 a malformed response, 8 the status \
            of a response, 9 a time limit, 10 a wrong digest or size, 11 in use, 64 the arguments, 1 anything else; 128 \
            and the number of a signal.
            """,
        version: "tern \(TernPackage.version)",
        subcommands: [
            GetCommand.self, EventsCommand.self, WebSocketCommand.self, DownloadCommand.self, QueueCommand.self,
            UploadCommand.self, ImageCommand.self, CacheCommand.self, ReplayCommand.self, InspectCommand.self,
            DemoCommand.self,
        ],
        defaultSubcommand: GetCommand.self
    )

    static func main() async {
        let arguments = ArgumentReader.completed(Array(CommandLine.arguments.dropFirst()))
        if arguments.first?.hasPrefix(ArgumentReader.completionOption) ?? false {
            return await CompletionRoot.main(arguments)
        }
        do {
            var command = try await asyncParseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let code as ExitCode {
            exit(withError: code)
        } catch {
            // The parser names a near option only for long names, and only of the same command.
            let complaint =
                exitCode(for: error) == .validationFailure ? ArgumentReader.complaint(about: arguments) : nil
            exit(withError: complaint.map { ValidationError($0) } ?? error)
        }
    }
}

/// The behaviour of all commands: signals cancel, and errors become one line on standard error and an exit code.
enum CommandRun {
    /// Runs the work of a command. Any error after a signal counts as the requested cancellation.
    static func run(
        _ messages: Terminal.Messages = Terminal.Messages(),
        _ work: (_ interrupt: Interrupt, _ terminal: Terminal) async throws -> Void
    ) async throws {
        StandardDescriptors.occupy()
        let interrupt = Interrupt()
        var terminal = Terminal()
        terminal.messages = messages
        do {
            try await work(interrupt, terminal)
        } catch let code as ExitCode {
            throw code
        } catch let failure as Output.Failure where failure.isClosedPipe {
            throw ExitCode.failure
        } catch {
            if let code = interrupt.exitCode {
                terminal.fail("tern: cancelled")
                throw ExitCode(code)
            }
            terminal.fail("tern: \(error)\(ErrorHint.text(for: error).map { "\ntern: \($0)" } ?? "")")
            throw ExitCode(ExitStatus.code(of: error))
        }
    }
}

/// The words for an error that tell what to write instead. Pure.
enum ErrorHint {
    static func text(for error: any Error) -> String? {
        guard let error = error as? NetworkError else { return nil }
        let url = error.request.map { URLText.shown($0.urlString) }
        switch error.kind {
        case .tls where error.reason.contains("answered without TLS"):
            let plain = url.map { "http://" + $0.drop(while: { $0 != "/" }).dropFirst(2) }
            return "for plain HTTP, write \(plain ?? "http://")"
        case .untrustedServer:
            return "--cacert FILE trusts the authorities in a file; -k trusts every server"
        default: return nil
        }
    }
}

/// The option `-H` of all commands that send a request.
struct HeaderOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .customLong("header")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A header field to send; may be repeated.", valueName: "Name: value"),
        transform: Self.field)
    var fields: [Headers.Field] = []

    var headers: Headers { Headers(fields) }

    /// Parses a field of the form `Name: value`. The request checks the characters of name and value.
    private static func field(_ text: String) throws -> Headers.Field {
        guard let colon = text.firstIndex(of: ":"), colon != text.startIndex else {
            throw ValidationError("'\(text)' is not a header field; write 'Name: value'")
        }
        let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        return Headers.Field(name: String(text[..<colon]), value: String(value))
    }
}

/// Formats the metrics of a task in one line.
enum MetricsLine {
    static func text(_ metrics: TaskMetrics) -> String {
        var parts: [String] = []
        if let version = metrics.httpVersion { parts.append(version.rawValue) }
        if let address = metrics.remoteAddress {
            let host = address.contains(":") ? "[\(address)]" : address
            let connection = metrics.isReusedConnection ? "reused" : "new"
            parts.append("\(host)\(metrics.remotePort.map { ":\($0)" } ?? "") (\(connection) connection)")
        }
        let times: [(String, Duration?)] = [
            ("dns", metrics.nameLookup), ("connect", metrics.connect), ("tls", metrics.tls),
            ("first byte", metrics.firstByte), ("total", metrics.total),
        ]
        for case (let name, let time?) in times { parts.append("\(name) \(DurationText.span(time))") }
        parts.append("sent \(ByteText.size(metrics.sentBytes))")
        parts.append("received \(ByteText.size(metrics.receivedBytes))")
        if metrics.transactions > 1 { parts.append("\(metrics.transactions) transactions") }
        return parts.joined(separator: " · ")
    }
}
