#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct AVIFLibraryTests {
    @Test func aMissingLibraryIsNamedByItsPackage() throws {
        let obstacle = try #require(LoadedLibrary.obstacle(ofAVIF: "libno-such-avif.so.16"))
        #expect(obstacle.contains("libavif16"))
    }

    @Test func anotherLibraryIsNotTrusted() throws {
        let obstacle = try #require(LoadedLibrary.obstacle(ofAVIF: "libm.so.6"))
        #expect(obstacle.contains("of no version"))
        #expect(obstacle.contains("libavif16"))
    }

    @Test func withoutTheLibraryAFileIsUnsupported() {
        let expected: ImageError.Kind? = LoadedLibrary.avif.obstacle == nil ? nil : .unsupported
        #expect(errorKind(AVIFFiles.alpha) == expected)
    }
}

/// The brands of a file of boxes, in any order, tell its format.
@Suite struct AVIFBrandTests {
    /// Returns the first box of a file, with its size and its brands, and some bytes of the next box.
    private static func file(_ major: String, _ compatible: [String], size: Int? = nil) -> [UInt8] {
        let brands = Array(major.utf8) + [0, 0, 0, 0] + compatible.flatMap { Array($0.utf8) }
        return big(size ?? brands.count + 8, 4) + Array("ftyp".utf8) + brands + big(40, 4) + Array("metaavif".utf8)
    }

    private static func format(_ bytes: [UInt8]) -> ImageFormat? { ImageFormat(sniffing: Data(bytes)) }

    @Test func everyBrandOfTheBoxCounts() {
        #expect(Self.format(Self.file("avif", [])) == .avif)
        #expect(Self.format(Self.file("avis", ["msf1"])) == .avif)
        #expect(Self.format(Self.file("mif1", ["avif", "miaf"])) == .avif)
        #expect(Self.format(Self.file("mif1", ["mif1", "miaf", "MA1B", "avif"])) == .avif)
        #expect(Self.format(Self.file("msf1", ["avis"])) == .avif)
        #expect(Self.format(Self.file("mif1", [String](repeating: "test", count: 59) + ["avif"])) == .avif)
    }

    @Test func otherBoxesAndBrandsAreNotAVIF() {
        #expect(Self.format(Self.file("mif1", ["heic", "miaf"])) == .heic)
        #expect(Self.format(Self.file("isom", ["mp41"])) == nil)
        // The brand behind the box, the version, and a brand across two others are none.
        #expect(Self.format(Self.file("mif1", [])) == .heic)
        #expect(Self.format(big(20, 4) + Array("ftypmif1avifmiaf".utf8)) == .heic)
        #expect(Self.format(big(24, 4) + Array("ftypmif1".utf8) + little(0, 4) + Array("miavifaf".utf8)) == .heic)
        // No more than the stated number of bytes is read.
        #expect(Self.format(Self.file("mif1", [String](repeating: "test", count: 60) + ["avif"])) == .heic)
        for size in [0, 1, 7, 8, 11, 12, 0x7FFF_FFFF, 0xFFFF_FFFF] {
            #expect(Self.format(Self.file("mif1", ["heic"], size: size)) != .jpeg)
            #expect(Self.format(Self.file("avif", ["heic"], size: size)) == .avif)
        }
        for count in 0..<20 { #expect(Self.format(Array(Self.file("mif1", ["heic"]).prefix(count))) == nil) }
    }

    /// The format is not known before the box has arrived, and is known to be none as soon as it has.
    @Test func bytesThatComeAreHeldUntilTheBrandsAreThere() throws {
        let decoder = IncrementalDecoder()
        let bytes = Self.file("mif1", ["miaf", "heic"])
        for byte in bytes.prefix(23) { try decoder.append(Data([byte])) }
        let unknown = #expect(throws: ImageError.self) { try decoder.append(Data(bytes.dropFirst(23))) }
        #expect(unknown?.kind == .unsupported && unknown?.format == .heic)
        let other = IncrementalDecoder()
        let early = #expect(throws: ImageError.self) { try other.append(Data("<!doctype html>\n".utf8)) }
        #expect(early?.kind == .unsupported)
    }

    @Test(.enabled(if: LoadedLibrary.avif.obstacle == nil, "libavif is not installed: scripts/set-up test"))
    func aFileOfAnotherMajorBrandIsDecoded() throws {
        var bytes = AVIFFiles.alpha
        let whole = try decoded(bytes)
        bytes.replaceSubrange(8..<12, with: Array("mif1".utf8))
        let picture = try decoded(bytes)
        #expect(picture.format == .avif)
        #expect(picture.pixels.bytes == whole.pixels.bytes)
    }
}

@Suite(.enabled(if: LoadedLibrary.avif.obstacle == nil, "libavif is not installed: scripts/set-up test"))
struct AVIFDecodingTests {
    @Test func coloursAndAlphaComeThrough() throws {
        let picture = try decoded(AVIFFiles.alpha)
        #expect(picture.size == PixelSize(width: 24, height: 16))
        #expect(picture.format == .avif)
        var worst = 0
        for y in 0..<16 {
            for x in 0..<24 {
                let alpha = 255 - x * 10
                let expected = [x * 10, y * 15, 60, 255].map { ($0 * alpha + 127) / 255 }
                let pixel = picture.pixels.bytes[(y * 24 + x) * 4..<(y * 24 + x) * 4 + 4]
                worst = max(worst, zip(pixel, expected).map { abs(Int($0) - $1) }.max() ?? 255)
            }
        }
        #expect(worst <= 3)
    }

