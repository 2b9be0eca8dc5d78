import Testing

@testable import TernImages

@Suite struct RasterGeometryTests {
    @Test func orientationsTurnAsTheirDefinitionSays() throws {
        // Red and green above blue and white.
        let bytes: [UInt8] = [255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 255, 255, 255, 255]
        let picture = try #require(RasterImage(size: PixelSize(width: 2, height: 2), premultiplied: bytes))
        func order(_ orientation: Int) throws -> [Int] {
            let turned = try picture.oriented(orientation).pixels.bytes
            return (0..<4).map { at in
                (0..<4).first { Array(bytes[$0 * 4..<$0 * 4 + 4]) == Array(turned[at * 4..<at * 4 + 4]) } ?? -1
            }
        }
        let expected = [
            [0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0], [2, 3, 0, 1], [0, 2, 1, 3], [2, 0, 3, 1], [3, 1, 2, 0],
            [1, 3, 0, 2],
        ]
        for orientation in 1...8 { #expect(try order(orientation) == expected[orientation - 1]) }
    }

    @Test func aPictureOfOneColorIsPremultiplied() {
        let red = ImageColor(red: 200, green: 100, blue: 0)
        #expect(Array(RasterImage(color: red).pixels.bytes) == [200, 100, 0, 255])
        let half = RasterImage(color: red.opacity(0.5), size: PixelSize(width: 2, height: 1), scale: 2)
        #expect(Array(half.pixels.bytes) == [100, 50, 0, 128, 100, 50, 0, 128])
        #expect(half.size == PixelSize(width: 2, height: 1) && half.scale == 2)
        let smallest = RasterImage(color: .white, size: PixelSize(width: 0, height: -1))
        #expect(smallest.size == PixelSize(width: 1, height: 1))
        let tall = RasterImage(color: red, size: PixelSize(width: 2, height: .max))
        #expect(tall.size == PixelSize(width: 2, height: 16_384) && tall.byteCount == 2 * 16_384 * 4)
        #expect(RasterImage(color: red, size: PixelSize(width: .max, height: 1)).size.width == 16_384)
        #expect(Array(tall.pixels.bytes.suffix(4)) == [200, 100, 0, 255])
    }

    @Test func aFlatPictureStaysFlatWhenResized() throws {
        for (width, height) in [(97, 61), (3, 2), (1, 1), (640, 480)] {
            let size = PixelSize(width: width, height: height)
            let flat = try #require(
                RasterImage(size: size, premultiplied: [UInt8](repeating: 77, count: size.pixelCount * 4)))
            for target in [PixelSize(width: 31, height: 17), PixelSize(width: 1, height: 1)] {
                #expect(try flat.resized(to: target).pixels.bytes.allSatisfy { $0 == 77 })
            }
        }
    }
}
