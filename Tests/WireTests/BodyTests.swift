#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What the bodies of requests look like to a server.
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

    private func sent(_ body: Request.Body, headers: Headers = [:]) async throws -> Received {
        var result: Received?
        try await withServer(Self.receive) { _, client in
            result = try await client.post("a", headers: headers, body: body)
        }
        return try #require(result)
    }

    @Test func formsPropertyListsTextAndBytesSayWhatTheyAre() async throws {
        let form = try await sent(.form(["b": "x y", "a": "1"]))
        #expect(form.type == "application/x-www-form-urlencoded" && form.text == "a=1&b=x%20y")
        let query: Request.Query = ["b": "x&y", "a": nil]
        let items = try await sent(.form(query))
        #expect(items.text == "b=x%26y&a")
        let list = try await sent(.propertyList(["a": 1]))
        #expect(list.type == "application/x-plist" && list.text.contains("<key>a</key>"))
        let binary = try await sent(.propertyList(["a": 1], format: .binary))
        #expect(binary.body.starts(with: "bplist00".utf8))
        let text = try await sent(.text("é"))
        #expect(text.type == "text/plain; charset=utf-8" && text.text == "é")
        let raw = try await sent(.data(Data([0, 255]), contentType: nil))
        #expect(raw.type == nil && raw.body == Data([0, 255]))
    }

    @Test func noParametersGiveAnEmptyFormOfItsType() async throws {
        let received = try await sent(.form([String: String]?.none))
        #expect(received == Received(type: "application/x-www-form-urlencoded", encoding: nil, length: 0, body: Data()))
    }

    @Test func aTypeThatTheCallerSetStays() async throws {
        let received = try await sent(.form(["a": 1]), headers: ["Content-Type": "application/x-own"])
        #expect(received.type == "application/x-own")
    }

    @Test func whatCannotBeEncodedFailsBeforeAnythingIsSent() async throws {
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
        let received = try await sent(.text(text).compressed())
        #expect(received.encoding == "deflate" && received.length == received.body.count)
        #expect(received.body.count < 2_000)
        #expect(try await inflated(received) == Data(text.utf8))
    }

    @Test func streamsAndFilesAreCompressedOnTheirWay() async throws {
        try await inTestFolder { folder in
            let text = String(repeating: "tern ", count: 100_000)
            try folder.write(text, to: "f")
            let file = try await sent(.file(folder.url("f")).compressed(.gzip))
            #expect(file.encoding == "gzip" && file.length == nil)
            #expect(try await inflated(file) == Data(text.utf8))
            let stream = try await sent(.stream(UploadTests.Pieces(), length: 2_500_000).compressed())
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
    func aCompressedBodyTakesNoFramingOfTheCallers(name: String) async throws {
        try await withServer(Self.receive) { server, client in
            let error = try await failure {
                _ = try await client.post("a", headers: [name: "3"], body: .text("abc").compressed())
            }
            #expect(error.kind == .invalidRequest && server.counts.acceptedConnections == 0)
        }
    }

    /// By the other end of the library: a server that sends the bytes back with their encoding.
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

    // MARK: Pace

    @Test func aThrottledBodyArrivesWholeAndNotFasterThanAsked() async throws {
        try await withServer(Self.receive) { _, client in
            let start = ContinuousClock.now
            let body = Request.Body.data(Data(repeating: 7, count: 3_000))
            let received: Received = try await client.post(
                "a", body: body.throttled(.packets(of: 1_000, delay: .milliseconds(50))))
            // Two waits lie between three packets.
            #expect(ContinuousClock.now - start >= .milliseconds(100))
            #expect(received.body == Data(repeating: 7, count: 3_000) && received.length == 3_000)
        }
    }

    @Test func aBodyThatIsSentAgainKeepsItsPace() async throws {
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
