#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decodes files that end too early, in every format. The decoders never return a shorter file without an error, and
/// never contradict each other.
@Suite struct CutFileTests {
    enum File: String, CaseIterable, Sendable {
        case jpeg, progressiveJPEG, png, interlacedPNG, taggedPNG, animatedPNG, animatedPNGWithStandIn
        case webp, losslessWebP, alphaWebP, taggedWebP, orientedWebP, animatedWebP, gif, interlacedGIF, animatedGIF
        case bmp, indexedBMP, runLengthBMP, qoi, ico, avif, animatedAVIF, tiff, heic, jpegXL, animatedJPEGXL

        /// Whether the last bytes do not belong to a picture, so that a file without them can count as whole.
        var hasTail: Bool {
            switch self {
            // The end marker or end chunk; chunks behind the picture; the trailer of a still GIF; the padding of a last
            // row; a mask that is ignored because of alpha; the marker of the end; the link to the next directory.
            case .jpeg, .progressiveJPEG, .webp, .losslessWebP, .alphaWebP, .taggedWebP, .gif, .interlacedGIF, .ico,
                .qoi, .bmp, .indexedBMP, .png, .interlacedPNG, .taggedPNG, .animatedPNG, .animatedPNGWithStandIn,
                .tiff:
                true
            default: false
            }
        }

        func bytes() throws -> [UInt8] {
            let photo = try #require(InterlacedFixtures.photo(21, 15))
            let other = try gradient(21, 15)
            let colours: [[UInt8]] = [[1, 2, 3], [4, 5, 6]]
            func lossless() throws -> [UInt8] { [UInt8](try photo.encoded(as: .losslessWebP)) }
            switch self {
            case .jpeg: return [UInt8](try photo.encoded(as: .jpeg()))
            case .progressiveJPEG: return [UInt8](try photo.encoded(as: .jpeg(progressive: true)))
            case .png: return [UInt8](try other.encoded(as: .png()))
            case .interlacedPNG: return [UInt8](InterlacedFixtures.png(photo, interlaced: true))
            case .taggedPNG: return Tagged.png([UInt8](try other.encoded(as: .png())), ColorProfileFile.swapped)
            case .animatedPNG: return try AnimatedPNGFile(frames: [.init(image: photo), .init(image: other)]).bytes
            case .animatedPNGWithStandIn:
                return try AnimatedPNGFile(frames: [.init(image: other), .init(image: photo)], still: photo).bytes
            case .webp: return [UInt8](try photo.encoded(as: .webp()))
            case .losslessWebP: return try lossless()
            case .alphaWebP: return [UInt8](try gradient(21, 15, alpha: true).encoded(as: .webp()))
            case .taggedWebP:
                return Tagged.webp(try lossless(), ColorProfileFile.swapped, size: photo.size, alpha: false)
            case .orientedWebP: return AnimatedWebPFile.oriented(try lossless(), 6, size: photo.size)
            case .animatedWebP: return try AnimatedWebPFile(frames: [photo, other]).bytes
            case .gif:
                return GIFFile(width: 3, height: 2, frames: [.init(rows: [[0, 1, 2], [2, 1, 0]], delay: 0)]).bytes
            case .interlacedGIF:
                let rows = (0..<9).map { [$0 % 4, 1] }
                let frame = GIFFile.Frame(rows: rows, isInterlaced: true, isControlled: false)
                return GIFFile(width: 2, height: 9, frames: [frame]).bytes
            case .animatedGIF: return [UInt8](InterlacedFixtures.gif(photo, interlaced: false, frames: 3))
            case .bmp: return BitmapFile(width: 2, height: 1, bits: 24, pixels: [1, 2, 3, 4, 5, 6, 0, 0]).bytes
            case .indexedBMP:
                let rows = BitmapFile.rows([[0x40], [0x00]])
                return BitmapFile(width: 2, height: 2, bits: 1, palette: colours, pixels: rows).bytes
            case .runLengthBMP:
                let stream: [UInt8] = [3, 1, 0, 2, 1, 0, 0, 3, 1, 0, 1, 0, 0, 0, 2, 1, 0, 1]
                return BitmapFile(width: 8, height: 4, bits: 8, compression: 1, palette: colours, pixels: stream).bytes
            case .qoi: return QOIFile(size: photo.size, chunks: QOIFile.chunks(of: photo)).bytes
            case .ico:
                let png = [UInt8](try other.encoded(as: .png()))
                let bitmap = BitmapFile(width: 2, height: 2, bits: 32, pixels: [UInt8](repeating: 200, count: 16))
                let mask = [[Bool]](repeating: [false, false], count: 2)
                return IconFile(entries: [png, IconFile.entry(bitmap, mask: mask)]).bytes
            case .avif: return AVIFFiles.alpha
            case .animatedAVIF: return AVIFFiles.animation
            case .tiff: return TIFFFile.strips(of: other).bytes
            case .heic: return HEIFFile.transparent.bytes
            case .jpegXL: return JPEGXLFiles.alpha
            case .animatedJPEGXL: return JPEGXLFiles.animation
            }
        }
    }

