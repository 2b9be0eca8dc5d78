#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Returns a picture in which every pixel differs a little from its neighbours.
func gradient(_ width: Int, _ height: Int, alpha: Bool = false) throws -> RasterImage {
    var bytes: [UInt8] = []
    for y in 0..<height {
        for x in 0..<width {
            let a = alpha ? (x + y) * 255 / (width + height) : 255
            bytes += [x * 255 / width, y * 255 / height, 128, 255].map { UInt8(($0 * a + 127) / 255) }
        }
    }
    return try #require(RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes))
}

@Suite struct CodecImageDecoderTests {
    let decoder = CodecImageDecoder()

    @Test func losslessFormatsGiveBackEveryOpaquePixel() throws {
        let picture = try gradient(61, 47)
        for encoding in [ImageEncoding.png(), .losslessWebP] {
            let data = try picture.encoded(as: encoding)
            let again = try decoder.image(from: data, options: ImageDecodingOptions())
            #expect(again.pixels.bytes == picture.pixels.bytes)
            #expect(again.format == encoding.format)
        }
    }

    @Test(arguments: [false, true]) func jpegStaysClose(progressive: Bool) throws {
        let picture = try gradient(160, 120)
        let data = try picture.encoded(as: .jpeg(quality: 95, progressive: progressive))
        let again = try decoder.image(from: data, options: ImageDecodingOptions())
        let worst = zip(again.pixels.bytes, picture.pixels.bytes).map { abs(Int($0) - Int($1)) }.max()
        #expect(try #require(worst) <= 8)
    }

    @Test func aTargetIsMetAndNeverUpsampled() throws {
        let data = try gradient(400, 200).encoded(as: .jpeg())
        func size(_ target: PixelSize, _ mode: ImageDecodingOptions.ContentMode) throws -> PixelSize {
            try decoder.image(from: data, options: ImageDecodingOptions(targetSize: target, contentMode: mode)).size
        }
        let square = PixelSize(width: 50, height: 50)
        #expect(try size(square, .fit) == PixelSize(width: 50, height: 25))
        #expect(try size(square, .fill) == square)
        #expect(try size(square, .atLeast) == PixelSize(width: 100, height: 50))
        #expect(try size(PixelSize(width: 900, height: 900), .fit) == PixelSize(width: 400, height: 200))
    }

