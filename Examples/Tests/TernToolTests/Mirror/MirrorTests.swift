#if os(Linux)
import Foundation
import Tern
import TernTesting
import Testing

@testable import TernMirror

/// The program of the tutorial, with nginx and kills.
@Suite("tern-mirror", .timeLimit(.minutes(3)))
struct MirrorTests {
    @Test func pageOfNginxIsRead() throws {
        let page = """
            <html><body><h1>Index of /</h1><hr><pre><a href="../">../</a>
            <a href="sub%20folder/">sub folder/</a>          25-Nov-2026 18:00                   -
            <a href="a%20b.bin">a b.bin</a>                  25-Nov-2026 18:01               12345
            <a href="c:d">c:d</a>                            01-Jan-2026 00:00                   0
            <a href="x&amp;y">x&amp;y</a>                    01-Jan-2026 00:00                  1M
            <a href="..%2Fevil">..</a>                       01-Jan-2026 00:00                   1
            <a href="/other">other</a>                       01-Jan-2026 00:00                   1
            <a href=".hidden">.hidden</a>                    01-Jan-2026 00:00                   1
            <a href="?C=N&amp;O=D">Name</a>
            </pre></body></html>
            """
        let base = try #require(URL(string: "http://server/files/"))
        let entries = MirrorIndex(page, at: base).entries
        #expect(entries.map(\.name) == ["sub folder", "a b.bin", "c:d", "x&y"])
        #expect(entries.map(\.isFolder) == [true, false, false, false])
        #expect(entries.map(\.size) == [nil, 12_345, 0, nil])
        #expect(entries.map(\.url.path) == ["/files/sub folder", "/files/a b.bin", "/files/c:d", "/files/x&y"])
        #expect(entries[1].changed == Date(timeIntervalSince1970: 1_795_629_660))
    }

