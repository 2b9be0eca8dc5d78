#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.enabled(if: LoadedLibrary.heif.obstacle == nil, "libheif or its decoder is missing: scripts/set-up test"))
struct HEIFDecodingTests {
    /// Checks that a picture is a part of the coded one, up to a few levels.
    ///
    /// - Parameter place: Returns the place in the coded picture for one in the decoded picture.
    private func expect(
        _ picture: RasterImage, _ width: Int, _ height: Int, tolerance: Int = 4, hasAlpha: Bool = false,
        place: (_ x: Int, _ y: Int) -> (Int, Int) = { ($0, $1) }
    ) throws {
        try #require(picture.size == PixelSize(width: width, height: height))
        let bytes = picture.pixels.bytes
        var worst = 0
        for y in 0..<height {
            for x in 0..<width {
                let (left, top) = place(x, y)
                guard left < 24, top < 16 else { continue }
                let alpha = hasAlpha ? 255 - left * 10 : 255
                let colors = [left * 10, top * 15, 255 - left * 5 - top * 5].map { ($0 * alpha + 127) / 255 }
                let at = (y * width + x) * 4
                worst = max(worst, zip(bytes[at..<at + 4], colors + [alpha]).map { abs(Int($0) - $1) }.max() ?? 255)
            }
        }
        #expect(worst <= tolerance)
    }

    @Test func theColorsComeThrough() throws {
        let picture = try decoded(HEIFFile.picture().bytes)
        try expect(picture, 24, 16)
        #expect(picture.format == .heic)
        let metadata = picture.metadata
        #expect(metadata.orientation == 1 && metadata.isComplete && !metadata.isPartial)
        #expect(metadata.colorProfile == .none)
        #expect(try CodecImageDecoder().animation(from: Data(HEIFFile.picture().bytes), options: .init()) == nil)
        try expect(try decoded(HEIFFile(items: [HEIFFile.coded()]).bytes), 64, 64)
    }

    @Test func samplesOf10BitsAreRounded() throws {
        try expect(try decoded(HEIFFile.picture(HEIFFile.deep).bytes), 24, 16)
    }

    @Test func alphaIsApplied() throws {
        try expect(try decoded(HEIFFile.transparent.bytes), 24, 16, hasAlpha: true)
        let whole = HEIFFile(items: [HEIFFile.coded(), HEIFFile.coded(HEIFFile.alpha, alphaOf: 1)])
        try expect(try decoded(whole.bytes), 64, 64, hasAlpha: true)
    }

    /// The colours are those of the file, up to the alpha of each pixel.
    @Test func premultipliedColorsStay() throws {
        var file = HEIFFile.transparent
        file.isPremultiplied = true
        let bytes = try decoded(file.bytes).pixels.bytes
        for (x, y) in [(0, 0), (3, 9), (8, 4), (12, 2), (23, 15)] {
            let alpha = 255 - x * 10
            let colors = [x * 10, y * 15, 255 - x * 5 - y * 5].map { min($0, alpha) }
            let at = (y * 24 + x) * 4
            #expect(zip(bytes[at..<at + 4], colors + [alpha]).allSatisfy { abs(Int($0) - $1) <= 6 }, "\(x), \(y)")
        }
    }

    @Test(arguments: 0...3) func aTurnIsApplied(quarters: Int) throws {
        let picture = try decoded(HEIFFile.picture(HEIFFile.color, [HEIFFile.turn(UInt8(quarters))]).bytes)
        #expect(picture.metadata.orientation == 1)
        let isUpright = quarters % 2 == 0
        try expect(picture, isUpright ? 24 : 16, isUpright ? 16 : 24) { x, y in
            [(x, y), (23 - y, x), (23 - x, 15 - y), (y, 15 - x)][quarters]
        }
    }

    @Test(arguments: 0...1) func aMirrorIsApplied(axis: Int) throws {
        let picture = try decoded(HEIFFile.picture(HEIFFile.color, [HEIFFile.mirror(UInt8(axis))]).bytes)
        try expect(picture, 24, 16) { x, y in axis == 0 ? (x, 15 - y) : (23 - x, y) }
    }

    @Test func theApertureIsApplied() throws {
        let part = HEIFFile.aperture(12, 8, right: -2, down: -2)
        try expect(try decoded(HEIFFile.picture(HEIFFile.color, [part]).bytes), 12, 8) { x, y in (x + 4, y + 2) }
    }

