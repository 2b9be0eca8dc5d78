import Tern
import TernCache
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Requests for the rest of an image without an answer, and answers whose head is right and whose body is not the
/// rest: Documentation/Reference/ResumedDownloads.md.
@Suite("Bodies of the part of an image", .timeLimit(.minutes(1)))
struct PartBodyTests {
    static let cut = 100

    /// The behaviours of a server that sends no rest.
    enum Behaviour: CaseIterable {
        case tooLong, damagedFraming, withoutBytes, reset

        /// Answers a request for the rest.
        func answer(_ exchange: LoopbackServer.Exchange, _ picture: [UInt8]) throws {
            let rest = Array(picture[PartBodyTests.cut...])
            let fields = [
                ("ETag", "\"v1\""),
                ("Content-Range", "bytes \(PartBodyTests.cut)-\(picture.count - 1)/\(picture.count)"),
            ]
            switch self {
            case .tooLong:
                try exchange.writeChunked(status: 206, headers: fields, chunks: [rest + Array("EXTRA".utf8)])
            case .damagedFraming:
                try exchange.writeChunkedHead(status: 206, headers: fields)
                try exchange.waitUntilReceived()
                try exchange.write("no length\r\n")
                exchange.close()
            case .withoutBytes:
                try exchange.writeHead(status: 206, headers: fields + [("Content-Length", "\(rest.count)")])
                try exchange.waitUntilReceived()
                exchange.close()
            case .reset:
                exchange.reset()
            }
        }
    }

    /// Loads an image of which a part is on the disk from a server. Calls `test` with the cache, the key of the part,
    /// and a function that loads the image and returns its error.
    private func load(
        handler: @escaping @Sendable (LoopbackServer.Exchange, [UInt8]) throws -> Void,
        test: (DiskCache, String, () async -> ImageError?) async throws -> Void
    ) async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png(300, 200)
        let bytes = [UInt8](picture)
        let server = try LoopbackServer { try handler($0, bytes) }
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let session = Session(configuration: configuration)
        let kit = PipelineKit(StubTransport { _ in .status(500) }, disk: .cache(cache)) { $0.session = session }
        let request = ImageRequest(server.url("1.png"))
        let part = PartialImage(data: picture.prefix(Self.cut), validator: "\"v1\"", length: picture.count)
        let key = PartialImage.key(request.source.key)
        try await cache.insert(part.data, for: key, metadata: part.metadata)
        try await test(cache, key) {
            await kit.pipeline.forgetFailures()
            return await kit.pipeline.failure(of: request)
        }
    }

    /// The bytes of a wrong body are not kept, and the fourth load asks for the whole image.
    @Test(arguments: Behaviour.allCases) func noWrongBodyStandsInTheWayForEver(_ behaviour: Behaviour) async throws {
        let asked = Lock<[String?]>([])
        try await load(
            handler: { exchange, picture in
                asked.withLock { $0.append(exchange.request["Range"]) }
                if exchange.request["Range"] != nil { return try behaviour.answer(exchange, picture) }
                try exchange.respond(headers: [("ETag", "\"v1\"")], body: picture)
            },
            test: { cache, key, load in
                for _ in 0..<3 {
                    let failure = await load()
                    let entry = try await cache.entry(for: key)
                    #expect(failure != nil && entry?.value.count == Self.cut)
                }
                let failure = await load()
                #expect(failure == nil)
                let range = "bytes=100-"
                let last: [String?] = behaviour == .reset ? [range, nil] : [nil]
                #expect(asked.withLock { $0 } == [range, range, range] + last)
                #expect(!cache.contains(key))
            })
    }

    /// A network that answers nothing costs no part.
    @Test func networkThatAnswersNothingCostsNoPart() async throws {
        let asked = Lock<[String?]>([])
        try await load(
            handler: { exchange, _ in
                asked.withLock { $0.append(exchange.request["Range"]) }
                exchange.reset()
            },
            test: { cache, key, load in
                for _ in 0..<6 {
                    let failure = await load()
                    let entry = try await cache.entry(for: key)
                    #expect(failure != nil && entry?.value.count == Self.cut)
                }
                let range = "bytes=100-"
                #expect(asked.withLock { $0 } == [range, range, range, range, nil, range, range])
            })
    }
}
