#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct ColorProfileTests {
    private static let size = PixelSize(width: 16, height: 16)

    private static func solid(_ pixel: [UInt8]) throws -> RasterImage {
        try #require(RasterImage(size: size, premultiplied: (0..<size.pixelCount).flatMap { _ in pixel }))
    }

    /// Returns a file of every format that can carry a profile.
    private static func files(_ pixel: [UInt8], _ profile: [UInt8]) throws -> [[UInt8]] {
        let picture = try solid(pixel)
        let row = (0..<size.width).flatMap { _ in [pixel[2], pixel[1], pixel[0]] }
        var bitmap = BitmapFile(
            width: size.width, height: size.height, bits: 24, headerSize: 124,
            pixels: BitmapFile.rows([[UInt8]](repeating: row, count: size.height)))
        bitmap.profile = profile
        return [
            Tagged.jpeg([UInt8](try picture.encoded(as: .jpeg(quality: 100))), profile),
            Tagged.png([UInt8](try picture.encoded(as: .png())), profile),
            Tagged.webp([UInt8](try picture.encoded(as: .losslessWebP)), profile, size: size, alpha: false),
            bitmap.bytes,
        ]
    }

    private static func differ(_ picture: RasterImage, _ pixel: [UInt8]) -> Int {
        picture.pixels.bytes.enumerated().map { abs(Int($1) - Int(pixel[$0 % 4])) }.max() ?? 255
    }

    @Test func everyFormatsProfileIsApplied() throws {
        for file in try Self.files([200, 40, 90, 255], ColorProfileFile.swapped) {
            let picture = try decoded(file)
            #expect(picture.metadata.colorProfile == .converted)
            #expect(Self.differ(picture, [40, 200, 90, 255]) <= 2)
        }
    }

    @Test func switchedOffTheColoursAreThoseOfTheFile() throws {
        for file in try Self.files([200, 40, 90, 255], ColorProfileFile.swapped) {
            let picture = try decoded(file, ImageDecodingOptions(color: .asStored()))
            #expect(picture.metadata.colorProfile == .kept)
            #expect(picture.colorSpace == .profile(Data(ColorProfileFile.swapped)))
            #expect(Self.differ(picture, [200, 40, 90, 255]) <= 2)
        }
    }

    @Test func aProfileThatIsSRGBChangesNoLevel() throws {
        let file = [UInt8](try gradient(61, 47).encoded(as: .png()))
        let plain = try decoded(file)
        #expect(plain.metadata.colorProfile == .none)
        let tagged = try decoded(Tagged.png(file, ColorProfileFile.sRGB))
        #expect(tagged.metadata.colorProfile == .converted)
        #expect(tagged.pixels.bytes == plain.pixels.bytes)
    }

    /// The expected colours are those of lcms2.
    @Test(
        arguments: [
            ([200, 100, 50], [215, 93, 31]), ([30, 60, 90], [17, 61, 93]), ([128, 128, 128], [128, 128, 128]),
        ] as [([UInt8], [UInt8])])
    func coloursOfDisplayP3AreThoseThatLcmsGives(stored: [UInt8], shown: [UInt8]) throws {
        let file = [UInt8](try Self.solid(stored + [255]).encoded(as: .png(), pngChannels: 3))
        let picture = try decoded(Tagged.png(file, ColorProfileFile.displayP3))
        #expect(Self.differ(picture, shown + [255]) <= 1)
    }

    @Test func aCurveThatIsAlmostSRGBsIsNotTakenForIt() throws {
        // A profile of colours is not for a file of greys.
        let file = [UInt8](try Self.solid([20, 20, 20, 255]).encoded(as: .png(), pngChannels: 3))
        let picture = try decoded(Tagged.png(file, ColorProfileFile.gamma22))
        // 20/255 to the power of 2.2 is 0.0037 of the light.
        #expect(Self.differ(picture, [12, 12, 12, 255]) <= 1)
    }

    @Test(.enabled(if: ColorConversion.isAvailable, "lcms2 is not installed: scripts/set-up test"))
    func aProfileOfTablesGoesThroughLcms() throws {
        let file = [UInt8](try Self.solid([200, 40, 90, 255]).encoded(as: .png()))
        let picture = try decoded(Tagged.png(file, ColorProfileFile.tables))
        #expect(picture.metadata.colorProfile == .converted)
        // The profile maps all colours to greys.
        let pixel = picture.pixels.bytes.prefix(4)
        #expect(pixel.max() == 255 && (pixel.dropLast().max() ?? 0) - (pixel.min() ?? 255) <= 3)
    }

    @Test func aDamagedProfileIsNotApplied() throws {
        let profiles = [
            Array(ColorProfileFile.swapped.prefix(100)), Array(ColorProfileFile.swapped.prefix(160)),
            [UInt8](repeating: 7, count: 600), ColorProfileFile.press, ColorProfileFile.linearGrey,
        ]
        let file = [UInt8](try Self.solid([200, 40, 90, 255]).encoded(as: .jpeg(quality: 100)))
        for profile in profiles {
            let picture = try decoded(Tagged.jpeg(file, profile))
            #expect(picture.metadata.colorProfile == .notApplied)
            #expect(Self.differ(picture, [200, 40, 90, 255]) <= 2)
        }
    }

    @Test func theSegmentsOfAJPEGAreJoinedInTheirOrder() throws {
        let file = [UInt8](try Self.solid([200, 40, 90, 255]).encoded(as: .jpeg(quality: 100)))
        let picture = try decoded(Tagged.jpeg(file, ColorProfileFile.swapped, pieces: [3, 1, 2]))
        #expect(Self.differ(picture, [40, 200, 90, 255]) <= 2)
        let lacking = try decoded(Tagged.jpeg(file, ColorProfileFile.swapped, pieces: [1, 1, 3]))
        #expect(lacking.metadata.colorProfile == .notApplied)
    }

    @Test func coloursAreConvertedBeforeTheyArePremultiplied() throws {
        let file = [UInt8](try Self.solid([128, 0, 0, 128]).encoded(as: .png()))
        let picture = try decoded(Tagged.png(file, ColorProfileFile.swapped))
        #expect(Self.differ(picture, [0, 128, 0, 128]) <= 1)
    }

    @Test func aScaledPictureIsConvertedToo() throws {
        for file in try Self.files([200, 40, 90, 255], ColorProfileFile.swapped) {
            let options = ImageDecodingOptions(targetSize: PixelSize(width: 5, height: 4), contentMode: .fill)
            let picture = try decoded(file, options)
            #expect(picture.size == PixelSize(width: 5, height: 4))
            #expect(Self.differ(picture, [40, 200, 90, 255]) <= 2)
        }
    }

    @Test func greyLevelsAreConvertedByAGreyProfile() throws {
        let levels = little(0, 8) + [64, 128, 255]
        let data = [0x78, 0x01, 1] + little(12, 2) + little(~12, 2) + [0] + levels
        var (a, b) = (1, 0)
        for byte in [0] + levels {
            a = (a + Int(byte)) % 65521
            b = (b + a) % 65521
        }
        let header = chunk("IHDR", big(11, 4) + big(1, 4) + [8, 0, 0, 0, 0])
        let file =
            [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + header + chunk("IDAT", data + big(b << 16 | a, 4))
            + chunk("IEND", [])
        let shown = try decoded(Tagged.png(file, ColorProfileFile.linearGrey)).pixels.bytes.suffix(12)
        // The sRGB levels of a quarter, a half and all of the light.
        let expected = [137, 137, 137, 255, 188, 188, 188, 255, 255, 255, 255, 255]
        #expect(zip(shown, expected).allSatisfy { abs(Int($0) - $1) <= 1 })
    }

    @Test func everyFrameOfAnAnimationIsConverted() throws {
        let frames = try [[255, 0, 0, 255], [0, 255, 0, 255]].map {
            AnimatedPNGFile.Frame(image: try Self.solid($0))
        }
        let data = Data(Tagged.png(try AnimatedPNGFile(frames: frames).bytes, ColorProfileFile.swapped))
        let animation = try #require(try CodecImageDecoder().animation(from: data, options: ImageDecodingOptions()))
        let first = try animation.frame(at: 0).image
        #expect(first.metadata.colorProfile == .converted)
        #expect(Self.differ(first, [0, 255, 0, 255]) <= 1)
        #expect(Self.differ(try animation.frame(at: 1).image, [255, 0, 0, 255]) <= 1)
        #expect(Self.differ(try animation.frame(at: 0).image, [0, 255, 0, 255]) <= 1)
    }

    @Test func mutatedProfilesEndInAnErrorOrAPicture() throws {
        for file in try Self.files([200, 40, 90, 255], ColorProfileFile.swapped) {
            decodeMutations(of: file, rounds: 96)
        }
    }
}
#endif