    @Test(arguments: File.allCases) func everyCutIsTruncated(file: File) throws {
        let bytes = try file.bytes()
        let decoder = CodecImageDecoder()
        if ImageFormat(sniffing: Data(bytes)) == .avif, LoadedLibrary.avif.obstacle != nil { return }
        if file == .tiff, LoadedLibrary.tiff.obstacle != nil { return }
        if file == .heic, LoadedLibrary.heif.obstacle != nil { return }
        if ImageFormat(sniffing: Data(bytes)) == .jpegXL, LoadedLibrary.jpegXL.obstacle != nil { return }
        let whole = try decoder.image(from: Data(bytes), options: ImageDecodingOptions())
        let step = max(1, bytes.count / 700)
        for count in stride(from: bytes.count - 1, to: 0, by: -step) {
            let cut = Data(bytes.prefix(count))
            do throws(ImageError) {
                let picture = try decoder.image(from: cut, options: ImageDecodingOptions())
                // An animation has more than its still picture.
                let frames = try decoder.animation(from: cut, options: ImageDecodingOptions())
                var expected = whole.metadata
                expected.isComplete = false
                let isSame = picture.pixels.bytes == whole.pixels.bytes && picture.metadata == expected
                let isWhole = try frames.map { (frames) throws(ImageError) in
                    // A PNG states the number of its frames.
                    guard picture.format == .png, frames.count == 2 else { return false }
                    return try !frames.frame(at: 1).image.metadata.isPartial
                }
                if !file.hasTail || !isSame || isWhole == false {
                    Issue.record("\(count) of \(bytes.count) bytes are whole")
                }
            } catch {
                let isKnown = ImageFormat(sniffing: cut) != nil
                if error.kind != (isKnown ? .truncated : .unknownFormat) {
                    Issue.record("\(count) of \(bytes.count) bytes: \(error)")
                }
            }
            let options = ImageDecodingOptions(allowsPartial: true)
            if let part = try? decoder.image(from: cut, options: options), !part.metadata.isPartial {
                if !file.hasTail { Issue.record("\(count) of \(bytes.count) bytes are no part") }
            }
        }
    }

    /// Returns the positions between two frames, and the number of frames before each position.
    private static func between(_ file: File) throws -> (bytes: [UInt8], cuts: [(count: Int, frames: Int)]) {
        let bytes = try file.bytes()
        let marks: [String]
        switch file {
        case .animatedGIF:
            let controls = bytes.indices.dropLast(3).filter { Array(bytes[$0..<$0 + 3]) == [0x21, 0xF9, 4] }
            return (bytes, controls.enumerated().dropFirst().map { ($1, $0) })
        case .animatedWebP: marks = ["ANMF"]
        default: marks = ["fcTL"]
        }
        let offset = file == .animatedWebP ? 0 : 4
        let starts = bytes.indices.dropLast(4).filter {
            marks.contains(String(decoding: bytes[$0..<$0 + 4], as: UTF8.self))
        }
        return (bytes, starts.enumerated().dropFirst().map { ($1 - offset, $0) })
    }

