import Testing

@testable import TernImages

@Suite struct ColorProcessorTests {
    @Test func anOpaqueTintKeepsTheShapeAlone() throws {
        let image = try picture(4, 1, [255, 255, 255, 255, 10, 20, 30, 100, 0, 0, 0, 0, 7, 0, 0, 7])
        let made = try ImageProcessors.Tint(ImageColor(red: 255, green: 51, blue: 0)).process(image)
        #expect(made.bytes == [255, 51, 0, 255, 100, 20, 0, 100, 0, 0, 0, 0, 7, 1, 0, 7])
    }

    @Test func aTintIsExactForEveryChannelAndAlpha() throws {
        var bytes: [UInt8] = []
        for alpha in 0..<256 { bytes += [0, UInt8(alpha / 2), UInt8(alpha), UInt8(alpha)] }
        let image = try picture(256, 1, bytes)
        for (channel, opacity) in [(0, 255), (255, 255), (128, 128), (37, 200), (255, 0), (255, 1)] {
            let level = UInt8(channel)
            let color = ImageColor(red: level, green: level, blue: level, alpha: UInt8(opacity))
            let made = try ImageProcessors.Tint(color).process(image)
            for (index, byte) in made.bytes.enumerated() {
                let (below, alpha) = (Int(bytes[index]), index / 4)
                let exact = Double(channel * opacity * alpha) / 65_025 + Double(below * (255 - opacity)) / 255
                let wanted = index % 4 == 3 ? Double(alpha) : exact
                #expect(abs(Double(byte) - wanted) < 0.51)
            }
        }
    }

    @Test func monochromeIsTheLuma() throws {
        let colors: [UInt8] = [255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255]
        let image = try picture(5, 1, colors + [255, 255, 255, 255, 80, 80, 80, 90])
        let made = try ImageProcessors.Monochrome().process(image)
        let luma: [UInt8] = [54, 182, 18, 255]
        #expect((0..<4).map { made.pixel($0, 0)[0] } == luma)
        #expect((0..<4).allSatisfy { Set(made.pixel($0, 0)[0..<3]).count == 1 })
        #expect(made.pixel(4, 0) == [80, 80, 80, 90])
    }

    @Test func aColorGoesOverClearPixelsToo() throws {
        let image = try picture(2, 1, [0, 0, 0, 0, 255, 255, 255, 255])
        let shade = try ImageProcessors.Overlay(ImageColor(red: 255, green: 0, blue: 0, alpha: 51)).process(image)
        #expect(shade.bytes == [51, 0, 0, 51, 255, 204, 204, 255])
        #expect(try ImageProcessors.Overlay(.black).process(image).bytes == [0, 0, 0, 255, 0, 0, 0, 255])
        #expect(try ImageProcessors.Overlay(.clear).process(image).bytes == image.bytes)
    }

    @Test func aPictureGoesWhereItIsPlaced() throws {
        let white: [UInt8] = [255, 255, 255, 255]
        let under = try flat(3, 3, [0, 0, 0, 255])
        func lit(_ placement: ImageProcessors.Overlay.Placement, _ side: Int) throws -> [Int] {
            let mark = try flat(side, side, white)
            let made = try ImageProcessors.Overlay(mark, identifier: "mark", placement: placement).process(under)
            return (0..<9).filter { made.pixel($0 % 3, $0 / 3) == white }
        }
        #expect(try lit(.centered, 1) == [4])
        #expect(try lit(.at(x: 1, y: 0), 1) == [1])
        #expect(try lit(.at(x: -1, y: 1), 2) == [3, 6])
        #expect(try lit(.at(x: 2, y: 2), 9) == [8])
        #expect(try lit(.at(x: 3, y: 0), 1) == [])
        #expect(try lit(.at(x: .min, y: .max), 1) == [])
        #expect(try lit(.centered, 9) == Array(0..<9))
        #expect(try lit(.stretched, 1) == Array(0..<9))
    }

    @Test func opacityWeakensAPictureAbove() throws {
        let under = try flat(2, 100, [0, 0, 200, 255])
        let mark = try flat(2, 100, [100, 0, 0, 100])
        func overlaid(_ opacity: Double) throws -> [UInt8] {
            try ImageProcessors.Overlay(mark, identifier: "mark", opacity: opacity).process(under).pixel(1, 99)
        }
        #expect(try overlaid(1) == [100, 0, 122, 255])
        #expect(try overlaid(0.5) == [50, 0, 161, 255])
        #expect(try overlaid(0) == [0, 0, 200, 255])
        #expect(try overlaid(7) == overlaid(1))
    }
}
