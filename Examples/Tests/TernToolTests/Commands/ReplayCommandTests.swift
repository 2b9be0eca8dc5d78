#if os(Linux)
import Foundation
import Tern
import TernTesting
import Testing

@testable import TernTool

/// `tern get --har` and `tern replay` as processes.
@Suite("tern replay", .timeLimit(.minutes(1)))
struct ReplayCommandTests {
    private static func serve(_ exchange: LoopbackServer.Exchange) throws {
        switch exchange.request.path {
        case "/old": try exchange.respond(status: 302, headers: [("Location", "/new?token=s3cret")], text: "moved")
        case "/new": try exchange.respond(text: "hello")
        case "/lost": exchange.close()
        default: try exchange.respond(status: 404, text: "none")
        }
    }

    @Test func requestAndItsRedirectAreWrittenAndReplayed() async throws {
        try await withTool(Self.serve) { server, tool in
            let url = server.text("/old")
            let got = try await tool.tern(
                "get", "--har", "a.har", "-i", url, "-H", "Authorization: Bearer s3cret", "-o", "body")
            #expect(got.code == 0, "\(got.messages)")
            #expect(try tool.bytes("body") == Data("hello".utf8))
            // The metrics are those of the wire.
            #expect(got.messages.contains("HTTP/1.1 200 OK\n"), "\(got.messages)")
            #expect(got.messages.contains("127.0.0.1:"), "\(got.messages)")
            let file = String(decoding: try tool.bytes("a.har"), as: UTF8.self)
            #expect(!file.contains("s3cret") && file.contains("<redacted>"))
            server.stop()

            let list = try await tool.tern("replay", "a.har")
            let lines = list.text.split(separator: "\n")
            #expect(list.code == 0 && lines.count == 2, "\(list.messages)")
            #expect(lines.first?.hasPrefix("1  GET  302  5 B  ") == true && lines.first?.hasSuffix(url) == true)
            #expect(lines.last?.hasSuffix("/new?token=redacted") == true, "\(list.text)")
            let played = try await tool.tern("replay", "a.har", url)
            #expect(played.text == "hello", "\(played.messages)")
        }
    }

    @Test func failureIsInTheFile() async throws {
        try await withTool(Self.serve) { server, tool in
            let got = try await tool.tern("get", "--har", "a.har", "--reveal", server.text("/lost?token=s3cret"))
            #expect(got.code == ExitStatus.network, "\(got.messages)")
            let recording = try Recording(har: tool.bytes("a.har"), redaction: .none)
            let lines = recording.exchanges.map { ReplayLine.text($0) }
            #expect(lines.count == 1 && lines[0].hasPrefix("GET  connection-lost  0 B  "), "\(lines)")
            #expect(lines[0].hasSuffix("/lost?token=s3cret"))
        }
    }

    @Test func linesShowNoControlCharactersAndTellOfParts() {
        let request = Recording.Sent(method: "GET", url: "http://h/\u{1B}[2J")
        var exchange = Recording.Exchange(request: request)
        #expect(ReplayLine.text(exchange) == "GET  -  0 B  -  http://h/\u{FFFD}[2J")
        exchange.response = Recording.Received(
            status: 200, body: .text("ab"), cut: Recording.Cut(wholeSize: 1_500))
        exchange.details = Recording.Details()
        exchange.details?.total = .milliseconds(2)
        #expect(ReplayLine.text(exchange).hasPrefix("GET  200  1.5 kB (a part)  2.0 ms  "))
    }

    @Test func entryIsFoundByItsNumber() throws {
        let recording = Recording(
            ["a", "b"].map { text in
                Recording.Exchange(
                    request: Recording.Sent(method: "GET", url: "http://h/"),
                    response: Recording.Received(status: 200, body: .text(text)))
            })
        #expect(try ReplayCommand.content(of: 2, in: recording) == Data("b".utf8))
        for number in [0, 3, -1, .max, .min] {
            #expect(throws: (any Error).self) { try ReplayCommand.content(of: number, in: recording) }
        }
    }

    @Test(arguments: ["", "-", "/dev/null", "/tmp", "/tmp/", "/no-such-folder/a.har"])
    func placeThatIsNoFileIsRefusedBeforeAnyRequest(name: String) {
        #expect(throws: (any Error).self) { try PathText.checkFile(name, of: "--har") }
    }

    @Test func unreadableFileIsNamedWithItsEntry() {
        let har = Data(#"{"log": {"entries": [{"request": {}}]}}"#.utf8)
        let error = #expect(throws: DecodingError.self) { try Recording(har: har) }
        let failure = error.map { ReplayCommand.Failure(file: "b.har", $0) }
        #expect(failure?.description.hasPrefix("b.har: entry 1: request: ") == true, "\(String(describing: failure))")
        #expect(failure.map { ExitStatus.code(of: $0) } == ExitStatus.file)
    }
}
#endif
