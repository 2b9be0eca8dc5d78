#if os(Linux) && !TERN_URLSESSION
import Glibc
import Tern
import TernConcurrency
import TernTesting
import Testing

import struct Foundation.URL

/// Downloads whose socket is lent to the file thread, which holds it for as long as a test needs.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct DownloadLoanTests {
    private static let pattern = PipedDownloads.pattern

    /// Runs a test while the first write of a resumable download is blocked. The server answers other requests with
    /// "other".
    private func withBlockedWrite(
        timeouts: Timeouts = Timeouts(),
        serve: @escaping @Sendable (LoopbackServer.Exchange, BlockedWrite) throws -> Void = { exchange, _ in
            try exchange.serveFile(pattern)
        },
        test body: (PipedDownloads, SessionTask<URL>, BlockedWrite) async throws -> Void
    ) async throws {
        let write = BlockedWrite()
        defer { write.end() }
        try await withPipedDownloads(configuration: .test { $0.timeouts = timeouts }) {
            if $0.request.path != "/a" { return try $0.respond(text: "other") }
            if $0.request["Range"] == nil { try serve($0, write) } else { try $0.serveFile(Self.pattern) }
        } fault: {
            write.fault($0, $1)
        } test: { test in
            let task = test.client.download(
                "a", to: test.folder.url("a"), options: Download.Options(isResumable: true))
            try await write.isWaiting.wait()
            try await body(test, task, write)
        }
    }

    /// Sends the beginning of the file, in pieces, until the first write waits.
    ///
    /// A server that sends more can be blocked, because nobody reads: it does not see the end of the connection before
    /// the thread of the files has closed the socket.
    private static func sendBeginning(_ exchange: LoopbackServer.Exchange, _ write: BlockedWrite) throws {
        try exchange.writeHead(headers: [("ETag", pattern.etag), ("Content-Length", "\(pattern.count)")])
        var sent = 0
        while !write.isWaiting.isOpen {
            try exchange.streamPattern(pattern, in: sent..<sent + 16_384)
            sent += 16_384
            usleep(1_000)
        }
    }

    private static func sendAndWait(_ exchange: LoopbackServer.Exchange, _ write: BlockedWrite) throws {
        try sendBeginning(exchange, write)
        try exchange.waitForClientToClose()
    }

    @Test func theLoopDoesNotWaitForTheDisk() async throws {
        try await withBlockedWrite { test, task, write in
            #expect(try await test.client.get("b", as: String.self) == "other")
            write.end()
            _ = try await task.value
            try test.expectFile("a")
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
            try test.expectFile("a")
        }
    }

    /// The transport ends the connection although the thread of the files still has the socket.
    @Test func aDownloadThatIsCancelledDuringAWriteEndsItsConnection() async throws {
        try await withBlockedWrite(serve: Self.sendAndWait) { test, task, write in
            task.cancel()
            try await test.server.wait { $0.openConnections == 0 }
            write.end()
            #expect(try await failure { try await task.value }.isCancelled)
            try await expectContinuation(of: task, in: test)
        }
    }

    /// Expects that the partial file is as long as its resume data says, and continues it.
    private func expectContinuation(of task: SessionTask<URL>, in test: PipedDownloads) async throws {
        let token = try #require(task.resumeData)
        #expect(try test.folder.bytes(token.partialFile).count == Int(token.offset))
        _ = try await test.client.download(resuming: token, to: test.folder.url("a")).value
        try test.expectFile("a")
        #expect(try test.folder.names == ["a"])
    }

    @Test func theTotalLimitEndsADownloadDuringAWrite() async throws {
        try await withBlockedWrite(timeouts: Timeouts(total: .seconds(2)), serve: Self.sendAndWait) {
            test, task, write in
            try await test.server.wait { $0.openConnections == 0 }
            write.end()
            let error = try await failure { try await task.value }
            #expect(error.kind == .totalTimedOut)
            try await expectContinuation(of: task, in: test)
        }
    }

    /// A slow disk is not a silent server.
    @Test func theIdleLimitDoesNotCountAWrite() async throws {
        try await withBlockedWrite(timeouts: Timeouts(idle: .seconds(1))) { test, task, write in
            try await Task.sleep(for: .seconds(2))
            write.end()
            _ = try await task.value
            try test.expectFile("a")
        }
    }

    @Test func theIdleLimitEndsADownloadWhoseServerStallsAfterAWrite() async throws {
        try await withBlockedWrite(timeouts: Timeouts(idle: .seconds(1))) { exchange, _ in
            try exchange.writeHead(headers: [("ETag", Self.pattern.etag), ("Content-Length", "\(Self.pattern.count)")])
            try exchange.streamPattern(Self.pattern, in: 0..<3_000_000)
            try exchange.waitForClientToClose()
        } test: { test, task, write in
            write.end()
            let error = try await failure { try await task.value }
            #expect(error.kind == .idleTimedOut)
            #expect(task.resumeData?.offset == 3_000_000)
            try await expectContinuation(of: task, in: test)
        }
    }

    @Test func aConnectionThatIsResetDuringAWriteIsLost() async throws {
        let gate = LoopbackServer.Gate()
        try await withBlockedWrite { exchange, write in
            try Self.sendBeginning(exchange, write)
            try exchange.wait(for: gate)
            exchange.reset()
        } test: { test, task, write in
            gate.open()
            try await test.server.wait { $0.openConnections == 0 }
            write.end()
            let error = try await failure { try await task.value }
            #expect(error.kind == .connectionLost)
            try await expectContinuation(of: task, in: test)
        }
    }
}
#endif
