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

@Suite(.timeLimit(.minutes(1))) struct ImageOptionTests {
    private func request(_ change: (inout ImageRequest.Options) -> Void = { _ in }) throws -> ImageRequest {
        var request = ImageRequest(try url("https://a.example/1"))
        change(&request.options)
        return request
    }

    /// Two frames of one pixel, red and blue, 20 ms each.
    private var animation: Data {
        var gif: [UInt8] = Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 255, 0, 0, 0, 0, 255]
        for index in [UInt8(0), 1] {
            gif += [
                0x21, 0xF9, 4, 0, 2, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, index == 0 ? 0x44 : 0x4C, 1, 0,
            ]
        }
        return Data(gif + [0x3B])
    }

    @Test func cookiesAreSentOnlyIfAskedFor() async throws {
        let picture = try Pictures.png()
        let kit = PipelineKit(StubTransport { _ in .data(picture, headers: ["Set-Cookie": "a=1"]) })
        var anew = try request { $0.handlesCookies = true }
        anew.caching = .none
        _ = try await kit.pipeline.image(from: anew)
        _ = try await kit.pipeline.image(from: anew)
        #expect(kit.stub.calls[1].headers["Cookie"] == "a=1")
        anew.options.handlesCookies = false
        _ = try await kit.pipeline.image(from: anew)
        #expect(kit.stub.calls[2].headers["Cookie"] == nil)
    }

    @Test func aLimitOfBytesMakesThePictureSmaller() async throws {
        let kit = PipelineKit(picture: try Pictures.jpeg(200, 100))
        let image = try await kit.pipeline.image(from: request { $0.decodedByteLimit = 20_000 })
        #expect(image.size == PixelSize(width: 100, height: 50))
        // The first frame has a key of its own: the whole animation is still available.
        #expect(try await kit.pipeline.image(from: request()).size == PixelSize(width: 200, height: 100))
    }

    @Test func aResponseHasItsLimit() async throws {
        let picture = try Pictures.png(100, 100)
        let chunks = [picture.prefix(300), picture.suffix(from: 300)]
        let kit = PipelineKit(
            StubTransport { call in call.path == "/1" ? .data(picture) : .chunks(chunks) })
        #expect(await kit.pipeline.failure(of: try request { $0.responseByteLimit = 300 })?.kind == .limitExceeded)
        var unknown = ImageRequest(try url("https://a.example/2"))
        unknown.options.responseByteLimit = 301
        #expect(await kit.pipeline.failure(of: unknown)?.kind == .limitExceeded)
        // The failure is not remembered: a request with a higher limit succeeds.
        #expect(await kit.pipeline.failure(of: try request()) == nil)
    }

    @Test func theBytesComeAlongIfAskedFor() async throws {
        let picture = try Pictures.png()
        let kit = PipelineKit(picture: picture)
        #expect(try await kit.pipeline.response(for: request()).data == nil)
        let withData = try await kit.pipeline.response(for: request { $0.includesData = true })
        #expect(withData.data == picture)
        #expect(try await kit.pipeline.response(for: request { $0.includesData = true }).source == .memory)
        #expect(kit.stub.calls.count == 2)
    }

    @Test func anAnimationGivesItsFramesOrItsFirstAlone() async throws {
        let kit = PipelineKit(picture: animation)
        let both = try await kit.pipeline.response(for: request())
        #expect(both.animation?.count == 2)
        #expect(try await both.animation?.frame(at: 1).image.pixels.bytes == [0, 0, 255, 255])
        #expect(try await kit.pipeline.response(for: request()).animation === both.animation)
        let first = try await kit.pipeline.response(for: request { $0.decodesFirstFrameOnly = true })
        #expect(first.animation == nil)
        #expect(first.image.pixels.bytes == [255, 0, 0, 255])
        var preloaded = try request { $0.preloadsAllFrames = true }
        preloaded.caching = .none
        #expect(try await kit.pipeline.response(for: preloaded).animation?.frames is PreloadedFrames)
    }

    @Test func aStillPictureIsAnErrorWhereAnAnimationIsRequired() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let strict = try request { $0.requiresAnimation = true }
        #expect(await kit.pipeline.failure(of: strict)?.kind == .unsupported)
        _ = try await kit.pipeline.image(from: request())
        #expect(await kit.pipeline.failure(of: strict)?.kind == .unsupported)
        let moving = PipelineKit(picture: animation)
        #expect(await moving.pipeline.failure(of: strict) == nil)
    }

    @Test func aFileThatIsCutShortGivesWhatThereIsOnlyIfAskedFor() async throws {
        let picture = try Pictures.jpeg(100, 100)
        let kit = PipelineKit(picture: picture.prefix(picture.count / 2))
        #expect(await kit.pipeline.failure(of: try request())?.kind == .truncated)
        let partial = try request {
            $0.allowsPartial = true
            $0.retriesFailed = true
        }
        let response = try await kit.pipeline.response(for: partial)
        #expect(response.image.metadata.isPartial)
        #expect(response.trace[.memory] == .notStored)
        #expect(kit.pipeline.cachedImage(for: partial) == nil)
    }

    // MARK: Hooks

    @Test func aHookCanReplaceTheKey() async throws {
        let kit = PipelineKit(picture: try Pictures.png()) { configuration in
            configuration.hooks.cacheKey = { $0.source.request?.urlString.components(separatedBy: "?").first }
        }
        _ = try await kit.pipeline.image(from: try url("https://a.example/1?signature=a"))
        let again = ImageRequest(try url("https://a.example/1?signature=b"))
        #expect(try await kit.pipeline.response(for: again).source == .memory)
    }

    @Test func aHookCanReplaceTheStoredBytes() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let smaller = try Pictures.png(4, 4)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache)) { configuration in
            configuration.hooks.serialize = { _, request in request.priority == .high ? nil : smaller }
        }
        let stored = try request()
        _ = try await kit.pipeline.image(from: stored)
        try await kit.pipeline.flush()
        #expect(try await cache.value(for: DiskTier.encodedKey(stored.source.key)) == smaller)
        var unstored = ImageRequest(try url("https://a.example/2"))
        unstored.priority = .high
        let response = try await kit.pipeline.response(for: unstored)
        #expect(response.trace[.originals] == .notStored)
    }

    @Test func aResponseCanBeChangedOrRefused() async throws {
        struct Refused: Error {}
        let picture = try Pictures.png()
        let kit = PipelineKit(StubTransport { _ in .data(Data([1, 2, 3]) + picture) }) { configuration in
            configuration.hooks.transform = { data, head in
                if head.urlString.hasSuffix("bad") { throw Refused() }
                return data.dropFirst(3)
            }
        }
        #expect(try await kit.pipeline.image(from: request()).size == PixelSize(width: 40, height: 30))
        let error = await kit.pipeline.failure(of: ImageRequest(try url("https://a.example/bad")))
        #expect(error?.kind == .hook)
        #expect(error?.underlying is Refused)
    }

    @Test func bytesAreStoredAsTheyCameAndDecodedDecrypted() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let secret = Data(try Pictures.png().map { $0 ^ 0x5A })
        let kit = PipelineKit(picture: secret, disk: .cache(cache)) { configuration in
            configuration.hooks.decrypt = { data in Data(data.map { $0 ^ 0x5A }) }
        }
        let plain = try request()
        #expect(try await kit.pipeline.image(from: plain).size == PixelSize(width: 40, height: 30))
        try await kit.pipeline.flush()
        #expect(try await cache.value(for: DiskTier.encodedKey(plain.source.key)) == secret)
        kit.pipeline.memory.removeAll()
        #expect(try await kit.pipeline.response(for: plain).source == .original)
    }

    @Test func aDecoderCanBeRegisteredAndRemoved() async throws {
        /// Decodes any data that begins with `DOT` to one grey pixel.
        struct DotDecoder: ImageDecoder {
            let dot = ImageFormat(rawValue: "image/x-dot")
            func decodes(_ format: ImageFormat) -> Bool { format == dot }
            func format(of bytes: Data) -> ImageFormat? { bytes.starts(with: "DOT".utf8) ? dot : nil }
            func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
                guard let image = RasterImage(size: PixelSize(width: 1, height: 1), premultiplied: [9, 9, 9, 255])
                else {
                    throw ImageError(.corrupt, "no dot")
                }
                return image
            }
            func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? {
                nil
            }
        }
        let decoders = ImageDecoders()
        let kit = PipelineKit(picture: Data("DOT".utf8)) { $0.decoders = decoders }
        let registration = decoders.register(DotDecoder())
        #expect(try await kit.pipeline.image(from: request()).pixels.bytes == [9, 9, 9, 255])
        decoders.remove(registration)
        #expect(await kit.pipeline.failure(of: ImageRequest(try url("https://a.example/2")))?.kind == .unknownFormat)
    }
}
