#if os(Linux)
import Foundation
import TernTesting
import Testing

@testable import TernTool

/// Bytes of a server on a terminal.
@Suite("Bodies on a terminal", .timeLimit(.minutes(1)))
struct TerminalTextTests {
    private func shown(_ bytes: some Collection<UInt8>, inPiecesOf size: Int = .max) -> String {
        var text = TerminalText()
        var shown = ""
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            shown += text.add(Data(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        return shown + text.finish()
    }

    @Test(arguments: [1, 2, 3, 5, .max]) func controlCharactersAreEscaped(size: Int) {
        let rows = [
            ("a\tb\nc\r\nd", "a\tb\nc\r\nd"), ("\u{1B}[2J\u{07}", "\\x1b[2J\\x07"),
            ("over\rwritten", "over\\x0dwritten"),
            ("\r", "\\x0d"), ("\r\r\n", "\\x0d\r\n"), ("\u{7F}\u{9B}31m", "\\x7f\\x9b31m"),
            ("a\u{202E}b\u{2066}c", "a\\u{202e}b\\u{2066}c"), ("\u{200B}\u{FEFF}\u{AD}", "\\u{200b}\\u{feff}\\xad"),
            ("a\u{2028}b\u{E0041}", "a\\u{2028}b\\u{e0041}"), ("é 日本 👩‍👩‍👧 می‌خواهم", "é 日本 👩‍👩‍👧 می‌خواهم"), ("", ""),
        ]
        for (text, expected) in rows { #expect(shown(text.utf8, inPiecesOf: size) == expected) }
        #expect(shown([0x61, 0xFF, 0x62, 0xC3], inPiecesOf: size).contains("\u{FFFD}"))
        #expect(shown([0x9B, 0x33, 0x31, 0x6D], inPiecesOf: size) == "\u{FFFD}31m")
    }

    /// The tool with a terminal as its standard output.
    @Test(arguments: ["", "--raw"]) func getEscapesTheBodyOnATerminal(option: String) async throws {
        try await withTool { exchange in
            let status = exchange.request.path == "/ok" ? 200 : 404
            try exchange.respond(status: status, text: "one\u{1B}[2Jtwo\n")
        } test: { server, tool in
            for path in ["ok", "missing"] {
                let command = "\(try ToolProcess.path("tern")) get \(option) \(server.text(path)) 2>/dev/null"
                let result = try await tool.run("/usr/bin/script", ["-qec", command, "/dev/null"])
                let expected = option.isEmpty ? "one\\x1b[2Jtwo" : "one\u{1B}[2Jtwo"
                #expect(result.text.contains(expected), "\(result.text.debugDescription)")
                #expect(result.text.contains("\u{1B}[2J") == !option.isEmpty)
            }
            // Bytes for another program stay as they are.
            #expect(try await tool.tern("get", server.text("ok")).text == "one\u{1B}[2Jtwo\n")
        }
    }

    @Test func otherCommandsEscapeTheBodyOnATerminal() async throws {
        try await withTool { exchange in
            _ = try exchange.readBody()
            try exchange.respond(text: "one\u{1B}[2Jtwo\n")
        } test: { server, tool in
            try tool.write([1], to: "a")
            let program = try ToolProcess.path("tern")
            for arguments in ["upload \(server.text("a")) a", "download -o - \(server.text("a"))"] {
                let command = "\(program) \(arguments) 2>/dev/null"
                let result = try await tool.run("/usr/bin/script", ["-qec", command, "/dev/null"])
                #expect(result.text.contains("one\\x1b[2Jtwo"), "\(result.text.debugDescription)")
            }
        }
    }
}
#endif
