#if os(Linux)
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Loads of one image in several color spaces and components.
@Suite(.timeLimit(.minutes(1))) struct WideColorLoadsTests {
    static let colors: [ImageDecodingOptions.Color] = [
        .sRGB, .displayP3, .asStored(), .asStored(.uint16), .asStored(.float16),
    ]

    private static func file(alpha: Bool) throws -> Data {
        let png = [UInt8](try gradient(60, 40, alpha: alpha).encoded(as: .png()))
        return Data(Array(png.prefix(33)) + StatedColorTests.cicp(12, 13) + Array(png.dropFirst(33)))
    }

    private func request(
        _ color: ImageDecodingOptions.Color, side: Int? = nil, light: Bool = false
    ) throws -> ImageRequest {
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.targetSize = side.map { PixelSize(width: $0, height: $0) }
        request.options.color = color
        request.options.resizesInLinearLight = light
        request.options.waitsForStore = true
        return request
    }

    private func isAsAsked(_ image: RasterImage, _ color: ImageDecodingOptions.Color) -> Bool {
        image.component == color.component && image.colorSpace == (color == .sRGB ? .sRGB : .displayP3)
    }

    @Test func memoryKeepsThemApart() async throws {
        let kit = PipelineKit(picture: try Self.file(alpha: false))
        for _ in 0..<2 {
            for color in Self.colors {
                #expect(isAsAsked(try await kit.pipeline.image(from: request(color)), color))
            }
        }
        #expect(kit.decoder.decodes == Self.colors.count)
        // Another size is made from the same space only, and in light only from what was not resized in levels.
        #expect(try await kit.pipeline.response(for: request(.displayP3, side: 30)).trace[.variant] == .hit)
        #expect(kit.decoder.decodes == Self.colors.count)
        let light = try await kit.pipeline.response(for: request(.displayP3, side: 30, light: true))
        #expect(light.trace[.variant] == .hit && kit.decoder.decodes == Self.colors.count)
        let plain = try await kit.pipeline.image(from: request(.displayP3, side: 30))
        #expect(light.image.pixels.bytes != plain.pixels.bytes)
    }

    /// A view shows no image in other colors meanwhile.
    @Test func aVariantHasTheColorsOfItsRequest() async throws {
        let kit = PipelineKit(picture: try Self.file(alpha: false))
        let small = try request(.sRGB, side: 9)
        _ = try await kit.pipeline.image(from: request(.asStored(.float16)))
        #expect(kit.pipeline.cachedVariant(of: small) == nil)
        _ = try await kit.pipeline.image(from: request(.sRGB, side: 20))
        let variant = try #require(kit.pipeline.cachedVariant(of: small))
        #expect(isAsAsked(variant, .sRGB))
    }

    @Test func anImageOfTheProgramIsConverted() async throws {
        let pipeline = PipelineKit(picture: Data()).pipeline
        let plain = try gradient(20, 10).converted(to: .asStored(.uint16))
        let image = plain.with(plain.pixels.labeled(PixelForm(component: .uint16, space: .displayP3)), plain.size)
        for color in Self.colors {
            var request = ImageRequest(.image("\(color)") { _ in image })
            request.options.color = color
            #expect(isAsAsked(try await pipeline.image(from: request), color))
        }
    }

    /// A source of images has no bytes to ask for again.
    @Test func anImageOfTheProgramIsMadeOnceAlsoWithItsData() async throws {
        let pipeline = PipelineKit(picture: Data()).pipeline
        let calls = Lock(0)
        var request = ImageRequest(
            .image("once") { _ in
                calls.withLock { $0 += 1 }
                return try gradient(20, 10)
            })
        request.options.includesData = true
        for _ in 0..<2 { #expect(try await pipeline.response(for: request).data == nil) }
        #expect(calls.withLock { $0 } == 1)
    }

    @Test(.enabled(if: AnimationEncodingTests.canEncodeAVIF, AnimationEncodingTests.missing))
    func anEncodingOfTheDiskThatIsInSRGBDoesNotTakeOtherSpaces() async throws {
        let (folder, file) = (try ScratchFolder(), try Self.file(alpha: false))
        for source in [ImageResponse.Source.network, .processed] {
            let kit = PipelineKit(picture: file, headers: ["Cache-Control": "max-age=100"], disk: .folder(folder.url)) {
                $0.diskContent = .processed
                $0.diskEncoding = .avif(speed: 10)
            }
            for color in [ImageDecodingOptions.Color.sRGB, .displayP3] {
                let response = try await kit.pipeline.response(for: request(color, side: 30))
                #expect(response.source == source && isAsAsked(response.image, color))
            }
            try await kit.pipeline.flush()
        }
    }

    @Test(arguments: [false, true]) func theDiskGivesWhatTheFirstLoadGave(isCustom: Bool) async throws {
        let (folder, file) = (try ScratchFolder(), try Self.file(alpha: true))
        for round in 0..<2 {
            let kit = PipelineKit(picture: file, headers: ["Cache-Control": "max-age=100"], disk: .folder(folder.url)) {
                $0.diskContent = .all
                $0.diskEncoding = .jpeg()
            }
            var request = try request(.sRGB, side: 30)
            if isCustom {
                request.processors = [.custom(identifier: "P3") { try $0.converted(to: .displayP3) }]
            }
            let response = try await kit.pipeline.response(for: request)
            #expect(!response.image.isOpaque && response.image.colorSpace == (isCustom ? .displayP3 : .sRGB))
            // The processor is applied to the stored image again.
            #expect(response.source == (round == 0 ? .network : .processed))
            try await kit.pipeline.flush()
        }
    }

    @Test func anImageThatIsPutIntoMemoryHasTheColorsOfItsRequest() async throws {
        let pipeline = PipelineKit(picture: Data()).pipeline
        let request = try request(.sRGB)
        pipeline.cache(try gradient(8, 8).converted(to: .asStored(.uint16)), for: request)
        #expect(isAsAsked(try await pipeline.image(from: request), .sRGB))
    }

    /// A processor that does not take the components fails with each source.
    @Test func aProcessorThatRefusesTheComponentsEndsTheTrials() async throws {
        let paths = Lock<[String]>([])
        let file = try Self.file(alpha: false)
        let kit = PipelineKit(
            StubTransport { call in
                paths.withLock { $0.append(call.path) }
                return .data(file)
            })
        var request = try request(.asStored(.uint16))
        request.processors = [.circle()]
        request.alternatives = [.init(try url("https://b.example/2.png"))]
        #expect(await kit.pipeline.failure(of: request)?.kind == .unsupported)
        #expect(paths.withLock { $0 } == ["/1.png"])
    }

    /// The memory cache counts the profile, which each image has for itself.
    @Test func profilesCount() throws {
        let profile = ColorProfileFile.swapped
        let plain = try gradient(4, 4)
        let image = plain.with(plain.pixels.labeled(PixelForm(space: .profile(Data(profile)))), plain.size)
        let costs = [plain, image].map {
            StoredImage(image: $0, animation: nil, data: nil, freshness: .always).cost
        }
        #expect(costs == [64, 64 + profile.count])
    }

    @Test func loadsAtTheSameTimeAreNotShared() async throws {
        let kit = PipelineKit(picture: try Self.file(alpha: false))
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for color in Self.colors {
                let request = try request(color)
                group.addTask { isAsAsked(try await kit.pipeline.image(from: request), color) }
            }
            for try await isRight in group { #expect(isRight) }
        }
        #expect(kit.decoder.decodes == Self.colors.count)
    }

    /// The disk has each image in its form, and an image of half floats is made again.
    @Test(arguments: [true, false]) func theDiskKeepsTheForm(alpha: Bool) async throws {
        let (folder, file) = (try ScratchFolder(), try Self.file(alpha: alpha))
        var made: [RasterImage] = []
        for round in 0..<2 {
            let kit = PipelineKit(picture: file, headers: ["Cache-Control": "max-age=100"], disk: .folder(folder.url)) {
                $0.diskContent = .all
            }
            for (index, color) in Self.colors.enumerated() {
                let response = try await kit.pipeline.response(for: request(color, side: 30))
                #expect(isAsAsked(response.image, color))
                if round == 0 {
                    made.append(response.image)
                    let stored = response.trace[.processed]
                    #expect(color.component == .float16 ? stored == .notStored : stored == .stored)
                    continue
                }
                #expect(response.source == (color.component == .float16 ? .original : .processed))
                // An opaque image of bytes is a JPEG.
                let most = alpha || color.component != .uint8 ? 1 : 48
                let pairs = zip(response.image.pixels.bytes, made[index].pixels.bytes)
                if color.component == .uint8 {
                    #expect(pairs.allSatisfy { abs(Int($0) - Int($1)) <= most })
                } else {
                    let (one, other) = (WideColorTests.words(response.image), WideColorTests.words(made[index]))
                    #expect(zip(one, other).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
                }
            }
            try await kit.pipeline.flush()
        }
    }

    @Test func keysOnTheDiskDiffer() throws {
        let requests = try Self.colors.flatMap { color in
            [try request(color), try request(color, side: 9), try request(color, side: 9, light: true)]
        }
        let texts = requests.map { ImageKey($0).text }
        #expect(Set(texts).count == texts.count)
        // Without a size and a limit, light makes no difference.
        #expect(try ImageKey(request(.sRGB, light: true)).text == ImageKey(request(.sRGB)).text)
        var limited = try request(.sRGB, light: true)
        limited.options.decodedByteLimit = 1000
        #expect(ImageKey(limited).decoding.resizesInLinearLight)
        #expect(try texts[0] == ImageKey(ImageRequest(url("https://a.example/1.png"))).text)
    }
}
#endif
