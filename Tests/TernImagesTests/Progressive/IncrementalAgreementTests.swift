#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A generator of numbers that are the same in every run.
private struct Numbers {
    var state: UInt64
    mutating func next(below limit: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return limit < 2 ? 0 : Int(state >> 33) % limit
    }
}

/// The way in which decoding ends.
private enum Ending: Equatable {
    case picture(PixelSize, RasterImage.Metadata, [UInt8])
    case error(ImageError.Kind)

    init(_ body: () throws(ImageError) -> RasterImage) {
        do throws(ImageError) {
            let image = try body()
            self = .picture(image.size, image.metadata, image.pixels.bytes)
        } catch {
            self = .error(error.kind)
        }
    }

    static func whole(_ bytes: [UInt8], _ options: ImageDecodingOptions) -> Ending {
        Ending { () throws(ImageError) in try CodecImageDecoder().image(from: Data(bytes), options: options) }
    }

    /// Decodes in pieces of the lengths. The last piece is the rest. No picture may follow an error before the end.
    static func pieces(_ bytes: [UInt8], _ options: ImageDecodingOptions, _ lengths: [Int]) -> Ending {
        let decoder = IncrementalDecoder(options: options)
        var at = 0
        var early: ImageError?
        for length in lengths + [bytes.count] where at < bytes.count {
            let end = min(bytes.count, at + max(1, length))
            do throws(ImageError) {
                var stands = try decoder.append(Data(bytes[at..<end]))
                while stands { stands = try decoder.advance() }
            } catch {
                early = error
            }
            at = end
        }
        let ending = Ending { () throws(ImageError) in try decoder.finish() }
        if let early, case .picture = ending { Issue.record("a picture after \(early)") }
        return ending
    }

    /// A description for failed comparisons.
    var text: String {
        switch self {
        case .picture(let size, let metadata, let pixels): "\(size) \(metadata) \(pixels.hashValue)"
        case .error(let kind): "\(kind)"
        }
    }
}

/// The incremental decoder ends in the same way as the decoder of whole files, for every file and every way to split
/// it.
@Suite struct IncrementalAgreementTests {
    /// Files with features that one decoder could see before the other: profiles, orientations and animations.
    enum File: String, CaseIterable, Sendable {
        case baselineJPEG, progressiveJPEG, taggedJPEG, png, interlacedPNG, taggedPNG, animatedPNG,
            animatedPNGWithStandIn
        case webp, losslessWebP, taggedWebP, orientedWebP, animatedWebP, gif, interlacedGIF, animatedGIF
        case jpegXL, boxedJPEGXL, animatedJPEGXL

        /// The cases that this machine has a codec for.
        static let here = allCases.filter { file in
            ![.jpegXL, .boxedJPEGXL, .animatedJPEGXL].contains(file) || LoadedLibrary.jpegXL.obstacle == nil
        }

