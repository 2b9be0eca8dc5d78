#if os(Linux)
import Foundation
import TernImages
import TernTesting
import Testing

@testable import TernTool

private let hasGStreamer = ["/usr/bin", "/usr/local/bin"].contains { folder in
    FileManager.default.isExecutableFile(atPath: "\(folder)/gst-launch-1.0")
}

/// Tests the decoder of a video's first picture. Skipped without GStreamer.
@Suite(.timeLimit(.minutes(1)), .enabled(if: hasGStreamer))
struct VideoPosterTests {
    /// Makes a blue video of 64×48 pixels.
    private func video(_ tool: ToolProcess) async throws -> Data {
        let source = "videotestsrc num-buffers=5 pattern=blue ! video/x-raw,width=64,height=48"
        let words = "\(source) ! vp8enc ! webmmux ! filesink".split(separator: " ").map(String.init)
        let result = try await tool.run(
            "/usr/bin/env", ["gst-launch-1.0", "--quiet"] + words + ["location=\(tool.file("blue.webm").path)"])
        try #require(result.code == 0, "\(result.messages)")
        return try tool.bytes("blue.webm")
    }

    @Test func theFirstPictureOfAVideoIsLoadedLikeAnyOther() async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        let video = try await video(tool)
        var configuration = ImagePipeline.Configuration()
        (configuration.disk, configuration.decoders) = (.none, ImageDecoders())
        let pipeline = ImagePipeline(configuration: configuration)
        var request = ImageRequest(.data("video") { video })
        await #expect(throws: ImageError.self) { try await pipeline.image(from: request) }
        pipeline.configuration.decoders.register(VideoPosterDecoder())
        let image = try await pipeline.image(from: request)
        #expect(image.size == PixelSize(width: 64, height: 48))
        let first = image.withPixels { pixels in
            unsafe [
                pixels.unsafeLoad(fromByteOffset: 0, as: UInt8.self),
                pixels.unsafeLoad(fromByteOffset: 1, as: UInt8.self),
                pixels.unsafeLoad(fromByteOffset: 2, as: UInt8.self),
            ]
        }
        #expect(first[0] < 60 && first[1] < 60 && first[2] > 200)
        request.targetSize = PixelSize(width: 32, height: 32)
        #expect(try await pipeline.image(from: request).size == PixelSize(width: 32, height: 24))
        // The pictures that Tern knows are still its own.
        let picture = try image.encoded(as: .png())
        #expect(try await pipeline.image(from: ImageRequest(.data("png") { picture })).size == image.size)
    }

    @Test func aDamagedVideoIsAnError() async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        let video = try await video(tool).prefix(120)
        #expect(throws: ImageError.self) {
            try VideoPosterDecoder().image(from: video, options: ImageDecodingOptions())
        }
    }

    @Test func theToolShowsAVideo() async throws {
        let tool = try ToolProcess()
        defer { tool.remove() }
        _ = try await video(tool)
        let result = try await tool.tern("image", "--no-cache", "blue.webm")
        #expect(result.code == 0 && result.text.hasPrefix("blue.webm: 64×48"), "\(result.messages)")
    }
}
#endif
