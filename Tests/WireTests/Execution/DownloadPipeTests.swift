#if os(Linux) && !TERN_URLSESSION
import Dispatch
import Glibc
@testable import Tern
import TernConcurrency
@testable import TernTesting
import Testing

import struct Foundation.Data
import struct Foundation.URL

/// Downloads whose bytes the system moves from the socket to the file.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct DownloadPipeTests {
    private static let pattern = LoopbackServer.Pattern(count: 5_000_000, seed: 3)
    private static let resumable = Download.Options(isResumable: true)

    /// A client whose files count the bytes that came out of pipes.
    private struct Fixture {
        let server: LoopbackServer
        let client: Client
        let folder: TestFolder
        private let counts: Log<Int>

        /// The number of bytes that the system moved, and of the writes in which it did.
        var pipedCount: Int { counts.all.reduce(0, +) }
        var writeCount: Int { counts.all.count }

        init(
            _ server: LoopbackServer, _ folder: TestFolder, _ configuration: Session.Configuration,
            fault: @escaping Fault
        ) {
            let counts = Log<Int>()
            self.counts = counts
            let files = FaultyFiles(willWriteFromPipe: { counts.add($0) }, fault: fault)
            let session = Session(
                configuration: configuration, transport: Session(configuration: configuration).tasks.transport,
                files: FileStore(files, executor: QueueExecutor("tern.test.pipes")))
            client = Client(baseURL: server.url, session: session)
            (self.server, self.folder) = (server, folder)
        }
    }

    private typealias Fault = @Sendable (_ call: String, _ path: String) -> Int32?

    private func withFixture(
        configuration: Session.Configuration = .test(),
        handler: @escaping LoopbackServer.Handler = { try $0.serveFile(pattern) },
        fault: @escaping Fault = { _, _ in nil },
        test: (Fixture) async throws -> Void
    ) async throws {
        try await inTestFolder { folder in
            let server = try LoopbackServer(handler: handler)
            defer { server.stop() }
            try await test(Fixture(server, folder, configuration, fault: fault))
        }
    }

    private func expectFile(_ name: String, in test: Fixture, of pattern: LoopbackServer.Pattern = pattern) throws {
        let bytes = try test.folder.bytes(name)
        #expect(bytes.count == pattern.count && pattern.matches(bytes))
    }

    @Test func theBytesOfALargeBodyAreMoved() async throws {
        try await withFixture { test in
            let task = test.client.download("a", to: test.folder.url("a"))
            _ = try await task.value
            try expectFile("a", in: test)
            // Bytes that come with the head, or before the file is open, are copied.
            #expect((1...Self.pattern.count).contains(test.pipedCount))
            #expect(task.progressNow.completedBytes == Int64(Self.pattern.count))
            #expect(task.progressNow.isFinished)
            #expect(try test.folder.names == ["a"])
            // The connection is used again.
            _ = try await test.client.download("b", to: test.folder.url("b")).value
            try expectFile("b", in: test)
            #expect(test.server.counts.acceptedConnections == 1)
        }
    }

    /// Blocks the first write of bytes from a pipe, on the thread of the files.
    private final class BlockedWrite: Sendable {
        let isWaiting = LoopbackServer.Gate()
        private let mayEnd = DispatchSemaphore(value: 0)
        private let writes = Log<String>()

        var fault: Fault {
            { call, _ in
                guard call == "write from a pipe" else { return nil }
                self.writes.add(call)
                if self.writes.all.count > 1 { return nil }
                self.isWaiting.open()
                self.mayEnd.wait()
                return nil
            }
        }

        func end() { mayEnd.signal() }
    }

    /// Runs a test while the first write of a download is blocked. The server answers other requests with "other".
    private func withBlockedWrite(
        _ body: (Fixture, SessionTask<URL>, BlockedWrite) async throws -> Void
    ) async throws {
        let write = BlockedWrite()
        defer { write.end() }
        try await withFixture {
            if $0.request.path == "/a" { try $0.serveFile(Self.pattern) } else { try $0.respond(text: "other") }
        } fault: {
            write.fault($0, $1)
        } test: { test in
            let task = test.client.download("a", to: test.folder.url("a"))
            try await write.isWaiting.wait()
            try await body(test, task, write)
        }
    }

    @Test func theLoopDoesNotWaitForTheDisk() async throws {
        try await withBlockedWrite { test, task, write in
            #expect(try await test.client.get("b", as: String.self) == "other")
            write.end()
            _ = try await task.value
            try expectFile("a", in: test)
        }
    }

    @Test(arguments: [1, 700, 5_000]) func smallPiecesStayInOrder(size: Int) async throws {
        let pattern = LoopbackServer.Pattern(count: 3_000_000, seed: 4)
        let start = pattern.count - (size == 1 ? 10_000 : pattern.count / 2)
        try await withFixture { exchange in
            try exchange.writeHead(headers: [("Content-Length", "\(pattern.count)")])
            try exchange.streamPattern(pattern, in: 0..<start)
            try exchange.write(pattern.bytes(in: start..<pattern.count), inPiecesOf: size)
        } test: { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try expectFile("a", in: test, of: pattern)
            #expect(test.pipedCount > 0)
        }
    }

    @Test func aFileSystemWithoutPipesReceivesACopy() async throws {
        let copies = Log<String>()
        let refusesPipes: Fault = { call, _ in
            copies.add(call)
            return call == "write from a pipe" ? EINVAL : nil
        }
        try await withFixture(fault: refusesPipes) { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try expectFile("a", in: test)
            #expect(copies.all.contains("write from a pipe"))
        }
    }

    /// Observers receive the bytes, and few bytes are not worth the pipes.
    @Test(arguments: ["observer", "small", "chunked"]) func otherBodiesAreCopied(how: String) async throws {
        struct Observer: SessionObserver {
            let seen: Log<Int>

            func didReceive(bytes: Data, of task: AnySessionTask) { seen.add(bytes.count) }
        }
        let seen = Log<Int>()
        let pattern = how == "small" ? LoopbackServer.Pattern(count: 500_000) : Self.pattern
        let observers = how == "observer" ? [Observer(seen: seen)] : []
        try await withFixture(configuration: .test { $0.observers = observers }) { exchange in
            switch how {
            case "chunked": try exchange.writeChunked(chunks: [pattern.bytes()])
            default: try exchange.serveFile(pattern)
            }
        } test: { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try expectFile("a", in: test, of: pattern)
            #expect(test.pipedCount == 0)
            if how == "observer" { #expect(seen.all.reduce(0, +) == pattern.count) }
        }
    }

    @Test func aFullDiskIsAnErrorAndLeavesNothing() async throws {
        let writes = Log<String>()
        let firstFails: Fault = { call, _ in
            guard call == "write from a pipe" else { return nil }
            writes.add(call)
            return writes.all.count == 1 ? ENOSPC : nil
        }
        try await withFixture {
            if $0.request.path == "/b" { return try $0.serveFile(Self.pattern) }
            try $0.writeHead(headers: [("Content-Length", "\(Self.pattern.count)")])
            try $0.streamPattern(Self.pattern, in: 0..<4_000_000)
            try $0.waitForClientToClose()
        } fault: {
            firstFails($0, $1)
        } test: { test in
            let error = try await failure { try await test.client.download("a", to: test.folder.url("a")).value }
            #expect(error.kind == .fileSystem && (error.underlying as? FileFailure)?.code == ENOSPC)
            #expect(error.reason.contains(ErrorText.text(ENOSPC)))
            #expect(try test.folder.names == [])
            try await test.server.wait { $0.openConnections == 0 }
            _ = try await test.client.download("b", to: test.folder.url("b")).value
            try expectFile("b", in: test)
        }
    }

    @Test func aBodyThatBreaksOffIsContinued() async throws {
        try await withFixture { exchange in
            if exchange.request["Range"] != nil { return try exchange.serveFile(Self.pattern) }
            let headers = [("ETag", Self.pattern.etag), ("Content-Length", "\(Self.pattern.count)")]
            try exchange.writeHead(headers: headers)
            try exchange.streamPattern(Self.pattern, in: 0..<3_000_000)
            try exchange.waitUntilReceived()
            exchange.close()
        } test: { test in
            let error = try await failure {
                try await test.client.download("a", to: test.folder.url("a"), options: Self.resumable).value
            }
            #expect(error.kind == .truncatedBody)
            let token = try #require(error.resumeData)
            // Every byte that arrived is in the file.
            #expect(token.offset == 3_000_000 && test.pipedCount > 0)
            let before = test.pipedCount
            _ = try await test.client.download(resuming: token, to: test.folder.url("a")).value
            try expectFile("a", in: test)
            #expect(test.pipedCount > before)
            #expect(try test.folder.names == ["a"])
        }
    }

    @Test func bytesAfterTheBodyAreNotInTheFile() async throws {
        try await withFixture { exchange in
            if exchange.request.path == "/b" { return try exchange.respond(text: "b") }
            try exchange.writeHead(headers: [("Content-Length", "\(Self.pattern.count)")])
            try exchange.streamPattern(Self.pattern, in: 0..<Self.pattern.count)
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        } test: { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try expectFile("a", in: test)
            #expect(try await test.client.get("b", as: String.self) == "b")
            #expect(test.server.counts.acceptedConnections == 2)
        }
    }

    @Test func aPausedDownloadMovesNothing() async throws {
        let gate = LoopbackServer.Gate()
        let half = Self.pattern.count / 2
        try await withFixture { exchange in
            guard exchange.request.path == "/a" else { return try exchange.respond(text: "other") }
            try exchange.writeHead(headers: [("Content-Length", "\(Self.pattern.count)")])
            try exchange.streamPattern(Self.pattern, in: 0..<half)
            try exchange.wait(for: gate)
            try exchange.streamPattern(Self.pattern, in: half..<Self.pattern.count)
        } test: { test in
            let task = test.client.download("a", to: test.folder.url("a"))
            for await progress in task.progress where progress.completedBytes == Int64(half) { break }
            task.pause()
            gate.open()
            // A request on the same loop, after the pause.
            #expect(task.state == .suspended)
            try await fence(test.server, of: test.client.session)
            #expect(task.progressNow.completedBytes == Int64(half))
            task.resume()
            _ = try await task.value
            try expectFile("a", in: test)
        }
    }

    /// A pause ends the moving of bytes after the write that runs, although more have arrived.
    @Test func aPausedDownloadLeavesTheBytesThatHaveArrived() async throws {
        try await withBlockedWrite { test, task, write in
            task.pause()
            try await fence(test.server, of: test.client.session)
            write.end()
            while test.writeCount == 0 { await Task.yield() }
            try await fence(test.server, of: test.client.session)
            #expect(test.writeCount == 1 && task.progressNow.completedBytes < Int64(Self.pattern.count))
            task.resume()
            _ = try await task.value
            try expectFile("a", in: test)
        }
    }

    /// The transport ends the connection although the thread of the files still has the socket.
    @Test func aDownloadThatIsCancelledDuringAWriteEndsItsConnection() async throws {
        try await withBlockedWrite { test, task, write in
            task.cancel()
            try await test.server.wait { $0.openConnections == 0 }
            write.end()
            #expect(try await failure { try await task.value }.isCancelled)
            #expect(try test.folder.names == [])
        }
    }

    /// The system moves no bytes past urgent data, which `recv` leaves out.
    @Test func urgentDataHoldsNothingUp() async throws {
        let half = Self.pattern.count / 2
        try await withFixture { exchange in
            try exchange.writeHead(headers: [("Content-Length", "\(Self.pattern.count)")])
            try exchange.streamPattern(Self.pattern, in: 0..<half)
            var byte: UInt8 = 33
            let isSent = unsafe send(exchange.connection.socket, &byte, 1, Int32(MSG_OOB | MSG_NOSIGNAL)) == 1
            try exchange.streamPattern(Self.pattern, in: half..<Self.pattern.count)
            #expect(isSent)
        } test: { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try expectFile("a", in: test)
        }
    }

    /// The system moves no bytes to a file that is opened for appending.
    @Test func bytesAreCopiedToAFileThatTakesNone() async throws {
        try await inTestFolder { folder in
            let pipe = try #require(BodyPipe(capacity: 65_536))
            var ends: [Int32] = [-1, -1]
            try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            defer { for end in ends { Glibc.close(end) } }
            let file = unsafe open(folder.url("a").path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            defer { Glibc.close(file) }
            let bytes = Self.pattern.bytes(in: 0..<50_000)
            try #require(unsafe send(ends[0], bytes, bytes.count, 0) == bytes.count)
            _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
            #expect(pipe.holdSocket(ends[1]))
            let moved = pipe.move(upTo: 40_000) { count throws(FileFailure) in
                try PosixFileSystem().write(count, from: pipe, to: file)
            }
            #expect(moved.count == 40_000 && moved.failure == nil)
            #expect(try folder.bytes("a") == Data(bytes.prefix(40_000)))
            pipe.releaseSocket()
        }
    }

    @Test func aCancelledDownloadClosesItsPipeAndItsSocket() async throws {
        try await withFixture { exchange in
            try exchange.writeHead(headers: [("Content-Length", "\(Self.pattern.count)")])
            try exchange.streamPattern(Self.pattern, in: 0..<3_000_000)
            try exchange.waitForClientToClose()
        } test: { test in
            let before = try ProcessFacts.count(of: "pipe:")
            let socketsBefore = try ProcessFacts.socketCount()
            for _ in 0..<20 {
                let task = test.client.download("a", to: test.folder.url("a"))
                for await progress in task.progress where progress.completedBytes > 2_000_000 { break }
                task.cancel()
                #expect(try await failure { try await task.value }.isCancelled)
                #expect(try test.folder.names == [])
            }
            await test.client.session.drained()
            #expect(try ProcessFacts.count(of: "pipe:") == before)
            try await test.server.wait { $0.openConnections == 0 }
            while try ProcessFacts.socketCount() > socketsBefore { await Task.yield() }
        }
    }

    /// Only some of so many have pipes. The others are copied.
    @Test func manyDownloadsAtOnceAreRight() async throws {
        try await withFixture(configuration: .test { $0.maximumConnectionsPerHost = 40 }) { test in
            try await withThrowingTaskGroup { group in
                for number in 0..<40 {
                    group.addTask {
                        _ = try await test.client.download("a", to: test.folder.url("\(number)")).value
                    }
                }
                try await group.waitForAll()
            }
            for number in 0..<40 { try expectFile("\(number)", in: test) }
        }
    }
}
#endif
