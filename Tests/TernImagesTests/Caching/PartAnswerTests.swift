import Tern
import TernCache
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Responses to the request for the rest of an image that are not the rest:
/// Documentation/Reference/ResumedDownloads.md.
@Suite("Answers to the part of an image", .timeLimit(.minutes(1)))
struct PartAnswerTests {
    static let cut = 100

    /// Responses with status 200.
    enum Whole: CaseIterable {
        case rest, restWithoutRange, few

        func answer(_ picture: Data) -> StubTransport.Answer {
            let rest = picture.suffix(from: PartAnswerTests.cut)
            let range = "bytes \(PartAnswerTests.cut)-\(picture.count - 1)/\(picture.count)"
            var headers: Headers = ["ETag": "\"v1\"", "Content-Length": "\(rest.count)"]
            switch self {
            case .rest: headers["Content-Range"] = range
            case .restWithoutRange: break
            case .few:
                headers["Content-Length"] = "50"
                return .data(rest.prefix(50), headers: headers)
            }
            return .data(rest, headers: headers)
        }
    }

    /// Loads an image of which a part is on the disk. Calls `test` with the error, if the load failed.
    private func load(
        whole: @escaping @Sendable (Data) -> StubTransport.Answer = { .data($0, headers: ["ETag": "\"v1\""]) },
        answer: @escaping @Sendable (Data) -> StubTransport.Answer,
        test: (PipelineKit, ImageRequest, DiskCache, ImageError?) async throws -> Void
    ) async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png(300, 200)
        let kit = PipelineKit(
            StubTransport { call in call.headers.contains("Range") ? answer(picture) : whole(picture) },
            disk: .cache(cache))
        let request = ImageRequest(try url("https://a.example/1.png"))
        let part = PartialImage(data: picture.prefix(Self.cut), validator: "\"v1\"", length: picture.count)
        try await cache.insert(part.data, for: PartialImage.key(request.source.key), metadata: part.metadata)
        let failure = await kit.pipeline.failure(of: request)
        try await test(kit, request, cache, failure)
    }

    @Test(arguments: Whole.allCases)
    func wholeThatIsNotTheWholeIsNeverTheImage(_ answer: Whole) async throws {
        try await load(
            answer: { answer.answer($0) },
            test: { kit, request, cache, failure in
                #expect(failure == nil)
                #expect(kit.stub.calls.count == (answer == .rest ? 1 : 2))
                #expect(!cache.contains(PartialImage.key(request.source.key)))
            })
    }

    @Test(arguments: [Whole.restWithoutRange, .few])
    func serverThatContradictsItselfFailsAndThePartIsDiscarded(_ answer: Whole) async throws {
        try await load(
            whole: { answer.answer($0) }, answer: { answer.answer($0) },
            test: { kit, request, cache, failure in
                #expect(failure?.network?.kind == .malformedResponse)
                #expect(kit.stub.calls.count == 2)
                #expect(!cache.contains(PartialImage.key(request.source.key)))
            })
    }

    // MARK: Refusals

    /// Responses that can be due to the fields of the request are followed by a request for the whole image; the others
    /// four times in a row.
    @Test(arguments: [
        (202, 4), (204, 4), (203, 4), (304, 1), (400, 1), (401, 4), (403, 4), (404, 4), (410, 4), (412, 1), (416, 1),
        (417, 1), (429, 4), (431, 1), (500, 4), (501, 1), (502, 4), (503, 4),
    ])
    func noRefusalStandsInTheWayForEver(status: Int, attempts: Int) async throws {
        try await load(
            answer: { _ in .status(status) },
            test: { kit, request, cache, failure in
                let key = PartialImage.key(request.source.key)
                var failure = failure
                for count in 1..<attempts {
                    #expect(failure != nil)
                    let entry = try #require(try await cache.entry(for: key))
                    let part = try #require(PartialImage(entry.value, metadata: entry.metadata))
                    #expect(part.data.count == Self.cut && part.counts.refusals == count)
                    await kit.pipeline.forgetFailures()
                    failure = await kit.pipeline.failure(of: request)
                }
                #expect(failure == nil)
                #expect(kit.stub.calls.count == attempts + 1)
                #expect(!cache.contains(key))
            })
    }

    /// A server that refuses the whole, too, costs no part.
    @Test func serverThatRefusesEverythingCostsNoPart() async throws {
        try await load(
            whole: { _ in .status(503) }, answer: { _ in .status(503) },
            test: { kit, request, cache, failure in
                for _ in 0..<5 {
                    await kit.pipeline.forgetFailures()
                    #expect(await kit.pipeline.failure(of: request)?.network?.status == 503)
                }
                #expect(cache.contains(PartialImage.key(request.source.key)))
            })
    }

    // MARK: Several parts

    @Test func serverCanSendTheRestInSeveralParts() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png(300, 200)
        let size = (picture.count - Self.cut) / 3 + 1
        let kit = PipelineKit(
            StubTransport { call in
                let start = Int((call.headers["Range"] ?? "").dropFirst("bytes=".count).dropLast()) ?? 0
                let end = min(start + size, picture.count)
                let range = "bytes \(start)-\(end - 1)/\(picture.count)"
                return .data(picture[start..<end], status: 206, headers: ["ETag": "\"v1\"", "Content-Range": range])
            }, disk: .cache(cache))
        let request = ImageRequest(try url("https://a.example/1.png"))
        let part = PartialImage(data: picture.prefix(Self.cut), validator: "\"v1\"", length: nil)
        try await cache.insert(part.data, for: PartialImage.key(request.source.key), metadata: part.metadata)
        #expect(try await kit.pipeline.image(from: request).size == PixelSize(width: 300, height: 200))
        #expect(kit.stub.calls.count == 3)
        try await kit.pipeline.flush()
        #expect(try await cache.value(for: DiskTier.encodedKey(request.source.key)) == picture)
        #expect(!cache.contains(PartialImage.key(request.source.key)))
    }

    /// A part with fewer bytes than it says is no image. Its bytes are kept.
    @Test func partThatEndsEarlyIsContinued() async throws {
        let early: @Sendable (Data) -> StubTransport.Answer = { picture in
            let range = "bytes \(Self.cut)-\(picture.count - 1)/\(picture.count)"
            let headers: Headers = ["ETag": "\"v1\"", "Content-Range": range]
            return .chunks([picture[Self.cut..<Self.cut + 50]], status: 206, headers: headers)
        }
        try await load(
            answer: early,
            test: { kit, request, cache, failure in
                #expect(failure?.network?.kind == .truncatedBody)
                let entry = try #require(try await cache.entry(for: PartialImage.key(request.source.key)))
                #expect(entry.value.count == Self.cut + 50)
            })
    }
}
