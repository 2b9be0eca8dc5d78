import Foundation
import HTTPTypes
import Tern
import TernTesting
import Testing

@testable import proxy

/// A client and an origin of Tern with the proxy between them, over sockets of this machine.
@Suite(.timeLimit(.minutes(3)))
struct ProxyTests {
    private static let mebibyte = 1 << 20

    @Test func aSlowClientStopsTheOrigin() async throws {
        let size = 256 * Self.mebibyte
        let written = Counters()
        let origin = try LoopbackServer { exchange in
            let piece = [UInt8](repeating: 7, count: 64 << 10)
            try exchange.writeHead(headers: [("Content-Length", "\(size)")])
            for _ in 0..<size / piece.count {
                try exchange.write(piece)
                written.add(piece.count, to: exchange.request.path)
            }
        }
        try await withProxy(before: origin.port) { client async throws in
            let slow = client.stream("slow")
            #expect(try await slow.response.contentLength == Int64(size))
            // Meanwhile, another client receives all of its body. Without back-pressure, the first body would be as
            // far.
            var received = 0
            for try await chunk in client.stream("fast") { received += chunk.count }
            #expect(received == size)
            // Two buffers of Tern (2 MiB each) and those of four sockets: 13 to 33 MiB where a socket can have 32 MiB.
            #expect(written["/slow"] < size / 2)
            received = 0
            for try await chunk in slow { received += chunk.count }
            #expect(received == size)
        }
    }

    @Test func chunksArriveBeforeTheBodyEnds() async throws {
        let hasArrived = LoopbackServer.Gate()
        let origin = try LoopbackServer { exchange in
            try exchange.writeChunkedHead()
            try exchange.writeChunk(Array("first".utf8))
            try exchange.wait(for: hasArrived)
            try exchange.writeChunk(Array("second".utf8))
            try exchange.endChunks(trailers: [("X-Digest", "1")])
        }
        try await withProxy(before: origin.port) { client async throws in
            let stream = client.stream("body")
            var chunks = stream.chunks.makeAsyncIterator()
            #expect(try await chunks.next() == Data("first".utf8))
            hasArrived.open()
            #expect(try await chunks.next() == Data("second".utf8))
            #expect(try await chunks.next() == nil)
            #expect(try stream.trailers["X-Digest"] == "1")
        }
    }

    @Test func statusAndFieldsPassWithoutThoseOfTheConnection() async throws {
        let origin = try LoopbackServer { exchange in
            try exchange.respond(
                status: 404,
                headers: [
                    ("X-Reason", "unknown"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Connection", "X-Hop"),
                    ("X-Hop", "1"), ("Keep-Alive", "timeout=5"),
                ], text: "nothing here")
        }
        try await withProxy(before: origin.port) { client async throws in
            let response = try await client.response(for: client.request(.get, "page"))
            #expect(response.status == 404)
            #expect(response.value == Data("nothing here".utf8))
            #expect(response.headers["X-Reason"] == "unknown")
            #expect(response.headers.values(for: "Set-Cookie") == ["a=1", "b=2"])
            #expect(response.headers["X-Hop"] == nil)
            #expect(response.headers["Keep-Alive"] == nil)
        }
    }

    @Test func theOriginReceivesPathQueryAndFieldsOfTheRequest() async throws {
        let origin = try LoopbackServer { exchange in
            let request = exchange.request
            let fields = ["X-Own", "X-Hop", "Via", "Connection", "Cookie"].map { "\($0)=\(request[$0] ?? "-")" }
            try exchange.respond(text: ([request.method, request.target] + fields).joined(separator: " "))
        }
        try await withProxy(before: origin.port) { client async throws in
            let headers: Headers = ["X-Own": "1", "X-Hop": "1", "Connection": "X-Hop", "Cookie": "a=1"]
            let text = try await client.get("/a%2Fb//c:d?q=%20&r", headers: headers, as: String.self)
            #expect(
                text == "GET /a%2Fb//c:d?q=%20&r X-Own=1 X-Hop=- Via=1.1 tern-proxy Connection=- Cookie=a=1")
        }
    }

