#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadTests {
    @Test func sequenceIsPulledAtTheSpeedOfTheServer() async throws {
        let whole = LoopbackServer.Pattern(count: 64 << 20)
        let pieces = Pieces(pattern: whole, size: 256 << 10)
        let leads = Log<Int>()
        try await withServer { exchange in
            var read = 0
            while let chunk = try exchange.readChunk(upTo: 256 << 10) {
                read += chunk.count
                leads.add(pieces.pulled.value - read)
                // The only pause: it makes the server slow.
                if read < 16 << 20 { try exchange.pause(for: .milliseconds(1)) }
            }
            try exchange.respond(text: "\(read)")
        } test: { _, client in
            let read = try await client.upload("a", body: .stream(pieces, length: Int64(whole.count)), as: String.self)
                .value
            #expect(read == "\(whole.count)")
            // The pipe holds 2 MiB; the rest is in the two sockets.
            #expect(try #require(leads.all.max()) < 24 << 20)
        }
    }

    @Test func earlyResponseEndsTheUpload() async throws {
        let pieces = Pieces(pattern: LoopbackServer.Pattern(count: 256 << 20), size: 256 << 10)
        try await withServer { exchange in
            _ = try exchange.readChunk()
            try exchange.respond(status: 413, headers: [("Connection", "close")], text: "too much")
            // A server that lingers: it reads the remaining bytes, so that no reset overtakes the response.
            try exchange.drainBody()
        } test: { _, client in
            let error = try await failure {
                try await client.upload("a", body: .stream(pieces, length: Int64(pieces.pattern.count))).value
            }
            #expect(error.kind == .status)
            #expect(error.status == 413)
            #expect(error.body == Data("too much".utf8))
            #expect(pieces.pulled.value < pieces.pattern.count)
        }
    }

    /// The limit counts again once the server has answered, although the body of the request has no bytes.
    @Test func aRefusalThatComesToNoEndReachesTheIdleLimit() async throws {
        let (pieces, source) = AsyncStream<Data>.makeStream()
        source.yield(Data(count: 10))
        try await withServer { exchange in
            _ = try exchange.readChunk()
            try exchange.writeHead(status: 413, headers: [("Content-Length", "5")])
            try exchange.waitForClientToClose()
        } test: { _, client in
            let task = client.upload("a", body: .stream(pieces, length: 1_000)) {
                $0.timeouts.idle = .milliseconds(300)
            }
            let error = try await failure { try await task.value }
            #expect(error.kind == .idleTimedOut && error.status == 413, "\(error)")
        }
        source.finish()
    }

    /// The server knows the body, and sends it back before it has read it.
    @Test func aFullEchoBeforeTheEndOfTheUploadIsWhole() async throws {
        let pattern = LoopbackServer.Pattern(count: 16 << 20, seed: 7)
        try await withServer { exchange in
            _ = try exchange.readChunk()
            try exchange.writeHead(headers: [("Content-Length", "\(pattern.count)")])
            try exchange.streamPattern(pattern)
            try exchange.drainBody()
        } test: { _, client in
            let echo = try await client.post("a", body: .data(Data(pattern.bytes())))
            #expect(echo.count == pattern.count && pattern.matches(echo))
        }
    }

    @Test func aCutOffEchoBeforeTheEndOfTheUploadIsTruncated() async throws {
        let pattern = LoopbackServer.Pattern(count: 16 << 20, seed: 7)
        try await withServer { exchange in
            _ = try exchange.readChunk()
            try exchange.writeHead(headers: [("Content-Length", "\(pattern.count)")])
            try exchange.streamPattern(pattern, in: 0..<548_864)
            // The end of the server's direction. It goes on to read, so that no reset overtakes the end.
            exchange.close()
            try exchange.drainBody()
        } test: { _, client in
            let error = try await failure { try await client.post("a", body: .data(Data(pattern.bytes()))) }
            #expect(error.kind == .truncatedBody && error.status == 200)
            #expect(error.metrics?.decodedBodyBytes == 548_864)
        }
    }

    @Test(arguments: [Request.Method.put, .post])
    func aStreamIsNeverSentASecondTime(method: Request.Method) async throws {
        let pieces = Pieces(size: 1_000)
        let received = Counter()
        try await withServer { exchange in
            if exchange.request.method == "GET" { return try exchange.respond(text: "first") }
            received.add()
            // The stream has begun.
            _ = try exchange.readChunk()
            exchange.close()
        } test: { server, client in
            _ = try await client.get("a")
            let error = try await failure {
                try await client.send(method, "b", body: .stream(pieces, length: Int64(Self.pattern.count)))
            }
            #expect(error.kind == .connectionLost)
            #expect(received.value == 1)
            #expect(pieces.iterators.value == 1)
            #expect(server.counts.requestsReceived == 2)
        }
    }

    @Test func aCancelledUploadStopsPulling() async throws {
        let isGone = LoopbackServer.Gate()
        try await withServer { exchange in
            _ = try exchange.readChunk()
            try exchange.waitForClientToClose()
        } test: { server, client in
            let probe = Probe(isGone)
            let endless = AsyncStream<Data> {
                probe.touch()
                return Task.isCancelled ? nil : Data(count: 100_000)
            }
            let task = client.upload("a", body: .stream(endless))
            await task.wait(forSentBytes: 100_000)
            task.cancel()
            let error = try await failure { try await task.value }
            #expect(error.isCancelled)
            try await server.wait { $0.openConnections == 0 }
        }
        try await isGone.wait()
    }
}
#endif
