import Testing

@testable import TernImages

private let (r, g, b, w): ([UInt8], [UInt8], [UInt8], [UInt8]) = (
    [255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [255, 255, 255, 255]
)

@Suite struct GeometryProcessorTests {
    /// Red, green, blue above white, clear, half red.
    private let faint: [UInt8] = [128, 0, 0, 128]
    private let clear: [UInt8] = [0, 0, 0, 0]

    private func six() throws -> RasterImage { try picture(3, 2, r + g + b + w + clear + faint) }

    @Test func flippingExchangesTheEnds() throws {
        #expect(try ImageProcessors.Flip(.horizontal).process(six()).bytes == b + g + r + faint + clear + w)
        #expect(try ImageProcessors.Flip(.vertical).process(six()).bytes == w + clear + faint + r + g + b)
    }

    @Test func quarterTurnsAreClockwiseAndExact() throws {
        let once = try ImageProcessors.Rotate(degrees: 90).process(six())
        #expect(once.size == PixelSize(width: 2, height: 3))
        #expect(once.bytes == w + r + clear + g + faint + b)
        #expect(try ImageProcessors.Rotate(degrees: 180).process(six()).bytes == faint + clear + w + b + g + r)
        let back = try ImageProcessors.Rotate(degrees: -90).process(six())
        #expect(back.bytes == b + faint + g + clear + r + w)
        #expect(try ImageProcessors.Rotate(degrees: 720, background: .white).process(six()).bytes == six().bytes)
    }

    @Test(arguments: [(1, 1), (1, 97), (97, 1), (131, 67), (16, 64), (65, 129)])
    func turnsAndFlipsUndoEachOther(_ width: Int, _ height: Int) throws {
        let image = try noise(width, height, seed: 7)
        let quarter = ImageProcessors.Rotate(degrees: 90)
        let half = ImageProcessors.Rotate(degrees: 180)
        let flips: [any ImageProcessor] = [.flip(.horizontal), .flip(.vertical)]
        #expect(try ImageProcessors.Composition([quarter, quarter]).process(image).bytes == half.process(image).bytes)
        #expect(try ImageProcessors.Composition(flips).process(image).bytes == half.process(image).bytes)
        #expect(try ImageProcessors.Composition([quarter, .rotate(degrees: 270)]).process(image).bytes == image.bytes)
        #expect(try quarter.process(image).bytes == image.oriented(6).bytes)
    }

    @Test func croppingTakesTheRectangleThatLiesInThePicture() throws {
        #expect(try ImageProcessors.Crop(x: 1, y: 0, width: 2, height: 1).process(six()).bytes == g + b)
        #expect(try ImageProcessors.Crop(x: -4, y: 1, width: 6, height: .max).process(six()).bytes == w + clear)
        #expect(try ImageProcessors.Crop(x: 2, y: 0, width: .max, height: 9).process(six()).bytes == b + faint)
        let middle = try ImageProcessors.Crop(to: PixelSize(width: 1, height: 9)).process(six())
        #expect(middle.bytes == g + clear)
        let tall = try noise(3, 200, seed: 1)
        let cut = try ImageProcessors.Crop(x: 0, y: 10, width: 3, height: 150).process(tall)
        #expect(cut.bytes == Array(tall.bytes[120..<1_920]))
    }

    @Test(arguments: [(3, 0, 1, 1), (0, 2, 1, 1), (0, 0, 0, 1), (0, 0, 1, -5), (-3, 0, 3, 2), (.max, 0, .max, 1)])
    func aRectangleOutsideThePictureIsAnError(_ x: Int, _ y: Int, _ width: Int, _ height: Int) throws {
        let image = try six()
        let error = #expect(throws: ImageError.self) {
            try ImageProcessors.Crop(x: x, y: y, width: width, height: height).process(image)
        }
        #expect(error?.kind == .invalidArgument)
    }

    @Test func resizingMeetsTheTargetAndNeverEnlargesUnlessAsked() throws {
        let image = try noise(40, 20, seed: 3)
        func size(
            _ width: Int, _ height: Int, _ mode: ImageDecodingOptions.ContentMode, _ grows: Bool = false
        ) throws -> String {
            let target = PixelSize(width: width, height: height)
            return try ImageProcessors.Resize(to: target, mode: mode, allowsUpsampling: grows).process(image)
                .size.description
        }
        #expect(try size(10, 10, .fit) == "10×5")
        #expect(try size(10, 10, .fill) == "10×10")
        #expect(try size(10, 10, .atLeast) == "20×10")
        #expect(try size(80, 80, .fit) == "40×20")
        #expect(try size(80, 80, .fill) == "40×20")
        #expect(try size(80, 80, .fit, true) == "80×40")
        #expect(try size(80, 80, .fill, true) == "80×80")
        #expect(try size(80, 80, .atLeast, true) == "160×80")
        #expect(try size(10, 10, .atLeast, true) == "20×10")
        for (width, height) in [(0, 5), (Int.max, Int.max)] {
            let target = PixelSize(width: width, height: height)
            let error = #expect(throws: ImageError.self) {
                try ImageProcessors.Resize(to: target, allowsUpsampling: true).process(image)
            }
            #expect(error?.kind == .invalidArgument)
        }
    }

    @Test(arguments: [1.0, 30, 45, 89.5, 135, 200, 300, -10])
    func aTurnedPictureKeepsItsAreaAndItsColor(_ degrees: Double) throws {
        let image = try flat(120, 80, [40, 90, 200, 255])
        let turned = try ImageProcessors.Rotate(degrees: degrees).process(image)
        #expect(abs(turned.sum(3) / (255 * 120 * 80) - 1) < 0.005)
        #expect(abs(turned.sum(2) / (200 * 120 * 80) - 1) < 0.005)
        #expect(turned.pixel(turned.size.width / 2, turned.size.height / 2) == [40, 90, 200, 255])
        #expect(turned.isPremultiplied)
        let laid = try ImageProcessors.Rotate(degrees: degrees, background: .white).process(image)
        #expect(laid.sum(3) == Double(255 * laid.size.pixelCount))
        // Pixels outside the image are white.
        let share = (laid.sum(2) - turned.sum(2)) / 255
        #expect(abs(share - (Double(laid.size.pixelCount) - turned.sum(3) / 255)) < 20)
    }

    @Test func aTurnGoesClockwiseInABoxThatFits() throws {
        var bytes = [UInt8](repeating: 0, count: 64 * 64 * 4)
        for y in 0..<8 { for x in 28..<36 { bytes.replaceSubrange((y * 64 + x) * 4..<(y * 64 + x) * 4 + 4, with: r) } }
        let turned = try ImageProcessors.Rotate(degrees: 45).process(picture(64, 64, bytes))
        #expect(turned.size == PixelSize(width: 91, height: 91))
        // The mark at the top middle moves to the top right: 28 pixels from the middle, at 45°.
        #expect(turned.pixel(45 + 20, 45 - 20) == r)
        #expect(turned.pixel(45 - 20, 45 - 20) == clear)
    }

    @Test func aNonFiniteAngleIsAnError() throws {
        let image = try six()
        for degrees in [Double.nan, .infinity] {
            #expect(throws: ImageError.self) { try ImageProcessors.Rotate(degrees: degrees).process(image) }
        }
    }
}
