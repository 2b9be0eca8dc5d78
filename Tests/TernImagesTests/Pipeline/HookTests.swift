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

/// Tests the hooks of a pipeline.
@Suite(.timeLimit(.minutes(1))) struct HookTests {
    private struct Refusal: Error {}

    @Test func preparingARequestKeepsItsKey() async throws {
        let kit = PipelineKit(picture: try Pictures.png()) { configuration in
            configuration.hooks.prepare = { request in
                var request = request
                request.headers["Authorization"] = "Bearer token"
                return request
            }
        }
        let request = ImageRequest(try url("https://a.example/1.png"))
        _ = try await kit.pipeline.image(from: request)
        #expect(kit.stub.calls[0].headers["Authorization"] == "Bearer token")
        #expect(kit.pipeline.cachedImage(for: request) != nil)
    }

    @Test func aHookErrorIsReportedAndNotRemembered() async throws {
        let failing = Setting(1)
        let kit = PipelineKit(picture: try Pictures.png()) { configuration in
            configuration.hooks.prepare = { request in
                if failing.value == 1 { throw Refusal() }
                return request
            }
            configuration.hooks.transform = { data, _ in
                if failing.value == 2 { throw Refusal() }
                return data
            }
            configuration.hooks.decrypt = { data in
                if failing.value == 3 { throw Refusal() }
                return data
            }
        }
        let request = ImageRequest(try url("https://a.example/1.png"))
        for number in 1...3 {
            failing.value = number
            let error = await kit.pipeline.failure(of: request)
            #expect(error?.kind == .hook)
            #expect(error?.underlying is Refusal)
        }
        failing.value = 0
        _ = try await kit.pipeline.image(from: request)
        #expect(kit.stub.calls.count == 3)
    }

    @Test func aResponseIsTransformedBeforeItIsStored() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png()
        let kit = PipelineKit(
            picture: Data(picture.reversed()), headers: ["X-Order": "reversed"], disk: .cache(cache)
        ) { configuration in
            configuration.hooks.transform = { data, head in
                head.headers["X-Order"] == "reversed" ? Data(data.reversed()) : data
            }
        }
        let request = ImageRequest(try url("https://a.example/1.png"))
        _ = try await kit.pipeline.image(from: request)
        try await kit.pipeline.flush()
        #expect(try await cache.value(for: DiskTier.encodedKey(request.source.key)) == picture)
    }

    @Test func encryptedBytesAreStoredAsTheyCameAndReadable() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let secret = Data(try Pictures.png().map { $0 ^ 0x5A })
        let kit = PipelineKit(picture: secret, disk: .cache(cache)) { configuration in
            configuration.hooks.decrypt = { Data($0.map { $0 ^ 0x5A }) }
        }
        let request = ImageRequest(try url("https://a.example/1.png"))
        for source in [ImageResponse.Source.network, .original] {
            let response = try await kit.pipeline.response(for: request)
            #expect(response.source == source)
            #expect(response.image.size == PixelSize(width: 40, height: 30))
            kit.pipeline.memory.removeAll()
        }
        try await kit.pipeline.flush()
        #expect(try await cache.value(for: DiskTier.encodedKey(request.source.key)) == secret)
        #expect(try await kit.pipeline.data(for: request) == secret)
    }

    @Test func aSerializerDecidesWhatIsStored() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let small = try Pictures.png(4, 4)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache)) { configuration in
            configuration.hooks.serialize = { _, request in
                request.source.description.contains("never") ? nil : small
            }
        }
        let request = ImageRequest(try url("https://a.example/1.png"))
        #expect(try await kit.pipeline.image(from: request).size.width == 40)
        kit.pipeline.memory.removeAll()
        #expect(try await kit.pipeline.image(from: request).size.width == 4)
        let never = ImageRequest(try url("https://a.example/never.png"))
        let trace = try await kit.pipeline.response(for: never).trace
        #expect(trace[.originals] == .notStored)
        #expect(await kit.pipeline.isOnDisk(never) == false)
    }

    @Test func aCustomKeyIsTheIdentityOfTheImage() async throws {
        let kit = PipelineKit(picture: try Pictures.png()) { configuration in
            configuration.hooks.cacheKey = { request in
                request.source.request?.url?.path.contains("signed") == true ? "the same" : nil
            }
        }
        let signed = try ["a", "b"].map { ImageRequest(try url("https://a.example/signed?by=\($0)")) }
        for request in signed { _ = try await kit.pipeline.image(from: request) }
        #expect(kit.stub.calls.count == 1)
        _ = try await kit.pipeline.image(from: try url("https://a.example/1.png"))
        #expect(kit.stub.calls.count == 2)
    }
}
