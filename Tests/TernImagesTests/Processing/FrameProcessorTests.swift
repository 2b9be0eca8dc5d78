import Testing

@testable import TernImages

private let blue = ImageColor(red: 0, green: 0, blue: 255)

@Suite struct FrameProcessorTests {
    private let gray: [UInt8] = [100, 100, 100, 255]

    @Test(arguments: [3, 4, 7, 16, 33, 100, 257, 400])
    func aCirclesAreaIsExact(_ side: Int) throws {
        let made = try ImageProcessors.Circle().process(flat(side + 5, side, gray))
        #expect(made.size == PixelSize(width: side, height: side))
        let area = made.sum(3) / 255
        let exact = Double.pi * Double(side * side) / 4
        #expect(abs(area / exact - 1) < 0.005)
        #expect(made.isPremultiplied)
        #expect(made.pixel(side / 2, side / 2) == gray)
    }

    @Test(arguments: [2, 5, 40, 101])
    func aCircleIsSymmetric(_ side: Int) throws {
        let border = ImageBorder(width: 1.5, color: blue)
        for processor in [ImageProcessors.Circle(), ImageProcessors.Circle(border: border)] {
            let made = try processor.process(flat(side, side, gray))
            for turn: any ImageProcessor in [.flip(.horizontal), .flip(.vertical), .rotate(degrees: 90)] {
                #expect(try turn.process(made).bytes == made.bytes)
            }
        }
    }

    @Test func aCircleTakesTheMiddleOfThePicture() throws {
        let image = try noise(50, 20, seed: 5)
        let made = try ImageProcessors.Circle().process(image)
        for at in 4..<16 { #expect(made.pixel(at, at) == image.pixel(at + 15, at)) }
        let tall = try ImageProcessors.Rotate(degrees: 90).process(image)
        let other = try ImageProcessors.Circle().process(tall)
        for at in 4..<16 { #expect(other.pixel(at, at) == tall.pixel(at, at + 15)) }
    }

    @Test func aBorderIsARingOfItsWidth() throws {
        let made = try ImageProcessors.Circle(border: ImageBorder(width: 5, color: blue)).process(
            flat(100, 100, [0, 0, 0, 255]))
        let ring = made.sum(2) / 255
        #expect(abs(ring / (.pi * (50 * 50 - 45 * 45)) - 1) < 0.005)
        #expect(abs(made.sum(3) / 255 / (.pi * 50 * 50) - 1) < 0.005)
        #expect(made.pixel(50, 2) == [0, 0, 255, 255])
        #expect(made.pixel(50, 6) == [0, 0, 0, 255])
    }

    @Test func onlyTheNamedCornersAreRounded() throws {
        let corners: ImageProcessors.RoundedCorners.Corners = [.topRight, .bottomLeft]
        let made = try ImageProcessors.RoundedCorners(radius: 8, corners: corners).process(flat(40, 30, gray))
        #expect(made.pixel(0, 0) == gray)
        #expect(made.pixel(39, 0) == [0, 0, 0, 0])
        #expect(made.pixel(39, 29) == gray)
        #expect(made.pixel(0, 29) == [0, 0, 0, 0])
        let area = made.sum(3) / 255
        #expect(abs(area - (40 * 30 - 2 * (1 - .pi / 4) * 64)) < 0.5)
        #expect(try ImageProcessors.RoundedCorners(radius: 8, corners: []).process(flat(9, 9, gray)).sum(3) == 81 * 255)
    }

    @Test(arguments: [0.3, 2.5, 7.75, 15, 400, .infinity])
    func theAreaUnderRoundCornersIsExact(_ radius: Double) throws {
        let made = try ImageProcessors.RoundedCorners(radius: radius).process(flat(61, 30, gray))
        let used = min(radius, 15)
        #expect(abs(made.sum(3) / 255 - (61 * 30 - (4 - .pi) * used * used)) < 0.6)
    }

    @Test func aRadiusInPointsGrowsWithTheScale() throws {
        let points = try ImageProcessors.RoundedCorners(radius: 5, unit: .points).process(
            flat(40, 40, gray, scale: 2))
        #expect(points.bytes == (try ImageProcessors.RoundedCorners(radius: 10).process(flat(40, 40, gray)).bytes))
        #expect(points.scale == 2)
        let border = ImageProcessors.Border(ImageBorder(width: 1, color: blue, unit: .points))
        #expect(try border.process(flat(10, 10, gray, scale: 3)).pixel(2, 5) == [0, 0, 255, 255])
    }

    @Test func aBorderPaintsTheOutermostPixelsExactly() throws {
        let made = try ImageProcessors.Border(ImageBorder(width: 1, color: blue)).process(flat(3, 3, gray))
        let line: [UInt8] = [0, 0, 255, 255]
        #expect(made.bytes == line + line + line + line + gray + line + line + line + line)
    }

    @Test func thePictureShowsThroughAFaintBorderAndAPartOfAPixel() throws {
        let faint = ImageBorder(width: 1, color: blue.opacity(0.5))
        let made = try ImageProcessors.Border(faint).process(flat(3, 3, [200, 0, 0, 255]))
        #expect(made.pixel(0, 0) == [100, 0, 128, 255])
        let thin = ImageProcessors.Border(ImageBorder(width: 0.5, color: blue))
        let half = try thin.process(flat(3, 3, [200, 0, 0, 255]))
        #expect(half.pixel(0, 1) == [100, 0, 128, 255])
        #expect(half.pixel(0, 0) == [50, 0, 191, 255])
        #expect(half.pixel(1, 1) == [200, 0, 0, 255])
        let whole = try ImageProcessors.Border(ImageBorder(width: 99, color: blue)).process(flat(5, 3, gray))
        #expect(whole.bytes == (try flat(5, 3, [0, 0, 255, 255]).bytes))
    }

    @Test(arguments: [Double.nan, -1, .infinity])
    func anInvalidWidthIsAnError(_ width: Double) throws {
        let image = try flat(3, 3, gray)
        let error = #expect(throws: ImageError.self) {
            try ImageProcessors.Border(ImageBorder(width: width, color: blue)).process(image)
        }
        #expect(error?.kind == .invalidArgument)
        guard width != .infinity else { return }
        #expect(throws: ImageError.self) { try ImageProcessors.RoundedCorners(radius: width).process(image) }
    }
}
