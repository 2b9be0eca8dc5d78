#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks the files that downloads make beside their destinations and in the temporary folder: who can read them, which
/// of them are continued, and what happens to those of a killed process.
@Suite(.timeLimit(.minutes(1)))
struct DownloadFileTests {
    private func permissions(_ path: String) -> mode_t? {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    private func exists(_ path: String) -> Bool { permissions(path) != nil }

    /// Runs a server that sends half of a body and waits for the gate.
    private func withHalf(_ gate: LoopbackServer.Gate, test: (Client) async throws -> Void) async throws {
        try await withServer { exchange in
            guard exchange.request.path == "/half" else { return try exchange.respond(text: "x") }
            try exchange.writeHead(headers: [("Content-Length", "20")])
            try exchange.write([UInt8](repeating: 1, count: 10))
            try exchange.wait(for: gate)
            try exchange.write([UInt8](repeating: 1, count: 10))
        } test: { _, client in
            try await test(client)
        }
    }

    // MARK: Permissions

    @Test func unfinishedFileIsReadableByItsOwnerOnly() async throws {
        let gate = LoopbackServer.Gate()
        try await inTestFolder { folder in
            let ordinary = unsafe open(folder.url("ordinary").path, O_WRONLY | O_CREAT, 0o666)
            close(ordinary)
            try await withHalf(gate) { client in
                let task = client.download("half", to: folder.url("file"))
                while try folder.names.count < 2 { await Task.yield() }
                let temporary = try #require(try folder.names.first { $0.hasPrefix(".") })
                #expect(permissions(folder.url(temporary).path) == 0o600)
                gate.open()
                _ = try await task.value
                #expect(permissions(folder.url("file").path) == permissions(folder.url("ordinary").path))

                let asked = Log<mode_t?>()
                let left = try await client.download("x") { url, _ in
                    asked.add(permissions(url.path))
                    return nil
                }.value
                defer { try? FileManager.default.removeItem(at: left) }  // This file disturbs no other test.
                #expect(asked.all == [0o600] && permissions(left.path) == 0o600)
                #expect(TemporaryName(FilePath.name(of: left.path)) == nil, "a sweep would take it")
                let options = Download.Options(createsFolders: true)
                _ = try await client.download("x", to: folder.url("a/b/x"), options: options).value
                #expect(permissions(folder.url("a").path) == 0o700 && permissions(folder.url("a/b").path) == 0o700)
                #expect(permissions(folder.url("a/b/x").path) == permissions(folder.url("ordinary").path))
            }
        }
    }

    @Test func partialFileAndRecordingAreReadableByTheirOwnerOnly() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await ResumeTests().token(folder: folder))
            #expect(permissions(token.partialPath) == 0o600)
            try Recording().write(to: folder.url("recording"))
            #expect(permissions(folder.url("recording").path) == 0o600)
            #expect(try folder.names == [token.partialFile, "recording"])
        }
    }

    // MARK: Partial files

    /// Another kind of file in the place of the partial file is refused, and is not changed.
    @Test(arguments: ["link", "second name", "pipe", "folder"])
    func fileOfAnotherUserIsNotContinued(kind: String) async throws {
        try await inTestFolder { folder in
            let token = try #require(try await ResumeTests().token(folder: folder))
            let other = folder.url("other")
            let path = token.partialPath
            try FileManager.default.moveItem(atPath: path, toPath: other.path)
            let before = try Data(contentsOf: other)
            switch kind {
            case "link": try #require(unsafe symlink(other.path, path) == 0)
            case "second name": try #require(unsafe link(other.path, path) == 0)
            case "pipe": try #require(unsafe mkfifo(path, 0o600) == 0)
            default: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            }
            try await withServer {
                try $0.serveFile(ResumeTests.pattern)
            } test: { server, client in
                let task = client.download(resuming: ResumeTests().moved(token, to: server), to: folder.url("file"))
                let error = try await task.failure()
                #expect(error.kind == .fileSystem && error.reason.contains("cannot be continued"), "\(error)")
                #expect(server.requests.isEmpty)
                #expect(try Data(contentsOf: other) == before && exists(path))
            }
        }
    }

    @Test func tokenAndFileMovedTogetherAreContinued() async throws {
        try await inTestFolder { folder in
            try FileManager.default.createDirectory(
                atPath: folder.url("old").path, withIntermediateDirectories: false)
            let old = TestFolder(path: folder.url("old").path)
            let token = try #require(try await ResumeTests().token(folder: old))
            try FileManager.default.moveItem(at: folder.url("old"), to: folder.url("new"))
            let asked = Log<String?>()
            try await withServer { exchange in
                asked.add(exchange.request["Range"])
                try exchange.serveFile(ResumeTests.pattern)
            } test: { server, client in
                let current = ResumeTests().moved(token, to: server)
                _ = try await client.download(resuming: current, to: folder.url("new/file")).value
                #expect(asked.all == ["bytes=\(token.offset)-"])
                #expect(ResumeTests.pattern.matches(try folder.bytes("new/file")))
                #expect(try folder.names == ["new", "new/file"])
            }
        }
    }

    @Test func resumingElsewhereRequiresThePartialFolder() async throws {
        try await inTestFolder { folder in
            let token = try #require(try await ResumeTests().token(folder: folder))
            try FileManager.default.createDirectory(
                atPath: folder.url("new").path, withIntermediateDirectories: false)
            try await withServer {
                try $0.serveFile(ResumeTests.pattern)
            } test: { server, client in
                let current = ResumeTests().moved(token, to: server)
                let error = try await client.download(resuming: current, to: folder.url("new/file")).failure()
                #expect(error.kind == .fileSystem && error.reason.contains("name its folder"), "\(error)")
                #expect(error.resumeData == current && server.requests.isEmpty && exists(token.partialPath))
                let task = client.download(
                    resuming: current, to: folder.url("new/file"), partialFolder: URL(filePath: folder.path))
                _ = try await task.value
                #expect(ResumeTests.pattern.matches(try folder.bytes("new/file")))
                #expect(try folder.names == ["new", "new/file"])
            }
        }
    }

    // MARK: Orphans

    @Test func orphansOfAnEarlierDownloadAreRemoved() async throws {
        try await inTestFolder { folder in
            let orphan = TemporaryName(for: "file").text
            let (symbolic, twice) = (TemporaryName(for: "file").text, TemporaryName(for: "file").text)
            let kept = [
                TemporaryName(for: "file", isPartial: true).text, TemporaryName(for: "other").text,
                ".file.1-2-3.tern", "target", "tern-0123456789abcdef.tern",
            ]
            for name in kept + [orphan, twice] { try folder.write("left", to: name) }
            try #require(unsafe symlink(folder.url("target").path, folder.url(symbolic).path) == 0)
            try #require(unsafe link(folder.url(twice).path, folder.url("twice").path) == 0)
            try await withServer(DownloadTests.echoPath) { _, client in
                _ = try await client.download("x", to: folder.url("file")).value
            }
            #expect(try folder.names == (kept + [symbolic, twice, "twice", "file"]).sorted())
            #expect(try folder.text("target") == "left")
        }
    }

    @Test func fileOfALiveDownloadIsKept() async throws {
        let gate = LoopbackServer.Gate()
        try await inTestFolder { folder in
            try await withHalf(gate) { client in
                let first = client.download("half", to: folder.url("file"))
                while try folder.names.isEmpty { await Task.yield() }
                let temporary = try folder.names
                _ = try await client.download("x", to: folder.url("file")).value
                #expect(try folder.names == (temporary + ["file"]).sorted())
                gate.open()
                _ = try await first.value
                #expect(try folder.names == ["file"] && folder.bytes("file").count == 20)
            }
        }
    }

    #if os(Linux)
    @Test func fileOfAnotherProcessIsKeptUntilItsEnd() async throws {
        try await inTestFolder { folder in
            let name = TemporaryName(for: "file").text
            try folder.write("half", to: name)
            let path = folder.url(name).path
            var child: Child? = try Child(
                ["/usr/bin/flock", "-F", path, "sleep", "1000"], output: folder.url("log").path)
            while !isLocked(path) { await Task.yield() }
            try await withServer(DownloadTests.echoPath) { _, client in
                _ = try await client.download("x", to: folder.url("file")).value
                #expect(exists(path), "the file of a live process was removed")
                child = nil
                _ = try await client.download("y", to: folder.url("file")).value
                #expect(try folder.names == ["file", "log"])
            }
            _ = child
        }
    }

    @Test func sessionRemovesOrphansFromTheTemporaryFolder() async throws {
        let folder = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        let held = FilePath.join(folder, TemporaryName(for: nil).text)
        let orphan = FilePath.join(folder, TemporaryName(for: nil).text)
        defer { try? FileManager.default.removeItem(atPath: held) }  // This file disturbs no other test.
        for path in [held, orphan] { try Data("left".utf8).write(to: URL(filePath: path)) }
        let descriptor = unsafe open(held, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        try #require(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        let session = Session(configuration: .test())
        // A session searches a crowded folder once a minute at most.
        let entries = try FileManager.default.contentsOfDirectory(atPath: folder).count
        let sweeper = OrphanSweeper()
        if entries >= SweepSchedule.largeFolderCount { sweeper.sweepTemporaryFolder() }
        while exists(orphan) { await Task.yield() }
        #expect(exists(held))
        _ = session
    }

    private func isLocked(_ path: String) -> Bool {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        return flock(descriptor, LOCK_EX | LOCK_NB) != 0
    }
    #endif

    /// Nobody can read the new file who could not read the old one.
    @Test func aReplacedFileKeepsItsPermissions() async throws {
        try await inTestFolder { folder in
            try await withServer {
                try $0.respond(text: "new")
            } test: { _, client in
                try folder.write("old", to: "file")
                #expect(unsafe chmod(folder.url("file").path, 0o640) == 0)
                _ = try await client.download("x", to: folder.url("file")).value
                #expect(try folder.text("file") == "new")
                #expect(permissions(folder.url("file").path) == 0o640)
            }
        }
    }

    @Test func aTildeIsNoHomeFolder() throws {
        #expect(FilePath.url(of: "~root/x").path.hasSuffix("~root/x"))
        #expect(FilePath.url(of: "~").lastPathComponent == "~")
        #expect(FilePath.url(of: "/a/~b").path == "/a/~b")
    }
}
#endif
