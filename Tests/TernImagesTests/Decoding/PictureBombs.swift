#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Files of less than 64 KiB that declare large pictures.
enum PictureBombs {
    struct Bomb {
        let name: String
        let bytes: [UInt8]
    }

    static var all: [Bomb] {
        get throws {
            let boxes = avifs + tiffs + heics + jpegXLs
            let bombs = pngs + gifs + animations + bitmaps + (try jpegs) + (try webPs) + (try icons) + boxes
            return bombs.map { Bomb(name: $0.0, bytes: $0.1) }
        }
    }

    // MARK: PNG

    /// The sides, depth and colour type are those of the header (W3C PNG, §11.2.1). Small files have all of their rows.
    private static var pngs: [(String, [UInt8])] {
        [
            ("png 100,000,000 × 1", png(100_000_000, 1, 1, 0)),
            ("png 60,000,000 × 1", png(60_000_000, 1, 1, 0)),
            ("png 3,000,000 × 20", png(3_000_000, 20, 1, 0)),
            ("png 1 × 100,000,000", png(1, 100_000_000, 1, 0)),
            ("png 10,000 × 10,000", png(10_000, 10_000, 1, 0)),
            ("png 8,000 × 8,000 with alpha", png(8_000, 8_000, 8, 4)),
            ("png 10,000,000 × 8, 16 bits", png(10_000_000, 8, 16, 6)),
            ("png 2,800 × 2,800, 16 bits", png(2_800, 2_800, 16, 6)),
            ("png 7,900 × 7,900 in passes", png(7_900, 7_900, 1, 0, interlaced: true)),
            ("png 10,000 × 10,000 in passes", png(10_000, 10_000, 1, 0, interlaced: true)),
        ]
    }

    /// A file of 78 bytes. libpng allocates 800 MB for one row as soon as it has read the header.
    static let widePNG: [UInt8] = {
        let header = big(99_999_999, 4) + big(1, 4) + [16, 6, 0, 0, 0]
        return signature + chunk("IHDR", header) + chunk("IDAT", [UInt8](repeating: 0, count: 21)) + chunk("IEND", [])
    }()