    @Test func gridsAndOverlaysArePutTogether() throws {
        let grid = HEIFFile(items: [
            HEIFFile.grid(2, 2, size: (88, 72), parts: [2, 2, 2, 2]), HEIFFile.coded(),
        ])
        try expect(try decoded(grid.bytes), 88, 72) { x, y in (x % 64, y % 64) }
        let canvas = [0, 0] + big(0, 6) + big(0xFFFF, 2) + big(40, 2) + big(30, 2)
        let overlay = HEIFFile.Item(
            type: "iovl", data: canvas + big(10, 2) + big(5, 2), properties: [HEIFFile.size(40, 30)], parts: [2],
            isInside: true)
        let laid = try decoded(HEIFFile(items: [overlay] + HEIFFile.picture().shifted(by: 1)).bytes)
        try expect(laid, 40, 30) { x, y in x < 10 || y < 5 ? (99, 99) : (x - 10, y - 5) }
        #expect(Array(laid.pixels.bytes.prefix(4)) == [0, 0, 0, 255])
        let same = HEIFFile.Item(type: "iden", properties: [HEIFFile.size(24, 16), HEIFFile.turn(2)], parts: [2])
        try expect(try decoded(HEIFFile(items: [same] + HEIFFile.picture().shifted(by: 1)).bytes), 24, 16) { x, y in
            (23 - x, 15 - y)
        }
    }

    @Test func aTargetIsReached() throws {
        let picture = try decoded(
            HEIFFile.picture().bytes, ImageDecodingOptions(targetSize: PixelSize(width: 12, height: 12)))
        #expect(picture.size == PixelSize(width: 12, height: 8))
        #expect(picture.metadata.originalSize == PixelSize(width: 24, height: 16))
    }

    @Test func aProfileIsApplied() throws {
        let plain = try decoded(HEIFFile.picture().bytes)
        let profile = HEIFFile.box("colr", Array("prof".utf8) + ColorProfileFile.swapped)
        let picture = try decoded(HEIFFile.picture(HEIFFile.color, [profile]).bytes)
        #expect(picture.metadata.colorProfile == .converted)
        #expect(picture.pixels.bytes != plain.pixels.bytes)
    }

    /// Display P3 and sRGB by their numbers.
    @Test func statedColorsAreConverted() throws {
        func picture(_ primaries: Int) throws -> RasterImage {
            let numbers = big(primaries, 2) + big(13, 2) + big(6, 2) + [0x80]
            let box = HEIFFile.box("colr", Array("nclx".utf8) + numbers)
            return try decoded(HEIFFile.picture(HEIFFile.color, [box]).bytes)
        }
        let (plain, wide) = (try picture(1), try picture(12))
        #expect(plain.metadata.colorProfile == .none && wide.metadata.colorProfile == .converted)
        #expect(plain.pixels.bytes != wide.pixels.bytes)
    }

    @Test func limitsHold() {
        let bytes = HEIFFile.picture().bytes
        #expect(errorKind(bytes, ImageDecodingOptions(limits: .init(pixels: 24 * 16 - 1))) == .limitExceeded)
        #expect(errorKind(bytes, ImageDecodingOptions(limits: .init(pixels: 24 * 16))) == nil)
        #expect(errorKind(bytes, ImageDecodingOptions(limits: .init(memory: 1 << 20))) == .limitExceeded)
        let large = HEIFFile(items: [HEIFFile.coded(size: (60_000, 60_000))])
        #expect(errorKind(large.bytes) == .limitExceeded)
        // One picture is decoded for each of the parts.
        let many = HEIFFile(items: [
            HEIFFile.grid(255, 255, parts: [Int](repeating: 2, count: 255 * 255)), HEIFFile.coded(),
        ])
        #expect(errorKind(many.bytes) == .limitExceeded)
        let crowd = [HEIFFile.coded()] + [HEIFFile.Item](repeating: .init(type: "Exif", data: [0]), count: 3000)
        #expect(errorKind(HEIFFile(items: crowd).bytes) == .limitExceeded)
    }

    /// The stream has 64 × 64 pixels.
    @Test(arguments: [(128, 64), (64, 65), (1000, 10)]) func aStreamOfAnotherSizeIsCorrupt(size: (Int, Int)) {
        #expect(errorKind(HEIFFile(items: [HEIFFile.coded(size: size)]).bytes) == .corrupt)
    }