        func bytes(_ width: Int, _ height: Int) throws -> [UInt8] {
            let photo = try #require(InterlacedFixtures.photo(width, height))
            let other = try gradient(width, height)
            let profile = ColorProfileFile.swapped
            switch self {
            case .baselineJPEG: return [UInt8](try photo.encoded(as: .jpeg()))
            case .progressiveJPEG: return [UInt8](try photo.encoded(as: .jpeg(progressive: true)))
            case .taggedJPEG: return Tagged.jpeg([UInt8](try photo.encoded(as: .jpeg())), profile, pieces: [2, 1, 3])
            case .png: return [UInt8](try other.encoded(as: .png()))
            case .interlacedPNG: return [UInt8](InterlacedFixtures.png(photo, interlaced: true))
            case .taggedPNG:
                let exif: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0]
                let file = InterlacedFixtures.png(photo, interlaced: false, chunks: [("eXIf", exif)])
                return Tagged.png([UInt8](file), profile)
            case .animatedPNG: return try AnimatedPNGFile(frames: [.init(image: photo), .init(image: other)]).bytes
            case .animatedPNGWithStandIn:
                return try AnimatedPNGFile(frames: [.init(image: other), .init(image: photo)], still: photo).bytes
            case .webp: return [UInt8](try photo.encoded(as: .webp()))
            case .losslessWebP: return [UInt8](try photo.encoded(as: .losslessWebP))
            case .taggedWebP:
                let file = [UInt8](try photo.encoded(as: .losslessWebP))
                return Tagged.webp(file, profile, size: photo.size, alpha: false)
            case .orientedWebP:
                return AnimatedWebPFile.oriented([UInt8](try photo.encoded(as: .webp())), 6, size: photo.size)
            case .animatedWebP: return try AnimatedWebPFile(frames: [photo, other]).bytes
            case .gif: return [UInt8](InterlacedFixtures.gif(photo, interlaced: false))
            case .interlacedGIF: return [UInt8](InterlacedFixtures.gif(photo, interlaced: true))
            case .animatedGIF: return [UInt8](InterlacedFixtures.gif(photo, interlaced: false, frames: 3))
            case .jpegXL: return [UInt8](try photo.encoded(as: .jpegXL()))
            case .boxedJPEGXL: return JPEGXLFiles.deep
            case .animatedJPEGXL: return JPEGXLFiles.animation
            }
        }
    }

    private func expectSame(_ bytes: [UInt8], _ options: ImageDecodingOptions, _ lengths: [Int], _ what: String) {
        let (whole, pieces) = (Ending.whole(bytes, options), Ending.pieces(bytes, options, lengths))
        if whole != pieces { Issue.record("\(what) in \(lengths): \(pieces.text), whole \(whole.text), \(options)") }
    }

    /// Decodes 120 mutations of each file, in pieces of varying lengths.
    @Test(arguments: File.here) func mutationsEndTheSame(file: File) throws {
        let original = try file.bytes(37, 29)
        var numbers = Numbers(state: 5)
        for round in 0..<120 {
            var bytes = original
            // Mutates the headers, the picture or the end.
            let reach = round % 3 == 0 ? min(bytes.count, 120) : bytes.count
            for _ in 0...numbers.next(below: 4) { bytes[numbers.next(below: reach)] = UInt8(numbers.next(below: 256)) }
            if round % 4 == 1 { bytes.removeLast(numbers.next(below: bytes.count)) }
            if round % 8 == 6 { bytes.removeSubrange(numbers.next(below: 20) + 20..<60 + numbers.next(below: 30)) }
            let target = round % 5 == 0 ? PixelSize(width: 11, height: 9) : nil
            let options = ImageDecodingOptions(
                targetSize: target, limits: .init(pixels: 20_000), allowsPartial: round.isMultiple(of: 2))
            let largest = [1, 7, 100, 2_000][round / 2 % 4]
            let lengths = (0..<bytes.count).map { _ in 1 + numbers.next(below: largest) }
            expectSame(bytes, options, lengths, "\(file), round \(round)")
        }
    }

    /// Cuts each file at many places, and decodes the bytes before the cut in two pieces.
    @Test(arguments: File.here) func cutsEndTheSame(file: File) throws {
        let original = try file.bytes(23, 17)
        var numbers = Numbers(state: 9)
        let step = max(1, original.count / 150)
        for count in stride(from: original.count, to: 0, by: -step) {
            for partial in [false, true] {
                let options = ImageDecodingOptions(allowsPartial: partial)
                let first = 1 + numbers.next(below: count)
                expectSame(
                    Array(original.prefix(count)), options, [first], "\(file), \(count) of \(original.count) bytes")
            }
        }
    }

    /// Decodes whole files whose first piece ends at every place of the headers. Colours and orientation do not depend
    /// on how the network delivers the bytes.
    @Test(arguments: File.here) func everyFirstPieceGivesTheSamePicture(file: File) throws {
        let bytes = try file.bytes(23, 17)
        let options = ImageDecodingOptions()
        let whole = Ending.whole(bytes, options)
        guard case .picture(_, let metadata, _) = whole else {
            Issue.record("\(file): \(whole.text)")
            return
        }
        let isTagged = file == .taggedJPEG || file == .taggedPNG || file == .taggedWebP
        #expect(metadata.colorProfile == (isTagged ? .converted : .none))
        #expect(metadata.orientation == (file == .orientedWebP || file == .taggedPNG ? 6 : 1))
        for first in 1..<min(bytes.count, 900) {
            let pieces = Ending.pieces(bytes, options, [first])
            if pieces != whole { Issue.record("\(file), first \(first) bytes: \(pieces.text), whole \(whole.text)") }
        }
    }

    /// The limit on bytes applies in the same way as for whole files, and also counts the bytes behind the picture.
    @Test(arguments: File.here) func bytesBehindThePictureCount(file: File) throws {
        let bytes = try file.bytes(23, 17)
        let longer = bytes + [UInt8](repeating: 0, count: 50)
        for limit in [bytes.count - 1, bytes.count, longer.count - 1, longer.count] {
            let options = ImageDecodingOptions(limits: .init(bytes: limit))
            expectSame(longer, options, [bytes.count], "\(file), at most \(limit) bytes")
        }
    }

    @Test func aWebPWhoseHeaderDeniesItsAlpha() throws {
        var bytes = [UInt8](try gradient(40, 30, alpha: true).encoded(as: .webp()))
        try #require(Array(bytes[12..<16]) == Array("VP8X".utf8))
        bytes[20] = 0
        expectSame(bytes, ImageDecodingOptions(), [Int](repeating: 1, count: bytes.count), "WebP")
    }

    /// No encoder writes such data (RFC 6386, section 7.3). The pixels that libwebp makes of the data depend on the
    /// number of bytes that are present.
    @Test func aWebPWhosePictureDataBeginWithAllBitsSet() throws {
        for alpha in [false, true] {
            var bytes = [UInt8](try gradient(40, 30, alpha: alpha).encoded(as: .webp()))
            let chunk = try #require(bytes.indices.dropLast(4).first { bytes[$0..<$0 + 4].elementsEqual("VP8 ".utf8) })
            let frame = bytes[chunk + 8..<chunk + 11].reversed().reduce(0) { $0 << 8 | Int($1) }
            let start = chunk + 18 + frame >> 5
            bytes[start] = 0xFF
            // Enough bytes for any interpretation of the data.
            bytes += [UInt8](repeating: 0x55, count: 400)
            for first in start..<start + 20 { expectSame(bytes, ImageDecodingOptions(), [first], "WebP") }
            expectSame(bytes, ImageDecodingOptions(), [Int](repeating: 1, count: bytes.count), "WebP")
        }
    }

    @Test func aPNGWhoseOrientationFailsItsChecksum() throws {
        var bytes = [UInt8](try gradient(40, 30).encoded(as: .png()))
        let exif: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0]
        bytes.insert(contentsOf: [0, 0, 0, UInt8(exif.count)] + Array("eXIf".utf8) + exif + [1, 2, 3, 4], at: 33)
        expectSame(bytes, ImageDecodingOptions(), [Int](repeating: 1, count: bytes.count), "PNG")
    }
}

