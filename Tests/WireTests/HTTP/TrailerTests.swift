// For Linux only: URLSession has no trailers.
#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

/// Checks the fields after the bodies of responses and of requests, over HTTP/1.1.
@Suite("Wire: trailers", .timeLimit(.minutes(1)))
struct TrailerTests {
    // MARK: Responses

    @Test func trailersOfAStreamFollowItsBody() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.writeChunkedHead()
            try exchange.writeChunk(Array("line\n".utf8))
            try exchange.wait(for: gate)
            try exchange.endChunks(trailers: [("X-Sum", "1"), ("X-Sum", "2"), ("Content-Length", "7")])
        } test: { _, client in
            let stream = client.stream("a")
            var chunks = stream.chunks.makeAsyncIterator()
            #expect(try await chunks.next() == Data("line\n".utf8))
            let early = try await failure { try stream.trailers }
            #expect(early.kind == .unsupported, "\(early)")
            gate.open()
            #expect(try await chunks.next() == nil)
            let trailers = try stream.trailers
            #expect(trailers.values(for: "X-Sum") == ["1", "2"] && trailers.count == 2)

            let lines = client.stream("b")
            for try await line in lines.lines { #expect(line == "line") }
            let ofLines = try lines.trailers
            #expect(ofLines == trailers)
            let bytes = client.stream("c")
            var count = 0
            for try await _ in bytes.bytes { count += 1 }
            let ofBytes = try bytes.trailers
            #expect(count == 5 && ofBytes == trailers)
        }
    }

    @Test func aStreamWithoutTrailersHasNone() async throws {
        try await withServer { exchange in
            try exchange.respond(text: "hello")
        } test: { _, client in
            let stream = client.stream("")
            for try await _ in stream.chunks {}
            let trailers = try stream.trailers
            #expect(trailers.isEmpty)
        }
    }

    @Test func aFailedStreamHasItsErrorForTrailers() async throws {
        try await withServer { exchange in
            if exchange.request.path == "/missing" { return try exchange.respond(status: 404, text: "no") }
            try exchange.writeChunkedHead()
            try exchange.writeChunk(Array("half".utf8))
            try exchange.write("0\r\nX-Sum: 1\r\n")
            exchange.close()
        } test: { _, client in
            for (path, kind) in [("cut", NetworkError.Kind.truncatedBody), ("missing", .status)] {
                let stream = client.stream(path)
                let error = try await failure { for try await _ in stream.chunks {} }
                #expect(error.kind == kind)
                let again = try await failure { try stream.trailers }
                #expect(again.kind == kind && again.status == error.status)
            }
        }
    }

    // MARK: Requests

    private static let hello = Data("hello, ".utf8)

    /// The chunks of a body, and the number of those that were read.
    private struct Source: AsyncSequence, Sendable {
        final class Counter: Sendable {
            private let count = Lock(0)

            var value: Int { count.withLock { $0 } }

            func next() -> Int {
                count.withLock { count in
                    count += 1
                    return count
                }
            }
        }

        let produced = Counter()

        func makeAsyncIterator() -> AsyncStream<Data>.Iterator {
            AsyncStream { [produced] in produced.next() <= 3 ? TrailerTests.hello : nil }.makeAsyncIterator()
        }
    }

    private static func echo(_ exchange: LoopbackServer.Exchange) throws {
        let body = try exchange.readBody()
        let fields = exchange.trailers.map { "\($0.name): \($0.value)" }.joined(separator: "; ")
        let length = exchange.request["Content-Length"] ?? "chunked"
        try exchange.respond(text: "\(length), \(body.count) bytes, \(fields)")
    }

    @Test func trailersOfARequestFollowTheLastByte() async throws {
        try await withServer(Self.echo) { server, client in
            let source = Source()
            let body = Request.Body.stream(source) { ["X-Count": "\(source.produced.value)", "Y": "ü"] }
            let counted = try await client.post("", body: body, as: String.self)
            #expect(counted == "chunked, 21 bytes, X-Count: 4; Y: ü")
            let empty = Request.Body.stream(AsyncStream<Data> { $0.finish() }) { ["X-Sum": "0"] }
            let ofEmpty = try await client.post("", body: empty, as: String.self)
            #expect(ofEmpty == "chunked, 0 bytes, X-Sum: 0")
            let none = Request.Body.stream(Source()) { [:] }
            let ofNone = try await client.post("", body: none, as: String.self)
            #expect(ofNone == "chunked, 21 bytes, ")
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test func trailersFollowCompressedAndThrottledBodies() async throws {
        try await withServer { exchange in
            try exchange.drainBody()
            try exchange.respond(text: exchange.trailers.map(\.value).joined())
        } test: { _, client in
            let body = Request.Body.stream(Source()) { ["X-Sum": "1"] }
            let compressed = try await client.post("", body: body.compressed(.gzip), as: String.self)
            #expect(compressed == "1")
            let pace = Request.Body.Throttle.bytesPerSecond(1_000_000)
            let slow = Request.Body.stream(Source()) { ["X-Sum": "2"] }.throttled(pace)
            let slowly = try await client.post("", body: slow, as: String.self)
            #expect(slowly == "2")
        }
    }

    @Test func trailersLargerThanABufferAreSentWhole() async throws {
        try await withServer { exchange in
            try exchange.drainBody()
            let bytes = exchange.trailers.reduce(0) { $0 + $1.value.utf8.count }
            try exchange.respond(text: "\(exchange.trailers.count) \(bytes)")
        } test: { _, client in
            let body = Request.Body.stream(Source()) {
                var fields: Headers = [:]
                for number in 0..<400 {
                    fields.append(name: "X-\(number)", value: String(repeating: "v", count: 1_000))
                }
                return fields
            }
            let large = try await client.post("", body: body, as: String.self)
            #expect(large == "400 400000")
        }
    }

    /// Runs a server that never sees the end of a body.
    private func withServerWithoutEnd(test: (Client) async throws -> Void) async throws {
        let completed = Lock(0)
        try await withServer { exchange in
            _ = try exchange.readBody()
            completed.withLock { $0 += 1 }
            try exchange.respond(text: "")
        } test: { _, client in
            try await test(client)
        }
        #expect(completed.withLock { $0 } == 0)
    }

    @Test(arguments: [
        ("Host", "a"), ("Content-Length", "3"), ("transfer-encoding", "chunked"), ("Authorization", "Basic x"),
        ("Content-Type", "a/b"), ("If-Match", "*"), ("X", "a\r\nHost: b"), ("X", "a\u{0}"), ("X Y", "a"), ("", "a"),
    ])
    func forbiddenTrailersEndTheRequest(name: String, value: String) async throws {
        try await withServerWithoutEnd { client in
            let body = Request.Body.stream(Source()) {
                var fields: Headers = [:]
                fields.append(name: name, value: value)
                return fields
            }
            let error = try await failure { try await client.post("", body: body) }
            #expect(error.kind == .invalidRequest, "\(error)")
        }
    }

    @Test func anErrorOfTheTrailersEndsTheRequest() async throws {
        struct NoSum: Error {}
        try await withServerWithoutEnd { client in
            let body = Request.Body.stream(Source()) { throw NoSum() }
            let error = try await failure { try await client.post("", body: body) }
            #expect(error.kind == .requestBody && error.underlying is NoSum, "\(error)")
        }
    }

    @Test func trailersNeedAChunkedBody() async throws {
        try await withServer(Self.echo) { server, client in
            let body = Request.Body.stream(Source()) { ["X-Sum": "1"] }
            let error = try await failure { try await client.post("", headers: ["Content-Length": "21"], body: body) }
            #expect(error.kind == .invalidRequest && error.reason.contains("RFC 9112 §7.1"), "\(error)")
            #expect(server.counts.acceptedConnections == 0)
        }
    }
}
#endif