    @Test func pageOfAHostileServerIsRead() throws {
        let page = """
            <a href="a%1B%5B2Jb">a</a>              25-Nov-2026 18:01               1
            <a href="a%0Ab">a</a>                   25-Nov-2026 18:01               1
            <a href="a%C2%9Bb">a</a>                25-Nov-2026 18:01               1
            <a href=".%CC%81profile">a</a>          25-Nov-2026 18:01               1
            <a href="a%E2%80%AEgpj.exe">a</a>       25-Nov-2026 18:01               1
            <a href="a%E2%80%8Bb">a</a>             25-Nov-2026 18:01               1
            <a href="a%E2%80%A8b">a</a>             25-Nov-2026 18:01               1
            <a href="minus">a</a>                   25-Nov-2026 18:01               -5
            <a href="huge">a</a>                    25-Nov-9223372036854775807 18:01 99999999999999999999
            <a href="hours">a</a>                   25-Nov-2026 9223372036854775807:01 7
            """
        let entries = MirrorIndex(page, at: try #require(URL(string: "http://server/files/"))).entries
        #expect(entries.map(\.name) == ["minus", "huge", "hours"])
        #expect(entries.map(\.size) == [nil, nil, 7] && entries.map { $0.changed == nil } == [false, true, true])
    }

    @Test func foldersThatDoNotEndAreAnError() async throws {
        let page = Data("<a href=\"again/\">again/</a> 25-Nov-2026 18:00 -".utf8)
        let session = Session(stub: StubTransport { _ in .data(page, contentType: "text/html") })
        let folder = URL(filePath: "/tmp/tern-mirror-\(UInt64.random(in: 0 ... .max))")
        let mirror = IndexMirror(of: try #require(URL(string: "http://server/")), in: folder, session: session)
        await #expect(throws: IndexMirror.TooDeep.self) { _ = try await mirror.run { _ in } }
    }

    @Test func foldersWithoutNumberAreAnError() async throws {
        let links = (0..<10_000).map { "<a href=\"\($0)/\">\($0)/</a> 25-Nov-2026 18:00 -\n" }
        let page = Data(links.joined().utf8)
        let stub = StubTransport { _ in .data(page, contentType: "text/html") }
        let folder = URL(filePath: "/tmp/tern-mirror-\(UInt64.random(in: 0 ... .max))")
        let url = try #require(URL(string: "http://server/"))
        let mirror = IndexMirror(of: url, in: folder, session: Session(stub: stub))
        await #expect(throws: IndexMirror.TooManyFolders.self) { _ = try await mirror.run { _ in } }
    }

    @Test func workIsCancelledWithItsCallerAndCtrlCIsRestored() async throws {
        let work = Task { try await untilInterrupted { try await Task.sleep(for: .seconds(3_600)) } }
        work.cancel()
        await #expect(throws: CancellationError.self) { try await work.value }
        try await untilInterrupted {}
        var action = sigaction()
        #expect(unsafe sigaction(SIGINT, nil, &action) == 0)
        // The default is the null pointer.
        #expect(unsafe action.__sigaction_handler.sa_handler == nil)
    }

    @Test func tutorialShowsTheProgram() throws {
        let top = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../..")
        let sources = try ["IndexMirror", "MirrorIndex"].map { name in
            try String(contentsOf: top.appending(path: "Examples/Sources/TernMirror/\(name).swift"), encoding: .utf8)
        }
        let tutorial = try String(
            contentsOf: top.appending(path: "Documentation/AMirrorThatSurvives.md"), encoding: .utf8)
        let blocks = tutorial.components(separatedBy: "```swift\n").dropFirst().map {
            $0.components(separatedBy: "```")[0]
        }
        #expect(blocks.count == 6)
        for block in blocks { #expect(sources.contains { $0.contains(block) }, "\(block)") }
    }

    /// The recipe of the cookbook. The first request is the first action of the work: a signal that comes then is not
    /// lost.
    @Test(arguments: ["/", "/a.bin"]) func ctrlCStopsCleanly(at path: String) async throws {
        let gate = LoopbackServer.Gate()
        try await withTool { exchange in
            if exchange.request.path == "/a.bin" {
                try exchange.writeHead(headers: [("Content-Length", "1000000")])
            } else if path == "/a.bin" {
                return try exchange.respond(text: "<a href=\"a.bin\">a.bin</a>   25-Nov-2026 18:00   1000000\n")
            }
            gate.open()
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let result = try await tool.run(
                ToolProcess.path("tern-mirror"), [server.text("/"), tool.file("copy").path]
            ) { process in
                try await gate.wait()
                kill(process.processIdentifier, SIGINT)
            }
            #expect(result.code == 130, "\(result.text)")
            #expect(result.text.hasSuffix("stopped; run the same command to continue\n"), "\(result.text)")
        }
    }

    /// A file of this size is in memory until it is whole or its download ends.
    @Test func cancellingTheMirrorWaitsForItsDownloads() async throws {
        let pattern = LoopbackServer.Pattern(count: 200_000)
        try await withTool { exchange in
            guard exchange.request.path == "/a.bin" else {
                return try exchange.respond(text: "<a href=\"a.bin\">a.bin</a>   25-Nov-2026 18:00   200000\n")
            }
            try exchange.writeHead(headers: [("ETag", pattern.etag), ("Content-Length", "200000")])
            try exchange.streamPattern(pattern, in: 0..<100_000)
            try exchange.waitForClientToClose()
        } test: { server, tool in
            let session = Session(interceptors: [])
            let events = session.tasks.events
            let mirror = IndexMirror(of: server.url("/"), in: tool.file("copy"), session: session)
            let work = Task { try await mirror.run { _ in } }
            for await event in events {
                guard case .resumed(let task) = event, task.request?.urlString.hasSuffix("/a.bin") == true
                else { continue }
                for await progress in task.progress where progress.completedBytes == 100_000 { break }
                break
            }
            work.cancel()
            await #expect(throws: CancellationError.self) { try await work.value }
            let names = try tool.names
            #expect(names == ["copy", "copy/.a.bin.tern", "copy/.a.bin.tern.json"])
        }
    }

    @Test func mirrorOf500FilesSurvivesKills() async throws {
        guard FileManager.default.isExecutableFile(atPath: AutoindexServer.program) else { return }
        let tool = try ToolProcess()
        defer { tool.remove() }
        let server = try await AutoindexServer(in: tool.file("server"), files: 500)
        defer { server.stop() }
        let program = try ToolProcess.path("tern-mirror")
        let arguments = [server.url, tool.file("copy").path]
        var kills = 0
        for _ in 0..<5 {
            let before = try server.requests
            let killed = try await tool.run(program, arguments) { process in
                // After 60 more files, or at its end.
                while try server.requests < before + 60, process.isRunning {
                    try await Task.sleep(for: .milliseconds(1))
                }
                kill(process.processIdentifier, SIGKILL)
            }
            if killed.code == 128 + SIGKILL { kills += 1 }
        }
        #expect(kills == 5)
        let last = try await tool.run(program, arguments)
        #expect(last.code == 0, "\(last.text)")
        #expect(last.text.contains("0 failed"))
        try server.check(copy: tool.file("copy"))
        // Each kill costs at most the files that were under way.
        #expect(try server.requests <= 500 + 5 * 6)
        let again = try await tool.run(program, arguments)
        #expect(again.text == "0 received, 500 unchanged, 0 failed\n", "\(again.text)")
        try server.change(7)
        let changed = try await tool.run(program, arguments)
        #expect(changed.text.hasSuffix("1 received, 499 unchanged, 0 failed\n"), "\(changed.text)")
        try server.check(copy: tool.file("copy"))
    }
}

/// nginx, with files in two folders and pages that list them.
private final class AutoindexServer {
    static let program = "/usr/sbin/nginx"

    private let folder: URL
    private let files: URL
    private let process = Process()
    let url: String

    init(in folder: URL, files count: Int) async throws {
        self.folder = folder
        files = folder.appending(path: "files")
        try FileManager.default.createDirectory(
            at: files.appending(path: "sub folder"), withIntermediateDirectories: true)
        // Older than a minute, so that the minutes of the index decide.
        let old = Date(timeIntervalSinceNow: -600)
        for number in 0..<count {
            let name = number % 5 == 0 ? "sub folder/file \(number)" : "file-\(number)"
            let place = files.appending(path: name)
            let pattern = LoopbackServer.Pattern(count: number * 131, seed: number)
            try Data(pattern.bytes()).write(to: place)
            try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: place.path)
        }
        let socket = try LoopbackServer { _ in }
        let port = socket.port
        socket.stop()
        url = "http://127.0.0.1:\(port)/"
        let text = """
            daemon off; master_process off; pid \(folder.path)/pid; error_log \(folder.path)/error;
            events { worker_connections 64; }
            http {
              log_format paths "$uri"; access_log \(folder.path)/access paths;
              client_body_temp_path \(folder.path)/body; proxy_temp_path \(folder.path)/proxy;
              fastcgi_temp_path \(folder.path)/fastcgi; uwsgi_temp_path \(folder.path)/uwsgi;
              scgi_temp_path \(folder.path)/scgi;
              server { listen 127.0.0.1:\(port); root \(files.path); autoindex on; }
            }
            """
        let settings = folder.appending(path: "nginx.conf")
        try Data(text.utf8).write(to: settings)
        process.executableURL = URL(filePath: Self.program)
        process.arguments = ["-c", settings.path, "-e", folder.path + "/error", "-p", folder.path]
        process.standardError = FileHandle.nullDevice
        try process.run()
        // Ends with the test's time limit if nginx does not start.
        while !FileManager.default.fileExists(atPath: folder.path + "/pid") {
            try #require(process.isRunning, "nginx did not start")
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    func stop() {
        // The threads of tests block SIGTERM, and a child inherits that.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// The number of files that were asked for.
    var requests: Int {
        get throws {
            // `try?`: nginx writes the file with its first request.
            let log = (try? String(contentsOf: folder.appending(path: "access"), encoding: .utf8)) ?? ""
            return log.split(separator: "\n").count { !$0.hasSuffix("/") }
        }
    }

    /// Changes a file without its size.
    func change(_ number: Int) throws {
        let place = files.appending(path: "file-\(number)")
        try Data(LoopbackServer.Pattern(count: number * 131, seed: number + 1).bytes()).write(to: place)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: 60)], ofItemAtPath: place.path)
    }

    /// Compares all files, and finds nothing else.
    func check(copy: URL) throws {
        let names = try FileManager.default.subpathsOfDirectory(atPath: files.path).sorted()
        #expect(try FileManager.default.subpathsOfDirectory(atPath: copy.path).sorted() == names)
        for name in names where name != "sub folder" {
            let bytes = try Data(contentsOf: copy.appending(path: name))
            #expect(try bytes == Data(contentsOf: files.appending(path: name)), "\(name)")
        }
    }
}
#endif
