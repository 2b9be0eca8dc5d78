#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct AnimatedPNGTests {
    private static let red: [UInt8] = [255, 0, 0, 255]
    private static let green: [UInt8] = [0, 255, 0, 255]
    private static let blue: [UInt8] = [0, 0, 255, 255]
    private static let clear: [UInt8] = [0, 0, 0, 0]

    private static func solid(_ pixel: [UInt8], _ width: Int, _ height: Int) throws -> RasterImage {
        let size = PixelSize(width: width, height: height)
        return try #require(RasterImage(size: size, premultiplied: (0..<width * height).flatMap { _ in pixel }))
    }

    private static func frames(_ bytes: [UInt8]) throws -> any ImageFrames {
        try #require(try CodecImageDecoder().animation(from: Data(bytes), options: ImageDecodingOptions()))
    }

    /// Returns the pixels of a 3 × 1 picture at each frame.
    private static func shown(_ file: AnimatedPNGFile) throws -> [[[UInt8]]] {
        let frames = try frames(try file.bytes)
        return try (0..<frames.count).map { index in
            let bytes = try frames.frame(at: index).image.pixels.bytes
            return stride(from: 0, to: bytes.count, by: 4).map { Array(bytes[$0..<$0 + 4]) }
        }
    }

    @Test func framesAreLaidAtTheirPlaceAndKept() throws {
        let file = AnimatedPNGFile(frames: [
            .init(image: try Self.solid(Self.red, 3, 1)), .init(image: try Self.solid(Self.green, 1, 1), left: 1),
            .init(image: try Self.solid(Self.blue, 1, 1), left: 2),
        ])
        let (r, g, b) = (Self.red, Self.green, Self.blue)
        #expect(try Self.shown(file) == [[r, r, r], [r, g, r], [r, g, b]])
    }

    @Test func clearedAndRestoredFramesLeaveWhatTheyShould() throws {
        let file = AnimatedPNGFile(frames: [
            .init(image: try Self.solid(Self.red, 3, 1)),
            .init(image: try Self.solid(Self.green, 1, 1), left: 0, dispose: 1),
            .init(image: try Self.solid(Self.blue, 2, 1), left: 1, dispose: 2),
            .init(image: try Self.solid(Self.green, 1, 1), left: 1),
        ])
        let (r, g, b, c) = (Self.red, Self.green, Self.blue, Self.clear)
        #expect(try Self.shown(file) == [[r, r, r], [g, r, r], [c, b, b], [c, g, r]])
    }

    @Test func theFirstFrameRestoredIsCleared() throws {
        let file = AnimatedPNGFile(frames: [
            .init(image: try Self.solid(Self.red, 3, 1), dispose: 2),
            .init(image: try Self.solid(Self.green, 1, 1), left: 1),
        ])
        #expect(try Self.shown(file)[1] == [Self.clear, Self.green, Self.clear])
    }

    @Test func replacingTakesAlphaAlongAndLayingOverMixes() throws {
        let half: [UInt8] = [0, 0, 128, 128]
        func file(_ blend: Int) throws -> AnimatedPNGFile {
            AnimatedPNGFile(frames: [
                .init(image: try Self.solid(Self.red, 3, 1)),
                .init(image: try Self.solid(half, 1, 1), left: 1, blend: blend),
                .init(image: try Self.solid(Self.clear, 1, 1), left: 2, blend: blend),
            ])
        }
        #expect(try Self.shown(try file(0))[2] == [Self.red, half, Self.clear])
        #expect(try Self.shown(try file(1))[2] == [Self.red, [127, 0, 128, 255], Self.red])
    }

    @Test func layingOverSomethingTransparentKeepsTheColourOfEach() throws {
        let file = AnimatedPNGFile(frames: [
            .init(image: try Self.solid([128, 0, 0, 128], 3, 1)),
            .init(image: try Self.solid([0, 0, 64, 64], 1, 1), left: 0, blend: 1),
        ])
        // Premultiplied: an alpha of 64 + 128·(255 − 64)/255 and the same amount of red. Each can differ by the
        // rounding of straight alpha.
        let pixel = try Self.shown(file)[1][0]
        #expect(zip(pixel, [96, 0, 64, 160]).allSatisfy { abs(Int($0) - $1) <= 1 })
    }

    @Test func countsPlaysAndTimesAreThoseOfTheFile() throws {
        var file = AnimatedPNGFile(
            frames: try [(1, 0), (1, 60), (10, 1000), (11, 1000), (0, 1), (3, 1)].map {
                .init(image: try Self.solid(Self.red, 1, 1), delay: $0)
            }, plays: 3)
        let frames = try Self.frames(try file.bytes)
        #expect(frames.count == 6)
        #expect(frames.loopCount == 3)
        let times = try (0..<6).map { try frames.frame(at: $0).duration }
        #expect(
            times == [
                .milliseconds(100), .microseconds(16_666), .milliseconds(100), .milliseconds(11), .milliseconds(100),
                .seconds(3),
            ])
        file.plays = 0
        #expect(try Self.frames(try file.bytes).loopCount == 0)
    }

    @Test func aStillPictureThatIsNoFrameDoesNotShow() throws {
        let file = AnimatedPNGFile(
            frames: [
                .init(image: try Self.solid(Self.green, 1, 1), left: 2), .init(image: try Self.solid(Self.blue, 3, 1)),
            ], still: try Self.solid(Self.red, 3, 1))
        let first = [Self.clear, Self.clear, Self.green]
        #expect(try Self.shown(file) == [first, [Self.blue, Self.blue, Self.blue]])
        #expect(try decoded(try file.bytes).pixels.bytes == first.flatMap { $0 })
    }

    @Test func aStepBackBeginsAnew() throws {
        let file = AnimatedPNGFile(frames: [
            .init(image: try Self.solid(Self.red, 3, 1)),
            .init(image: try Self.solid(Self.green, 1, 1), left: 1, dispose: 1),
            .init(image: try Self.solid(Self.blue, 1, 1), left: 2),
        ])
        let frames = try Self.frames(try file.bytes)
        let third = try frames.frame(at: 2).image.pixels.bytes
        #expect(try frames.frame(at: 0).image.pixels.bytes == Self.red + Self.red + Self.red)
        #expect(try frames.frame(at: 2).image.pixels.bytes == third)
    }

    @Test func aPNGOfOneFrameOrNoneIsStill() throws {
        let still = try Self.solid(Self.red, 2, 2).encoded(as: .png())
        #expect(try CodecImageDecoder().animation(from: still, options: ImageDecodingOptions()) == nil)
        let one = try AnimatedPNGFile(frames: [.init(image: try Self.solid(Self.red, 2, 2))]).bytes
        #expect(try CodecImageDecoder().animation(from: Data(one), options: ImageDecodingOptions()) == nil)
    }

    /// According to the standard (W3C PNG, third edition, §4.9), the still picture is shown.
    @Test func contradictionsLeaveAStillPicture() throws {
        func animates(_ change: (inout AnimatedPNGFile) -> Void) throws -> Bool {
            var file = AnimatedPNGFile(frames: [
                .init(image: try Self.solid(Self.red, 3, 1)), .init(image: try Self.solid(Self.green, 1, 1), left: 1),
            ])
            change(&file)
            let bytes = try file.bytes
            #expect(try decoded(bytes).pixels.bytes == Self.red + Self.red + Self.red)
            return try CodecImageDecoder().animation(from: Data(bytes), options: ImageDecodingOptions()) != nil
        }
        #expect(try animates { _ in })
        #expect(try !animates { $0.leap = 1 })
        #expect(try !animates { $0.promised = 3 })
        #expect(try !animates { $0.frames[1].left = 3 })
        #expect(try !animates { $0.frames[0].left = 1 })
        #expect(try !animates { $0.frames[1].dispose = 3 })
        #expect(try !animates { $0.frames[1].blend = 2 })
    }

    @Test func aWrongChecksumOfFrameDataLeavesAStillPicture() throws {
        let file = AnimatedPNGFile(frames: [
            .init(image: try gradient(20, 20)), .init(image: try gradient(20, 20), left: 0),
        ])
        var bytes = try file.bytes
        let last = try #require(
            bytes.indices.dropLast(4).last { Array(bytes[$0..<$0 + 4]) == Array("fdAT".utf8) })
        bytes[last + 9] ^= 1
        #expect(try CodecImageDecoder().animation(from: Data(bytes), options: ImageDecodingOptions()) == nil)
        #expect(try decoded(bytes).pixels.bytes == gradient(20, 20).pixels.bytes)
    }

    /// The frames are decoded one by one, so only the damaged one is an error.
    @Test func aFrameOfDamagedDataIsCorrupt() throws {
        let still = try gradient(20, 20)
        var bytes = try AnimatedPNGFile(frames: [.init(image: still), .init(image: still)]).bytes
        let last = try #require(
            bytes.indices.dropLast(4).last { Array(bytes[$0..<$0 + 4]) == Array("fdAT".utf8) })
        let data = Array(bytes[last + 4..<bytes.count - 16])
        bytes.replaceSubrange(last - 4..<bytes.count - 12, with: chunk("fdAT", Array(data.dropLast(9))))
        let frames = try Self.frames(bytes)
        let thrown = #expect(throws: ImageError.self) { try frames.frame(at: 1) }
        #expect(thrown?.kind == .corrupt)
        #expect(try frames.frame(at: 0).image.pixels.bytes == still.pixels.bytes)
    }

    @Test func theCutAnimationGivesTheFramesThatAreThere() throws {
        let file = AnimatedPNGFile(frames: [.init(image: try gradient(64, 64)), .init(image: try gradient(64, 64))])
        let data = Data(try file.bytes.dropLast(40))
        let decoder = CodecImageDecoder()
        let thrown = #expect(throws: ImageError.self) {
            _ = try decoder.animation(from: data, options: ImageDecodingOptions())
        }
        #expect(thrown?.kind == .truncated)
        let options = ImageDecodingOptions(allowsPartial: true)
        let partial = try #require(try decoder.animation(from: data, options: options))
        #expect(try partial.frame(at: 0).image.pixels.bytes == gradient(64, 64).pixels.bytes)
        #expect(try partial.frame(at: 0).image.metadata.isPartial)
        #expect(try partial.frame(at: 1).image.metadata.isPartial)
    }

    @Test func tooManyFramesPassTheLimit() throws {
        let file = AnimatedPNGFile(frames: [
            .init(image: try Self.solid(Self.red, 1, 1)), .init(image: try Self.solid(Self.red, 1, 1)),
        ])
        let data = Data(try file.bytes)
        let thrown = #expect(throws: ImageError.self) {
            try CodecImageDecoder().animation(from: data, options: ImageDecodingOptions(limits: .init(frames: 1)))
        }
        #expect(thrown?.kind == .limitExceeded)
    }

    @Test(arguments: [false, true]) func mutatedFilesEndInAnErrorOrAPicture(isStillApart: Bool) throws {
        let file = AnimatedPNGFile(
            frames: [
                .init(image: try gradient(24, 18), dispose: 2), .init(image: try gradient(9, 7), left: 3, blend: 1),
                .init(image: try gradient(5, 5), top: 9, dispose: 1),
            ], still: isStillApart ? try gradient(24, 18) : nil)
        decodeMutations(of: try file.bytes, rounds: 128)
    }
}
#endif
