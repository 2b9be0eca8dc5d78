import ArgumentParser
import Tern
import TernStreaming

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `tern events`: writes server-sent events to standard output as they arrive.
struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Write the server-sent events of a URL to standard output.",
        discussion: """
            A lost connection is made again after the last event, unless the request has a method other than GET. \
            On a terminal the type and the ID of each event are shown; a pipe receives the data alone.
            """)

    @Argument(
        help: "The URL; without a scheme, http for localhost and addresses, and https for other hosts.",
        transform: URLText.complete)
    var url: String

    @Flag(
        name: [.customShort("i"), .long],
        help: "Write the type and the ID before each event, and the states of the connection to standard error.")
    var include = false

    @Option(help: "End successfully at the first event with this data, such as '[DONE]'; any other end is an error.")
    var until: String?

    @Option(help: "Continue after the event with this ID.")
    var lastEventID: String?

    @Flag(help: "Do not connect again.")
    var once = false

    @Option(
        name: [.customShort("X"), .long], help: "The method; GET, or POST where there is data.",
        transform: { Request.Method($0) })
    var method: Request.Method?

    @Option(name: [.customShort("d"), .long], help: "A body to send, as application/json unless -H says otherwise.")
    var data: String?

    @OptionGroup var header: HeaderOptions
    @OptionGroup var network: NetworkOptions

    func run() async throws {
        try await CommandRun.run { interrupt, terminal in
            var options = EventStreamOptions()
            options.lastEventID = lastEventID ?? ""
            if once { options.reconnection = .never }
            var events = try network.session().events(for: try request(), options: options)
            if let until { events = events.until(until) }
            let states = include || terminal.isInteractive ? events.states : nil
            // Ends with the stream, whose last state ends the sequence.
            let watcher = Task {
                guard let states else { return }
                for await state in states { tell(state, on: terminal) }
            }
            let style = EventText(isColored: Output.isTerminal, hasFields: include || Output.isTerminal)
            // Owned here: the signal cancels it, and with it the connection.
            let reader = Task { [events] in
                for try await event in events { try Output.write(Data(style.text(event).utf8)) }
            }
            interrupt.performs { reader.cancel() }
            let result = await reader.result
            await events.close()
            await watcher.value
            try result.get()
        }
    }

    private func request() throws(NetworkError) -> Request {
        guard let data else { return try Request(method ?? .get, url, headers: header.headers) }
        let body = Request.Body.data(Data(data.utf8), contentType: "application/json")
        return try Request(method ?? .post, url, headers: header.headers, body: body)
    }

    private func tell(_ state: EventStreamState, on terminal: Terminal) {
        switch state {
        case .open where include: terminal.writeLine("tern: open")
        case .waiting(let date, let failure):
            let time = date.map { "in \(DurationText.span(.seconds(max(0, $0.timeIntervalSinceNow))))" }
            let reason = failure.map { Terminal.plain($0.description) } ?? "the server ended the response"
            terminal.writeLine("tern: connecting again \(time ?? "with the network"): \(reason)")
        case .connecting, .waitingForConnection, .open, .closed: break
        }
    }
}

/// Formats an event. Pure.
struct EventText {
    /// Whether the output is a terminal: fields have colours, and control characters of the server are replaced.
    let isColored: Bool
    /// Whether the type and the ID precede the data.
    let hasFields: Bool

    /// Returns the event as whole lines.
    func text(_ event: ServerSentEvent) -> String {
        var text = ""
        if hasFields {
            let id = event.id.isEmpty ? "" : " \(shown("#\(event.id)", color: "2"))"
            text += "\(shown(event.type, color: "1;36"))\(id)\n"
        }
        for line in event.data.split(separator: "\n", omittingEmptySubsequences: false) {
            text += "\(isColored ? Terminal.plain(String(line)) : String(line))\n"
        }
        return text
    }

    private func shown(_ text: String, color: String) -> String {
        isColored ? "\u{1B}[\(color)m\(Terminal.plain(text))\u{1B}[0m" : text
    }
}
