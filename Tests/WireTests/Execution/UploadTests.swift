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
struct UploadTests {
    static let pattern = LoopbackServer.Pattern(count: 2_500_000, seed: 5)

    /// A body in pieces, which counts the pieces requested.
    struct Pieces: AsyncSequence, Sendable {
        var pattern = UploadTests.pattern
        var size = 100_000
        let pulled = Counter()
        let iterators = Counter()
        /// Fails instead of returning the piece that begins here.
        var failsAt: Int?

        typealias Element = Data
        typealias AsyncIterator = Iterator

        struct Broken: Error {}

        struct Iterator: AsyncIteratorProtocol {
            let pieces: Pieces
            var offset = 0

            mutating func next() async throws -> Data? {
                guard offset < pieces.pattern.count else { return nil }
                if let failsAt = pieces.failsAt, offset >= failsAt { throw Broken() }
                let end = Swift.min(offset + pieces.size, pieces.pattern.count)
                defer { offset = end }
                pieces.pulled.add(end - offset)
                return Data(pieces.pattern.bytes(in: offset..<end))
            }
        }

        func makeAsyncIterator() -> Iterator {
            iterators.add()
            return Iterator(pieces: self)
        }
    }

    /// The request as the server received it: the framing, and whether the bytes match the pattern.
    struct Received: Codable, Sendable, Equatable {
        var length: Int?
        var isChunked: Bool
        var count: Int
        var isWhole: Bool
    }

    static func receive(_ exchange: LoopbackServer.Exchange) throws {
        let body = try exchange.readBody()
        let received = Received(
            length: exchange.request.contentLength, isChunked: exchange.request.isChunked, count: body.count,
            isWhole: pattern.matches(body) && body.count == pattern.count)
        try exchange.respond(json: received)
    }

    static let exact = Received(
        length: pattern.count, isChunked: false, count: pattern.count, isWhole: true)
    static let chunked = Received(length: nil, isChunked: true, count: pattern.count, isWhole: true)

    // MARK: Bodies

    @Test func dataArrivesComplete() async throws {
        try await withServer(Self.receive) { _, client in
            let task = client.upload("a", body: .data(Data(Self.pattern.bytes())), as: Received.self)
            let last = await task.uploadProgress.collected().last
            let received = try await task.value
            #expect(received == Self.exact)
            #expect(last?.completedBytes == Int64(Self.pattern.count))
            #expect(last?.totalBytes == Int64(Self.pattern.count))
        }
    }

    @Test func fileArrivesComplete() async throws {
        try await inTestFolder { folder in
            try folder.write(Self.pattern.bytes(), to: "body")
            try await withServer(Self.receive) { _, client in
                let task = client.upload("a", file: folder.url("body"), as: Received.self)
                let last = await task.uploadProgress.collected().last
                let received = try await task.value
                #expect(received == Self.exact)
                #expect(last?.completedBytes == Int64(Self.pattern.count))
                #expect(last?.totalBytes == Int64(Self.pattern.count))
            }
        }
    }

    @Test func anEmptyFileIsABodyOfLengthZero() async throws {
        try await inTestFolder { folder in
            try folder.write("", to: "body")
            try await withServer(Self.receive) { _, client in
                let received = try await client.upload("a", file: folder.url("body"), as: Received.self).value
                #expect(received == Received(length: 0, isChunked: false, count: 0, isWhole: false))
            }
        }
    }

    @Test func aStreamOfKnownLengthIsNotChunked() async throws {
        try await withServer(Self.receive) { _, client in
            let body = Request.Body.stream(Pieces(), length: Int64(Self.pattern.count))
            let task = client.upload("a", body: body, as: Received.self)
            let last = await task.uploadProgress.collected().last
            let received = try await task.value
            #expect(received == Self.exact)
            #expect(last?.totalBytes == Int64(Self.pattern.count))
        }
    }

    @Test func aStreamOfUnknownLengthIsChunked() async throws {
        try await withServer(Self.receive) { _, client in
            let task = client.upload("a", body: .stream(Pieces()), as: Received.self)
            let last = await task.uploadProgress.collected().last
            let received = try await task.value
            #expect(received == Self.chunked)
            #expect(last?.totalBytes == nil)
            #expect(last?.completedBytes == Int64(Self.pattern.count))
        }
    }

    @Test func contentLengthIsTheLengthOfAStream() async throws {
        try await withServer(Self.receive) { _, client in
            let headers: Headers = ["Content-Length": "\(Self.pattern.count)"]
            let task = client.upload("a", body: .stream(Pieces()), headers: headers, as: Received.self)
            let last = await task.uploadProgress.collected().last
            let received = try await task.value
            #expect(received == Self.exact)
            #expect(last?.totalBytes == Int64(Self.pattern.count))
        }
    }

    @Test func anEmptyStreamIsAnEmptyBody() async throws {
        try await withServer(Self.receive) { _, client in
            let empty = Pieces(pattern: LoopbackServer.Pattern(count: 0))
            let known = try await client.upload("a", body: .stream(empty, length: 0), as: Received.self).value
            #expect(known == Received(length: 0, isChunked: false, count: 0, isWhole: false))
            let unknown = try await client.upload("a", body: .stream(empty), as: Received.self).value
            #expect(unknown.count == 0)
        }
    }

    @Test func contentTypeIsAddedIfMissing() async throws {
        try await withServer { exchange in
            try exchange.respond(text: exchange.request.values(of: "Content-Type").joined(separator: "|"))
        } test: { _, client in
            let json = Request.Body.json(["a": 1])
            let added = try await client.post("a", body: json, as: String.self)
            #expect(added == "application/json")
            let own: Headers = ["content-type": "application/vnd.api+json"]
            #expect(try await client.post("a", headers: own, body: json, as: String.self) == "application/vnd.api+json")
            #expect(try await client.post("a", body: .text("x"), as: String.self) == "text/plain; charset=utf-8")
            let bare = Request.Body.data(Data("x".utf8), contentType: nil)
            #expect(try await client.post("a", body: bare, as: String.self) == "")
            #expect(try await client.post("a", as: String.self) == "")
        }
    }
}
#endif
