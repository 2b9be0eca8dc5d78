import Testing

@testable import TernImages

/// Three frames of 4×2 pixels, each with one level.
private struct ThreeFrames: ImageFrames {
    let count = 3
    let loopCount = 2
    let size = PixelSize(width: 4, height: 2)

    func frame(at index: Int) throws(ImageError) -> ImageFrame {
        let level = UInt8(index * 10 + 5)
        guard index < count, let image = RasterImage(size: size, premultiplied: [UInt8](repeating: level, count: 32))
        else { throw ImageError(.invalidArgument, "frame \(index) of \(count)") }
        return ImageFrame(image: image, duration: .milliseconds(20 * (index + 1)))
    }
}

@Suite struct ProcessedFramesTests {
    @Test func eachFrameIsProcessedAndKeepsItsTime() throws {
        let list = ImageProcessors.Composition([.rotate(degrees: 90), .tint(.white)])
        let frames = try ProcessedFrames(ThreeFrames(), processor: list)
        #expect(frames.count == 3)
        #expect(frames.loopCount == 2)
        #expect(frames.size == PixelSize(width: 2, height: 4))
        for index in [2, 0, 1] {
            let frame = try frames.frame(at: index)
            #expect(frame.duration == .milliseconds(20 * (index + 1)))
            #expect(frame.image.size == frames.size)
            #expect(frame.image.bytes.allSatisfy { $0 == UInt8(index * 10 + 5) })
        }
    }

    @Test func pointsGoByTheScaleAndStepsMakeOneWrapper() throws {
        let border = ImageProcessors.Border(ImageBorder(width: 0.5, color: .black, unit: .points))
        let once = try ProcessedFrames(ThreeFrames(), processor: border, scale: 2)
        let frames = try ProcessedFrames(once, processor: .flip(.vertical), scale: 2)
        for index in 0..<3 {
            let image = try frames.frame(at: index).image
            #expect(image.scale == 2)
            #expect(image.pixel(0, 0) == [0, 0, 0, 255])
            #expect(image.pixel(1, 1) == [0, 0, 0, 255])
        }
        #expect(frames.byteCount == 32)
    }

    @Test func errorsOfFramesAndProcessorsComeThrough() throws {
        let frames = try ProcessedFrames(ThreeFrames(), processor: .flip(.vertical))
        #expect(throws: ImageError(.invalidArgument, "frame 3 of 3")) { try frames.frame(at: 3) }
        #expect(throws: ImageError.self) {
            try ProcessedFrames(ThreeFrames(), processor: .crop(x: 9, y: 9, width: 1, height: 1))
        }
    }
}
