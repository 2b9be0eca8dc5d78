#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct GainMapTests {
    /// A JPEG with a second one behind it, as phones write it.
    struct File {
        var base: [UInt8]
        var gains: [UInt8]
        var description = ##"hdrgm:Version="1.0" hdrgm:GainMapMax="3.0" hdrgm:HDRCapacityMax="3""##
        /// Replaces the size and the offset of the second picture in the index.
        var place: (size: Int, offset: Int)?

        private static func segment(_ marker: UInt8, _ name: String, _ data: [UInt8]) -> [UInt8] {
            let content = Array(name.utf8) + [0] + data
            return [0xFF, marker] + big(content.count + 2, 2) + content
        }

        var bytes: [UInt8] {
            let text = Array("<rdf:Description \(description)></rdf:Description>".utf8)
            let xmp = Self.segment(0xE1, "http://ns.adobe.com/xap/1.0/", text)
            let second = Array(gains.prefix(2)) + xmp + Array(gains.dropFirst(2))
            let head = [Array("MM".utf8), big(42, 2), big(8, 4), big(3, 2)].flatMap(\.self)
            let version = [big(0xB000, 2), big(7, 2), big(4, 4), Array("0100".utf8)].flatMap(\.self)
            let count = [big(0xB001, 2), big(4, 2), big(1, 4), big(2, 4)].flatMap(\.self)
            let list = [big(0xB002, 2), big(7, 2), big(32, 4), big(50, 4), big(0, 4)].flatMap(\.self)
            let index = head + version + count + list
            // Offsets count from the head of the index.
            let offset = index.count + 32 + base.count - 2
            let (size, start) = place ?? (second.count, offset)
            let first = [big(0x30000, 4), big(base.count + 90, 4), big(0, 8)].flatMap(\.self)
            let other = [big(0, 4), big(size, 4), big(start, 4), big(0, 4)].flatMap(\.self)
            let segment = Self.segment(0xE2, "MPF", index + first + other)
            return Array(base.prefix(2)) + segment + Array(base.dropFirst(2)) + second
        }
    }

    private static func file(_ width: Int = 16, _ height: Int = 16) throws -> File {
        let grey = try flat(width, height, [128, 128, 128, 255])
        let ramp = (0..<64).flatMap { (at: Int) -> [UInt8] in [UInt8](repeating: UInt8(at % 8 * 36), count: 3) + [255] }
        return File(
            base: [UInt8](try grey.encoded(as: .jpeg(quality: 100))),
            gains: [UInt8](try picture(8, 8, ramp).encoded(as: .jpeg(quality: 100))))
    }

    private static func options(_ headroom: Double, target: PixelSize? = nil) -> ImageDecodingOptions {
        ImageDecodingOptions(
            targetSize: target, contentMode: .fill, color: .asStored(.float16), gainMap: .applied(headroom: headroom))
    }

    /// Returns the light of the pixels of a row.
    private static func light(_ image: RasterImage, row: Int = 0) -> [Double] {
        let words = WideColorTests.words(image)
        return (0..<image.size.width).map { WideColorTests.number(ofHalf: words[(row * image.size.width + $0) * 4]) }
    }

    private static let linear = ImageColorSpace.numbers(.init(primaries: 1, transfer: 8))
    /// The light of the level 128.
    private static let dark = 0.21586

    /// The light of a pixel for a gain of stops, by Adobe's specification.
    private static func bright(_ stops: Double) -> Double { (dark + 1 / 64) * exp2(stops) - 1 / 64 }

    private static func exp2(_ stops: Double) -> Double {
        Double(sign: .plus, exponent: Int(stops.rounded(.down)), significand: fraction(stops - stops.rounded(.down)))
    }

    /// Returns a power of two from 1 to 2, by its series.
    private static func fraction(_ part: Double) -> Double {
        var (sum, term) = (1.0, 1.0)
        for index in 1..<20 {
            term *= part * 0.693147180559945 / Double(index)
            sum += term
        }
        return sum
    }

    @Test(arguments: [(8.0, 1.0), (100, 1), (2, 1.0 / 3), (1, 0), (0, 0), (.nan, 0)] as [(Double, Double)])
    func lightGrowsWithTheHeadroom(headroom: Double, weight: Double) throws {
        let image = try decoded(try Self.file().bytes, Self.options(headroom))
        #expect(image.component == .float16 && image.colorSpace == Self.linear && image.isOpaque)
        let light = Self.light(image)
        for x in 0..<16 {
            // Pixels of the map lie in the middle of two of the picture.
            let place = min(7, max(0, (Double(x) + 0.5) / 2 - 0.5))
            let expected = Self.bright(place * 36 / 255 * 3 * weight)
            #expect(abs(light[x] - expected) < 0.02 * expected + 0.002, "\(x)")
        }
    }

    /// Other options have the picture for usual displays.
    @Test func theMapIsIgnoredByDefault() throws {
        let file = try Self.file()
        #expect(try decoded(file.bytes).pixels.bytes == decoded(file.base).pixels.bytes)
        let halves = ImageDecodingOptions(color: .asStored(.float16))
        #expect(try decoded(file.bytes, halves).colorSpace == .sRGB)
        // Without a map, the option changes nothing.
        let plain = try decoded(file.base, Self.options(8))
        #expect(try plain.colorSpace == .sRGB && plain.pixels.bytes == decoded(file.base, halves).pixels.bytes)
        let error = #expect(throws: ImageError.self) {
            try decoded(file.bytes, ImageDecodingOptions(gainMap: .applied(headroom: 4)))
        }
        #expect(error?.kind == .invalidArgument)
    }

    /// The option is refused in the same way, whichever way a file is decoded.
    @Test func otherComponentsAreRefusedEverywhere() throws {
        let options = ImageDecodingOptions(gainMap: .applied(headroom: 4))
        let animation = try AnimationEncodingTests.Frames(2, 4, 4) { frame, _ in [UInt8(frame), 2, 3, 255] }
        let gif = try animation.encoded(as: .gif)
        let file = try Self.file()
        let errors = [
            #expect(throws: ImageError.self) { try decoded(file.base, options) },
            #expect(throws: ImageError.self) { try IncrementalDecoder(options: options).append(Data(file.bytes)) },
            #expect(throws: ImageError.self) { try CodecImageDecoder().animation(from: gif, options: options) },
            #expect(throws: ImageError.self) { try decoded([UInt8](gif), options) },
        ]
        #expect(errors.allSatisfy { $0?.kind == .invalidArgument })
    }

    /// As libultrahdr writes them.
    @Test func numbersCanHaveExponents() throws {
        var file = try Self.file()
        file.description = ##"""
            hdrgm:Version="1.0" hdrgm:GainMapMax="0.3e1" hdrgm:HDRCapacityMax="3E+0" hdrgm:OffsetSDR="1e-07"
             hdrgm:OffsetHDR="1E-07"
            """##
        let light = Self.light(try decoded(file.bytes, Self.options(8)))
        let expected = Self.dark * Self.exp2(7.0 * 36 / 255 * 3)
        #expect(abs(light[15] - expected) < 0.02 * expected, "\(light[15]) \(expected)")
        file.description = ##"hdrgm:Version="1.0" hdrgm:GainMapMax="3e" hdrgm:HDRCapacityMax="3""##
        #expect(try decoded(file.bytes, Self.options(8)).colorSpace == .sRGB)
    }

    @Test func theMapLiesOnAPartOfAScaledPicture() throws {
        let file = try Self.file(64, 32).bytes
        let image = try decoded(file, Self.options(8, target: PixelSize(width: 8, height: 8)))
        #expect(image.size == PixelSize(width: 8, height: 8))
        let light = Self.light(image, row: 4)
        for x in 0..<8 {
            let place = min(7, max(0, (Double(x) + 4.5) / 2 - 0.5))
            let expected = Self.bright(place * 36 / 255 * 3)
            #expect(abs(light[x] - expected) < 0.02 * expected + 0.002, "\(x)")
        }
        let pieces = IncrementalDecoder(options: Self.options(8))
        for start in stride(from: 0, to: file.count, by: 50) {
            try pieces.append(Data(file.dropFirst(start).prefix(50)))
        }
        #expect(try pieces.finish().pixels.bytes == decoded(file, Self.options(8)).pixels.bytes)
    }

    @Test func propertiesAreReadInBothForms() throws {
        var file = try Self.file()
        file.description = ##"""
            hdrgm:Version="1.0" hdrgm:HDRCapacityMax="1"><hdrgm:GainMapMax><rdf:Seq><rdf:li>0</rdf:li>
            <rdf:li>1.0</rdf:li><rdf:li>2</rdf:li></rdf:Seq></hdrgm:GainMapMax><hdrgm:Gamma>2</hdrgm:Gamma
            """##
        let image = try decoded(file.bytes, Self.options(2))
        let words = WideColorTests.words(image)
        let last = (0..<3).map { WideColorTests.number(ofHalf: words[15 * 4 + $0]) }
        for (channel, light) in last.enumerated() {
            let expected = Self.bright(Double(channel) * (252.0 / 255).squareRoot())
            #expect(abs(light - expected) < 0.02 * expected)
        }
    }

    /// A damaged description is none, and no offset leads out of the file.
    @Test func damagedMapsAreIgnored() throws {
        let good = try Self.file()
        var files: [File] = []
        for description in [
            "", ##"hdrgm:Version="1.0""##, ##"hdrgm:Version="1.0" hdrgm:GainMapMax="x" hdrgm:HDRCapacityMax="3""##,
            ##"hdrgm:Version="1.0" hdrgm:GainMapMax="99" hdrgm:HDRCapacityMax="3""##,
            ##"hdrgm:Version="1.0" hdrgm:GainMapMax="3" hdrgm:HDRCapacityMax="0""##,
            ##"hdrgm:Version="1.0" hdrgm:GainMapMax="3" hdrgm:HDRCapacityMax="3" hdrgm:Gamma="0""##,
            ##"hdrgm:Version="1.0" hdrgm:BaseRenditionIsHDR="True" hdrgm:GainMapMax="3" hdrgm:HDRCapacityMax="3""##,
        ] {
            files.append(good)
            files[files.count - 1].description = description
        }
        for base in ["='True' ", ##"="True" "##, ">True</hdrgm:BaseRenditionIsHDR> "] {
            files.append(good)
            files[files.count - 1].description =
                ##"hdrgm:Version="1.0" hdrgm:GainMapMax="3" hdrgm:HDRCapacityMax="3" hdrgm:BaseRenditionIsHDR"## + base
        }
        // The start and the description are there, and the end of the levels is not.
        files.append(good)
        files[files.count - 1].gains.removeLast(30)
        for place in [(0, 0), (9_999_999, 100), (100, 0x7FFF_FFFF), (0xFFFF_FFFF, 0xFFFF_FFFF), (3, 60)] {
            files.append(good)
            files[files.count - 1].place = (size: place.0, offset: place.1)
        }
        for file in files { #expect(try decoded(file.bytes, Self.options(8)).colorSpace == .sRGB) }
    }

    @Test func mutatedFilesEndInAnErrorOrAPicture() throws {
        let bytes = try Self.file().bytes
        var random = SplitMix(state: 7)
        for _ in 0..<300 {
            var mutated = bytes
            for _ in 0..<3 { mutated[Int(random.next() % UInt64(bytes.count))] = UInt8(random.next() % 256) }
            _ = try? decoded(Array(mutated.prefix(bytes.count - Int(random.next() % 40))), Self.options(8))
        }
    }
}
#endif