    @Test func fieldsOfTheConnectionAreLeftOut() throws {
        var fields: HTTPFields = [.connection: "close, X-Hop", .te: "trailers", .contentLength: "3", .accept: "a/b"]
        fields[try #require(HTTPField.Name("X-Hop"))] = "1"
        fields[try #require(HTTPField.Name("Proxy-Authorization"))] = "secret"
        let headers = ForwardedFields.headers(of: fields)
        #expect(headers.map(\.name).sorted() == ["Accept", "Via"])
    }

    @Test func redirectsAndCompressedBodiesPassUnchanged() async throws {
        let bytes: [UInt8] = [0x1F, 0x8B, 1, 2, 3]
        let origin = try LoopbackServer { exchange in
            if exchange.request.path == "/moved" {
                try exchange.respond(status: 302, headers: [("Location", "/elsewhere")])
            } else {
                try exchange.respond(headers: [("Content-Encoding", "gzip")], body: bytes)
            }
        }
        try await withProxy(before: origin.port) { client async throws in
            let moved = try await client.response(for: client.request(.get, "moved"))
            #expect(moved.status == 302)
            #expect(moved.headers["Location"] == "/elsewhere")
            #expect(try await client.get("file", headers: ["Accept-Encoding": "gzip"]) == Data(bytes))
        }
    }

    @Test func aHeadRequestHasTheLengthAndNoBody() async throws {
        let origin = try LoopbackServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "12345")])
        }
        try await withProxy(before: origin.port) { client async throws in
            for _ in 0..<2 {
                let response = try await client.response(for: client.request(.head, "file"))
                #expect(response.status == 200)
                #expect(response.headers["Content-Length"] == "12345")
            }
        }
    }

    @Test(arguments: [true, false]) func theBodyOfARequestIsStreamed(statesLength: Bool) async throws {
        let hasFirst = LoopbackServer.Gate()
        let origin = try LoopbackServer { exchange in
            var text = ""
            while let chunk = try exchange.readChunk() {
                text += String(decoding: chunk, as: UTF8.self)
                hasFirst.open()
            }
            try exchange.respond(text: "\(text) \(exchange.request["Content-Length"] ?? "chunked")")
        }
        try await withProxy(before: origin.port) { client async throws in
            // The second part is sent when the origin has the first.
            let (parts, continuation) = AsyncStream<Data>.makeStream()
            continuation.yield(Data("first,".utf8))
            let task = client.task(
                .post, "upload", body: .stream(parts, length: statesLength ? 12 : nil), as: String.self)
            try await hasFirst.wait()
            continuation.yield(Data("second".utf8))
            continuation.finish()
            #expect(try await task.value == "first,second \(statesLength ? "12" : "chunked")")
        }
    }

    @Test func aSlowOriginStopsTheClient() async throws {
        let size = 256 * Self.mebibyte
        let (canRead, sent) = (LoopbackServer.Gate(), Counters())
        let origin = try LoopbackServer { exchange in
            if exchange.request.path == "/slow" { try exchange.wait(for: canRead) }
            try exchange.respond(text: "\(try exchange.drainBody())")
        }
        @Sendable func body(_ name: String) -> Tern.Request.Body {
            let piece = Data(repeating: 7, count: 64 << 10)
            let chunks = AsyncStream<Data> {
                if sent[name] == size { return nil }
                sent.add(piece.count, to: name)
                return piece
            }
            return .stream(chunks, length: Int64(size))
        }
        try await withProxy(before: origin.port) { client async throws in
            let slow = client.task(.put, "slow", body: body("slow"), as: String.self)
            // Meanwhile, the origin receives all of another body.
            #expect(try await client.put("fast", body: body("fast"), as: String.self) == "\(size)")
            #expect(sent["slow"] < size / 4)
            canRead.open()
            #expect(try await slow.value == "\(size)")
        }
    }

    @Test func anEarlyResponseToALargeBodyPasses() async throws {
        let origin = try LoopbackServer { exchange in
            try exchange.respond(status: 413, text: "too large")
            exchange.close()
        }
        try await withProxy(before: origin.port) { client async throws in
            let body = Data(repeating: 1, count: 16 * Self.mebibyte)
            // The connection to the origin may also be reset before the response was read.
            let response = try await client.response(for: client.request(.put, "file", body: .data(body)))
            #expect(response.status == 413 || response.status == 502)
            // The proxy still answers.
            #expect([413, 502].contains(try await client.response(for: client.request(.get, "file")).status))
        }
    }

    @Test func aClientThatLeavesBeforeTheHeadCancelsTheRequest() async throws {
        let (hasRequest, hasLeft) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let origin = try LoopbackServer { exchange in
            hasRequest.open()
            try exchange.waitForClientToClose()
            hasLeft.open()
        }
        try await withProxy(before: origin.port) { client async throws in
            let task = client.task(.get, "silent", as: String.self)
            try await hasRequest.wait()
            task.cancel()
            try await hasLeft.wait()
        }
    }

    @Test func aClientThatLeavesDuringTheBodyCancelsTheRequest() async throws {
        let hasLeft = LoopbackServer.Gate()
        let origin = try LoopbackServer { exchange in
            try exchange.writeChunkedHead()
            try exchange.writeChunk(Array("first".utf8))
            try exchange.waitForClientToClose()
            hasLeft.open()
        }
        try await withProxy(before: origin.port) { client async throws in
            let stream = client.stream("body")
            var chunks = stream.chunks.makeAsyncIterator()
            #expect(try await chunks.next() == Data("first".utf8))
            stream.task.cancel()
            try await hasLeft.wait()
        }
    }

    @Test func aTruncatedBodyDoesNotPassAsAWhole() async throws {
        let origin = try LoopbackServer { exchange in
            try exchange.writeChunkedHead()
            try exchange.writeChunk(Array("first".utf8))
            exchange.close()
        }
        try await withProxy(before: origin.port) { client async throws in
            await #expect(throws: NetworkError.self) { for try await _ in client.stream("body") {} }
        }
    }

    @Test func anOriginThatCannotBeReachedIsABadGateway() async throws {
        try await withProxy(before: LoopbackServer.refusingPort()) { client async throws in
            #expect(try await client.response(for: client.request(.get, "page")).status == 502)
            // The connection is used again after a request with a body, too.
            let body = Tern.Request.Body.data(Data(repeating: 1, count: Self.mebibyte))
            #expect(try await client.response(for: client.request(.post, "page", body: body)).status == 502)
            #expect(try await client.response(for: client.request(.get, "page")).status == 502)
        }
    }
}