    private static func png(
        _ width: Int, _ height: Int, _ depth: Int, _ color: Int, interlaced: Bool = false
    ) -> [UInt8] {
        let channels = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4][color] ?? 1
        func size(_ width: Int, _ height: Int) -> Int {
            width == 0 || height == 0 ? 0 : height * (1 + (width * depth * channels + 7) / 8)
        }
        let lefts = [0, 4, 0, 2, 0, 1, 0]
        let tops = [0, 0, 4, 0, 2, 0, 1]
        let across = [8, 8, 4, 4, 2, 2, 1]
        let down = [8, 8, 8, 4, 4, 2, 2]
        let count =
            interlaced
            ? (0..<7).reduce(0) {
                $0
                    + size(
                        (width - lefts[$1] + across[$1] - 1) / across[$1], (height - tops[$1] + down[$1] - 1) / down[$1]
                    )
            } : size(width, height)
        let header = big(width, 4) + big(height, 4) + [UInt8(depth), UInt8(color), 0, 0, interlaced ? 1 : 0]
        return signature + chunk("IHDR", header) + chunk("IDAT", zeros(count)) + chunk("IEND", [])
    }

    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// Returns a zlib stream of zero bytes, which ends before it would exceed 60 KB. A match of 258 bytes takes two
    /// bits that are both zero (RFC 1951, §3.2.7: code lengths of 2 for a zero and the end, and of 1 for the match).
    private static func zeros(_ count: Int) -> [UInt8] {
        var bits: [Bool] = []
        // Numbers begin with their lowest bit, and codes with their highest.
        func number(_ value: Int, _ width: Int) { bits += (0..<width).map { value >> $0 & 1 == 1 } }
        func code(_ text: String) { bits += text.map { $0 == "1" } }
        number(1, 1)
        number(2, 2)
        number(29, 5)
        number(0, 5)
        number(14, 4)
        // The lengths of the code length codes, in the order 16, 17, 18, 0, 8, 7, …, 2, 14, 1. The codes for 18, 0, 2
        // and 1 have two bits.
        for length in [0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2] { number(length, 3) }
        let (one, two, run) = ("01", "10", "11")
        code(two)
        code(run)
        number(138 - 11, 7)
        code(run)
        number(117 - 11, 7)
        code(two)
        code(run)
        number(28 - 11, 7)
        code(one)
        code(one)
        code("10")
        let matches = min((count - 1) / 258, 60_000 * 8 / 2)
        let rest = count - 1 - matches * 258
        let start = bits.count + matches * 2
        var stream: [UInt8] = [0x78, 0xDA] + [UInt8](repeating: 0, count: start / 8 + 80)
        func write(_ bits: [Bool], at start: Int) {
            for (at, bit) in bits.enumerated() where bit { stream[2 + (start + at) / 8] |= 1 << ((start + at) % 8) }
        }
        write(bits, at: 0)
        bits = []
        for _ in 0..<min(rest, 258) { code("10") }
        code("11")
        write(bits, at: start)
        stream.removeLast(stream.count - 2 - (start + bits.count + 7) / 8)
        // The Adler-32 checksum of zeros: the first sum stays 1, and the second one counts the bytes.
        return stream + big((count % 65_521) << 16 | 1, 4)
    }

    // MARK: Animations

    private static var animations: [(String, [UInt8])] {
        [
            ("apng 3,900 × 4,000", apng(3_900, 4_000)), ("apng 5,600 × 5,700", apng(5_600, 5_700)),
            ("apng 10,000 × 10,000", apng(10_000, 10_000)),
            ("webp animation 3,900 × 4,000", animatedWebP(3_900, 4_000)),
            ("webp animation 5,000 × 5,000", animatedWebP(5_000, 5_000)),
            ("webp animation 16,000 × 6,000", animatedWebP(16_000, 6_000)),
        ]
    }

    private static func apng(_ width: Int, _ height: Int) -> [UInt8] {
        let place = big(width, 4) + big(height, 4) + big(0, 8) + big(1, 2) + big(10, 2)
        let data = zeros(height * (1 + (width + 7) / 8))
        return signature + chunk("IHDR", big(width, 4) + big(height, 4) + [1, 0, 0, 0, 0])
            + chunk("acTL", big(2, 4) + big(0, 4)) + chunk("fcTL", big(0, 4) + place + [2, 0]) + chunk("IDAT", data)
            + chunk("fcTL", big(1, 4) + place + [2, 1]) + chunk("fdAT", big(2, 4) + data) + chunk("IEND", [])
    }

    private static func riff(_ chunks: [(String, [UInt8])]) -> [UInt8] {
        let body = chunks.flatMap { name, data in
            Array(name.utf8) + little(data.count, 4) + data + [UInt8](repeating: 0, count: data.count % 2)
        }
        return Array("RIFF".utf8) + little(body.count + 4, 4) + Array("WEBP".utf8) + body
    }

    /// Returns two frames that cover the canvas, each of one colour.
    private static func animatedWebP(_ width: Int, _ height: Int) -> [UInt8] {
        let picture = Array("VP8L".utf8) + little(flatLossless(width, height).count, 4) + flatLossless(width, height)
        let place = little(0, 6) + little(width - 1, 3) + little(height - 1, 3) + little(100, 3) + [0]
        return riff([
            ("VP8X", [0x12, 0, 0, 0] + little(width - 1, 3) + little(height - 1, 3)), ("ANIM", little(0, 6)),
            ("ANMF", place + picture), ("ANMF", place + picture),
        ])
    }

    /// Returns a lossless picture of one colour. It has no transform, no cache, and five codes of one symbol each,
    /// which take no bits per pixel (RFC 9649, §3).
    /// `hasAlpha` is the bit of the header, and `alpha` the value that the data hold.
    static func flatLossless(_ width: Int, _ height: Int, hasAlpha: Bool = true, alpha: Int = 255) -> [UInt8] {
        var bits: [Bool] = []
        func number(_ value: Int, _ width: Int) { bits += (0..<width).map { value >> $0 & 1 == 1 } }
        number(width - 1, 14)
        number(height - 1, 14)
        number(hasAlpha ? 1 : 0, 1)
        number(0, 3 + 1 + 1 + 1)
        for symbol in [90, 200, 30, alpha, 0] {
            number(1, 1)
            number(0, 1)
            number(1, 1)
            number(symbol, 8)
        }
        var bytes = [UInt8](repeating: 0, count: (bits.count + 7) / 8)
        for (at, bit) in bits.enumerated() where bit { bytes[at / 8] |= 1 << (at % 8) }
        return [0x2F] + bytes + [0, 0]
    }

    private static var gifs: [(String, [UInt8])] {
        [(65_535, 330), (65_535, 500), (65_535, 1_500)].map { width, height in
            var file = GIFFile(width: width, height: height, frames: [], again: 0)
            file.frames = (0..<3).map { _ in GIFFile.Frame(rows: [[0, 1], [1, 0]], disposal: 3) }
            return ("gif \(width) × \(height)", file.bytes)
        }
    }

    // MARK: Stills

    private static var bitmaps: [(String, [UInt8])] {
        [(8_000, 8_000), (10_000, 10_000), (90_000_000, 1), (1, 50_000_000)].map { width, height in
            let palette = [[UInt8]](repeating: [1, 2, 3], count: 256)
            let file = BitmapFile(
                width: width, height: height, bits: 8, compression: 1, palette: palette, pixels: [0, 1])
            return ("bmp \(width) × \(height)", file.bytes)
        }
    }

    private static var icons: [(String, [UInt8])] {
        get throws {
            [("100,000,000 × 1", png(100_000_000, 1, 1, 0)), ("10,000 × 10,000", png(10_000, 10_000, 1, 0))].map {
                ("icon of a png of " + $0.0, IconFile(entries: [$0.1]).bytes)
            }
        }
    }

    /// Pictures of few bytes whose header is changed to declare a larger size, so that the data end early.
    private static var jpegs: [(String, [UInt8])] {
        get throws {
            var bombs: [(String, [UInt8])] = []
            for progressive in [false, true] {
                let small = [UInt8](try gradient(64, 64).encoded(as: .jpeg(progressive: progressive)))
                for (width, height) in [(65_500, 1_500), (11_000, 7_900), (8_000, 6_000)] {
                    for isFull in [false, true] {
                        let name = "jpeg \(width) × \(height)\(progressive ? " in scans" : "")\(isFull ? ", full" : "")"
                        bombs.append((name, enlarged(jpeg: small, width, height, hasFullChroma: isFull)))
                    }
                }
            }
            for (width, height) in [(8_000, 6_000), (3_400, 3_300)] {
                let file = enlarged(jpeg: JPEGFiles.separate, width, height, hasFullChroma: true)
                bombs.append(("jpeg \(width) × \(height), a scan for each component", file))
            }
            return bombs
        }
    }

    /// Parts that take more memory than their bytes, and than their picture.
    private static var tiffs: [(String, [UInt8])] {
        let side = 65_536
        let tile = TIFFFile(parts: [[1, 2, 3]], tile: (side, side))
        let strip = TIFFFile(
            width: 9_999, height: 9_999, parts: [[1, 2, 3]], rowsPerStrip: 9_999, added: [(259, 3, [32_773])])
        let samples = TIFFFile(
            width: 2_000, height: 2_000, bits: [Int](repeating: 8, count: 200), parts: [[1, 2, 3]],
            rowsPerStrip: 2_000)
        return [("tiff tile", tile.bytes), ("tiff strip", strip.bytes), ("tiff samples", samples.bytes)]
    }

    /// Canvases that are larger than what is put on them.
    private static var heics: [(String, [UInt8])] {
        func overlay(_ width: Int, _ height: Int) -> [UInt8] {
            let canvas = [0, 0] + big(0, 8) + big(width, 2) + big(height, 2) + big(0, 4)
            let laid = HEIFFile.Item(
                type: "iovl", data: canvas, properties: [HEIFFile.size(width, height)], parts: [2], isInside: true)
            return HEIFFile(items: [laid] + HEIFFile.picture().shifted(by: 1)).bytes
        }
        return [
            ("heic 5,000 × 5,000", overlay(5_000, 5_000)), ("heic 2,800 × 2,800", overlay(2_800, 2_800)),
            ("heic 10,000 × 10,000", overlay(10_000, 10_000)),
            ("heic header", HEIFFile(items: [HEIFFile.coded(size: (9_999, 9_999))]).bytes),
        ]
    }

    private static var jpegXLs: [(String, [UInt8])] {
        [("jxl 3,300 × 3,300", JPEGXLFiles.large), ("jxl 7,000 × 6,400", JPEGXLFiles.tooLarge)]
    }

    private static var avifs: [(String, [UInt8])] {
        [
            ("avif 7,000 × 6,400", AVIFFiles.large), ("avif 5,900 × 5,900", AVIFFiles.halved),
            ("avif 10,000 × 10,000", AVIFFiles.tooLarge),
        ]
    }

    private static func enlarged(jpeg: [UInt8], _ width: Int, _ height: Int, hasFullChroma: Bool) -> [UInt8] {
        var file = jpeg
        var at = 2
        while at + 4 < file.count, !(0xC0...0xC2).contains(file[at + 1]) {
            at += 2 + Int(file[at + 2]) << 8 + Int(file[at + 3])
        }
        file.replaceSubrange(at + 5..<at + 9, with: big(height, 2) + big(width, 2))
        if hasFullChroma { file[at + 11] = 0x11 }
        return file
    }

    private static var webPs: [(String, [UInt8])] {
        get throws {
            var bombs: [(String, [UInt8])] = []
            for (width, height) in [(16_383, 3_900), (16_383, 6_100), (16_383, 16_383)] {
                bombs.append(("webp \(width) × \(height), lossless", riff([("VP8L", flatLossless(width, height))])))
            }
            let lossy = [UInt8](try gradient(64, 64).encoded(as: .webp(quality: 80)))
            let header = try #require(lossy.firstRange(of: [0x9D, 0x01, 0x2A])?.upperBound)
            for (width, height) in [(16_383, 3_900), (16_383, 6_100), (16_383, 16_383)] {
                var file = lossy
                file.replaceSubrange(header..<header + 4, with: little(width, 2) + little(height, 2))
                bombs.append(("webp \(width) × \(height), lossy", file))
            }
            return bombs
        }
    }
}
#endif
