#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct DownloadTests {
    static let pattern = LoopbackServer.Pattern(count: 3_000_000)

    /// Answers with the path of the URL, without its slash.
    static func echoPath(_ exchange: LoopbackServer.Exchange) throws {
        try exchange.respond(text: String(exchange.request.path.dropFirst()))
    }

    // MARK: The file

    @Test func fileIsCompleteAndTheOnlyOne() async throws {
        try await inTestFolder { folder in
            try await withServer {
                try $0.serveFile(Self.pattern)
            } test: { _, client in
                let task = client.download("a", to: folder.url("a.bin"))
                let file = try await task.value
                #expect(file == folder.url("a.bin"))
                #expect(Self.pattern.matches(try folder.bytes("a.bin")))
                #expect(try folder.bytes("a.bin").count == Self.pattern.count)
                #expect(try folder.names == ["a.bin"])
                #expect(task.resumeData == nil)
            }
        }
    }

    @Test func unfinishedFileHasATemporaryNameInTheSameFolder() async throws {
        let gate = LoopbackServer.Gate()
        try await inTestFolder { folder in
            try folder.write("old", to: "a.bin")
            try await withServer { exchange in
                try exchange.writeHead(headers: [("Content-Length", "200000")])
                try exchange.write([UInt8](repeating: 1, count: 100_000))
                try exchange.wait(for: gate)
                try exchange.write([UInt8](repeating: 1, count: 100_000))
            } test: { _, client in
                let task = client.download("a", to: folder.url("a.bin"))
                while try folder.names.count < 2 { await Task.yield() }
                let temporary = try #require(try folder.names.first { $0 != "a.bin" })
                #expect(temporary.hasPrefix("."))
                #expect(try folder.text("a.bin") == "old")
                gate.open()
                _ = try await task.value
                #expect(try folder.names == ["a.bin"])
                #expect(try folder.bytes("a.bin").count == 200_000)
            }
        }
    }

    @Test func refusedStatusWritesNoFile() async throws {
        try await inTestFolder { folder in
            try folder.write("old", to: "a.bin")
            try await withServer {
                try $0.respond(status: 404, text: "no such page")
            } test: { _, client in
                let asked = Log<String>()
                let error = try await failure {
                    try await client.download("a", to: folder.url("a.bin")).value
                }
                #expect(error.kind == .status)
                #expect(error.body == Data("no such page".utf8))
                _ = try await failure {
                    try await client.download("a") { url, _ in
                        asked.add(url.path)
                        return folder.url("b.bin")
                    }.value
                }
                #expect(asked.all.isEmpty)
                #expect(try folder.names == ["a.bin"])
                #expect(try folder.text("a.bin") == "old")
            }
        }
    }

    @Test func shorterFileReplacesALongerOneCompletely() async throws {
        try await inTestFolder { folder in
            try folder.write(String(repeating: "x", count: 100_000), to: "a")
            try await withServer(Self.echoPath) { _, client in
                _ = try await client.download("short", to: folder.url("a")).value
                #expect(try folder.text("a") == "short")
            }
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    ])
    func anEmptyBodyGivesAnEmptyFile(script: String) async throws {
        try await inTestFolder { folder in
            try folder.write("old", to: "a")
            try await withScript(script) { _, client in
                _ = try await client.download("a", to: folder.url("a")).value
                #expect(try folder.bytes("a").isEmpty)
                #expect(try folder.names == ["a"])
            }
        }
    }

    // MARK: Existing files

    @Test func keepBothAddsANumberToTheNewFile() async throws {
        try await inTestFolder { folder in
            try await withServer(Self.echoPath) { _, client in
                let options = Download.Options(existing: .keepBoth)
                var places: [String] = []
                for text in ["one", "two", "three"] {
                    let file = try await client.download(text, to: folder.url("a.tar.gz"), options: options).value
                    places.append(FilePath.name(of: file.path))
                }
                #expect(places == ["a.tar.gz", "a.tar-1.gz", "a.tar-2.gz"])
                #expect(try places.map { try folder.text($0) } == ["one", "two", "three"])
                for _ in 0..<2 { _ = try await client.download("x", to: folder.url("plain"), options: options).value }
                #expect(try folder.names == (places + ["plain", "plain-1"]).sorted())
            }
        }
    }

    @Test func twentyConcurrentDownloadsKeepAllFiles() async throws {
        try await inTestFolder { folder in
            try await withServer(Self.echoPath) { _, client in
                let tasks = (0..<20).map {
                    client.download("\($0)", to: folder.url("a"), options: Download.Options(existing: .keepBoth))
                }
                var texts: Set<String> = []
                for task in tasks { texts.insert(try folder.text(FilePath.name(of: try await task.value.path))) }
                #expect(texts == Set((0..<20).map { "\($0)" }))
                #expect(try folder.names.count == 20)
            }
        }
    }

    @Test func failKeepsTheExistingFile() async throws {
        try await inTestFolder { folder in
            try folder.write("old", to: "a")
            try await withServer(Self.echoPath) { _, client in
                let error = try await failure {
                    try await client.download("x", to: folder.url("a"), options: Download.Options(existing: .fail))
                        .value
                }
                #expect(error.kind == .fileSystem)
                #expect(try folder.text("a") == "old")
                #expect(try folder.names == ["a"])
            }
        }
    }

    @Test func foldersAreCreatedOnRequestOnly() async throws {
        try await inTestFolder { folder in
            try await withServer(Self.echoPath) { _, client in
                let error = try await failure {
                    try await client.download("x", to: folder.url("b/c/d.txt")).value
                }
                #expect(error.kind == .fileSystem)
                #expect(try folder.names == [])
                let options = Download.Options(createsFolders: true)
                _ = try await client.download("x", to: folder.url("b/c/d.txt"), options: options).value
                #expect(try folder.names == ["b", "b/c", "b/c/d.txt"])
                _ = try await client.download("y", options: options) { _, _ in folder.url("e/f.txt") }.value
                #expect(try folder.text("e/f.txt") == "y")
            }
        }
    }
}
#endif