/// A PNG is whole only if every row of every pass has arrived and its zlib stream ends without an error.
@Suite struct PNGStreamTests {
    /// Returns the file with another zlib stream, in chunks of a size and with correct checksums.
    private static func file(
        _ original: [UInt8], by size: Int = 5_000, changed: (inout [UInt8]) -> Void
    ) -> [UInt8] {
        var (at, head, stream): (Int, [UInt8], [UInt8]) = (8, Array(original.prefix(8)), [])
        while at + 12 <= original.count {
            let length = original[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
            switch String(decoding: original[at + 4..<at + 8], as: UTF8.self) {
            case "IDAT": stream += original[at + 8..<at + 8 + length]
            case "IEND": break
            default: head += original[at..<at + 12 + length]
            }
            at += 12 + length
        }
        changed(&stream)
        for start in stride(from: 0, to: max(1, stream.count), by: size) {
            head += chunk("IDAT", Array(stream[start..<min(stream.count, start + size)]))
        }
        return head + chunk("IEND", [])
    }

    private static func pictures() throws -> [[UInt8]] {
        let photo = try #require(InterlacedFixtures.photo(19, 13))
        return [false, true].map { [UInt8](InterlacedFixtures.png(photo, interlaced: $0)) }
            + [[UInt8](try photo.encoded(as: .png()))]
    }

    /// Both decoders, with and without partial pictures, report that the picture is not whole.
    private func expectDamaged(_ bytes: [UInt8], _ what: String) {
        for partial in [false, true] {
            for target in [nil, PixelSize(width: 7, height: 5)] {
                let options = ImageDecodingOptions(targetSize: target, allowsPartial: partial)
                let endings =
                    [Ending.whole(bytes, options)]
                    + [1, 9, 4_000].map { size in
                        Ending.pieces(bytes, options, [Int](repeating: size, count: bytes.count / size + 1))
                    }
                for ending in endings {
                    switch ending {
                    case .picture(_, let metadata, _):
                        if !metadata.isPartial || !partial { Issue.record("whole: \(what)") }
                    case .error(let kind): if kind != .corrupt || partial { Issue.record("\(kind): \(what)") }
                    }
                    if ending != endings[0] { Issue.record("not the same: \(what)") }
                }
            }
        }
    }

    @Test func aShortStreamIsNotWhole() throws {
        for picture in try Self.pictures() {
            var length = 0
            _ = Self.file(picture) { length = $0.count }
            for cut in [1, 2, 3, 4, 5, 6, 20, 100, length / 2, length - 2] {
                for size in [5_000, length - cut, 3] {
                    let bytes = Self.file(picture, by: size) { $0.removeLast(cut) }
                    expectDamaged(bytes, "\(cut) of \(length) bytes missing, in chunks of \(size)")
                }
            }
        }
    }

    @Test func aDamagedStreamIsNotWhole() throws {
        for picture in try Self.pictures() {
            var length = 0
            _ = Self.file(picture) { length = $0.count }
            // Damages the checksum, the header of the first block, and the data in the middle.
            for place in [length - 1, length - 4, 3, length / 2] {
                for size in [5_000, length - 2, 7] {
                    let bytes = Self.file(picture, by: size) { $0[place] ^= 0x40 }
                    expectDamaged(bytes, "byte \(place) of \(length), in chunks of \(size)")
                }
            }
        }
    }

    @Test func bytesBehindTheStreamDoNoHarm() throws {
        for picture in try Self.pictures() {
            let whole = Ending.whole(picture, ImageDecodingOptions())
            for size in [5_000, 7, 1] {
                let bytes = Self.file(picture, by: size) { $0 += [1, 2, 3] }
                #expect(Ending.whole(bytes, ImageDecodingOptions()) == whole)
                #expect(Ending.pieces(bytes, ImageDecodingOptions(), [50, 60]) == whole)
            }
        }
    }

    /// Such bytes are no error in whole files, so they are no error in incremental decoding either.
    @Test func bytesBehindTheStreamAreNoErrorWhileTheyCome() throws {
        for picture in try Self.pictures() {
            let whole = Ending.whole(picture, ImageDecodingOptions())
            for extra in [[], [0], [1, 2, 3], [UInt8](repeating: 7, count: 300)] as [[UInt8]] {
                var file = Self.file(picture) { _ in }
                file.insert(contentsOf: chunk("IDAT", extra), at: file.count - 12)
                for size in [1, 9, file.count] {
                    let decoder = IncrementalDecoder()
                    for start in stride(from: 0, to: file.count, by: size) {
                        var stands = try decoder.append(Data(file[start..<min(file.count, start + size)]))
                        while stands { stands = try decoder.advance() }
                    }
                    #expect(decoder.isComplete)
                    #expect(Ending { () throws(ImageError) in try decoder.finish() } == whole)
                    #expect(Ending.whole(file, ImageDecodingOptions()) == whole)
                }
            }
        }
    }

    /// Some encoders write rows that the header does not declare.
    @Test func moreRowsThanTheHeaderSaysDoNoHarm() throws {
        var picture = [UInt8](try gradient(19, 13).encoded(as: .png()))
        picture.replaceSubrange(8..<33, with: chunk("IHDR", big(19, 4) + big(11, 4) + Array(picture[24..<29])))
        let whole = Ending.whole(picture, ImageDecodingOptions())
        guard case .picture(let size, let metadata, _) = whole else {
            Issue.record("\(whole.text)")
            return
        }
        #expect(size == PixelSize(width: 19, height: 11) && !metadata.isPartial)
        #expect(Ending.pieces(picture, ImageDecodingOptions(), [50, 60]) == whole)
    }
}
#endif
