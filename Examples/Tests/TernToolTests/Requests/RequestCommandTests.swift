#if os(Linux)
import Foundation
import TernTesting
import Testing

@testable import TernTool

/// Hostile servers and wrong options, as a process, over real connections.
@Suite("tern", .timeLimit(.minutes(2)))
struct RequestCommandTests {
    private static let disposition = [("Content-Disposition", "attachment; filename=\"../../up/.name\"")]

    // MARK: Files

    @Test(arguments: [["-OJ"], ["-o", "folder/"], ["-o", "folder"], ["--download"]])
    func nameOfTheServerStaysInTheFolder(options: [String]) async throws {
        try await withTool {
            try $0.respond(headers: Self.disposition, body: "hello".utf8.map(\.self))
        } test: { server, tool in
            try FileManager.default.createDirectory(at: tool.file("folder"), withIntermediateDirectories: true)
            for command in ["get", "download"] {
                if command == "download", options[0] != "-o" { continue }
                let result = try await tool.run(ToolProcess.path("tern"), [command, server.text("/x")] + options)
                #expect(result.code == 0, "\(result.messages)")
            }
            let names = try tool.names.filter { $0 != "folder" }
            let isFolder = options[0] == "-o"
            #expect(
                names == (isFolder ? ["folder/_.._up_-1.name", "folder/_.._up_.name"] : ["_.._up_.name"]), "\(names)")
        }
    }

    @Test(arguments: ["get", "download"]) func missingFolderIsToldBeforeAnyRequest(command: String) async throws {
        try await withTool {
            try $0.respond(text: "hello")
        } test: { server, tool in
            let result = try await tool.tern(command, server.text("/x"), "-o", "none/")
            #expect(result.code == 3 && result.messages == "tern: none/: No such file or directory\n")
            try tool.write([1], to: "file")
            let file = try await tool.tern(command, server.text("/x"), "-o", "file/")
            #expect(file.code == 3 && file.messages == "tern: file/: Not a directory\n")
            #expect(server.counts.requestsReceived == 0)
        }
    }

    @Test func namedFileIsKeptAndTheNewOneGetsANumber() async throws {
        try await withTool {
            try $0.respond(text: "new")
        } test: { server, tool in
            try tool.write("old".utf8, to: "a.txt")
            let result = try await tool.tern("-O", server.text("/a.txt"))
            #expect(result.code == 0 && result.messages.contains("a-1.txt: 3 B in "), "\(result.messages)")
            #expect(try tool.names == ["a-1.txt", "a.txt"] && tool.bytes("a.txt") == Data("old".utf8))
        }
    }

    @Test(arguments: [["-o", "file"], ["-O"], ["-o", "-"]])
    func headIsToldWhereverTheBodyGoes(options: [String]) async throws {
        try await withTool {
            try $0.respond(status: $0.request.path == "/404" ? 404 : 200, headers: [("X-Test", "1")], text: "hello")
        } test: { server, tool in
            let result = try await tool.run(ToolProcess.path("tern"), ["-i", server.text("/file")] + options)
            #expect(result.code == 0 && result.messages.contains("HTTP/1.1 200 OK\n"), "\(result.messages)")
            #expect(result.messages.contains("X-Test: 1\n"), "\(result.messages)")
            let missing = try await tool.run(ToolProcess.path("tern"), ["-i", server.text("/404")] + options)
            #expect(missing.code == 8 && missing.messages.contains("HTTP/1.1 404 Not Found\n"), "\(missing.messages)")
        }
    }

    @Test func listIsDownloadedToAFolder() async throws {
        try await withTool {
            try $0.respond(text: "hello")
        } test: { server, tool in
            try FileManager.default.createDirectory(at: tool.file("folder"), withIntermediateDirectories: true)
            let result = try await tool.tern("download", server.text("/a"), server.text("/b"), "-o", "folder/")
            #expect(result.code == 0, "\(result.messages)")
            #expect(try tool.names == ["folder", "folder/a", "folder/b"])
            let one = try await tool.tern("download", server.text("/a"), server.text("/b"), "-o", "file")
            #expect(one.code == 64 && one.messages.contains("-o is for a single URL, or the name of a folder"))
        }
    }

    @Test func deviceReceivesTheBody() async throws {
        try await withTool {
            try $0.respond(text: "hello")
        } test: { server, tool in
            let result = try await tool.tern(server.text("/"), "-o", "/dev/null")
            #expect(result.code == 0 && result.output.isEmpty && result.messages.isEmpty, "\(result.messages)")
            let full = try await tool.tern(server.text("/"), "-o", "/dev/full")
            #expect(full.code == 3 && full.messages.contains("No space left on device"))
        }
    }

    // MARK: Output

    @Test func closedPipeEndsTheCommandWithoutAMessage() async throws {
        try await withTool { exchange in
            try exchange.respond(body: [UInt8](repeating: 65, count: 4 << 20))
        } test: { server, tool in
            let program = try ToolProcess.path("tern")
            let script = "{ \(program) \(server.text("/")); echo $? >code; } | head -c 3"
            let result = try await tool.run("/bin/sh", ["-c", script])
            #expect(result.text == "AAA" && result.messages.isEmpty, "\(result.messages)")
            // SIGPIPE ends the process, unless it is ignored here.
            #expect(["1\n", "141\n"].contains(String(decoding: try tool.bytes("code"), as: UTF8.self)))
        }
    }

    @Test func headIsTheResult() async throws {
        try await withTool {
            try $0.respond(status: $0.request.path == "/404" ? 404 : 200, headers: [("X-Test", "a\u{202E}b")])
        } test: { server, tool in
            let result = try await tool.tern("-I", server.text("/a"))
            #expect(result.code == 0 && result.text.hasPrefix("HTTP/1.1 200"), "\(result.text)")
            #expect(result.text.contains("\nX-Test: a\u{FFFD}b\n") && result.messages.isEmpty)
            let missing = try await tool.tern("-sI", server.text("/404"))
            #expect(missing.code == 8 && missing.text.hasPrefix("HTTP/1.1 404") && missing.messages.isEmpty)
        }
    }

    @Test func silenceHidesProgressAndErrorsButForS() async throws {
        try await withTool {
            try $0.respond(status: $0.request.path == "/404" ? 404 : 200, text: "hello")
        } test: { server, tool in
            for command in ["get", "download"] {
                let file = try await tool.tern(command, "-s", server.text("/a"), "-o", "file")
                #expect(file.code == 0 && file.messages.isEmpty, "\(file.messages)")
                let silent = try await tool.tern(command, "-s", server.text("/404"), "-o", "file")
                #expect(silent.code == 8 && silent.messages.isEmpty, "\(silent.messages)")
                let told = try await tool.tern(command, "-sS", server.text("/404"), "-o", "file")
                #expect(told.code == 8 && told.messages.contains("404"), "\(told.messages)")
            }
            let list = try await tool.tern("download", "-s", server.text("/404"), server.text("/b"))
            #expect(list.code == 8 && list.messages.isEmpty, "\(list.messages)")
        }
    }

    @Test func failWritesNoBody() async throws {
        try await withTool {
            try $0.respond(status: 404, text: "nothing")
        } test: { server, tool in
            let result = try await tool.tern("-f", server.text("/"))
            #expect(result.code == 8 && result.output.isEmpty && result.messages.contains("404"))
            #expect(try await tool.tern(server.text("/")).text == "nothing")
        }
    }

    // MARK: Bodies

    @Test func missingFilesOfABodyAreToldBeforeAnyRequest() async throws {
        try await withTool {
            try $0.respond()
        } test: { server, tool in
            for words in [
                ["-F", "file=@missing"], ["-F", "text=<missing"], ["-d", "@missing"], ["--json", "@missing"],
                ["file@missing"],
            ] {
                let result = try await tool.run(ToolProcess.path("tern"), [server.text("/")] + words)
                #expect(
                    result.code == 3 && result.messages == "tern: missing: No such file or directory\n",
                    "\(result.messages)")
            }
            let upload = try await tool.tern("upload", server.text("/"), "missing")
            #expect(upload.code == 3 && upload.messages == "tern: missing: No such file or directory\n")
            #expect(server.counts.requestsReceived == 0)
        }
    }

    @Test(arguments: [
        ["-d", "a", "--json", "{}"], ["-F", "a=b", "-d", "c"], ["-I", "-d", "a"], ["--json", "{}", "a=b"],
        ["-d", "a", "b=c"],
        ["-F", "a"], ["a:=x"], ["-f", "a:=1"], ["-I", "-O"], ["-O", "-o", "-"], ["-L", "--no-location"],
        ["-x", "ftp://h"],
        ["--connect-timeout", "0"], ["-G", "--json", "{}"],
    ])
    func contradictionsAreErrorsOfTheArguments(words: [String]) async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        let result = try await tool.run(ToolProcess.path("tern"), ["http://127.0.0.1:1/"] + words)
        #expect(result.code == 64, "\(result.messages)")
    }

    @Test func uploadWritesWhatTheServerSaysToARefusal() async throws {
        try await withTool { exchange in
            try exchange.drainBody()
            try exchange.respond(status: 422, json: ["message": "no pictures today"])
        } test: { server, tool in
            try tool.write([1, 2, 3], to: "file")
            let result = try await tool.tern("upload", server.text("/"), "file")
            #expect(result.code == 8 && result.text == "{\"message\":\"no pictures today\"}", "\(result.text)")
            #expect(result.messages.contains("422") && result.messages.contains("no pictures today"))
        }
    }

    // MARK: Errors

    @Test func unknownOptionsAndCommandsAreExplained() async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        let option = try await tool.tern("http://127.0.0.1:1/", "--silant")
        #expect(option.code == 64 && option.messages.contains("Unknown option '--silant'. Did you mean '--silent'?"))
        let other = try await tool.tern("http://127.0.0.1:1/", "--segments", "2")
        #expect(other.code == 64 && other.messages.contains("'tern download' has it"), "\(other.messages)")
        let command = try await tool.tern("donwload", "http://127.0.0.1:1/")
        #expect(command.code == 64 && command.messages.contains("Did you mean 'download'?"), "\(command.messages)")
        let help = try await tool.tern("--help")
        #expect(help.code == 0 && help.text.contains("download"))
    }

    @Test func tlsToAPlainPortIsExplained() async throws {
        try await withTool {
            try $0.respond()
        } test: { _, tool in
            // Reads the first bytes, and answers as servers of plain HTTP do.
            let plain = try PlainServer()
            defer { plain.stop() }
            let result = try await tool.tern("https://user:secret@127.0.0.1:\(plain.port)/a")
            #expect(result.code == 5 && result.messages.contains("answered without TLS"), "\(result.messages)")
            #expect(result.messages.contains("for plain HTTP, write http://127.0.0.1:\(plain.port)/a\n"))
            #expect(!result.messages.contains("secret"))
        }
    }

    // MARK: Secrets

    @Test(arguments: [["-v"], ["-i"], ["-v", "-o", "file"], []])
    func credentialsOfAURLAreNeverShown(options: [String]) async throws {
        try await withTool {
            try $0.respond(status: $0.request.path == "/404" ? 404 : 200, text: "hello")
        } test: { server, tool in
            try tool.write([1], to: "data")
            for (path, code) in [("/a", Int32(0)), ("/404", 8)] {
                let url = server.text(path + "?token=hidden").replacing("//", with: "//user:s3cr3t@")
                var commands = [[url] + options]
                if options == ["-v"] {
                    commands += [["download", url, "-v", "-o", "file"], ["upload", url, "data", "-v"]]
                }
                for words in commands {
                    let result = try await tool.run(ToolProcess.path("tern"), words)
                    #expect(result.code == code, "\(words): \(result.messages)")
                    for secret in ["s3cr3t", "hidden", "dXNlcjpzM2NyM3Q="] {
                        #expect(!result.messages.contains(secret), "\(words): \(result.messages)")
                    }
                }
            }
            guard options.isEmpty else { return }
            let second = try await tool.tern("get", server.text("/"), "http://user:s3cr3t@127.0.0.1/")
            #expect(second.code == 64 && !second.messages.contains("s3cr3t"))
            let same = try await tool.tern("download", "http://u:s3cr3t@a/x", "http://u:s3cr3t@b/x")
            #expect(same.code == 64 && !same.messages.contains("s3cr3t"), "\(same.messages)")
        }
    }

    /// The command of `-v --reveal`, run by a shell, sends the same.
    @Test(arguments: [
        ["-u", "user:it's", "URL/a?b=c&d='e'"], ["-X", "PUT", "URL/a", "-d", "it's $HOME\n`a`"],
        ["URL/a", "-H", "X-Test: 'a' \"b\""],
        ["URL/a", "-d", "@data"], ["URL/a", "--json", "{\"a\":\"'\"}"], ["URL/a", "name=it's", "age:=29"],
        ["URL/a", "-F", "text=@literal", "-F", "file=@data;type=a/b", "--form-string", "at=@data"], ["-I", "URL/a"],
        ["URL/a", "-G", "-d", "q=1"], ["-f", "POST", "URL/a", "name=a b", "file@data"],
        ["http://user:it's@HOST/a"],
    ])
    func revealedCommandCanBePasted(words: [String]) async throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/curl") else { return }
        let seen = Seen()
        try await withTool { exchange in
            let request = exchange.request
            let body = String(decoding: try exchange.readBody(), as: UTF8.self)
            let type = request["Content-Type"] ?? "-"
            let mark = type.firstRange(of: "boundary=").map { String(type[$0.upperBound...]) } ?? "\u{0}"
            // HTTP clients order the fields of a part differently.
            let lines = body.split(separator: "\r\n").sorted().joined(separator: "|")
            let fields = ["X-Test", "Authorization"].map { request[$0] ?? "-" }
            seen.add(
                ([request.method, request.target, type, lines] + fields).joined(separator: " ").replacing(
                    mark, with: "B"
                )
                .replacing("---B", with: "B").replacing("--B", with: "B"))
            try exchange.respond(text: "hello")
        } test: { server, tool in
            try tool.write("one".utf8, to: "data")
            try tool.write("two".utf8, to: "literal")
            let host = server.text("").dropFirst("http://".count).prefix { $0 != "/" }
            let arguments = words.map {
                $0.replacing("URL", with: "http://\(host)").replacing("HOST", with: host)
            }
            let result = try await tool.run(ToolProcess.path("tern"), arguments + ["-v", "--reveal"])
            #expect(result.code == 0, "\(result.messages)")
            let start = try #require(result.messages.firstRange(of: "curl "))
            let end = try #require(result.messages.firstRange(of: "\n→ "))
            let pasted = try await tool.run(
                "/bin/sh", ["-c", String(result.messages[start.lowerBound..<end.lowerBound]) + " -s"])
            #expect(pasted.code == 0, "\(result.messages)")
            #expect(seen.all.count == 2 && seen.all[0] == seen.all[1], "\(seen.all)")
            // Without --reveal, no secret is in the command.
            let redacted = try await tool.run(ToolProcess.path("tern"), arguments + ["-v"])
            #expect(redacted.messages.contains("curl ") && !redacted.messages.contains("it's"), "\(redacted.messages)")
        }
    }

    // MARK: TLS

    @Test func certificatesAreTrustedAsTheOptionsSay() async throws {
        guard let openssl = ReflexTests.program("openssl") else { return }
        let tool = try ToolProcess()
        defer { tool.remove() }
        let made = try await tool.run(
            openssl,
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "cert", "-days", "2",
                "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost",
            ])
        #expect(made.code == 0, "\(made.messages)")
        try tool.write("hello".utf8, to: "page")
        try tool.write("nothing".utf8, to: "empty")
        let port = try LoopbackServer.refusingPort()
        let url = "https://localhost:\(port)/page"
        _ = try await tool.run(
            openssl, ["s_server", "-accept", "\(port)", "-key", "key", "-cert", "cert", "-WWW", "-quiet"],
            keepsInputOpen: true
        ) { server in
            defer { kill(server.processIdentifier, SIGKILL) }
            for options in [["-k"], ["--cacert", "cert"], ["--verify=no"], ["--verify", "cert"], ["-sk"]] {
                // The server accepts connections some time after its start.
                let result = try await tool.run(ToolProcess.path("tern"), [url, "--retry", "9"] + options)
                #expect(result.code == 0 && result.text == "hello", "\(options): \(result.messages)")
            }
            let refused = try await tool.tern(url)
            #expect(refused.code == 5 && refused.messages.contains("--cacert FILE"), "\(refused.messages)")
            let empty = try await tool.tern(url, "--cacert", "empty")
            #expect(empty.code == 64 && empty.messages.contains("--cacert empty: "), "\(empty.messages)")
            let missing = try await tool.tern(url, "--cacert", "missing")
            #expect(missing.code == 3 && missing.messages == "tern: missing: No such file or directory\n")
        }
    }
}

/// A server that answers the first bytes of each connection with a response of plain HTTP, as nginx answers TLS.
private final class PlainServer: Sendable {
    let port: Int
    private let descriptor: Int32

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(listener, address, size) == 0 && listen(listener, 8) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRINUSE) }
        port = Int(UInt16(bigEndian: address.sin_port))
        descriptor = listener
        Thread.detachNewThread {
            while case let client = accept(listener, nil, nil), client >= 0 {
                var bytes = [UInt8](repeating: 0, count: 4_096)
                if unsafe recv(client, &bytes, bytes.count, 0) > 0 {
                    let answer = Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8)
                    _ = unsafe send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
                }
                close(client)
            }
        }
    }

    func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }
}
#endif
