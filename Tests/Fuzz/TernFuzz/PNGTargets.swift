import CTernFuzz
import Foundation
import TernImages

/// The rows of a PNG file, which libpng decodes, too.
extension FuzzTarget {
    static let pngPixels = FuzzTarget(
        name: "png-pixels", seeds: { _ in rows }, run: { input, choice in try compareWithLibpng(input, choice) })

    /// Rows of noise and of gradients, of several lengths.
    private static let rows: [[UInt8]] = (0..<24).map { index in
        (0..<(40 + index * 60)).map { UInt8(truncatingIfNeeded: index % 3 == 0 ? $0 : $0 &* $0 &* (index + 7) >> 3) }
    }

    /// The kinds of pixels: the color type and the bits of a sample (W3C PNG, third edition, §11.2.1).
    private static let kinds: [(color: UInt8, depth: Int, channels: Int)] = [
        (0, 1, 1), (0, 2, 1), (0, 4, 1), (0, 8, 1), (0, 16, 1), (2, 8, 3), (2, 16, 3), (3, 1, 1), (3, 2, 1), (3, 4, 1),
        (3, 8, 1), (4, 8, 2), (4, 16, 2), (6, 8, 4), (6, 16, 4),
    ]

    /// Makes a file whose rows are the input, repeated or cut, and decodes it. Exactly the rows that libpng decodes are
    /// shown, with the same pixels.
    private static func compareWithLibpng(_ data: Data, _ choice: UInt64) throws -> String {
        let kind = kinds[Int(choice >> 32) % kinds.count]
        let (width, height) = (1 + Int(choice & 63), 1 + Int(choice >> 8 & 31))
        let rowBytes = (width * kind.channels * kind.depth + 7) / 8
        let input = data.isEmpty ? [0] : [UInt8](data)
        let stream = (0..<(rowBytes + 1) * height).map { place -> UInt8 in
            let byte = input[place % input.count]
            // Nearly all filters are known ones.
            return place % (rowBytes + 1) > 0 || byte > 250 ? byte : byte % 5
        }
        var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        file += chunk("IHDR", big(width) + big(height) + [UInt8(kind.depth), kind.color, 0, 0, 0])
        if kind.color == 3 {
            let count = min(1 << kind.depth, 1 + Int(choice >> 16 & 255))
            file += chunk("PLTE", (0..<count * 3).map { input[($0 + 1) % input.count] })
            if choice >> 40 & 1 == 1 { file += chunk("tRNS", (0...count / 2).map { input[($0 + 5) % input.count] }) }
        } else if kind.color < 3, choice >> 40 & 1 == 1 {
            // The samples of a pixel, so that some are transparent.
            let key = (0..<kind.channels).flatMap { index -> [UInt8] in
                let at = 1 + index * kind.depth / 8
                return kind.depth == 16 ? [stream[at], stream[at + 1]] : [0, stream[at]]
            }
            file += chunk("tRNS", key)
        }
        let deflated = stored(stream)
        let half = deflated.count * Int(choice >> 48 & 3) / 4
        file += chunk("IDAT", Array(deflated[..<half])) + chunk("IDAT", Array(deflated[half...])) + chunk("IEND", [])
        return try compare(file, width, height)
    }

    private static func compare(_ file: [UInt8], _ width: Int, _ height: Int) throws -> String {
        var expected = [UInt8](repeating: 0, count: width * height * 4)
        let rows = unsafe tern_fuzz_libpng_rows(file, file.count, UInt32(width), UInt32(height), &expected)
        let picture: RasterImage
        do throws(ImageError) {
            picture = try CodecImageDecoder().image(
                from: Data(file), options: ImageDecodingOptions(allowsPartial: true))
        } catch {
            try require(rows == 0, "\(error), but libpng shows \(rows) rows of \(width)x\(height)")
            return "rejected, \(error.kind)"
        }
        let shown = picture.withPixels { unsafe $0.withUnsafeBytes { unsafe Array($0) } }
        expected.replaceSubrange((rows * width * 4)..., with: repeatElement(0, count: (height - rows) * width * 4))
        try require(shown == expected, "libpng shows \(rows) rows of \(width)x\(height), and other ones")
        try require(picture.metadata.isPartial == (rows < height), "\(rows) rows of \(height)")
        return "\(rows == height) \(rows == 0)"
    }

    private static func big(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let content = Array(type.utf8) + data
        var sum = ~UInt32(0)
        for byte in content {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
        }
        return big(data.count) + content + big(Int(~sum))
    }

    /// Returns a zlib stream of stored blocks (RFC 1950, RFC 1951).
    private static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        var (low, high) = (1, 0)
        for start in stride(from: 0, to: bytes.count, by: 65_535) {
            let block = bytes[start..<min(bytes.count, start + 65_535)]
            let (size, isLast) = (block.count, block.endIndex == bytes.count)
            stream.append(isLast ? 1 : 0)
            for part in [size, size >> 8, ~size, ~size >> 8] { stream.append(UInt8(truncatingIfNeeded: part)) }
            stream += block
        }
        for byte in bytes {
            low = (low + Int(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return stream + big(high << 16 | low)
    }
}
