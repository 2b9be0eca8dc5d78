import Tern
import TernTesting
import Testing

@testable import TernTransfers

/// The bytes that a killed process loses: those that it has read from the connection, and not written.
@Suite("Durable downloads: bytes in memory", .timeLimit(.minutes(1)))
struct DownloadBufferTests {
    @Test(arguments: [true, false]) func fewerThan256KiBWaitForTheReader(hasLength: Bool) async throws {
        let pattern = LoopbackServer.Pattern(count: 32 << 20)
        try await withServer { exchange in
            if hasLength { return try exchange.serveFile(pattern) }
            try exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = Array("100000\r\n".utf8) + [UInt8](repeating: 7, count: 1 << 20) + Array("\r\n".utf8)
            for _ in 0..<32 { try exchange.write(chunk) }
            try exchange.write("0\r\n\r\n")
        } test: { _, client, _ in
            var request = try client.request(.get, "file")
            request.bufferLimit = DownloadRequests.bufferLimit
            request.chunkLimit = DownloadRequests.chunkLimit
            let stream = client.session.stream(request)
            var (read, most) = (Int64(0), Int64(0))
            for try await chunk in stream.chunks {
                // The chunk is in memory as long as it is being written.
                most = max(most, stream.task.progressNow.completedBytes - read)
                read += Int64(chunk.count)
                await Task.yield()
            }
            #expect(read == 32 << 20)
            #expect(most <= 256 << 10)
            print("durable downloads: at most \(most) bytes in memory")
        }
    }
}
