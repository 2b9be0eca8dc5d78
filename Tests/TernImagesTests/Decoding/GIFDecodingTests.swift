#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct GIFDecodingTests {
    private static let (r, g, b, w, c) = (GIFFile.red, GIFFile.green, GIFFile.blue, GIFFile.white, GIFFile.clear)

    private static func frames(_ file: GIFFile) throws -> any ImageFrames {
        let data = Data(file.bytes)
        return try #require(try CodecImageDecoder().animation(from: data, options: ImageDecodingOptions()))
    }

    /// Returns the pixels of each frame.
    private static func shown(_ file: GIFFile) throws -> [[[UInt8]]] {
        let frames = try frames(file)
        return try (0..<frames.count).map { index in
            let bytes = try frames.frame(at: index).image.pixels.bytes
            return stride(from: 0, to: bytes.count, by: 4).map { Array(bytes[$0..<$0 + 4]) }
        }
    }

    @Test func eachDisposalLeavesWhatItShould() throws {
        func after(_ disposal: Int) throws -> [[UInt8]] {
            let file = GIFFile(
                width: 3, height: 1,
                frames: [
                    .init(rows: [[0, 0, 0]]), .init(rows: [[1, 1]], left: 1, disposal: disposal),
                    .init(rows: [[2]], left: 2),
                ])
            let shown = try Self.shown(file)
            #expect(shown[1] == [Self.r, Self.g, Self.g])
            return shown[2]
        }
        #expect(try after(0) == [Self.r, Self.g, Self.b])
        #expect(try after(1) == [Self.r, Self.g, Self.b])
        #expect(try after(2) == [Self.r, Self.c, Self.b])
        #expect(try after(3) == [Self.r, Self.r, Self.b])
    }

    @Test func restoringGoesBackToBeforeTheFrameNotToTheFirst() throws {
        let file = GIFFile(
            width: 3, height: 1,
            frames: [
                .init(rows: [[0, 0, 0]]), .init(rows: [[1]], left: 0), .init(rows: [[2]], left: 1, disposal: 3),
                .init(rows: [[2]], left: 2, disposal: 3), .init(rows: [[3]], left: 1),
            ])
        #expect(
            try Self.shown(file) == [
                [Self.r, Self.r, Self.r], [Self.g, Self.r, Self.r], [Self.g, Self.b, Self.r], [Self.g, Self.r, Self.b],
                [Self.g, Self.w, Self.r],
            ])
    }

    @Test func theFirstFrameRestoredIsCleared() throws {
        let file = GIFFile(
            width: 2, height: 1, frames: [.init(rows: [[0, 0]], disposal: 3), .init(rows: [[1]], left: 1)])
        #expect(try Self.shown(file)[1] == [Self.c, Self.g])
    }

    @Test func theTransparentIndexLetsWhatIsBelowThrough() throws {
        let file = GIFFile(
            width: 3, height: 1,
            frames: [.init(rows: [[0, 1, 0]], transparent: 1), .init(rows: [[2, 3, 2]], transparent: 2)])
        #expect(try Self.shown(file) == [[Self.r, Self.c, Self.r], [Self.r, Self.w, Self.r]])
    }

    @Test(arguments: 1...17) func interlacedRowsGoToTheirPlaces(height: Int) throws {
        let rows = (0..<height).map { y in [y % 4, (y / 4) % 4, 3] }
        func pixels(_ isInterlaced: Bool) throws -> [UInt8] {
            let frame = GIFFile.Frame(rows: rows, isInterlaced: isInterlaced)
            return try decoded(GIFFile(width: 3, height: height, frames: [frame]).bytes).pixels.bytes
        }
        #expect(try pixels(true) == pixels(false))
    }

    @Test func loopsAreOneMoreThanTheFileSays() throws {
        func loops(_ again: Int?, _ name: String = "NETSCAPE2.0") throws -> Int {
            let frames: [GIFFile.Frame] = [.init(rows: [[0]]), .init(rows: [[1]])]
            let file = GIFFile(width: 1, height: 1, frames: frames, again: again, loopName: name)
            return try Self.frames(file).loopCount
        }
        #expect(try loops(nil) == 1)
        #expect(try loops(0) == 0)
        #expect(try loops(1) == 2)
        #expect(try loops(65_535) == 65_536)
        #expect(try loops(0, "ANIMEXTS1.0") == 0)
        #expect(try loops(4, "ANIMEXTS1.0") == 5)
        #expect(try loops(4, "ANIMEXTS2.0") == 1)
    }

    @Test func delaysUnderElevenMillisecondsAreAHundred() throws {
        let delays = [0, 1, 2, 7, 65_535]
        var file = GIFFile(width: 1, height: 1, frames: delays.map { .init(rows: [[0]], delay: $0) })
        file.frames.append(.init(rows: [[1]], isControlled: false))
        let frames = try Self.frames(file)
        let times: [Duration] = [100, 100, 20, 70, 655_350, 100].map { .milliseconds($0) }
        #expect(try (0..<6).map { try frames.frame(at: $0).duration } == times)
    }

    @Test func aFrameBeyondTheScreenIsCutOff() throws {
        let square = [[Int]](repeating: [1, 1, 1], count: 3)
        let file = GIFFile(
            width: 3, height: 2,
            frames: [
                .init(rows: [[0, 0, 0], [0, 0, 0]]), .init(rows: square, left: 2, top: 1, disposal: 2),
                .init(rows: square, left: 3, top: 0, disposal: 2), .init(rows: square, left: 0, top: 900, disposal: 3),
                .init(rows: [[2]]),
            ])
        let shown = try Self.shown(file)
        #expect(shown[1] == [Self.r, Self.r, Self.r, Self.r, Self.r, Self.g])
        #expect(shown[2] == [Self.r, Self.r, Self.r, Self.r, Self.r, Self.c])
        #expect(shown[3] == shown[2])
        #expect(shown[4] == [Self.b, Self.r, Self.r, Self.r, Self.r, Self.c])
    }

    /// Returns the picture of a file in each way: as a whole, byte by byte, and as the first frame of an animation.
    private static func pictures(_ file: GIFFile) throws -> [RasterImage] {
        let decoder = IncrementalDecoder()
        for byte in file.bytes { try decoder.append(Data([byte])) }
        var pictures = [try decoded(file.bytes), try decoder.finish()]
        if file.frames.count > 1 { pictures.append(try frames(file).frame(at: 0).image) }
        return pictures
    }

    @Test(arguments: [1, 2]) func aFirstFrameBeyondTheScreenEnlargesIt(frames: Int) throws {
        let square = [[Int]](repeating: [1, 1, 1], count: 3)
        var file = GIFFile(width: 2, height: 1, frames: [], colours: [[255, 0, 0], [0, 255, 0]])
        file.frames = [GIFFile.Frame](repeating: .init(rows: square), count: frames)
        for picture in try Self.pictures(file) {
            #expect(picture.size == PixelSize(width: 3, height: 3))
            #expect(picture.metadata.originalSize == PixelSize(width: 3, height: 3))
            #expect(picture.pixels.bytes == Array(repeatElement(Self.g, count: 9).joined()))
        }
        file.frames[0].left = 1
        file.frames[0].top = 2
        for picture in try Self.pictures(file) {
            #expect(picture.size == PixelSize(width: 4, height: 5))
            #expect(Array(picture.pixels.bytes.suffix(16)) == Self.c + Self.g + Self.g + Self.g)
        }
        // One that fits in one direction enlarges the other one only.
        (file.width, file.height) = (9, 1)
        for picture in try Self.pictures(file) { #expect(picture.size == PixelSize(width: 9, height: 5)) }
    }

    /// The canvas of an enlarged screen is held to the limits of any other.
    @Test func anEnlargedScreenIsLimited() throws {
        let file = GIFFile(width: 1, height: 1, frames: [.init(rows: [[0]], left: 60_000, top: 60_000)]).bytes
        #expect(errorKind(file) == .limitExceeded)
        let decoder = IncrementalDecoder()
        let thrown = #expect(throws: ImageError.self) {
            try decoder.append(Data(file))
            _ = try decoder.finish()
        }
        #expect(thrown?.kind == .limitExceeded)
    }

    @Test func aFramesOwnColoursGoBeforeTheFiles() throws {
        let own: [[UInt8]] = [[1, 2, 3], [4, 5, 6]]
        let file = GIFFile(
            width: 2, height: 1, frames: [.init(rows: [[0, 1]], colours: own), .init(rows: [[0, 1]])])
        #expect(try Self.shown(file) == [[[1, 2, 3, 255], [4, 5, 6, 255]], [Self.r, Self.g]])
    }

    @Test func anIndexPastTheColoursShowsNothing() throws {
        let file = GIFFile(width: 2, height: 1, frames: [.init(rows: [[6, 1]])])
        #expect(try decoded(file.bytes).pixels.bytes == Self.c + Self.g)
    }

    @Test func aFrameWithoutAnyColoursShowsNothing() throws {
        let file = GIFFile(width: 2, height: 1, frames: [.init(rows: [[0, 1]])], colours: [])
        #expect(try decoded(file.bytes).pixels.bytes == [UInt8](repeating: 0, count: 8))
    }

    /// LadybirdBrowser/ladybird #6358: pages use pictures of one transparent pixel, without colours and without codes.
    @Test(arguments: [
        "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==", "R0lGODlhAQABAAD/ACwAAAAAAQABAAACADs=",
    ])
    func theSmallestFilesAreOneTransparentPixel(text: String) throws {
        let data = try #require(Data(base64Encoded: text))
        let picture = try decoded(Array(data))
        #expect(picture.size == PixelSize(width: 1, height: 1) && picture.pixels.bytes == [0, 0, 0, 0])
        let decoder = IncrementalDecoder(options: ImageDecodingOptions())
        for byte in data {
            var stands = try decoder.append(Data([byte]))
            while stands { stands = try decoder.advance() }
        }
        #expect(try decoder.finish().pixels.bytes == [0, 0, 0, 0])
    }

    @Test func aGIFOfOneFrameIsStill() throws {
        let data = Data(GIFFile(width: 1, height: 1, frames: [.init(rows: [[0]])], again: 0).bytes)
        #expect(try CodecImageDecoder().animation(from: data, options: ImageDecodingOptions()) == nil)
    }

    @Test func theCutFileGivesItsWholeFrames() throws {
        let rows = [[Int]](repeating: [Int](repeating: 1, count: 40), count: 40)
        let file = GIFFile(width: 40, height: 40, frames: [.init(rows: rows), .init(rows: rows)])
        let cut = Data(file.bytes.dropLast(300))
        let decoder = CodecImageDecoder()
        let thrown = #expect(throws: ImageError.self) {
            _ = try decoder.animation(from: cut, options: ImageDecodingOptions())
        }
        #expect(thrown?.kind == .truncated)
        let options = ImageDecodingOptions(allowsPartial: true)
        let partial = try #require(try decoder.animation(from: cut, options: options))
        // The file is partial, and so is each of its frames, as on Apple's systems.
        #expect(try partial.frame(at: 0).image.metadata.isPartial)
        #expect(try partial.frame(at: 1).image.metadata.isPartial)
    }

    /// Chromium and Firefox: files state a frame of 0 by 0 pixels and mean the screen. Its size is not that of a canvas
    /// which the first frame has enlarged: no row has more than 65,535 pixels.
    @Test func aFrameWithoutASizeHasThatOfTheScreen() throws {
        var bytes = GIFFile(width: 2, height: 1, frames: [.init(rows: [[0, 1]])]).bytes
        let size = try #require(bytes.firstRange(of: [0x2C, 0, 0, 0, 0, 2, 0, 1, 0])).upperBound - 4
        for place in [size, size + 2] {
            var other = bytes
            other[place] = 0
            #expect(try decoded(other).pixels.bytes == decoded(bytes).pixels.bytes)
        }
        // The second frame of a canvas of 65,535 and more pixels across.
        let wide = [GIFFile.Frame(rows: [[0]], left: 65_535), .init(rows: [[0, 1]])]
        bytes = GIFFile(width: 2, height: 1, frames: wide).bytes
        let second = try #require(bytes.firstRange(of: [0x2C, 0, 0, 0, 0, 2, 0, 1, 0])).upperBound - 4
        bytes.replaceSubrange(second..<second + 4, with: [0, 0, 0, 0])
        let frames = try #require(try CodecImageDecoder().animation(from: Data(bytes), options: ImageDecodingOptions()))
        #expect(try frames.frame(at: 1).image.size == PixelSize(width: 65_536, height: 1))
    }

    @Test func screensOfNothingAndTooManyFramesAreErrors() throws {
        let frame = GIFFile.Frame(rows: [[0]])
        #expect(errorKind(GIFFile(width: 0, height: 1, frames: [.init(rows: [[]])]).bytes) == .corrupt)
        #expect(try decoded(GIFFile(width: 0, height: 0, frames: [frame]).bytes).pixels.bytes == Self.r)
        let many = GIFFile(width: 1, height: 1, frames: [frame, frame, frame]).bytes
        #expect(errorKind(many, ImageDecodingOptions(limits: .init(frames: 2))) == .limitExceeded)
        #expect(errorKind(many, ImageDecodingOptions(limits: .init(frames: 3))) == nil)
    }

    @Test(arguments: [false, true]) func mutatedFilesEndInAnErrorOrAPicture(isInterlaced: Bool) {
        let rows = (0..<9).map { y in (0..<11).map { x in (x * y) % 4 } }
        let frames = (0..<4).map {
            GIFFile.Frame(rows: rows, left: $0, disposal: $0, transparent: $0, isInterlaced: isInterlaced)
        }
        decodeMutations(of: GIFFile(width: 12, height: 10, frames: frames, again: 3).bytes, rounds: 160)
    }
}
#endif
