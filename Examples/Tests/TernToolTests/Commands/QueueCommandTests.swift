#if os(Linux)
import Foundation
import TernTesting
import Testing

@testable import TernTool

/// `tern queue` as a process, over real connections.
@Suite("tern queue", .timeLimit(.minutes(2)))
struct QueueCommandTests {
    private static let pattern = DownloadCommandTests.pattern

    private func check(_ tool: ToolProcess, _ name: String) throws {
        let bytes = try tool.bytes(name)
        #expect(bytes.count == Self.pattern.count && Self.pattern.matches(bytes))
    }

    /// A file is replaced only by a name that the caller gives.
    @Test func aNameFromTheURLReplacesNoFile() async throws {
        try await withTool {
            try DownloadCommandTests.serve($0)
        } test: { server, tool in
            try Data("mine".utf8).write(to: tool.file("a"))
            #expect(try await tool.tern("queue", "add", server.text("/a")).code == 0)
            let run = try await tool.tern("queue", "run")
            #expect(run.code == 3, "\(run.messages)")
            #expect(try tool.bytes("a") == Data("mine".utf8))
            #expect(try await tool.tern("queue", "remove", "--all").code == 0)
            #expect(try await tool.tern("queue", "add", server.text("/a"), "-o", "a").code == 0)
            #expect(try await tool.tern("queue", "run").code == 0)
            try check(tool, "a")
        }
    }

    @Test func aRefusedCredentialHasItsExitCode() async throws {
        try await withTool {
            try $0.respond(status: 401)
        } test: { server, tool in
            let added = try await tool.tern("queue", "add", server.text("/a"))
            #expect(added.code == 0)
            #expect(try await tool.tern("queue", "run").code == 6)
        }
    }

    @Test func downloadsAreStoredPausedAndRun() async throws {
        try await withTool {
            try DownloadCommandTests.serve($0)
        } test: { server, tool in
            let added = try await tool.tern("queue", "add", server.text("/a?token=s3cr3t"), server.text("/b"))
            #expect(added.code == 0 && added.text == "1\n2\n", "\(added.messages)")
            let listed = try await tool.tern("queue", "list").text
            #expect(listed.split(separator: "\n").count == 2 && listed.contains("1  waiting") && listed.contains("/b"))
            #expect(!listed.contains("s3cr3t"))
            #expect(try await tool.tern("queue", "pause", "2").text == "1 paused\n")
            let run = try await tool.tern("queue", "run")
            #expect(run.code == 0 && run.messages.contains("1  finished"), "\(run.messages)")
            #expect(!run.messages.contains("s3cr3t"))
            try check(tool, "a")
            #expect(!FileManager.default.fileExists(atPath: tool.file("b").path))
            #expect(try await tool.tern("queue", "list").text.hasPrefix("2  paused"))
            #expect(try await tool.tern("queue", "resume", "--all").text == "1 resumed\n")
            #expect(try await tool.tern("queue", "run").code == 0)
            try check(tool, "b")
            #expect(try await tool.tern("queue", "list").text == "")
        }
    }