    @Test(arguments: [File.animatedGIF, .animatedWebP, .animatedPNG, .animatedPNGWithStandIn])
    func aCutBetweenTwoFramesIsTruncated(file: File) throws {
        let (bytes, cuts) = try Self.between(file)
        let decoder = CodecImageDecoder()
        try #require(!cuts.isEmpty)
        for (count, frames) in cuts {
            let cut = Data(bytes.prefix(count))
            let strict = #expect(throws: ImageError.self) {
                _ = try decoder.animation(from: cut, options: ImageDecodingOptions())
            }
            #expect(strict?.kind == .truncated)
            let still = #expect(throws: ImageError.self) {
                try decoder.image(from: cut, options: ImageDecodingOptions())
            }
            #expect(still?.kind == .truncated)
            let options = ImageDecodingOptions(allowsPartial: true)
            let first = try decoder.image(from: cut, options: options)
            #expect(first.metadata.isPartial)
            let whole = try decoder.image(from: Data(bytes), options: ImageDecodingOptions())
            #expect(first.pixels.bytes == whole.pixels.bytes)
            let part = try decoder.animation(from: cut, options: options)
            guard let part else {
                // A single frame is a still picture.
                #expect(frames == 1)
                continue
            }
            #expect(part.count == frames)
            for index in 0..<frames { #expect(try part.frame(at: index).image.metadata.isPartial) }
        }
    }

    @Test func aStillGIFWithoutItsTrailerIsWhole() throws {
        let frame = GIFFile.Frame(rows: [[0, 1, 2]], delay: 0)
        let still = GIFFile(width: 3, height: 1, frames: [frame]).bytes
        #expect(errorKind([UInt8](still.dropLast())) == nil)
        // The end of the pixel data belongs to the picture.
        #expect(errorKind([UInt8](still.dropLast(2))) == .truncated)
        // A loop or a delay declares that more follows.
        let looped = GIFFile(width: 3, height: 1, frames: [frame], again: 0).bytes
        #expect(errorKind([UInt8](looped.dropLast())) == .truncated)
        let delayed = GIFFile(width: 3, height: 1, frames: [.init(rows: [[0, 1, 2]])]).bytes
        #expect(errorKind([UInt8](delayed.dropLast())) == .truncated)
        // A byte that does not begin a block ends the file as the trailer does.
        #expect(errorKind([UInt8](looped.dropLast()) + [0, 0]) == nil)
    }

    @Test func faultyAnimationChunksLeaveTheStillPicture() throws {
        let (photo, other) = (try #require(InterlacedFixtures.photo(21, 15)), try gradient(21, 15))
        func expectStill(standIn: Bool, _ change: (inout AnimatedPNGFile) -> Void) throws {
            var file = AnimatedPNGFile(
                frames: [.init(image: photo), .init(image: other)], still: standIn ? other : nil)
            change(&file)
            let bytes = try file.bytes
            let still = standIn ? other : photo
            #expect(try decoded(bytes).pixels.bytes == still.pixels.bytes)
            #expect(try CodecImageDecoder().animation(from: Data(bytes), options: ImageDecodingOptions()) == nil)
            let decoder = IncrementalDecoder()
            try decoder.append(Data(bytes))
            #expect(try decoder.finish().pixels.bytes == still.pixels.bytes)
        }
        for standIn in [false, true] {
            try expectStill(standIn: standIn) { $0.leap = 1 }
            try expectStill(standIn: standIn) { $0.promised = 3 }
            try expectStill(standIn: standIn) { $0.promised = 0 }
            try expectStill(standIn: standIn) { $0.frames[1].left = 3 }
            try expectStill(standIn: standIn) { $0.frames[1].dispose = 3 }
            try expectStill(standIn: standIn) { $0.frames[1].blend = 2 }
        }
    }

    /// Returns the ranges of the chunks whose names begin with a text.
    private static func chunks(_ name: String, of bytes: [UInt8]) -> [Range<Int>] {
        var (at, found): (Int, [Range<Int>]) = (8, [])
        while at + 12 <= bytes.count {
            let length = bytes[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
            if bytes[at + 4..<at + 8].elementsEqual(name.utf8) { found.append(at..<at + length + 12) }
            at += length + 12
        }
        return found
    }

    private func expectStill(_ bytes: [UInt8], _ still: RasterImage, _ comment: String) {
        for partial in [false, true] {
            let options = ImageDecodingOptions(allowsPartial: partial)
            do {
                let picture = try CodecImageDecoder().image(from: Data(bytes), options: options)
                #expect(picture.pixels.bytes == still.pixels.bytes, "\(comment)")
                #expect(!picture.metadata.isPartial, "\(comment)")
                let frames = try CodecImageDecoder().animation(from: Data(bytes), options: options)
                #expect(frames == nil, "\(comment)")
                for size in [1, 40, bytes.count] {
                    let decoder = IncrementalDecoder(options: options)
                    for start in stride(from: 0, to: bytes.count, by: size) {
                        try decoder.append(Data(bytes[start..<min(bytes.count, start + size)]))
                    }
                    #expect(try decoder.finish().pixels.bytes == still.pixels.bytes, "\(comment)")
                }
            } catch {
                Issue.record("\(comment), partial \(partial): \(error)")
            }
        }
    }

    /// Decodes whole files with a chunk of the animation that is too short, longer than the file, empty or damaged.
    @Test(arguments: [false, true]) func damagedAnimationChunksLeaveTheStillPicture(standIn: Bool) throws {
        let (photo, other) = (try #require(InterlacedFixtures.photo(21, 15)), try gradient(21, 15))
        let file = AnimatedPNGFile(frames: [.init(image: photo), .init(image: other)], still: standIn ? other : nil)
        let (bytes, still) = (try file.bytes, standIn ? other : photo)
        for name in ["fcTL", "fdAT"] {
            for at in Self.chunks(name, of: bytes).suffix(name == "fcTL" ? 1 : 2) {
                let data = Array(bytes[at.lowerBound + 8..<at.upperBound - 4])
                for count in [0, 1, 3] + (name == "fcTL" ? [4, 25] : []) {
                    var short = bytes
                    short.replaceSubrange(at, with: chunk(name, Array(data.prefix(count))))
                    expectStill(short, still, "\(name) of \(count) bytes")
                }
                for length in [data.count - 1, data.count + 1, data.count + 12, 1 << 16, 9 << 20, 0xFFFF_FFFF] {
                    var wrong = bytes
                    wrong.replaceSubrange(at.lowerBound..<at.lowerBound + 4, with: big(length, 4))
                    expectStill(wrong, still, "\(name) that says \(length) bytes")
                }
                for place in [at.lowerBound + 8, at.upperBound - 5, at.upperBound - 1] {
                    var damaged = bytes
                    damaged[place] ^= 1
                    expectStill(damaged, still, "\(name) with another byte \(place - at.lowerBound)")
                }
            }
        }
        let data = Self.chunks("fdAT", of: bytes)
        var empty = bytes
        for at in data.suffix(2).reversed() {
            empty.replaceSubrange(at, with: chunk("fdAT", Array(bytes[at.lowerBound + 8..<at.lowerBound + 12])))
        }
        expectStill(empty, still, "a frame without data")
    }

    /// Only decoding the data finds this damage.
    @Test func aFirstFrameOfDamagedDataLeavesTheStillPicture() throws {
        let (photo, other) = (try #require(InterlacedFixtures.photo(21, 15)), try gradient(21, 15))
        var bytes = try AnimatedPNGFile(frames: [.init(image: photo), .init(image: photo)], still: other).bytes
        let at = try #require(Self.chunks("fdAT", of: bytes).first)
        var data = Array(bytes[at.lowerBound + 8..<at.upperBound - 4])
        data[30] ^= 0x55
        bytes.replaceSubrange(at, with: chunk("fdAT", data))
        for partial in [false, true] {
            let options = ImageDecodingOptions(allowsPartial: partial)
            let picture = try decoded(bytes, options)
            #expect(picture.pixels.bytes == other.pixels.bytes && !picture.metadata.isPartial)
            let decoder = IncrementalDecoder(options: options)
            try decoder.append(Data(bytes))
            #expect(try decoder.finish().pixels.bytes == other.pixels.bytes)
        }
    }

    /// The chunk of the frame is longer than libpng's limit for unknown chunks.
    @Test func aLongFrameLeavesTheStillPictureAndTheAnimation() throws {
        let (photo, other) = (try #require(InterlacedFixtures.photo(21, 15)), try gradient(21, 15))
        var bytes = try AnimatedPNGFile(frames: [.init(image: photo), .init(image: other)]).bytes
        let at = try #require(Self.chunks("fdAT", of: bytes).last)
        let data = bytes[at.lowerBound + 8..<at.upperBound - 4] + [UInt8](repeating: 0, count: 9 << 20)
        bytes.replaceSubrange(at, with: chunk("fdAT", Array(data)))
        #expect(try decoded(bytes).pixels.bytes == photo.pixels.bytes)
        let frames = try CodecImageDecoder().animation(from: Data(bytes), options: ImageDecodingOptions())
        #expect(try frames?.frame(at: 1).image.pixels.bytes == other.pixels.bytes)
        let decoder = IncrementalDecoder()
        try decoder.append(Data(bytes))
        #expect(try decoder.finish().pixels.bytes == photo.pixels.bytes && decoder.isAnimation)
    }

    /// A file that ends too early is truncated, even if its still picture is complete, because more frames are missing.
    @Test(arguments: [false, true]) func aCutBehindTheStillPictureIsTruncated(standIn: Bool) throws {
        let (photo, other) = (try #require(InterlacedFixtures.photo(21, 15)), try gradient(21, 15))
        let file = AnimatedPNGFile(frames: [.init(image: photo), .init(image: other)], still: standIn ? other : nil)
        let bytes = try file.bytes
        for name in ["IDAT", "fcTL", "fdAT"] {
            for end in Self.chunks(name, of: bytes).map(\.upperBound) {
                let isLast = end == bytes.count - 12
                #expect(errorKind(Array(bytes.prefix(end - 6))) == .truncated)
                // Only the end chunk follows the last frame, whose data and their checksum must be there.
                for count in [end, end + 2] {
                    #expect(errorKind(Array(bytes.prefix(count))) == (isLast ? nil : .truncated))
                }
            }
        }
    }

    @Test func errorsSayWhatIsWrong() throws {
        func message(_ bytes: [UInt8]) -> String {
            do throws(ImageError) {
                _ = try decoded(bytes)
                return "no error"
            } catch {
                return error.message
            }
        }
        var webp = [UInt8](try gradient(40, 30).encoded(as: .webp()))
        webp[23] ^= 0xFF
        #expect(message(webp) == "the picture's data are damaged")
        var gif = GIFFile(width: 3, height: 1, frames: [.init(rows: [[0, 1, 2]]), .init(rows: [[0, 1, 2]])]).bytes
        #expect(message([UInt8](gif.dropLast(6))) == "the bytes end before the file does")
        let sizes = gif.indices.dropLast(3).filter { Array(gif[$0..<$0 + 2]) == [3, 3] }
        gif[try #require(sizes.first)] = 12
        #expect(message(gif).hasPrefix("frame 0 cannot be read: "))
        var bmp = BitmapFile(width: 2, height: 2, bits: 1, palette: [[1, 2, 3], [4, 5, 6]], pixels: [0, 0, 0, 0]).bytes
        bmp[10] = 30
        #expect(message(bmp) == "the pixels begin at byte 30, within the header")
        #expect(errorKind(bmp) == .corrupt)
    }
}
#endif
