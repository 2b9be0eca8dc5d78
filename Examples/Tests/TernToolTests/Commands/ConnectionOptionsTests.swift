#if os(Linux)
import Foundation
import Tern
import TernTesting
import Testing

@testable import TernTool

/// The options of all commands that send requests, as a process, over real connections.
@Suite("tern get", .timeLimit(.minutes(2)))
struct ConnectionOptionsTests {
    @Test func versionIsThatOfTheUserAgent() async throws {
        let seen = Seen()
        try await withTool { exchange in
            seen.add(exchange.request["User-Agent"] ?? "")
            try exchange.respond()
        } test: { server, tool in
            let version = try await tool.tern("--version")
            #expect(version.code == 0 && version.text == "tern \(TernPackage.version)\n")
            _ = try await tool.tern("get", server.text("/"))
            #expect(seen.all[0].contains("Tern/\(TernPackage.version)"))
        }
    }

    @Test(arguments: [
        ("localhost:8080/x", "http://localhost:8080/x"), ("http://a/b", "http://a/b"), ("HTTP://a", "HTTP://a"),
        ("a/?u=http://b", "https://a/?u=http://b"), ("localhost", "http://localhost"),
        ("a.localhost/", "http://a.localhost/"),
        ("LOCALHOST?a", "http://LOCALHOST?a"), ("localhost.test", "https://localhost.test"),
        ("ftp://a", "ftp://a"), ("[::1]:80/", "http://[::1]:80/"), ("127.0.0.1/a", "http://127.0.0.1/a"),
        ("10.1.2.3:80", "http://10.1.2.3:80"), ("1.2.3.4.test", "https://1.2.3.4.test"),
        ("u:p@localhost/a", "http://u:p@localhost/a"), ("localhost@a.test", "https://localhost@a.test"),
        (":8080/x", "http://localhost:8080/x"), (":/x", "http://localhost/x"), (":", "http://localhost"),
        ("a:80", "https://a:80"),
    ])
    func schemeIsAddedByTheHost(text: String, url: String) { #expect(URLText.complete(text) == url) }

    @Test(arguments: [
        ("http://u:secret@a/b?c=secret", "http://a/b?c=<redacted>"), ("u:secret@a", "https://a/"),
        ("\u{1B}[2J", "\u{FFFD}[2J"),
        ("http://u:secret@", ""),
    ])
    func shownURLHasNoSecret(text: String, shown: String) {
        #expect(!URLText.shown(text).contains("secret"))
        if !shown.isEmpty { #expect(URLText.shown(text) == shown) }
    }

    @Test func toolAddsTheScheme() async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        let port = try LoopbackServer.refusingPort()
        let commands = [
            ["get"], ["download", "--retry", "0"], ["events", "--once"], ["ws"], ["upload", "data"], [],
        ]
        try tool.write([1], to: "data")
        for command in commands {
            var words = command
            words.insert("127.0.0.1:\(port)/x", at: command.isEmpty ? 0 : 1)
            let result = try await tool.run(ToolProcess.path("tern"), words)
            #expect(result.code == 4 && result.messages.contains("://127.0.0.1:\(port)/x"), "\(result.messages)")
            #expect(!result.messages.contains("https://"), "\(result.messages)")
        }
    }

    @Test func bodyIsReadFromAFileOrStandardInput() async throws {
        try await withTool { exchange in
            let body = try exchange.readBody()
            try exchange.respond(text: "\(exchange.request.method) \(String(decoding: body, as: UTF8.self))")
        } test: { server, tool in
            try tool.write(Array("from a file".utf8), to: "data")
            #expect(try await tool.tern("get", server.text("/"), "-d", "@data").text == "POST from a file")
            #expect(try await tool.tern("get", server.text("/"), "-d", "@-", input: "typed").text == "POST typed")
            #expect(try await tool.tern("get", server.text("/"), "-d", "a=b").text == "POST a=b")
            let missing = try await tool.tern("get", server.text("/"), "-d", "@none")
            #expect(missing.code == 3 && missing.messages == "tern: none: No such file or directory\n")
        }
    }

    @Test func bodyIsWrittenToAFile() async throws {
        try await withTool {
            try $0.respond(text: "hello")
        } test: { server, tool in
            let result = try await tool.tern("get", server.text("/"), "-o", "file")
            #expect(result.code == 0 && result.output.isEmpty, "\(result.messages)")
            #expect(try tool.bytes("file") == Data("hello".utf8))
            #expect(try await tool.tern("get", server.text("/"), "-o", "-").text == "hello")
        }
    }

    @Test func userIsSentAndNeverShown() async throws {
        let seen = Seen()
        try await withTool { exchange in
            seen.add(exchange.request["Authorization"] ?? "-")
            try exchange.serveFile(LoopbackServer.Pattern(count: 1_000))
        } test: { server, tool in
            for command in ["get", "download"] {
                let result = try await tool.tern(
                    command, server.text("/file"), "-o", "file", "-u", "user:s3cr3t", "-v")
                #expect(result.code == 0, "\(result.messages)")
                #expect(result.messages.contains("→ ") && result.messages.contains("← "))
                #expect(!result.messages.contains("s3cr3t"))
                // user:s3cr3t in base64.
                #expect(seen.all.last == "Basic dXNlcjpzM2NyM3Q=")
                #expect(!result.messages.contains("dXNlcjpzM2NyM3Q="))
            }
            let wrong = try await tool.tern("get", server.text("/"), "-u", "s3cr3t")
            #expect(wrong.code == 64 && !wrong.messages.contains("s3cr3t"), "\(wrong.messages)")
        }
    }

    @Test func retriesAreAsManyAsTheUserSays() async throws {
        try await withTool { exchange in
            if exchange.number <= 2 { return try exchange.respond(status: 503, headers: [("Retry-After", "0")]) }
            try exchange.respond(text: "hello")
        } test: { server, tool in
            let once = try await tool.tern("get", server.text("/"))
            #expect(once.code == 8, "\(once.messages)")
            #expect(server.counts.requestsReceived == 1)
            let twice = try await tool.tern("get", server.text("/"), "--retry", "2")
            #expect(twice.code == 0 && twice.text == "hello", "\(twice.messages)")
            #expect(server.counts.requestsReceived == 3)
        }
    }

    @Test(arguments: ["get", "download"])
    func timeLimitHasACodeOfItsOwn(command: String) async throws {
        try await withTool { exchange in
            try exchange.writeHead(headers: [("Content-Length", "10")])
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let result = try await tool.tern(command, server.text("/"), "-o", "-", "--max-time", "0.4")
            #expect(result.code == 9, "\(result.messages)")
            #expect(result.messages.contains("the time limit of 400.0 ms is reached"), "\(result.messages)")
        }
    }

    /// All bytes have arrived, and wait for 200 seconds because of the rate.
    @Test(arguments: ["-", "file"])
    func timeLimitIncludesTheWaitsOfALimitedRate(output: String) async throws {
        try await withTool { exchange in
            try exchange.respond(headers: [("ETag", "\"1\"")], body: [UInt8](repeating: 1, count: 200_000))
        } test: { server, tool in
            let path = output == "-" ? output : tool.folder.path + "/file"
            let result = try await tool.tern(
                "download", server.text("/"), "-o", path, "--limit-rate", "1k", "--max-time", "0.4")
            #expect(result.code == 9, "\(result.messages)")
        }
    }

    @Test func kindsOfFailureHaveCodes() async throws {
        try await withTool { exchange in
            switch exchange.request.path {
            case "/401": try exchange.respond(status: 401)
            case "/404": try exchange.respond(status: 404, text: "nothing")
            case "/torn":
                try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
                exchange.reset()
            default:
                try exchange.write("no response\r\n\r\n")
                exchange.close()
            }
        } test: { server, tool in
            #expect(try await tool.tern("get", server.text("/401")).code == 6)
            let missing = try await tool.tern("get", server.text("/404"))
            #expect(missing.code == 8 && missing.text == "nothing")
            #expect(try await tool.tern("get", server.text("/torn")).code == 4)
            #expect(try await tool.tern("get", server.text("/other")).code == 7)
            let port = try LoopbackServer.refusingPort()
            let refused = try await tool.tern("get", "http://127.0.0.1:\(port)/")
            #expect(refused.code == 4 && refused.messages.contains("refused the connection"), "\(refused.messages)")
            #expect(try await tool.tern("get", "http://name.invalid/").code == 4)
            #expect(try await tool.tern("get", "http://").code == 64)
            #expect(try await tool.tern("get").code == 64)
            #expect(try await tool.tern("get", server.text("/"), "--max-time", "-1").code == 64)
        }
    }

    @Test func fullOutputIsToldInTheSystemsWords() async throws {
        try await withTool {
            try $0.respond(text: "hello")
        } test: { server, tool in
            let result = try await tool.run(
                ToolProcess.path("tern"), ["get", server.text("/")], output: "/dev/full")
            #expect(result.code == 3)
            #expect(result.messages == "tern: the output cannot be written: No space left on device\n")
        }
    }

    @Test(arguments: [("500k", 512_000), ("1M", 1_048_576), ("1.5m", 1_572_864), ("200", 200), ("2G", 2_147_483_648)])
    func ratesHaveUnits(text: String, bytes: Int) throws { #expect(try SizeText.bytes(text) == bytes) }

    @Test(arguments: ["", "k", "-1", "0", "1T", "ten", "nan"])
    func otherRatesAreRefused(text: String) { #expect(throws: (any Error).self) { try SizeText.bytes(text) } }

    @Test(arguments: [
        ("http://a/b.txt", "b.txt"), ("http://a/", "download"), ("http://a/x/..", "download"),
        ("http://a/a%2Fb", "a_b"), ("http://a/%1B%5B2J", "_[2J"), ("http://a/b.iso?x=1", "b.iso"),
    ])
    func filesAreNamedByTheirURLs(url: String, name: String) { #expect(URLText.fileName(url) == name) }
}
#endif
