#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The table "Files that end early" of `Documentation/Images.md`, row by row.
@Suite struct EndOfFileTests {
    /// The outcome for a file without its end, of which every pixel and frame is there.
    enum Outcome: String {
        /// The picture, with `isComplete` false.
        case picture
        /// An error of the kind `.truncated`.
        case truncated
    }

    struct Row: Sendable, CustomTestStringConvertible {
        /// The first column of the table.
        let name: String
        let outcome: Outcome
        /// A whole file, and the number of its last bytes that make up its end.
        let file: @Sendable () throws -> (bytes: [UInt8], end: Int)

        init(_ name: String, _ outcome: Outcome, _ file: @escaping @Sendable () throws -> ([UInt8], Int)) {
            self.name = name
            self.outcome = outcome
            self.file = file
        }

        var testDescription: String { name }
    }

    private static func photo() throws -> RasterImage { try #require(InterlacedFixtures.photo(21, 15)) }

    private static func animatedPNG() throws -> [UInt8] {
        try AnimatedPNGFile(frames: [.init(image: photo()), .init(image: try gradient(21, 15))]).bytes
    }

    private static func webp(_ added: [UInt8], flags: UInt8) throws -> [UInt8] {
        let picture = [UInt8](try photo().encoded(as: .losslessWebP)).dropFirst(12)
        let extended = AnimatedWebPFile.chunk("VP8X", [flags, 0, 0, 0] + little(20, 3) + little(14, 3))
        return AnimatedWebPFile.chunk("RIFF", Array("WEBP".utf8) + extended + picture + added)
    }

    private static let entry: [UInt8] = [1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0]
    private static let exif: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1] + entry + [0, 0, 0, 0]

    static let rows: [Row] = [
        Row("JPEG, one scan", .picture) { ([UInt8](try photo().encoded(as: .jpeg())), 2) },
        Row("JPEG, several scans", .picture) { ([UInt8](try photo().encoded(as: .jpeg(progressive: true))), 2) },
        Row("JPEG, a scan for each component", .picture) { (JPEGFiles.separate, 2) },
        Row("PNG", .picture) { ([UInt8](try gradient(21, 15).encoded(as: .png())), 12) },
        Row("PNG, interlaced", .picture) { ([UInt8](InterlacedFixtures.png(try photo(), interlaced: true)), 12) },
        Row("PNG, animated", .picture) { (try animatedPNG(), 12) },
        Row("WebP", .picture) { (try webp(AnimatedWebPFile.chunk("XMP ", [1, 2, 3, 4]), flags: 4), 12) },
        Row("WebP, an orientation is stated", .truncated) {
            (try webp(AnimatedWebPFile.chunk("EXIF", exif), flags: 8), 12)
        },
        Row("WebP, animated", .truncated) {
            let file = try AnimatedWebPFile(frames: [photo(), try gradient(21, 15)]).bytes
            let body = file.dropFirst(8) + AnimatedWebPFile.chunk("XMP ", [1, 2, 3, 4])
            return (AnimatedWebPFile.chunk("RIFF", Array(body)), 12)
        },
        Row("GIF", .picture) {
            (GIFFile(width: 3, height: 2, frames: [.init(rows: [[0, 1, 2], [2, 1, 0]], delay: 0)]).bytes, 1)
        },
        Row("GIF, animated: frames, a delay or a loop", .truncated) {
            let rows = [[Int]](repeating: [Int](repeating: 1, count: 20), count: 20)
            let frames = [GIFFile.Frame](repeating: .init(rows: rows), count: 2)
            return (GIFFile(width: 20, height: 20, frames: frames).bytes, 1)
        },
        Row("BMP", .picture) {
            let rows = (0..<4).map { [UInt8](repeating: UInt8($0 + 1), count: 9) }
            return (BitmapFile(width: 3, height: 4, bits: 24, pixels: BitmapFile.rows(rows)).bytes, 3)
        },
        Row("BMP, run lengths", .picture) {
            let colours = (0..<4).map { [UInt8](repeating: UInt8($0), count: 3) }
            let stream: [UInt8] = [8, 1, 0, 0, 8, 2, 0, 0, 8, 3, 0, 0, 4, 0, 4, 1, 0, 1]
            let file = BitmapFile(width: 8, height: 4, bits: 8, compression: 1, palette: colours, pixels: stream)
            return (file.bytes, 2)
        },
        Row("QOI", .picture) {
            let picture = try photo()
            return (QOIFile(size: picture.size, chunks: QOIFile.chunks(of: picture)).bytes, 8)
        },
        Row("TIFF", .picture) {
            (TIFFFile(width: 1, height: 1, parts: [[1, 2, 3]]).bytes, 4)
        },
        Row("ICO", .picture) {
            // With alpha in its pixels, the mask does not count.
            let bitmap = BitmapFile(width: 2, height: 2, bits: 32, pixels: [UInt8](repeating: 200, count: 16))
            let mask = [[Bool]](repeating: [false, false], count: 2)
            return (IconFile(entries: [IconFile.entry(bitmap, mask: mask)]).bytes, 8)
        },
        Row("HEIC", .picture) {
            (HEIFFile.transparent.bytes + HEIFFile.box("free", [1, 2, 3, 4, 5, 6, 7, 8]), 8)
        },
        Row("AVIF", .picture) { (AVIFFiles.alpha + big(16, 4) + Array("free".utf8) + [1, 2, 3, 4, 5, 6, 7, 8], 8) },
        Row("AVIF, a sequence", .truncated) {
            (AVIFFiles.animation + big(16, 4) + Array("free".utf8) + [1, 2, 3, 4, 5, 6, 7, 8], 8)
        },
        Row("JPEG XL", .truncated) { (JPEGXLFiles.alpha, 1) },
        Row("JPEG XL, in boxes", .picture) { (JPEGXLFiles.boxed(JPEGXLFiles.alpha), 8) },
        Row("JPEG XL, an animation in boxes", .picture) { (JPEGXLFiles.boxed(JPEGXLFiles.animation, parts: 3), 8) },
    ]

