#if os(Linux)
import Foundation
import TernTesting
import Testing

@testable import TernTool

/// `tern download` as a process, over real connections.
@Suite("tern download", .timeLimit(.minutes(2)))
struct DownloadCommandTests {
    static let pattern = LoopbackServer.Pattern(count: 1_000_000)
    private static let sha256 = "sha256:" + Self.digest

    /// Computed once by the system's own program.
    private static let digest: String = {
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(filePath: "/usr/bin/sha256sum")
        process.standardInput = input
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            return "\(error)"
        }
        input.fileHandleForWriting.write(Data(pattern.bytes()))
        // `try?`: without the end of its input, the program would not end.
        try? input.fileHandleForWriting.close()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return String(text.prefix(64))
    }()

    /// Serves the file with validators, from the requested position on, and cuts it after `limit` bytes.
    static func serve(_ exchange: LoopbackServer.Exchange, limit: Int = .max, _ seen: Seen? = nil) throws {
        let range = exchange.request["Range"]
        seen?.add("\(exchange.request.method) \(exchange.request.path) \(range ?? "-")")
        let start = range.flatMap { Int($0.dropFirst("bytes=".count).prefix { $0 != "-" }) } ?? 0
        var fields: LoopbackServer.Fields = [
            ("ETag", pattern.etag), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("Date", "Mon, 01 Jan 2024 08:49:37 GMT"), ("Content-Length", "\(pattern.count - start)"),
        ]
        if range != nil { fields.append(("Content-Range", "bytes \(start)-999999/1000000")) }
        try exchange.writeHead(status: range == nil ? 200 : 206, headers: fields)
        guard exchange.request.method != "HEAD" else { return }
        let end = start + min(pattern.count - start, limit)
        try exchange.streamPattern(pattern, in: start..<end)
        if end < pattern.count { exchange.close() }
    }

    private func check(_ tool: ToolProcess, _ name: String) throws {
        let bytes = try tool.bytes(name)
        #expect(bytes.count == Self.pattern.count && Self.pattern.matches(bytes))
    }

    @Test func fileIsNamedByTheServerAndNothingElseIsLeft() async throws {
        try await withTool { exchange in
            let fields = [("Content-Disposition", "attachment; filename=\"report.bin\"")]
            if exchange.request.method == "HEAD" { return try exchange.respond(headers: fields) }
            try Self.serve(exchange)
        } test: { server, tool in
            let result = try await tool.tern("download", server.text("/x"))
            #expect(result.code == 0, "\(result.messages)")
            #expect(result.messages.contains("report.bin: 1.0 MB in "))
            #expect(try tool.names == ["report.bin"])
            try check(tool, "report.bin")
        }
    }

    @Test func secondFileOfTheNameGetsANumber() async throws {
        try await withTool {
            try Self.serve($0)
        } test: { server, tool in
            try tool.write([1], to: "x.bin")
            let result = try await tool.tern("download", server.text("/x.bin"))
            #expect(result.code == 0, "\(result.messages)")
            #expect(try tool.names == ["x-1.bin", "x.bin"])
        }
    }

    @Test func failedDownloadIsContinuedByTheSameCommand() async throws {
        let seen = Seen()
        try await withTool { exchange in
            try Self.serve(exchange, limit: exchange.number == 1 ? 300_000 : .max, seen)
        } test: { server, tool in
            let arguments = ["download", server.text("/file"), "-o", "file"]
            let first = try await tool.run(ToolProcess.path("tern"), arguments + ["--retry", "0"])
            #expect(first.code == 4 && first.messages.contains("300000 bytes are kept in "), "\(first.messages)")
            #expect(try tool.names == [".file.tern", ".file.tern.json"])
            let second = try await tool.run(ToolProcess.path("tern"), arguments)
            #expect(second.code == 0, "\(second.messages)")
            try check(tool, "file")
            #expect(seen.all == ["GET /file -", "GET /file bytes=300000-"])
        }
    }

    @Test func partOfAKilledProcessIsContinued() async throws {
        let seen = Seen()
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            guard exchange.number == 1 else { return try Self.serve(exchange, seen) }
            try exchange.writeHead(headers: [("ETag", Self.pattern.etag), ("Content-Length", "1000000")])
            try exchange.streamPattern(Self.pattern, in: 0..<300_000)
            try exchange.waitUntilReceived()
            gate.open()
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let arguments = ["download", server.text("/file"), "-o", "file"]
            let killed = try await tool.run(ToolProcess.path("tern"), arguments) { process in
                try await gate.wait()
                kill(process.processIdentifier, SIGKILL)
            }
            #expect(killed.code == 128 + SIGKILL)
            let result = try await tool.run(ToolProcess.path("tern"), arguments)
            #expect(result.code == 0, "\(result.messages)")
            try check(tool, "file")
            #expect(try tool.names == ["file"])
            #expect(seen.all.count == 1 && seen.all[0].hasPrefix("GET /file bytes="))
        }
    }

    @Test(arguments: ["curl", "wget"])
    func partOfAnotherProgramIsContinued(program: String) async throws {
        let path = "/usr/bin/\(program)"
        guard FileManager.default.isExecutableFile(atPath: path) else { return }
        let seen = Seen()
        try await withTool { exchange in
            try Self.serve(exchange, limit: exchange.number == 1 ? 300_000 : .max, seen)
        } test: { server, tool in
            let url = server.text("/file")
            let other = program == "curl" ? ["-sS", "-o", "file", url] : ["-q", "--tries=1", "-O", "file", url]
            let first = try await tool.run(path, other)
            #expect(first.code != 0)
            #expect(try tool.bytes("file").count == 300_000)
            let result = try await tool.tern("download", "-c", url, "-o", "file", "-v")
            #expect(result.code == 0, "\(result.messages)")
            #expect(result.messages.contains("continues the existing file of 300000 bytes"))
            try check(tool, "file")
            #expect(seen.all == ["GET /file -", "HEAD /file -", "GET /file bytes=300000-"])
        }
    }

    @Test func partIsForcedWithoutProof() async throws {
        let seen = Seen()
        try await withTool { exchange in
            seen.add("\(exchange.request.method) \(exchange.request["Range"] ?? "-")")
            try exchange.serveFile(Self.pattern)
        } test: { server, tool in
            try tool.write(Self.pattern.bytes(in: 0..<300_000), to: "file")
            let arguments = ["download", server.text("/file"), "-o", "file"]
            let doubtful = try await tool.run(ToolProcess.path("tern"), arguments + ["-c", "-v"])
            #expect(doubtful.code == 0 && doubtful.messages.contains("does not continue the existing file: "))
            #expect(seen.all.last == "GET -")
            try tool.write(Self.pattern.bytes(in: 0..<300_000), to: "file")
            let forced = try await tool.run(ToolProcess.path("tern"), arguments + ["--force-continue"])
            #expect(forced.code == 0, "\(forced.messages)")
            #expect(seen.all.last == "GET bytes=300000-")
            try check(tool, "file")
        }
    }

    @Test func severalFilesHaveATotalAndTheFailureOfOneIsToldByTheCode() async throws {
        try await withTool { exchange in
            if exchange.request.path == "/c" { return try exchange.respond(status: 404) }
            try Self.serve(exchange)
        } test: { server, tool in
            let result = try await tool.tern(
                "download", server.text("/a"), server.text("/b"), server.text("/c"), "--jobs", "2")
            #expect(result.code == 8, "\(result.messages)")
            #expect(try tool.names == ["a", "b"])
            try check(tool, "a")
            try check(tool, "b")
            #expect(result.messages.contains("a: 1.0 MB in ") && result.messages.contains("total: 2.0 MB in "))
            #expect(result.messages.contains("tern: c: ") && result.messages.contains("tern: 1 of 3 failed"))
        }
    }

    @Test(arguments: [true, false])
    func listIsReadFromAFileOrStandardInput(isFile: Bool) async throws {
        try await withTool {
            try Self.serve($0)
        } test: { server, tool in
            let list = "# two\n\n  \(server.text("/a"))  \n\(server.text("/b"))\n"
            if isFile { try tool.write(Array(list.utf8), to: "list") }
            let result = try await tool.tern("download", "--input-file", isFile ? "list" : "-", input: list)
            #expect(result.code == 0, "\(result.messages)")
            try check(tool, "a")
            try check(tool, "b")
        }
    }

    @Test func twoURLsWithOneNameAreRefused() async throws {
        try await withTool {
            try Self.serve($0)
        } test: { server, tool in
            let result = try await tool.tern("download", server.text("/1/a"), server.text("/2/a"))
            #expect(result.code == 64 && result.messages.contains("has the name a, too"))
            #expect(server.counts.requestsReceived == 0)
        }
    }

    @Test func segmentsAskForRanges() async throws {
        let pattern = LoopbackServer.Pattern(count: 4 << 20)
        let seen = Seen()
        try await withTool { exchange in
            if let range = exchange.request["Range"] { seen.add(range) }
            try exchange.serveFile(pattern)
        } test: { server, tool in
            let result = try await tool.tern("download", server.text("/file"), "-o", "file", "--segments", "4")
            #expect(result.code == 0, "\(result.messages)")
            #expect(pattern.matches(try tool.bytes("file")))
            #expect(Set(seen.all).count == 4)
        }
    }

    @Test(arguments: [["/file", "-o", "file"], ["/a", "/b"], ["/file", "-o", "-"]])
    func rateIsLimited(arguments: [String]) async throws {
        try await withTool {
            try Self.serve($0)
        } test: { server, tool in
            let words = arguments.map { $0.hasPrefix("/") ? server.text($0) : $0 }
            let start = ContinuousClock.now
            let result = try await tool.run(
                ToolProcess.path("tern"), ["download", "--limit-rate", "500k"] + words)
            #expect(result.code == 0, "\(result.messages)")
            // A quarter of a second's bytes may come at once. A slow machine only takes longer.
            #expect(ContinuousClock.now - start > .seconds(1))
        }
    }

    @Test func checksumDecides() async throws {
        try await withTool {
            try Self.serve($0)
        } test: { server, tool in
            let arguments = ["download", server.text("/file"), "-o", "file", "--checksum"]
            let right = try await tool.run(ToolProcess.path("tern"), arguments + [Self.sha256])
            #expect(right.code == 0 && right.messages.contains("sha256 verified"), "\(right.messages)")
            try FileManager.default.removeItem(at: tool.file("file"))
            let wrong = try await tool.run(
                ToolProcess.path("tern"), arguments + ["sha256:" + String(repeating: "0", count: 64)])
            #expect(wrong.code == 10)
            #expect(try tool.names == [])
            let invalid = try await tool.run(ToolProcess.path("tern"), arguments + ["sha256:12"])
            #expect(invalid.code == 64 && invalid.messages.contains("it has 64 digits"))
        }
    }

    @Test func hyphenIsStandardOutput() async throws {
        try await withTool {
            try Self.serve($0)
        } test: { server, tool in
            let result = try await tool.tern("download", server.text("/file"), "-o", "-")
            #expect(result.code == 0 && result.messages.isEmpty, "\(result.messages)")
            #expect(result.output.count == 1_000_000 && Self.pattern.matches(result.output))
            #expect(try tool.names == [])
        }
    }

    @Test func timeLimitEndsADownloadAndKeepsItsPart() async throws {
        try await withTool { exchange in
            try exchange.writeHead(headers: [("ETag", Self.pattern.etag), ("Content-Length", "1000000")])
            try exchange.streamPattern(Self.pattern, in: 0..<1_000)
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let result = try await tool.tern("download", server.text("/file"), "-o", "file", "--max-time", "5")
            #expect(result.code == 9, "\(result.messages)")
            #expect(result.messages.contains("1000 bytes are kept in "))
            #expect(try tool.names == [".file.tern", ".file.tern.json"])
        }
    }

    @Test(arguments: [true, false])
    func interruptionKeepsThePartOnlyWithResume(isKept: Bool) async throws {
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            if exchange.request.method == "HEAD" { return try exchange.respond() }
            try exchange.writeHead(headers: [("ETag", Self.pattern.etag), ("Content-Length", "1000000")])
            try exchange.streamPattern(Self.pattern, in: 0..<300_000)
            try exchange.waitUntilReceived()
            gate.open()
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let arguments = ["download", server.text("/file"), "-o", "file"] + (isKept ? ["-c"] : [])
            let result = try await tool.run(ToolProcess.path("tern"), arguments) { process in
                try await gate.wait()
                kill(process.processIdentifier, SIGINT)
            }
            #expect(result.code == 130, "\(result.messages)")
            #expect(result.messages.contains("tern: cancelled"))
            #expect(result.messages.contains("kept: the same command continues") == isKept)
            #expect(try tool.names == (isKept ? [".file.tern", ".file.tern.json"] : []))
        }
    }

    /// Serves 300,000 bytes, then nothing more, and opens the gate.
    private static func stall(
        _ exchange: LoopbackServer.Exchange, _ gate: LoopbackServer.Gate, validators: LoopbackServer.Fields
    ) throws {
        try exchange.writeHead(headers: validators + [("Content-Length", "1000000")])
        try exchange.streamPattern(pattern, in: 0..<300_000)
        try exchange.waitUntilReceived()
        gate.open()
        try exchange.waitForClientToClose()
    }

    /// Only Ctrl-C removes a part, and only one that the command began.
    @Test(arguments: [SIGTERM, SIGHUP]) func otherSignalsKeepThePart(signal: Int32) async throws {
        let gate = LoopbackServer.Gate()
        try await withTool {
            try Self.stall($0, gate, validators: [("ETag", Self.pattern.etag)])
        } test: { server, tool in
            let arguments = ["download", server.text("/file"), "-o", "file"]
            let result = try await tool.run(ToolProcess.path("tern"), arguments) { process in
                try await gate.wait()
                try await waitForPart(tool, longerThan: 0)
                kill(process.processIdentifier, signal)
            }
            #expect(result.code == 128 + signal && result.messages.contains("kept: the same command continues"))
            #expect(try tool.names == [".file.tern", ".file.tern.json"])
        }
    }

    /// Waits until the part in the folder has more bytes than this.
    private func waitForPart(_ tool: ToolProcess, longerThan count: Int) async throws {
        // `try?`: the part is made while the test waits for it.
        while ((try? tool.bytes(".file.tern").count) ?? 0) <= count { try await Task.sleep(for: .milliseconds(5)) }
    }

    @Test func controlCBeforeTheResponseKeepsWhatAnEarlierCommandHadLeft() async throws {
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            if exchange.request["Range"] == nil { return try Self.serve(exchange, limit: 300_000) }
            gate.open()
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let arguments = ["download", server.text("/file"), "-o", "file", "--retry", "0"]
            _ = try await tool.run(ToolProcess.path("tern"), arguments)
            let result = try await tool.run(ToolProcess.path("tern"), arguments) { process in
                try await gate.wait()
                kill(process.processIdentifier, SIGINT)
            }
            #expect(result.code == 130, "\(result.messages)")
            #expect(try tool.names == [".file.tern", ".file.tern.json"])
        }
    }

    /// The name is asked for a few times, within the limit.
    @Test func serverThatDoesNotAnswerHeadCostsHalfOfTheTime() async throws {
        try await withTool { exchange in
            if exchange.request.method == "HEAD" { return try exchange.waitForClientToClose() }
            try Self.serve(exchange)
        } test: { server, tool in
            let start = ContinuousClock.now
            let result = try await tool.tern("download", server.text("/file"), "--max-time", "6")
            #expect(result.code == 0, "\(result.messages)")
            #expect(try tool.names == ["file"])
            #expect(ContinuousClock.now - start >= .seconds(3))
            #expect(server.counts.requestsReceived == 2)
        }
    }

    @Test func controlCKeepsWhatAnEarlierCommandHadLeft() async throws {
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            guard let range = exchange.request["Range"] else { return try Self.serve(exchange, limit: 300_000) }
            let start = Int(range.dropFirst("bytes=".count).prefix { $0 != "-" }) ?? 0
            let fields = [
                ("ETag", Self.pattern.etag), ("Content-Range", "bytes \(start)-999999/1000000"),
                ("Content-Length", "\(1_000_000 - start)"),
            ]
            try exchange.writeHead(status: 206, headers: fields)
            try exchange.streamPattern(Self.pattern, in: start..<400_000)
            try exchange.waitUntilReceived()
            gate.open()
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let arguments = ["download", server.text("/file"), "-o", "file", "--retry", "0"]
            _ = try await tool.run(ToolProcess.path("tern"), arguments)
            let result = try await tool.run(ToolProcess.path("tern"), arguments) { process in
                try await gate.wait()
                try await waitForPart(tool, longerThan: 300_000)
                kill(process.processIdentifier, SIGINT)
            }
            #expect(result.code == 130, "\(result.messages)")
            #expect(try tool.names == [".file.tern", ".file.tern.json"])
        }
    }

    @Test func partThatCannotBeContinuedIsNotCalledKept() async throws {
        let gate = LoopbackServer.Gate()
        try await withTool {
            if $0.request.method == "HEAD" { return try $0.respond() }
            try Self.stall($0, gate, validators: [])
        } test: { server, tool in
            let arguments = ["download", server.text("/file"), "-o", "file", "-c"]
            let result = try await tool.run(ToolProcess.path("tern"), arguments) { process in
                try await gate.wait()
                kill(process.processIdentifier, SIGINT)
            }
            #expect(result.code == 130 && !result.messages.contains("kept"), "\(result.messages)")
            #expect(try tool.names == [])
        }
    }

    /// `URL(filePath:)` puts the home of a user in place of `~root`.
    @Test func tildesAreNotExpanded() async throws {
        try await withTool { exchange in
            let fields = [("Content-Disposition", "attachment; filename=\"~root\"")]
            if exchange.request.method == "HEAD", exchange.request.path == "/suggested" {
                return try exchange.respond(headers: fields)
            }
            try Self.serve(exchange)
        } test: { server, tool in
            for arguments in [
                ["download", server.text("/suggested")], ["download", server.text("/~list")],
                ["download", server.text("/x"), "-o", "~root"], ["get", server.text("/x"), "-o", "~list"],
                ["queue", "add", server.text("/~alice")], ["queue", "run"],
            ] {
                let result = try await tool.run(ToolProcess.path("tern"), arguments)
                #expect(result.code == 0, "\(arguments): \(result.messages)")
            }
            let names = try tool.names.filter { !$0.hasPrefix(".queue") }
            #expect(names == ["alice", "list", "root", "~list", "~root"])
        }
    }

    @Test(arguments: ["/dev/stdout", "/dev/fd/1", "-"]) func namesOfStandardOutputWriteThere(name: String) async throws
    {
        try await withTool {
            try Self.serve($0)
        } test: { server, tool in
            for command in ["download", "get"] {
                let result = try await tool.tern(command, server.text("/x"), "-o", name)
                #expect(result.code == 0 && Self.pattern.matches(result.output), "\(result.messages)")
            }
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: "/dev/stdout") == "/proc/self/fd/1")
        }
    }

    @Test func missingFolderAndEmptyNameAreRefused() async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        for arguments in [
            ["download", "a.test", "-o", ""], ["get", "a.test", "-o", ""], ["queue", "add", "a.test", "-o", ""],
            ["queue", "add", "a.test", "-o", "-"],
        ] {
            #expect(try await tool.run(ToolProcess.path("tern"), arguments).code == 64)
        }
        for arguments in [
            ["download", "a.test", "-o", "a/"], ["get", "a.test", "-o", "a/"], ["queue", "add", "a.test", "-o", "a/"],
        ] {
            #expect(try await tool.run(ToolProcess.path("tern"), arguments).code == 3)
        }
    }

    /// Also the request for the name, and the one whose body goes to standard output.
    @Test(arguments: [["-o", "-"], []]) func everyRequestIsTriedAgain(output: [String]) async throws {
        try await withTool { exchange in
            if exchange.number == 1 { return try exchange.respond(status: 503) }
            try Self.serve(exchange)
        } test: { server, tool in
            let result = try await tool.run(
                ToolProcess.path("tern"), ["download", server.text("/file"), "--retry", "2"] + output)
            #expect(result.code == 0, "\(result.messages)")
        }
    }

    @Test func passwordIsForOneServer() async throws {
        let seen = Seen()
        try await withTool { exchange in
            seen.add(exchange.request["Authorization"] ?? "none")
            try Self.serve(exchange)
        } test: { server, tool in
            let other = server.text("/b").replacing("127.0.0.1", with: "localhost")
            let result = try await tool.tern("download", "-u", "a:secret", server.text("/a"), other)
            #expect(result.code == 64 && seen.all == [], "\(result.messages)")
            let same = try await tool.tern("download", "-u", "a:secret", server.text("/a"), server.text("/b"))
            #expect(same.code == 0 && !seen.all.contains("none"), "\(same.messages)")
        }
    }

    @Test func replacedFileKeepsItsPermissions() async throws {
        try await withTool {
            try Self.serve($0)
        } test: { server, tool in
            try tool.write([1], to: "file")
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: tool.file("file").path)
            for command in ["download", "get"] {
                let result = try await tool.tern(command, server.text("/x"), "-o", "file")
                #expect(result.code == 0, "\(result.messages)")
                let mode = try FileManager.default.attributesOfItem(atPath: tool.file("file").path)[.posixPermissions]
                #expect(mode as? Int == 0o600)
            }
        }
    }

    /// A read of a pipe without bytes cannot be cancelled: the process ends a second after the signal.
    @Test(arguments: [["get", "http://127.0.0.1:1/", "-d", "@-"], ["download", "-i", "-"]])
    func signalEndsAWaitForInput(arguments: [String]) async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        var sent = ContinuousClock.now
        let result = try await tool.run(ToolProcess.path("tern"), arguments, keepsInputOpen: true) { process in
            // Its handler must be there, and the wait have begun.
            try await Task.sleep(for: .seconds(1))
            sent = .now
            kill(process.processIdentifier, SIGTERM)
        }
        #expect(result.code == 128 + SIGTERM)
        // Without the handler, it would have ended at once.
        #expect(ContinuousClock.now - sent >= .seconds(1))
    }

    @Test func fullDiskIsToldInTheSystemsWords() async throws {
        // A small disk of its own needs the rights of root.
        guard geteuid() == 0, FileManager.default.isExecutableFile(atPath: "/usr/bin/unshare") else { return }
        try await withTool { exchange in
            guard exchange.request.path == "/unknown" else { return try Self.serve(exchange) }
            try exchange.writeChunked(chunks: [Self.pattern.bytes()])
        } test: { server, tool in
            let program = try ToolProcess.path("tern")
            for path in ["/file", "/unknown"] {
                let script = "mount -t tmpfs -o size=256k none \"$PWD\" && cd \"$PWD\" && exec \(program) download"
                let result = try await tool.run(
                    "/usr/bin/unshare",
                    ["-m", "sh", "-c", "\(script) \(server.text(path)) -o \"$PWD/file\" --retry 0"])
                if result.messages.contains("mount:") { return }
                #expect(result.code == 3, "\(result.messages)")
                #expect(result.messages.contains("No space left on device"), "\(result.messages)")
            }
        }
    }

    @Test func folderWithoutPermissionIsToldInTheSystemsWords() async throws {
        try await withTool {
            try Self.serve($0)
        } test: { server, tool in
            let missing = try await tool.tern("download", server.text("/file"), "-o", "none/file")
            #expect(missing.code == 3 && missing.messages.contains("No such file or directory"), "\(missing.messages)")
            let readOnly = try await tool.tern("download", server.text("/file"), "-o", "/proc/file")
            #expect(readOnly.code == 3, "\(readOnly.messages)")
            #expect(server.counts.requestsReceived == 0)
        }
    }

    @Test func secondDownloadOfAFileIsToldByItsCode() async throws {
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            try exchange.writeHead(headers: [("ETag", Self.pattern.etag), ("Content-Length", "1000000")])
            try exchange.streamPattern(Self.pattern, in: 0..<1_000)
            try exchange.waitUntilReceived()
            gate.open()
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let arguments = ["download", server.text("/file"), "-o", "file"]
            let first = try await tool.run(ToolProcess.path("tern"), arguments) { process in
                try await gate.wait()
                let second = try await tool.run(ToolProcess.path("tern"), arguments)
                #expect(second.code == 11, "\(second.messages)")
                kill(process.processIdentifier, SIGINT)
            }
            #expect(first.code == 130)
        }
    }
}
#endif
