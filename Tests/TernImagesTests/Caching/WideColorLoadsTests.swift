#if os(Linux)
import Tern
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
        // Another size is made from the same space only, and in light only from what was.
        #expect(try await kit.pipeline.response(for: request(.displayP3, side: 30)).trace[.variant] == .hit)
        #expect(kit.decoder.decodes == Self.colors.count)
        let light = try await kit.pipeline.response(for: request(.displayP3, side: 30, light: true))
        #expect(light.trace[.variant] != .hit && kit.decoder.decodes == Self.colors.count + 1)
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
        // Without a size, light makes no difference.
        #expect(try ImageKey(request(.sRGB, light: true)).text == ImageKey(request(.sRGB)).text)
        #expect(try texts[0] == ImageKey(ImageRequest(url("https://a.example/1.png"))).text)
    }
}
#endif
