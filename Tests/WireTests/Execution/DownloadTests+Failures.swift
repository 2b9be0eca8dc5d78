#if !TERN_URLSESSION
import TernConcurrency
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension DownloadTests {
    @Test func aFailedMoveIsAnErrorAndAnEvent() async throws {
        try await inTestFolder { folder in
            try FileManager.default.createDirectory(
                atPath: folder.url("a/full").path, withIntermediateDirectories: true)
            try await withServer(Self.echoPath) { _, client in
                var events = client.session.tasks.events.makeAsyncIterator()
                let task = client.download("x") { _, _ in folder.url("a") }
                let error = try await failure { try await task.value }
                #expect(error.kind == .fileSystem)
                #expect(try folder.names == ["a", "a/full"])
                _ = await events.next()
                guard case .moveFailed(let failed, let cause) = await events.next() else {
                    Issue.record("no event of the failed move")
                    return
                }
                #expect(failed.id == task.id)
                #expect(cause.kind == .fileSystem)
                guard case .completed(let completion) = await events.next() else {
                    Issue.record("no event of the end")
                    return
                }
                #expect(completion.file == nil)
                #expect(completion.error?.kind == .fileSystem)
            }
        }
    }

    @Test func moveIsPublishedBeforeTheEnd() async throws {
        try await inTestFolder { folder in
            try await withServer(Self.echoPath) { _, client in
                var events = client.session.tasks.events.makeAsyncIterator()
                let task = client.download("x", to: folder.url("a"))
                _ = try await task.value
                guard case .resumed = await events.next(), case .fileMoved(let moved, let place) = await events.next(),
                    case .completed(let completion) = await events.next()
                else {
                    Issue.record("other events, or in another order")
                    return
                }
                #expect(moved.id == task.id)
                #expect(place == folder.url("a"))
                #expect(completion.file == folder.url("a"))
                #expect(completion.error == nil)
            }
        }
    }

    @Test(arguments: ["truncated", "reset", "malformed"])
    func failedDownloadLeavesNoFile(how: String) async throws {
        try await inTestFolder { folder in
            try folder.write("old", to: "a")
            try await withServer { exchange in
                if how == "malformed" {
                    try exchange.writeChunkedHead()
                    try exchange.write("5\r\nhello\r\nzzz\r\n")
                } else {
                    try exchange.writeHead(headers: [("Content-Length", "100000")])
                    try exchange.write([UInt8](repeating: 1, count: 50_000))
                }
                try exchange.waitUntilReceived()
                if how == "reset" { exchange.reset() } else { exchange.close() }
            } test: { _, client in
                let error = try await failure {
                    try await client.download("a", to: folder.url("a")).value
                }
                #expect([.truncatedBody, .connectionLost, .malformedResponse].contains(error.kind))
                #expect(error.resumeData == nil)
                #expect(try folder.names == ["a"])
                #expect(try folder.text("a") == "old")
            }
        }
    }

    @Test func cancelledDownloadLeavesNoFile() async throws {
        try await inTestFolder { folder in
            try await withServer { exchange in
                try exchange.writeHead(headers: [("Content-Length", "100000")])
                try exchange.write([UInt8](repeating: 1, count: 50_000))
                try exchange.waitForClientToClose()
            } test: { server, client in
                let task = client.download("a", to: folder.url("a"))
                while try folder.names.isEmpty { await Task.yield() }
                task.cancel()
                let error = try await failure { try await task.value }
                #expect(error.isCancelled)
                #expect(task.resumeData == nil)
                #expect(try folder.names == [])
                try await server.wait { $0.openConnections == 0 }
            }
        }
    }

    @Test(
        arguments: [("open", 13), ("write", 28), ("write", 5), ("close", 5), ("rename", 13), ("rename", 28)]
            as [(String, Int32)])
    func aFailingFileSystemIsAnErrorAndLeavesNothing(call: String, code: Int32) async throws {
        try await inTestFolder { folder in
            let files = FileStore(
                FaultyFiles { name, _ in name == call ? code : nil }, executor: QueueExecutor("tern.test"))
            let stub = StubTransport(["GET /a": .data(Data(Self.pattern.bytes()))])
            let session = Session(configuration: .test(), transport: stub, files: files)
            let client = try Client(baseURL: "http://stub.test", session: session)
            let error = try await failure {
                try await client.download("a", to: folder.url("a")).value
            }
            #expect(error.kind == .fileSystem)
            #expect((error.underlying as? FileFailure)?.code == code)
            #expect(error.reason.contains(ErrorText.text(code)))
            #expect(error.status == 200)
            #expect(try folder.names == [])
        }
    }

    /// A failure of the file system, and the way in which the test brings it about.
    enum FileProblem: String, CaseIterable, CustomTestStringConvertible {
        case missingFolder, fileAsFolder, folderAsFile, existingFile
        case unwritableFolder, folderNotCreated, fullDisk, failingClose
        case fullDiskOfAnotherFileSystem, fullTemporaryFolder

        var testDescription: String { rawValue }

        /// The path of the destination in the test's folder.
        var name: String {
            switch self {
            case .missingFolder, .folderNotCreated: "none/a"
            case .fileAsFolder: "file/a"
            case .folderAsFile: "folder"
            case .existingFile: "file"
            default: "a"
            }
        }

        var options: Download.Options {
            Download.Options(
                existing: self == .existingFile ? .fail : .overwrite, createsFolders: self == .folderNotCreated)
        }

        /// The failing call and its error number.
        var fault: (call: String, code: Int32)? {
            switch self {
            case .unwritableFolder: ("open", EACCES)
            case .folderNotCreated: ("makeFolders", EACCES)
            case .fullDisk, .fullTemporaryFolder: ("write", ENOSPC)
            case .failingClose: ("close", EIO)
            default: nil
            }
        }
    }

    @Test(arguments: FileProblem.allCases) func anErrorOfAFileNamesItsPath(problem: FileProblem) async throws {
        try await inTestFolder { folder in
            try folder.write("old", to: "file")
            try FileManager.default.createDirectory(
                atPath: folder.url("folder").path, withIntermediateDirectories: true)
            let isCopying = Lock(false)
            let files = FileStore(
                FaultyFiles { call, path in
                    guard problem == .fullDiskOfAnotherFileSystem else {
                        return problem.fault.flatMap { $0.call == call ? $0.code : nil }
                    }
                    // The move fails, and then the copy.
                    if call == "rename" { isCopying.withLock { $0 = true } }
                    return call == "rename" ? EXDEV : call == "write" && isCopying.withLock { $0 } ? ENOSPC : nil
                }, executor: QueueExecutor("tern.test"))
            let stub = StubTransport(["GET /a": .data(Data(Self.pattern.bytes()))])
            let session = Session(configuration: .test(), transport: stub, files: files)
            let client = try Client(baseURL: "http://stub.test", session: session)
            let (place, options) = (folder.url(problem.name), problem.options)
            let error = try await failure {
                if problem == .fullTemporaryFolder { return try await client.download("a", destination: nil).value }
                guard problem == .fullDiskOfAnotherFileSystem else {
                    return try await client.download("a", to: place, options: options).value
                }
                return try await client.download("a", options: options) { _, _ in place }.value
            }
            #expect(error.kind == .fileSystem)
            let path = problem == .fullTemporaryFolder ? "/tern-" : place.path
            #expect("\(error)".contains(path) && !"\(error)".contains("the file:"), "\(error)")
            if let code = problem.fault?.code { #expect("\(error)".contains(ErrorText.text(code)), "\(error)") }
            #expect(try folder.names == ["file", "folder"] && folder.text("file") == "old")
        }
    }

    @Test(arguments: [Download.Existing.overwrite, .keepBoth, .fail])
    func anotherFileSystemReceivesACopy(existing: Download.Existing) async throws {
        try await inTestFolder { folder in
            let temporary = Log<String>()
            let isElsewhere: @Sendable (String, String) -> Int32? = { call, path in
                call == "rename" && !path.hasPrefix(folder.path) ? 18 : nil
            }
            let files = FileStore(FaultyFiles(fault: isElsewhere), executor: QueueExecutor("tern.test"))
            let stub = StubTransport(["GET /a": .data(Data(Self.pattern.bytes()))])
            let session = Session(configuration: .test(), transport: stub, files: files)
            let client = try Client(baseURL: "http://stub.test", session: session)
            let task = client.download("a", options: Download.Options(existing: existing)) { url, _ in
                temporary.add(url.path)
                return folder.url("a")
            }
            #expect(try await task.value == folder.url("a"))
            #expect(Self.pattern.matches(try folder.bytes("a")))
            #expect(try folder.names == ["a"])
            let path = try #require(temporary.all.first)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test func aCopyThatFailsLeavesNothing() async throws {
        try await inTestFolder { folder in
            let writes = Log<Int>()
            let temporary = Log<String>()
            let files = FileStore(
                FaultyFiles { call, path in
                    if call == "rename", !path.hasPrefix(folder.path) { return 18 }
                    // The download is written before its destination is requested.
                    if call == "write", !temporary.all.isEmpty {
                        writes.add(1)
                        if writes.all.count == 2 { return 28 }
                    }
                    return nil
                }, executor: QueueExecutor("tern.test"))
            let stub = StubTransport(["GET /a": .data(Data(Self.pattern.bytes()))])
            let session = Session(configuration: .test(), transport: stub, files: files)
            let client = try Client(baseURL: "http://stub.test", session: session)
            let error = try await failure {
                try await client.download("a") { url, _ in
                    temporary.add(url.path)
                    return folder.url("a")
                }.value
            }
            #expect((error.underlying as? FileFailure)?.code == 28)
            #expect(try folder.names == [])
            #expect(!FileManager.default.fileExists(atPath: try #require(temporary.all.first)))
        }
    }
}
#endif