    @Test func theCutFileIsAnErrorUnlessPartialIsAsked() throws {
        let picture = try gradient(200, 200)
        for encoding in [ImageEncoding.jpeg(), .png(), .webp()] {
            let data = try picture.encoded(as: encoding)
            let cut = data.prefix(data.count * 2 / 3)
            let thrown = #expect(throws: ImageError.self) {
                _ = try decoder.image(from: cut, options: ImageDecodingOptions())
            }
            #expect(thrown?.kind == .truncated)
            let partial = try decoder.image(from: cut, options: ImageDecodingOptions(allowsPartial: true))
            #expect(partial.metadata.isPartial)
        }
    }

    @Test func limitsAreCheckedFromTheHeader() throws {
        let data = try gradient(40, 40).encoded(as: .png())
        let limits = ImageDecodingOptions.Limits(pixels: 1_599)
        let thrown = #expect(throws: ImageError.self) {
            _ = try decoder.image(from: data, options: ImageDecodingOptions(limits: limits))
        }
        #expect(thrown?.kind == .limitExceeded)
    }

    /// Found by fuzzing: libpng cleared 8 GB of memory for a row of 2,147,483,647 pixels before the header could be
    /// checked.
    @Test func aHeaderOfHugePixelsCostsNothing() throws {
        let bytes: [UInt8] =
            [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8)
            + [0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0xA0, 0x36, 0x33, 0xDD, 0, 0, 0, 0]
            + Array("IDAT".utf8) + [0x35, 0xAF, 0x06, 0x1E]
        var kind: ImageError.Kind?
        let time = processorTime { kind = errorKind(bytes) }
        #expect(kind == .limitExceeded)
        #expect(time < .milliseconds(200))
    }

    /// Found by fuzzing: 240 unused compressed texts of 7 MiB each were unpacked, which took three seconds.
    @Test(arguments: [false, true]) func textsThatAreBombsAreSkipped(isIncremental: Bool) throws {
        var bytes = [UInt8](try gradient(4, 4).encoded(as: .png()))
        let size = PixelSize(width: 1024, height: 1024)
        let zeros = RasterImage(size: size, premultiplied: [UInt8](repeating: 0, count: size.pixelCount * 4))
        // A deflate stream of 4 MiB: the data of a PNG's rows, between its header and its checksum.
        let stream = try #require(zeros).encoded(as: .png(level: 9)).dropFirst(41).dropLast(16)
        let text = chunk("zTXt", Array("a".utf8) + [0, 0] + stream)
        bytes.insert(contentsOf: [[UInt8]](repeating: text, count: 200).flatMap(\.self), at: 33)
        let time = try processorTime {
            if isIncremental {
                let decoder = IncrementalDecoder()
                try decoder.append(Data(bytes))
                _ = try decoder.finish()
            } else {
                _ = try decoder.image(from: Data(bytes), options: ImageDecodingOptions())
            }
        }
        #expect(time < .milliseconds(500))
    }

    @Test func progressiveScansAreLimited() throws {
        let data = try gradient(64, 64).encoded(as: .jpeg(progressive: true))
        let limits = ImageDecodingOptions.Limits(scans: 2)
        let thrown = #expect(throws: ImageError.self) {
            _ = try decoder.image(from: data, options: ImageDecodingOptions(limits: limits))
        }
        #expect(thrown?.kind == .limitExceeded)
    }

    /// Decodes 64 mutations of each format, which are the same in every run. Each ends with an error or a picture, and
    /// never with a crash.
    /// Decodes 16-bit samples around each step of 8 bits (W3C PNG, third edition, §12.4), whole and in pieces.
    @Test func samplesOf16BitsAreRounded() throws {
        let steps: [[Int]] = (0...255).map { level in [-129, -128, 0, 127, 128].map { level * 257 + $0 } }
        let samples = steps.joined().filter { (0...65_535).contains($0) }
        let row: [UInt8] = [0] + samples.flatMap { big($0, 2) }
        var sums = (1, 0)
        for byte in row {
            sums.0 = (sums.0 + Int(byte)) % 65_521
            sums.1 = (sums.1 + sums.0) % 65_521
        }
        let block: [UInt8] = [1] + little(row.count, 2) + little(~row.count, 2) + row
        let stored: [UInt8] = [0x78, 0x01] + block + big(sums.1 << 16 | sums.0, 4)
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        let header = chunk("IHDR", big(samples.count, 4) + big(1, 4) + [16, 0, 0, 0, 0])
        let file = signature + header + chunk("IDAT", stored) + chunk("IEND", [])
        let expected = samples.flatMap { sample -> [UInt8] in
            let level = UInt8((sample + 128) / 257)
            return [level, level, level, 255]
        }
        #expect(try decoder.image(from: Data(file), options: ImageDecodingOptions()).pixels.bytes == expected)
        let pieces = IncrementalDecoder()
        for byte in file { try pieces.append(Data([byte])) }
        #expect(try pieces.finish().pixels.bytes == expected)
    }

    @Test(arguments: [ImageEncoding.jpeg(), .jpeg(progressive: true), .png(), .webp(), .losslessWebP])
    func mutatedFilesEndInAnErrorOrAPicture(encoding: ImageEncoding) throws {
        let data = try gradient(80, 60, alpha: true).encoded(as: encoding)
        var state: UInt64 = 42
        func random(_ below: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % below
        }
        for round in 0..<64 {
            var bytes = [UInt8](data)
            for _ in 0...random(8) { bytes[random(bytes.count)] = UInt8(random(256)) }
            let options = ImageDecodingOptions(
                limits: .init(pixels: 1_000_000), allowsPartial: round.isMultiple(of: 2))
            do throws(ImageError) {
                let picture = try decoder.image(from: Data(bytes), options: options)
                #expect(picture.byteCount == picture.size.pixelCount * 4)
            } catch {
                #expect(error.kind != .invalidArgument)
            }
        }
    }
}
#endif
