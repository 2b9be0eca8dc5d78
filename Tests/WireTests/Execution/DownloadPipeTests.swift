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
    private static let pattern = PipedDownloads.pattern
    private static let resumable = Download.Options(isResumable: true)

    @Test func theBytesOfALargeBodyAreMoved() async throws {
        try await withPipedDownloads { test in
            let task = test.client.download("a", to: test.folder.url("a"))
            _ = try await task.value
            try test.expectFile("a")
            // Bytes that come with the head, or before the file is open, are copied.
            #expect((1...Self.pattern.count).contains(test.pipedCount))
            #expect(task.progressNow.completedBytes == Int64(Self.pattern.count))
            #expect(task.progressNow.isFinished)
            #expect(try test.folder.names == ["a"])
            // The connection is used again.
            _ = try await test.client.download("b", to: test.folder.url("b")).value
            try test.expectFile("b")
            #expect(test.server.counts.acceptedConnections == 1)
        }
    }

    @Test(arguments: [1, 700, 5_000]) func smallPiecesStayInOrder(size: Int) async throws {
        let pattern = LoopbackServer.Pattern(count: 3_000_000, seed: 4)
        let start = pattern.count - (size == 1 ? 10_000 : pattern.count / 2)
        try await withPipedDownloads { exchange in
            try exchange.writeHead(headers: [("Content-Length", "\(pattern.count)")])
            try exchange.streamPattern(pattern, in: 0..<start)
            try exchange.write(pattern.bytes(in: start..<pattern.count), inPiecesOf: size)
        } test: { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try test.expectFile("a", of: pattern)
            #expect(test.pipedCount > 0)
        }
    }

    @Test func aFileSystemWithoutPipesReceivesACopy() async throws {
        let copies = Log<String>()
        let refusesPipes: PipedDownloads.Fault = { call, _ in
            copies.add(call)
            return call == "write from a pipe" ? EINVAL : nil
        }
        try await withPipedDownloads(fault: refusesPipes) { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try test.expectFile("a")
            #expect(copies.all.contains("write from a pipe"))
        }
    }

    /// Observers receive the bytes, a coded body is decoded, few bytes are not worth a pipe, and the rest has no length
    /// that is certain.
    @Test(arguments: ["observer", "small", "chunked", "gzip", "HTTP/1.0"])
    func otherBodiesAreCopied(how: String) async throws {
        struct Observer: SessionObserver {
            let seen: Log<Int>

            func didReceive(bytes: Data, of task: AnySessionTask) { seen.add(bytes.count) }
        }
        let seen = Log<Int>()
        let pattern = how == "small" ? LoopbackServer.Pattern(count: 500_000) : Self.pattern
        let observers = how == "observer" ? [Observer(seen: seen)] : []
        let coded = how == "gzip" ? Array(try Deflater.compress(Data(pattern.bytes()), .gzip)) : []
        try await withPipedDownloads(configuration: .test { $0.observers = observers }) { exchange in
            switch how {
            case "chunked": try exchange.writeChunked(chunks: [pattern.bytes()])
            case "gzip": try exchange.respond(headers: [("Content-Encoding", "gzip")], body: coded)
            case "HTTP/1.0":
                try exchange.write("HTTP/1.0 200 OK\r\nContent-Length: \(pattern.count)\r\n\r\n")
                try exchange.streamPattern(pattern)
            default: try exchange.serveFile(pattern)
            }
        } test: { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try test.expectFile("a", of: pattern)
            #expect(test.pipedCount == 0)
            if how == "observer" { #expect(seen.all.reduce(0, +) == pattern.count) }
            if how == "gzip" { #expect(coded.count >= 1 << 20) }
        }
    }

    @Test(.enabled(if: Nginx.isExpected, Nginx.absence)) func anEncryptedBodyIsCopied() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        try nginx.makeFile("large", Self.pattern.bytes())
        let configuration = Session.Configuration.test {
            $0.authorities = .file(nginx.authorityFile)
            $0.allowsHTTP2 = false
        }
        try await withPipedDownloads(configuration: configuration) { test in
            let url = "https://127.0.0.1:\(nginx.securePort)/files/large"
            _ = try await test.client.download(url, to: test.folder.url("a")).value
            try test.expectFile("a")
            #expect(test.pipedCount == 0)
        }
    }

    @Test func aFullDiskIsAnErrorAndLeavesNothing() async throws {
        let writes = Log<String>()
        let firstFails: PipedDownloads.Fault = { call, _ in
            guard call == "write from a pipe" else { return nil }
            writes.add(call)
            return writes.all.count == 1 ? ENOSPC : nil
        }
        try await withPipedDownloads {
            if $0.request.path == "/b" { return try $0.serveFile(Self.pattern) }
            try $0.writeHead(headers: [("Content-Length", "\(Self.pattern.count)")])
            try $0.streamPattern(Self.pattern, in: 0..<4_000_000)
            try $0.waitForClientToClose()
        } fault: {
            firstFails($0, $1)
        } test: { test in
            let error = try await failure { try await test.client.download("a", to: test.folder.url("a")).value }
            #expect(error.kind == .fileSystem && (error.underlying as? FileFailure)?.code == ENOSPC)
            #expect(error.reason.contains(ErrorText.text(ENOSPC)) && error.reason.contains(test.folder.url("a").path))
            #expect(try test.folder.names == [])
            try await test.server.wait { $0.openConnections == 0 }
            _ = try await test.client.download("b", to: test.folder.url("b")).value
            try test.expectFile("b")
        }
    }

    @Test func aBodyThatBreaksOffIsContinued() async throws {
        try await withPipedDownloads { exchange in
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
            try test.expectFile("a")
            #expect(test.pipedCount > before)
            #expect(try test.folder.names == ["a"])
        }
    }

    @Test func bytesAfterTheBodyAreNotInTheFile() async throws {
        try await withPipedDownloads { exchange in
            if exchange.request.path == "/b" { return try exchange.respond(text: "b") }
            try exchange.writeHead(headers: [("Content-Length", "\(Self.pattern.count)")])
            try exchange.streamPattern(Self.pattern, in: 0..<Self.pattern.count)
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        } test: { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try test.expectFile("a")
            #expect(try await test.client.get("b", as: String.self) == "b")
            #expect(test.server.counts.acceptedConnections == 2)
        }
    }

    @Test func aPausedDownloadMovesNothing() async throws {
        let gate = LoopbackServer.Gate()
        let half = Self.pattern.count / 2
        try await withPipedDownloads { exchange in
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
            try test.expectFile("a")
        }
    }

    /// The system moves no bytes past urgent data, which `recv` leaves out.
    @Test func urgentDataHoldsNothingUp() async throws {
        let half = Self.pattern.count / 2
        try await withPipedDownloads { exchange in
            try exchange.writeHead(headers: [("Content-Length", "\(Self.pattern.count)")])
            try exchange.streamPattern(Self.pattern, in: 0..<half)
            var byte: UInt8 = 33
            let isSent = unsafe send(exchange.connection.socket, &byte, 1, Int32(MSG_OOB | MSG_NOSIGNAL)) == 1
            try exchange.streamPattern(Self.pattern, in: half..<Self.pattern.count)
            #expect(isSent)
        } test: { test in
            _ = try await test.client.download("a", to: test.folder.url("a")).value
            try test.expectFile("a")
        }
    }

    /// The system moves no bytes to a file that is opened for appending.
    @Test func bytesAreCopiedToAFileThatTakesNone() async throws {
        try await inTestFolder { folder in
            let pipe = try #require(BodyPipe(BodyPipe.Limits(capacity: 65_536, portion: 65_536)))
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
        try await withPipedDownloads { exchange in
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
        try await withPipedDownloads(configuration: .test { $0.maximumConnectionsPerHost = 40 }) { test in
            try await withThrowingTaskGroup { group in
                for number in 0..<40 {
                    group.addTask {
                        _ = try await test.client.download("a", to: test.folder.url("\(number)")).value
                    }
                }
                try await group.waitForAll()
            }
            for number in 0..<40 { try test.expectFile("\(number)") }
        }
    }
}
#endif
