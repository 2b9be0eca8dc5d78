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

/// Responses to the request for the rest of an image that are not the rest: Documentation/Reference/ResumedDownloads.md.
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
}