    /// A parameter set that states 65,535 × 65,535 pixels, in the property or in the data.
    @Test(arguments: [false, true]) func aStreamOfManyPixelsIsCorrupt(isInData: Bool) throws {
        let set = try #require(HEIFFile.color.setup.firstRange(of: [0x42, 1, 1])?.lowerBound)
        // Up to the level. The number of the set, the kind of the colours and the sides follow (ITU-T H.265, §9.2).
        let head = Array(HEIFFile.color.setup[set..<set + 17])
        try #require(head.last == 0x1E)
        let side = String(repeating: "0", count: 16) + "1" + String(repeating: "0", count: 16)
        let text = Array("1010\(side)\(side)0" + String(repeating: "1", count: 17))
        let sides = stride(from: 0, to: text.count, by: 8).map { UInt8(String(text[$0..<$0 + 8]), radix: 2) ?? 0 }
        let unit = head + sides + [UInt8](repeating: 0xAA, count: 12)
        var coded = HEIFFile.color
        if isInData {
            coded = HEIFFile.Coded(setup: coded.setup, units: big(unit.count, 4) + unit + coded.units)
        } else {
            let array: [UInt8] = [33] + big(1, 2) + big(unit.count, 2) + unit
            var setup = coded.setup + array
            setup[22] += 1
            coded = HEIFFile.Coded(setup: setup, units: coded.units)
        }
        let error = #expect(throws: ImageError.self) { try decoded(HEIFFile.picture(coded).bytes) }
        #expect(error?.kind == .corrupt && error?.message.contains("HEVC stream") == true, "\(error as Any)")
    }

    /// libheif 1.15 follows some of these until the stack ends.
    @Test func picturesThatArePartsOfThemselvesAreCorrupt() {
        let canvas = [0, 0] + big(0, 8) + big(24, 2) + big(16, 2) + big(0, 4)
        let laid = HEIFFile.Item(
            type: "iovl", data: canvas, properties: [HEIFFile.size(24, 16)], parts: [1], isInside: true)
        let one = HEIFFile.Item(type: "iden", properties: [HEIFFile.size(24, 16)], parts: [2])
        let other = HEIFFile.Item(type: "iden", properties: [HEIFFile.size(24, 16)], parts: [1])
        for items in [[HEIFFile.grid(parts: [1])], [laid], [one, other], [HEIFFile.coded(alphaOf: 1)]] {
            #expect(errorKind(HEIFFile(items: items).bytes) == .corrupt)
        }
        // The parts of a grid must cover it.
        let gap = HEIFFile(items: [HEIFFile.grid(size: (65, 16), parts: [2]), HEIFFile.coded()])
        #expect(errorKind(gap.bytes) == .corrupt)
    }

    @Test func otherKindsAreNamed() {
        let other = HEIFFile.Item(type: "av01", data: [1], properties: [HEIFFile.size(24, 16)])
        let sequence = HEIFFile.box("ftyp", Array("msf1".utf8) + big(0, 4) + Array("hevc".utf8))
        for (bytes, word) in [
            (HEIFFile(items: [other], brand: "mif1").bytes, "av01"),
            (sequence + HEIFFile.box("moov", [UInt8](repeating: 0, count: 20)), "sequence"),
        ] {
            let error = #expect(throws: ImageError.self) { try decoded(bytes) }
            #expect(error?.kind == .unsupported && error?.message.contains(word) == true, "\(error as Any)")
        }
    }

    @Test func aCancelledTaskDecodesNothing() async {
        let bytes = HEIFFile.picture().bytes
        let task = Task { () -> ImageError.Kind? in
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return errorKind(bytes)
        }
        #expect(await task.value == .cancelled)
    }

    @Test func mutatedFilesEndInAnErrorOrAPicture() {
        decodeMutations(of: HEIFFile.picture().bytes, rounds: 200)
        decodeMutations(of: HEIFFile.transparent.bytes, rounds: 200)
        let grid = HEIFFile(items: [HEIFFile.grid(2, 2, size: (88, 72), parts: [2, 2, 2, 2]), HEIFFile.coded()])
        decodeMutations(of: grid.bytes, rounds: 100, target: PixelSize(width: 20, height: 20))
    }
}

@Suite struct HEIFLibraryTests {
    /// With its library or without it.
    @Test func aMissingLibraryIsNamed() {
        guard let obstacle = LoadedLibrary.heif.obstacle else {
            #expect(errorKind(HEIFFile.picture().bytes) == nil)
            return
        }
        #expect(obstacle.contains("libheif"))
        #expect(errorKind(HEIFFile.picture().bytes) == .unsupported)
    }
}
#endif
