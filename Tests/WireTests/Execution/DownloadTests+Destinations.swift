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

extension DownloadTests {
    @Test(arguments: [(true, true), (true, false), (false, true), (false, false)])
    func theSessionsDestinationComesBeforeTheTasks(sessionAnswers: Bool, taskAnswers: Bool) async throws {
        try await inTestFolder { folder in
            let asked = Log<String>()
            let configuration = Session.Configuration.test { configuration in
                configuration.destination = { url, head in
                    asked.add("session \(head.status) \(FileManager.default.fileExists(atPath: url.path))")
                    return sessionAnswers ? folder.url("session") : nil
                }
            }
            try await withServer(configuration: configuration, Self.echoPath) { _, client in
                var events = client.session.tasks.events.makeAsyncIterator()
                let task = client.download("x") { url, head in
                    asked.add("task \(head.status) \(FileManager.default.fileExists(atPath: url.path))")
                    return taskAnswers ? folder.url("task") : nil
                }
                let file = try await task.value
                defer { try? FileManager.default.removeItem(at: file) }
                #expect(try String(contentsOf: file, encoding: .utf8) == "x")
                #expect(asked.all == ["session 200 true"] + (sessionAnswers ? [] : ["task 200 true"]))
                let name = sessionAnswers ? "session" : taskAnswers ? "task" : nil
                #expect(try folder.names == (name.map { [$0] } ?? []))
                if let name { #expect(file == folder.url(name)) }
                var moved: URL?
                while let event = await events.next() {
                    if case .fileMoved(_, let place) = event { moved = place }
                    guard case .completed(let completion) = event else { continue }
                    #expect(completion.file == file)
                    break
                }
                #expect(moved == name.map { folder.url($0) })
            }
        }
    }

    @Test func theSessionsDestinationComesBeforeAGivenFile() async throws {
        try await inTestFolder { folder in
            let configuration = Session.Configuration.test { $0.destination = { _, _ in folder.url("session") } }
            try await withServer(configuration: configuration, Self.echoPath) { _, client in
                let file = try await client.download("x", to: folder.url("given")).value
                #expect(file == folder.url("session"))
                #expect(try folder.names == ["session"])
            }
        }
    }

    /// Names a destination, or leaves the decision to others.
    private struct Naming: SessionPolicy {
        let file: URL?

        @concurrent func destination(
            for temporaryURL: URL, response: ResponseHead, of task: AnySessionTask
        ) async throws -> URL? { file }
    }

    @Test(arguments: 0..<4) func policiesAreAskedForADestinationBetweenTheSessionAndTheTask(first: Int) async throws {
        try await inTestFolder { folder in
            let names = ["session", "sessionPolicy", "requestPolicy", "task"]
            let places = names.indices.map { $0 < first ? nil : folder.url(names[$0]) }
            let configuration = Session.Configuration.test { configuration in
                configuration.destination = { _, _ in places[0] }
                configuration.policy = Naming(file: places[1])
            }
            try await withServer(configuration: configuration, Self.echoPath) { _, client in
                var request = try client.request(.get, "x")
                request.policy = Naming(file: places[2])
                let task = client.session.download(request, startsImmediately: true) { _, _ in places[3] }
                #expect(try await task.value == places[first])
                #expect(try folder.names == [names[first]])
            }
        }
    }

    @Test func aDestinationThatThrowsFailsTheTaskAndRemovesTheFile() async throws {
        struct Refused: Error {}
        let temporary = Log<String>()
        try await withServer(Self.echoPath) { _, client in
            let error = try await failure {
                try await client.download("x") { url, _ in
                    temporary.add(url.path)
                    throw Refused()
                }.value
            }
            #expect(error.kind == .fileSystem)
            #expect(error.underlying is Refused)
            #expect(!FileManager.default.fileExists(atPath: try #require(temporary.all.first)))
        }
    }

    // MARK: Destinations that cannot hold a file

    /// A destination that is given is refused before the request is sent, one that is chosen later when it is known.
    private func expectRefusal(of place: URL, _ existing: Download.Existing, saying words: String) async throws {
        try await withServer(Self.echoPath) { server, client in
            let options = Download.Options(existing: existing)
            let given = try await client.download("x", to: place, options: options).failure()
            #expect(given.kind == .fileSystem && given.reason.contains(words), "\(given)")
            #expect(given.response == nil && server.requests.isEmpty)
            let chosen = try await client.download("x", options: options) { _, _ in place }.failure()
            #expect(chosen.kind == .fileSystem && chosen.reason.contains(words), "\(chosen)")
        }
    }

    @Test(arguments: ["pipe", "socket", "device", "link"], [Download.Existing.overwrite, .keepBoth, .fail])
    func destinationThatIsNotAFileIsNeverReplaced(kind: String, existing: Download.Existing) async throws {
        try await inTestFolder { folder in
            let (node, place) = (folder.url("node").path, folder.url(kind == "link" ? "link" : "node"))
            let mode = kind == "device" ? S_IFCHR : kind == "socket" ? S_IFSOCK : S_IFIFO
            // A device file of the test, with the numbers of /dev/null: only root can make it.
            if unsafe mknod(node, mode | 0o600, kind == "device" ? 259 : 0) != 0, errno == EPERM { return }
            if kind == "link" { try #require(unsafe symlink(node, place.path) == 0) }
            let names = try folder.names
            try await expectRefusal(of: place, existing, saying: "device, pipe or socket")
            #expect(try folder.names == names)
            var there = stat()
            #expect(unsafe lstat(node, &there) == 0 && there.st_mode & S_IFMT == mode)
        }
    }

    @Test(arguments: [Download.Existing.overwrite, .keepBoth, .fail], [true, false])
    func folderIsNotADestination(existing: Download.Existing, isLink: Bool) async throws {
        try await inTestFolder { folder in
            try FileManager.default.createDirectory(
                atPath: folder.url("a").path, withIntermediateDirectories: true)
            if isLink { try #require(unsafe symlink(folder.url("a").path, folder.url("b").path) == 0) }
            let (place, names) = (folder.url(isLink ? "b" : "a"), try folder.names)
            try await expectRefusal(of: place, existing, saying: "folder \(place.path)")
            #expect(try folder.names == names)
        }
    }

    @Test func replacedDestinationIsNotChecked() async throws {
        try await inTestFolder { folder in
            let configuration = Session.Configuration.test { $0.destination = { _, _ in folder.url("session") } }
            try await withServer(configuration: configuration, Self.echoPath) { _, client in
                _ = try await client.download("x", to: URL(filePath: folder.path)).value
                #expect(try folder.names == ["session"])
            }
        }
    }

    @Test func destinationMustBeAFileURL() async throws {
        try await inTestFolder { folder in
            let elsewhere = try #require(URL(string: "https://ada:s3cret@example.com\(folder.path)/x?k=s3cret"))
            try await withServer(Self.echoPath) { server, client in
                let given = try await client.download("x", to: elsewhere).failure()
                #expect(given.kind == .invalidRequest && given.reason.contains("no file URL"), "\(given)")
                let upload = try await client.upload("x", file: elsewhere).failure()
                #expect(upload.kind == .invalidRequest && upload.reason.contains("no file URL"), "\(upload)")
                let body = try await failure { try await client.post("x", body: .file(elsewhere)) }
                #expect(body.kind == .invalidRequest && body.reason.contains("no file URL"), "\(body)")
                #expect(server.requests.isEmpty)
                let chosen = try await client.download("x") { _, _ in elsewhere }.failure()
                #expect(chosen.kind == .fileSystem && chosen.reason.contains("no file URL"), "\(chosen)")
                #expect(![given, upload, body, chosen].contains { "\($0)".contains("s3cret") })
            }
            #expect(try folder.names == [])
        }
    }

    @Test(arguments: [
        "attachment; filename=\"../../etc/passwd\"", "attachment; filename=\"/etc/passwd\"", "attachment; filename=..",
        "attachment; filename=\"..\\\\..\\\\evil.exe\"", "attachment; filename*=UTF-8''..%2f..%2fevil",
        "attachment; filename=\"a\u{202E}gpj.exe\"", "attachment; filename=\".bashrc\"", "attachment; filename=\"\"",
        "attachment; filename=\"C:evil\"", "attachment; filename=\"\(String(repeating: "a", count: 5_000)).txt\"",
        "attachment; filename*=UTF-8''%00%0a", "attachment",
    ])
    func aHostileNameStaysInItsFolder(disposition: String) async throws {
        try await inTestFolder { folder in
            try await withServer { exchange in
                try exchange.respond(headers: [("Content-Disposition", disposition)], text: "x")
            } test: { _, client in
                let file = try await client.download("name.bin") { _, head in folder.url(head.suggestedFilename) }.value
                #expect(FilePath.folder(of: file.path) == folder.path)
                #expect(try folder.names == [FilePath.name(of: file.path)])
                #expect(!FilePath.name(of: file.path).hasPrefix("."))
            }
        }
    }
}
#endif
