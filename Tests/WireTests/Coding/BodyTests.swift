#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks the bodies of requests as a server receives them.
@Suite(.timeLimit(.minutes(1)))
struct BodyTests {
    private struct Received: Codable, Sendable, Equatable {
        var type: String?
        var encoding: String?
        var length: Int?
        var body: Data

        var text: String { String(decoding: body, as: UTF8.self) }
    }

    private static func receive(_ exchange: LoopbackServer.Exchange) throws {
        let body = Data(try exchange.readBody())
        let request = exchange.request
        try exchange.respond(
            json: Received(
                type: request["Content-Type"], encoding: request["Content-Encoding"],
                length: request.contentLength, body: body))
    }

    private func receivedBody(of body: Request.Body, headers: Headers = [:]) async throws -> Received {
        var result: Received?
        try await withServer(Self.receive) { _, client in
            result = try await client.post("a", headers: headers, body: body)
        }
        return try #require(result)
    }

    @Test func formsPropertyListsTextAndBytesSendTheirType() async throws {
        let form = try await receivedBody(of: .form(["b": "x y", "a": "1"]))
        #expect(form.type == "application/x-www-form-urlencoded" && form.text == "a=1&b=x%20y")
        let query: Request.Query = ["b": "x&y", "a": .null]
        let items = try await receivedBody(of: .form(query))
        #expect(items.text == "b=x%26y&a")
        let list = try await receivedBody(of: .propertyList(["a": 1]))
        #expect(list.type == "application/x-plist" && list.text.contains("<key>a</key>"))
        let binary = try await receivedBody(of: .propertyList(["a": 1], format: .binary))
        #expect(binary.body.starts(with: "bplist00".utf8))
        let text = try await receivedBody(of: .text("é"))
        #expect(text.type == "text/plain; charset=utf-8" && text.text == "é")
        let raw = try await receivedBody(of: .data(Data([0, 255]), contentType: nil))
        #expect(raw.type == nil && raw.body == Data([0, 255]))
    }

    @Test func emptyParametersSendAnEmptyForm() async throws {
        let received = try await receivedBody(of: .form([String: String]?.none))
        #expect(received == Received(type: "application/x-www-form-urlencoded", encoding: nil, length: 0, body: Data()))
    }

    @Test func contentTypeOfTheCallerIsKept() async throws {
        let received = try await receivedBody(of: .form(["a": 1]), headers: ["Content-Type": "application/x-own"])
        #expect(received.type == "application/x-own")
    }

    @Test func encodingFailureComesBeforeSending() async throws {
        try await withServer(Self.receive) { server, client in
            for body in [Request.Body.form([1, 2]), .json(["a": Double.nan]), .propertyList("text")] {
                let error = try await failure { _ = try await client.post("a", body: body) }
                #expect(error.kind == .requestBody)
                #expect(error.reason.contains("cannot be encoded as"))
            }
            #expect(server.counts.acceptedConnections == 0)
        }
    }

    // MARK: Compression

    @Test func bytesAreDeflatedWithTheirLength() async throws {
        let text = String(repeating: "tern ", count: 10_000)
        let received = try await receivedBody(of: .text(text).compressed())
        #expect(received.encoding == "deflate" && received.length == received.body.count)
        #expect(received.body.count < 2_000)
        #expect(try await inflated(received) == Data(text.utf8))
    }

    @Test func streamsAndFilesAreCompressedWhileSending() async throws {
        try await inTestFolder { folder in
            let text = String(repeating: "tern ", count: 100_000)
            try folder.write(text, to: "f")
            let file = try await receivedBody(of: .file(folder.url("f")).compressed(.gzip))
            #expect(file.encoding == "gzip" && file.length == nil)
            #expect(try await inflated(file) == Data(text.utf8))
            let stream = try await receivedBody(of: .stream(UploadTests.Pieces(), length: 2_500_000).compressed())
            #expect(try await inflated(stream) == Data(UploadTests.pattern.bytes()))
        }
    }

    @Test func aCompressedStreamIsStillCounted() async throws {
        try await withServer(Self.receive) { _, client in
            let body = Request.Body.stream(UploadTests.Pieces(), length: 2_500_001).compressed()
            let error = try await failure { _ = try await client.post("a", body: body) }
            #expect(error.kind == .requestBody && error.reason.contains("2500001"))
        }
    }

    @Test(arguments: ["Content-Encoding", "Content-Length"])
    func framingHeadersOfACompressedBodyAreRefused(name: String) async throws {
        try await withServer(Self.receive) { server, client in
            let error = try await failure {
                _ = try await client.post("a", headers: [name: "3"], body: .text("abc").compressed())
            }
            #expect(error.kind == .invalidRequest && server.counts.acceptedConnections == 0)
        }
    }

    /// Decompresses a body with the client: a server returns it with its content coding.
    private func inflated(_ received: Received) async throws -> Data {
        var result: Data?
        let encoding = received.encoding ?? ""
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Encoding", encoding)], body: received.body)
        } test: { _, client in
            result = try await client.get("a")
        }
        return try #require(result)
    }

    // MARK: Throttle

    @Test func throttledBodyArrivesCompleteWithinItsRate() async throws {
        try await withServer(Self.receive) { _, client in
            let start = ContinuousClock.now
            let body = Request.Body.data(Data(repeating: 7, count: 3_000))
            let received: Received = try await client.post(
                "a", body: body.throttled(.packets(of: 1_000, delay: .milliseconds(50))))
            // Three packets have two waits between them.
            #expect(ContinuousClock.now - start >= .milliseconds(100))
            #expect(received.body == Data(repeating: 7, count: 3_000) && received.length == 3_000)
        }
    }

    @Test func repeatedBodyKeepsItsThrottle() async throws {
        try await withServer { exchange in
            if exchange.request.path == "/a" {
                _ = try exchange.drainBody()
                try exchange.respond(status: 307, headers: [("Location", "/b")], text: "")
            } else {
                try Self.receive(exchange)
            }
        } test: { _, client in
            let start = ContinuousClock.now
            let received: Received = try await client.post(
                "a", body: .text("abc").throttled(.packets(of: 1, delay: .milliseconds(30))))
            #expect(ContinuousClock.now - start >= .milliseconds(120))
            #expect(received.text == "abc")
        }
    }

    @Test func aThrottledUploadIsCancelledWhileItWaits() async throws {
        try await withServer(Self.receive) { _, client in
            let body = Request.Body.text("abc").throttled(.packets(of: 1, delay: .seconds(600)))
            let task = client.upload("a", body: body)
            for await progress in task.uploadProgress where progress.completedBytes > 0 { break }
            task.cancel()
            let error = try await failure { _ = try await task.value }
            #expect(error.isCancelled)
        }
    }
}
#endif