    /// Returns the picture of each way of decoding, or the kind of the error that it throws.
    private static func endings(
        _ bytes: [UInt8], partial: Bool = false
    ) -> [Result<RasterImage, ImageError>] {
        let options = ImageDecodingOptions(allowsPartial: partial)
        let whole = Result { () throws(ImageError) in try decoded(bytes, options) }
        let decoder = IncrementalDecoder(options: options)
        guard let format = ImageFormat(sniffing: Data(bytes)), IncrementalDecoder.decodes(format) else {
            return [whole]
        }
        let pieces = Result { () throws(ImageError) in
            for byte in bytes {
                var stands = try decoder.append(Data([byte]))
                while stands { stands = try decoder.advance() }
            }
            return try decoder.finish()
        }
        return [whole, pieces]
    }

    private static func skips(_ row: Row) -> Bool {
        row.name.hasPrefix("AVIF") && LoadedLibrary.avif.obstacle != nil
            || row.name.hasPrefix("TIFF") && LoadedLibrary.tiff.obstacle != nil
            || row.name.hasPrefix("HEIC") && LoadedLibrary.heif.obstacle != nil
            || row.name.hasPrefix("JPEG XL") && LoadedLibrary.jpegXL.obstacle != nil
    }

    @Test(arguments: rows) func aWholeFileIsComplete(row: Row) throws {
        if Self.skips(row) { return }
        for ending in Self.endings(try row.file().bytes) {
            let metadata = try ending.get().metadata
            #expect(metadata.isComplete && !metadata.isPartial)
        }
    }

    /// Removes the end, or a part of it.
    @Test(arguments: rows) func aFileWithoutItsEnd(row: Row) throws {
        if Self.skips(row) { return }
        let (bytes, end) = try row.file()
        let whole = try decoded(bytes)
        for missing in 1...end {
            let cut = Array(bytes.dropLast(missing))
            for ending in Self.endings(cut) {
                switch (row.outcome, ending) {
                case (.picture, .success(let picture)):
                    #expect(picture.pixels.bytes == whole.pixels.bytes)
                    #expect(!picture.metadata.isComplete && !picture.metadata.isPartial, "\(missing) missing")
                case (.truncated, .failure(let error)): #expect(error.kind == .truncated)
                default: Issue.record("\(missing) bytes missing: \(ending)")
                }
            }
            // If a part is allowed, it is one whenever the error says that something is missing.
            for ending in Self.endings(cut, partial: true) {
                let metadata = try ending.get().metadata
                #expect(!metadata.isComplete && metadata.isPartial == (row.outcome == .truncated))
            }
        }
    }

