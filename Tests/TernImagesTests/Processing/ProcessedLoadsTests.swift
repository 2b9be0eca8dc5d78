#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1))) struct ProcessedLoadsTests {
    private func size(_ width: Int, _ height: Int) -> PixelSize { PixelSize(width: width, height: height) }

    @Test func theStepsOfACompositionAreSharedLikeThoseOfAList() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let address = try url("https://a.example/1.png")
        let (a, b, c) = (Counter(), Counter(), Counter())
        let first = CountingProcessor(name: "a", counter: a)
        let lists: [[any ImageProcessor]] = [
            [.composition([first, CountingProcessor(name: "b", counter: b)])],
            [first, CountingProcessor(name: "b", counter: b)],
            [.composition([.composition([first])]), CountingProcessor(name: "c", counter: c)],
        ]
        for list in lists { _ = try await kit.pipeline.image(from: ImageRequest(address, processors: list)) }
        #expect([a.value, b.value, c.value] == [1, 1, 1])
        #expect(kit.decoder.decodes == 1)
    }

    @Test func theTraceTellsAProcessedImageFromItsInput() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let request = ImageRequest(try url("https://a.example/1.png"), processors: [.circle()])
        let steps = try await kit.pipeline.response(for: request).trace.steps.map(\.description)
        let circle = "\(ImageKey(request).processors[0])"
        #expect(steps.prefix(2) == ["processed image: memory miss (\(circle))", "image: memory miss"])
        #expect(steps.last == "processed image: stored in memory (\(circle))")
    }

    @Test func theSmallestVariantThatWillDoIsTaken() async throws {
        let kit = PipelineKit(picture: try Pictures.jpeg(200, 100))
        let address = try url("https://a.example/1.jpg")
        for side in [20, 60, 100, 180] {
            _ = try await kit.pipeline.image(from: ImageRequest(address, targetSize: size(side, side)))
        }
        let request = ImageRequest(address, targetSize: size(40, 40), processors: [.circle()])
        let response = try await kit.pipeline.response(for: request)
        #expect(response.image.size == size(20, 20))
        #expect(response.trace.description.contains("another size: memory hit (60×30)"))
        #expect(kit.decoder.decodes == 4)
    }

    @Test func aLoneFirstFrameNeverStandsForTheAnimation() async throws {
        let kit = PipelineKit(picture: InterlacedFixtures.gif(try gradient(80, 40), interlaced: false, frames: 2))
        let address = try url("https://a.example/1.gif")
        var still = ImageRequest(address, targetSize: size(60, 60))
        still.options.decodesFirstFrameOnly = true
        #expect(try await kit.pipeline.response(for: still).animation == nil)
        let moving = try await kit.pipeline.response(for: ImageRequest(address, targetSize: size(20, 20)))
        #expect(moving.animation?.count == 2)
        // A smaller first frame may be made from it.
        still.targetSize = size(30, 30)
        #expect(try await kit.pipeline.response(for: still).trace[.variant] == .hit)
    }

    @Test func anAnimationIsProcessedOnRequestInItsScale() async throws {
        let kit = PipelineKit(picture: InterlacedFixtures.gif(try gradient(80, 40), interlaced: false, frames: 2))
        var request = ImageRequest(try url("https://a.example/1@2x.gif"))
        request.processors = [.circle(border: ImageBorder(width: 5, color: .white, unit: .points)), .monochrome()]
        request.options.processesAnimations = true
        let response = try await kit.pipeline.response(for: request)
        let frames = try #require(response.animation)
        #expect(frames.size == size(40, 40))
        for image in [response.image, try await frames.frame(at: 0).image, try await frames.frame(at: 1).image] {
            #expect(image.scale == 2)
            #expect(image.size == size(40, 40))
            #expect(image.pixel(0, 0) == [0, 0, 0, 0])
            #expect(image.pixel(8, 20) == [255, 255, 255, 255])
            let middle = image.pixel(20, 20)
            #expect(middle[0] == middle[2] && middle[0] < 255)
        }
    }
}
#endif
