#if os(Linux)
import Foundation
import Tern
import TernTesting
import Testing

@testable import TernTool

/// `tern inspect` and `--keylog` as processes.
@Suite("tern inspect", .timeLimit(.minutes(1)))
struct InspectCommandTests {
    /// Returns the URL of the page that a program has told.
    private static func page(in messages: String) -> String? {
        let line = messages.split(separator: "\n").first { $0.hasPrefix("tern: the requests are shown at ") }
        return line?.split(separator: " ").last.map(String.init)
    }

    @Test func theCommandRunsAndItsPageEndsWithIt() async throws {
        try await withTool { exchange in
            try exchange.respond(text: "hello")
        } test: { server, tool in
            let got = try await tool.tern("inspect", "--no-wait", "get", "-i", server.text("/x?token=s3cret"))
            #expect(got.code == 0 && got.text == "hello", "\(got.messages)")
            let page = try #require(Self.page(in: got.messages))
            #expect(page.hasPrefix("http://127.0.0.1:") && page.hasSuffix("/"), "\(page)")
            await #expect(throws: NetworkError.self) { try await Client(session: Session()).get(page) }
            // The command can be left out, as without inspect.
            let other = try await tool.tern("inspect", "--no-wait", server.text("/x"))
            #expect(other.code == 0 && other.text == "hello", "\(other.messages)")
            // The exit code is that of the command.
            let failed = try await tool.tern("inspect", "--no-wait", "get", "http://127.0.0.1:1/")
            #expect(failed.code == ExitStatus.network, "\(failed.messages)")
        }
    }

    @Test func thePageShowsTheRequestWhileItRuns() async throws {
        let (arrived, gate) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withTool { exchange in
            arrived.open()
            try exchange.wait(for: gate)
            try exchange.respond(text: "hello")
        } test: { server, tool in
            let port = try LoopbackServer { try $0.respond() }
            let number = port.port
            port.stop()
            let program = try ToolProcess.path("tern")
            let words = ["inspect", "--port", "\(number)", "--no-wait", "get", server.text("/x")]
            let got = try await tool.run(program, words) { _ in
                try await arrived.wait()
                // Without its token, the page says nothing.
                var configuration = Session.Configuration()
                configuration.proxies = .none
                configuration.validation = .any
                let client = Client(session: Session(configuration: configuration))
                let request = try client.request(.get, "http://127.0.0.1:\(number)/")
                #expect(try await client.session.response(for: request).head.status == 404)
                gate.open()
            }
            #expect(got.code == 0 && got.text == "hello", "\(got.messages)")
            #expect(Self.page(in: got.messages)?.hasPrefix("http://127.0.0.1:\(number)/") == true)
        }
    }

    @Test(arguments: [["inspect"], ["inspect", "inspect", "get", "x"], ["inspect", "--port", "99999", "get", "x"]])
    func wrongArgumentsAreRefused(words: [String]) async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        #expect(try await tool.run(ToolProcess.path("tern"), words).code == ExitStatus.usage)
    }

    @Test func keyLogsAreOpenedBeforeAnythingIsSent() async throws {
        try await withTool { exchange in
            try exchange.respond(text: "hello")
        } test: { server, tool in
            let got = try await tool.tern("get", "--keylog", "keys.log", server.text("/x"))
            #expect(got.code == 0 && got.text == "hello", "\(got.messages)")
            #expect(got.messages.contains("secrets of TLS") && got.messages.contains("keys.log"), "\(got.messages)")
            let attributes = try FileManager.default.attributesOfItem(atPath: tool.file("keys.log").path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o644], ofItemAtPath: tool.file("keys.log").path)
            let count = server.requests.count
            let refused = try await tool.tern("get", "--keylog", "keys.log", server.text("/x"))
            #expect(refused.code == ExitStatus.file && refused.messages.contains("keys.log"), "\(refused.messages)")
            #expect(server.requests.count == count)
        }
    }
}
#endif