    /// Removes more than the end.
    @Test(arguments: rows) func aFileWithoutItsLastPixels(row: Row) throws {
        if Self.skips(row) { return }
        let (bytes, end) = try row.file()
        // The last bytes before the end do not always hold pixels: checksums, padding, the head of the last box.
        let rests = ["PNG": 5, "WebP": 12, "AVIF": 10, "HEIC": 10, "JPEG XL": 10, "ICO": 1]
        let rest = rests.first { row.name.hasPrefix($0.key) }?.value ?? 2
        for missing in [end + rest, end + (bytes.count - end) / 8] where missing < bytes.count {
            let cut = Array(bytes.dropLast(missing))
            for ending in Self.endings(cut) {
                guard case .failure(let error) = ending else {
                    Issue.record("\(missing) bytes missing: \(ending)")
                    continue
                }
                #expect(error.kind == .truncated)
            }
            for ending in Self.endings(cut, partial: true) {
                guard case .success(let picture) = ending else { continue }
                #expect(picture.metadata.isPartial && !picture.metadata.isComplete)
            }
        }
    }

    @Test(arguments: rows) func bytesBehindTheEndAreIgnored(row: Row) throws {
        if Self.skips(row) { return }
        let (bytes, _) = try row.file()
        let whole = try decoded(bytes)
        let long: [[UInt8]] = [[UInt8](repeating: 7, count: 300), Array("SEFH".utf8) + (0...99)]
        // Fewer bytes than the head of a box could be a box that is cut.
        let hasBoxes = ["AVIF", "HEIC", "JPEG XL,"].contains { row.name.hasPrefix($0) }
        for added in long + (hasBoxes ? [] : [[0], [1, 2, 3]]) {
            for ending in Self.endings(bytes + added) {
                let picture = try ending.get()
                #expect(picture.pixels.bytes == whole.pixels.bytes)
                #expect(picture.metadata == whole.metadata)
            }
        }
    }

    /// A camera's own data can follow the picture's, without the end marker between them.
    @Test func aJPEGWhoseEndIsMissingBeforeOtherBytes() throws {
        for progressive in [false, true] {
            let file = [UInt8](try Self.photo().encoded(as: .jpeg(progressive: progressive)))
            for ending in Self.endings(file.dropLast(2) + Array("SEFH".utf8) + (0...254)) {
                let picture = try ending.get()
                #expect(picture.pixels.bytes == (try decoded(file)).pixels.bytes)
                #expect(!picture.metadata.isComplete && !picture.metadata.isPartial)
            }
        }
    }

    @Test func aProgressiveJPEGNeedsEachScan() throws {
        let file = [UInt8](try Self.photo().encoded(as: .jpeg(progressive: true)))
        let scans = file.indices.dropLast().filter { file[$0] == 0xFF && file[$0 + 1] == 0xDA }
        for scan in scans.dropFirst() {
            for ending in Self.endings(Array(file[..<scan])) {
                guard case .failure(let error) = ending else {
                    Issue.record("\(ending)")
                    continue
                }
                #expect(error.kind == .truncated)
            }
        }
    }

    /// Every frame of an animated PNG is whole without the end, and the number of frames tells of a missing one.
    @Test func anAnimatedPNGWithoutItsEndHasItsFrames() throws {
        let bytes = try Self.animatedPNG()
        let data = Data(bytes.dropLast(12))
        let frames = try #require(try CodecImageDecoder().animation(from: data, options: ImageDecodingOptions()))
        #expect(frames.count == 2)
        for index in 0..<2 {
            let metadata = try frames.frame(at: index).image.metadata
            #expect(!metadata.isPartial && !metadata.isComplete)
        }
    }

    @Test func theTableListsEachRow() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let article = try String(contentsOf: root.appending(path: "Documentation/Images.md"), encoding: .utf8)
        let section = article.split(separator: "\n## Files that end early\n").last ?? ""
        let lines = section.split(separator: "\n").filter { $0.hasPrefix("|") }.map {
            $0.split(separator: "|").map { $0.split(separator: " ").joined(separator: " ") }
        }
        for row in Self.rows {
            let cells = try #require(lines.first { $0.first == row.name }, "\(row.name)")
            #expect(cells[2] == (row.outcome == .picture ? "the picture, `isComplete` false" : "`.truncated`"))
            #expect(cells[3] == "`.truncated`")
            #expect(cells[4] == "ignored")
        }
    }
}
#endif
