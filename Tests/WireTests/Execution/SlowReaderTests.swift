#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

/// Checks readers that fall behind: the transport pauses, and loses none of the bytes that it has already read.
@Suite("Slow readers", .timeLimit(.minutes(1)))
struct SlowReaderTests {
    enum Framing: CaseIterable {
        case length
        case chunked
        case close

        func send(_ pattern: LoopbackServer.Pattern, _ exchange: LoopbackServer.Exchange) throws {
            switch self {
            case .length:
                try exchange.serveFile(pattern)
            case .chunked:
                try exchange.writeChunkedHead()
                for start in stride(from: 0, to: pattern.count, by: 10_000) {
                    try exchange.writeChunk(pattern.bytes(in: start..<min(start + 10_000, pattern.count)))
                }
                try exchange.endChunks()
            case .close:
                try exchange.writeHead(headers: [("Connection", "close")])
                try exchange.streamPattern(pattern)
                exchange.close()
            }
        }
    }

    /// The number of bytes that can wait for a reader.
    private static let mark = 1 << 20

    /// Sizes at the mark, just above it, within one read, and far above.
    private static let sizes = [mark, mark + 1, mark + (300 << 10), mark + (512 << 10), 6 * mark]

    /// Runs with a request body, too.
    @Test(arguments: Framing.allCases, sizes)
    func laggingReaderReceivesEveryByte(framing: Framing, size: Int) async throws {
        try await readLate(framing, size, .get, .none)
        try await readLate(framing, size, .post, .text("question"))
    }

    private func readLate(
        _ framing: Framing, _ size: Int, _ method: Request.Method, _ body: Request.Body
    ) async throws {
        let pattern = LoopbackServer.Pattern(count: size, seed: 4)
        try await withServer { exchange in
            _ = try exchange.drainBody()
            try framing.send(pattern, exchange)
        } test: { _, client in
            let stream = client.stream("a", method: method, body: body)
            #expect(try await stream.response.status == 200)
            await stream.task.untilReceived(Int64(Self.mark))
            try await roundTrips()
            // The limit includes one read of the socket, and a chunk that was being filled.
            #expect(await stream.task.receivedBytes <= Int64(Self.mark + (768 << 10)))
            var offset = 0
            for try await chunk in stream.chunks {
                #expect(pattern.matches(chunk, at: offset))
                offset += chunk.count
            }
            #expect(offset == size)
            #expect(stream.task.state == .completed)
            #expect(stream.task.metrics?.decodedBodyBytes == Int64(size))
        }
    }

    @Test(arguments: Framing.allCases)
    func aPauseOfATaskWhoseReaderIsBehindLosesNothing(framing: Framing) async throws {
        let pattern = LoopbackServer.Pattern(count: 6 * Self.mark, seed: 5)
        try await withServer { exchange in
            try framing.send(pattern, exchange)
        } test: { _, client in
            let stream = client.stream("a")
            await stream.task.untilReceived(Int64(Self.mark))
            stream.task.pause()
            try await roundTrips()
            stream.task.resume()
            try await roundTrips()
            #expect(await stream.task.receivedBytes <= Int64(Self.mark + (768 << 10)))
            var offset = 0
            for try await chunk in stream.chunks {
                #expect(pattern.matches(chunk, at: offset))
                offset += chunk.count
                if offset == chunk.count {
                    stream.task.pause()
                    try await roundTrips()
                    stream.task.resume()
                }
            }
            #expect(offset == pattern.count)
            #expect(stream.task.state == .completed)
        }
    }

    @Test func connectionOfALaggingReaderIsReused() async throws {
        let pattern = LoopbackServer.Pattern(count: 2 * Self.mark, seed: 6)
        try await withServer { exchange in
            try exchange.serveFile(pattern)
        } test: { _, client in
            for number in 0..<3 {
                let stream = client.stream("a")
                await stream.task.untilReceived(Int64(Self.mark))
                try await roundTrips()
                var count = 0
                for try await chunk in stream.chunks { count += chunk.count }
                #expect(count == pattern.count)
                #expect(stream.task.metrics?.isReusedConnection == (number > 0))
            }
        }
    }

    @Test(arguments: Framing.allCases)
    func cancellingWhileTheReaderIsBehindEndsTheTransfer(framing: Framing) async throws {
        let gone = LoopbackServer.Gate()
        let pattern = LoopbackServer.Pattern(count: 64 << 20, seed: 7)
        try await withServer { exchange in
            do { try framing.send(pattern, exchange) } catch { gone.open() }
        } test: { _, client in
            let stream = client.stream("a")
            await stream.task.untilReceived(Int64(Self.mark))
            try await roundTrips()
            stream.task.cancel()
            try await gone.wait()
            let error = try await failure { for try await _ in stream.chunks {} }
            #expect(error.kind == .cancelled)
        }
    }

    /// After this number of round trips, all bytes in flight have arrived.
    private func roundTrips() async throws {
        let other = try LoopbackServer.demo()
        defer { other.stop() }
        try await fence(other)
    }
}
#endif
