#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1)))
struct StreamTests {
    static let pattern = LoopbackServer.Pattern(count: 3_000_000, seed: 9)

    /// Sends a head and some bytes, and then nothing until the client disconnects, which opens the gate.
    static func stall(_ exchange: LoopbackServer.Exchange, _ hasGone: LoopbackServer.Gate) throws {
        // A client that goes before it has read all resets the connection, and writing or waiting fails.
        defer { hasGone.open() }
        try exchange.writeHead(headers: [("Content-Length", "1000000")])
        try exchange.write([UInt8](repeating: 1, count: 1_000))
        try exchange.waitForClientToClose()
    }

    // MARK: Forms

    @Test func chunksArriveInOrderWithinTheirSize() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client in
            let stream = client.stream("a")
            #expect(try await stream.response.contentLength == Int64(Self.pattern.count))
            var offset = 0
            for try await chunk in stream.chunks {
                #expect(!chunk.isEmpty && chunk.count <= 256 << 10)
                #expect(Self.pattern.matches(chunk, at: offset))
                offset += chunk.count
            }
            #expect(offset == Self.pattern.count)
            #expect(stream.task.state == .completed)
            #expect(stream.task.metrics?.decodedBodyBytes == Int64(Self.pattern.count))
        }
    }

    @Test func aChunkComesBeforeTheNextIsSent() async throws {
        let gates = (0..<3).map { _ in LoopbackServer.Gate() }
        try await withServer { exchange in
            try exchange.writeChunkedHead()
            for (number, gate) in gates.enumerated() {
                try exchange.writeChunk(Array("part \(number)"))
                try exchange.wait(for: gate)
            }
            try exchange.endChunks()
        } test: { _, client in
            var number = 0
            for try await chunk in client.stream("a").chunks {
                #expect(String(decoding: chunk, as: UTF8.self) == "part \(number)")
                gates[number].open()
                number += 1
            }
            #expect(number == 3)
        }
    }

    @Test func bytesAreTheBody() async throws {
        let small = LoopbackServer.Pattern(count: 50_000)
        try await withServer {
            try $0.serveFile(small)
        } test: { _, client in
            var bytes: [UInt8] = []
            for try await byte in client.stream("a").bytes { bytes.append(byte) }
            #expect(bytes == small.bytes())
        }
    }

    @Test(arguments: [1, 2, 3, 7, 1_000])
    func linesAreFoundInEverySplit(size: Int) async throws {
        let text = "one\ntwo\r\n\rüñ\u{1F600}\n\nlast"
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", String(text.utf8.count))])
            try exchange.write(Array(text.utf8), inPiecesOf: size)
        } test: { _, client in
            var lines: [String] = []
            for try await line in client.stream("a").lines { lines.append(line) }
            #expect(lines == ["one", "two", "", "üñ\u{1F600}", "", "last"])
        }
    }

    @Test(arguments: [true, false])
    func aLineWithoutAnEndIsRefusedAtTheLimit(isOfTheRequest: Bool) async throws {
        let limit = isOfTheRequest ? 1_000 : 100_000
        try await withServer(configuration: .test { $0.maximumBodySize = limit }) { exchange in
            try exchange.writeHead(headers: [("Connection", "close")])
            try exchange.write("short\n")
            while true { try exchange.write([UInt8](repeating: 120, count: 65_536)) }
        } test: { _, client in
            var request = try client.request(.get, "a")
            if isOfTheRequest { request.maximumBodySize = 100_000 }
            let stream = client.session.stream(request)
            var lines = stream.lines.makeAsyncIterator()
            #expect(try await lines.next() == "short")
            let error = try await failure { try await lines.next() }
            #expect(error.kind == .tooLarge)
            #expect(error.reason.contains("a line of the response has more than 100000 bytes"))
            #expect(error.taskID == stream.task.id)
            await client.session.drained()
        }
    }

    @Test func anEmptyBodyEndsAtOnce() async throws {
        try await withServer {
            try $0.respond(status: 204)
        } test: { _, client in
            var chunks = client.stream("a").chunks.makeAsyncIterator()
            for _ in 0..<2 {
                let chunk = try await chunks.next()
                #expect(chunk == nil)
            }
        }
    }
}
#endif