    @Test func killedRunIsContinued() async throws {
        let seen = Seen()
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            guard exchange.number == 1 else { return try DownloadCommandTests.serve(exchange, seen) }
            try exchange.writeHead(headers: [("ETag", Self.pattern.etag), ("Content-Length", "1000000")])
            try exchange.streamPattern(Self.pattern, in: 0..<300_000)
            try exchange.waitUntilReceived()
            gate.open()
            try exchange.waitForClientToClose()
        } test: { server, tool in
            #expect(try await tool.tern("queue", "add", server.text("/a"), "-o", "file").code == 0)
            let killed = try await tool.run(ToolProcess.path("tern"), ["queue", "run"]) { process in
                try await gate.wait()
                let second = try await tool.tern("queue", "list")
                #expect(second.code == 11, "\(second.messages)")
                kill(process.processIdentifier, SIGKILL)
            }
            #expect(killed.code == 128 + SIGKILL)
            let result = try await tool.tern("queue", "run")
            #expect(result.code == 0, "\(result.messages)")
            try check(tool, "file")
            #expect(seen.all.count == 1 && seen.all[0].hasPrefix("GET /a bytes="))
        }
    }

    @Test func failedDownloadIsToldByItsCodeAndTriedAgain() async throws {
        try await withTool { exchange in
            if exchange.number == 1 { return try exchange.respond(status: 404) }
            try DownloadCommandTests.serve(exchange)
        } test: { server, tool in
            #expect(try await tool.tern("queue", "add", server.text("/a")).code == 0)
            let failed = try await tool.tern("queue", "run")
            #expect(failed.code == 8 && failed.messages.contains("1  failed"), "\(failed.messages)")
            #expect(try await tool.tern("queue", "list").text.hasPrefix("1  failed"))
            let second = try await tool.tern("queue", "run")
            #expect(second.code == 0, "\(second.messages)")
            try check(tool, "a")
        }
    }

    @Test func resultStaysUntilItsLineIsWritten() async throws {
        try await withTool {
            try DownloadCommandTests.serve($0)
        } test: { server, tool in
            _ = try await tool.tern("queue", "add", server.text("/a"))
            let program = try ToolProcess.path("tern")
            let lost = try await tool.run("/bin/sh", ["-c", "\(program) queue run 2>/dev/full"])
            #expect(lost.code == 3)
            let result = try await tool.tern("queue", "run")
            #expect(result.code == 0 && result.messages.contains("finished"), "\(result.messages)")
            #expect(try await tool.tern("queue", "list").text == "")
        }
    }

    @Test func unknownNumbersAreReported() async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        let result = try await tool.tern("queue", "pause", "99")
        #expect(
            result.code == 1 && result.messages.contains("not paused: 1 of the given downloads"), "\(result.messages)")
    }

    @Test func destinationInTheQueueFolderIsRefused() async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        let result = try await tool.tern("queue", "add", "https://a.test/x", "-o", ".queue/queue.sqlite")
        #expect(result.code == 64 && result.messages.contains("folder of the queue"), "\(result.messages)")
    }

    @Test func removedDownloadLeavesNothing() async throws {
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            try exchange.writeHead(headers: [("ETag", Self.pattern.etag), ("Content-Length", "1000000")])
            try exchange.streamPattern(Self.pattern, in: 0..<300_000)
            try exchange.waitUntilReceived()
            gate.open()
            try exchange.waitForClientToClose()
        } test: { server, tool in
            #expect(try await tool.tern("queue", "add", server.text("/a")).code == 0)
            let ended = try await tool.run(ToolProcess.path("tern"), ["queue", "run"]) { process in
                try await gate.wait()
                kill(process.processIdentifier, SIGINT)
            }
            #expect(ended.code == 130, "\(ended.messages)")
            #expect(try tool.names.contains(".a.tern"))
            #expect(try await tool.tern("queue", "remove", "1").text == "1 removed\n")
            #expect(try tool.names.filter { !$0.hasPrefix(".queue") } == [])
            let unknown = try await tool.tern("queue", "remove", "7")
            #expect(unknown.code == 1 && unknown.text == "0 removed\n")
        }
    }

    @Test func checksumAndListAreStored() async throws {
        try await withTool {
            try DownloadCommandTests.serve($0)
        } test: { server, tool in
            let wrong = "sha256:" + String(repeating: "0", count: 64)
            #expect(try await tool.tern("queue", "add", server.text("/a"), "--checksum", wrong).code == 0)
            let list = "\(server.text("/b"))\n"
            #expect(try await tool.tern("queue", "add", "-i", "-", input: list).text == "2\n")
            let result = try await tool.tern("queue", "run")
            #expect(result.code == 10, "\(result.messages)")
            try check(tool, "b")
            #expect(!FileManager.default.fileExists(atPath: tool.file("a").path))
        }
    }
}
#endif