    @Test(arguments: 1...8) func theOrientationIsApplied(orientation: Int) throws {
        let picture = try decoded(AVIFFiles.oriented[orientation - 1])
        #expect(picture.metadata.orientation == orientation)
        #expect(picture.size == PixelSize(width: orientation < 5 ? 24 : 16, height: orientation < 5 ? 16 : 24))
        let (right, low) = ([2, 3, 6, 7].contains(orientation), [3, 4, 7, 8].contains(orientation))
        for (isRight, isLow) in [(false, false), (true, false), (false, true), (true, true)] {
            let x = isRight ? picture.size.width - 3 : 2
            let y = isLow ? picture.size.height - 3 : 2
            let isRed = picture.pixels.bytes[(y * picture.size.width + x) * 4] > 128
            #expect(isRed == (isRight == right && isLow == low))
        }
    }

    @Test func aSequenceGivesItsFramesAndTimes() throws {
        let data = Data(AVIFFiles.animation)
        let frames = try #require(try CodecImageDecoder().animation(from: data, options: ImageDecodingOptions()))
        #expect(frames.count == 3)
        #expect(frames.loopCount == 0)
        let shown = try [0, 1, 2, 0].map { try frames.frame(at: $0) }
        let times: [Duration] = [.milliseconds(50), .milliseconds(200), .milliseconds(100), .milliseconds(50)]
        #expect(shown.map(\.duration) == times)
        let loudest = shown.map { frame in (0..<3).max { frame.image.pixels.bytes[$0] < frame.image.pixels.bytes[$1] } }
        #expect(loudest == [0, 1, 2, 0])
    }

    @Test func aStillPictureIsNoAnimation() throws {
        let data = Data(AVIFFiles.alpha)
        #expect(try CodecImageDecoder().animation(from: data, options: ImageDecodingOptions()) == nil)
    }

    @Test func limitsHold() {
        let pixels = ImageDecodingOptions(limits: .init(pixels: 24 * 16 - 1))
        #expect(errorKind(AVIFFiles.alpha, pixels) == .limitExceeded)
        #expect(errorKind(AVIFFiles.alpha, ImageDecodingOptions(limits: .init(pixels: 24 * 16))) == nil)
        #expect(errorKind(AVIFFiles.animation, ImageDecodingOptions(limits: .init(frames: 2))) == .limitExceeded)
    }

    /// The header states less than the stream contains. The limit also applies to the stream.
    @Test func aStreamLargerThanItsHeaderIsLimited() throws {
        var file = AVIFFiles.alpha
        let sizes = file.indices.dropLast(12).filter { Array(file[$0..<$0 + 4]) == Array("ispe".utf8) }
        try #require(!sizes.isEmpty)
        for at in sizes { file.replaceSubrange(at + 8..<at + 16, with: big(4, 4) + big(4, 4)) }
        let options = ImageDecodingOptions(limits: .init(pixels: 16))
        #expect(throws: ImageError.self) { try decoded(file, options) }
    }

    @Test func theCutFileIsAnError() {
        for count in [30, 200, 500, 840] {
            let kind = errorKind([UInt8](AVIFFiles.alpha.prefix(count)))
            #expect(kind == .truncated || kind == .corrupt)
        }
    }

    @Test func mutatedFilesEndInAnErrorOrAPicture() {
        decodeMutations(of: AVIFFiles.alpha, rounds: 96)
        decodeMutations(of: AVIFFiles.animation, rounds: 96)
    }
}
#endif
