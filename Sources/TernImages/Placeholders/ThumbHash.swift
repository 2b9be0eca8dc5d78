#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A picture in about 25 bytes, to show until the real one has come: its colors, blurred, with transparency and the
/// shape of the original ([ThumbHash](https://evanw.github.io/thumbhash/)).
///
/// ```swift
/// let hash = ThumbHash(image).base64                    // when a picture is stored
/// let picture = ThumbHash(base64: hash)?.image()        // where it is shown
/// ```
///
/// Bytes and pixels are those of the reference implementation. Decoding takes some tens of microseconds, on any thread.
public struct ThumbHash: Sendable, Hashable {
    /// The bytes of the hash, from 17 to 31.
    public let bytes: [UInt8]

    /// Creates a hash from its bytes. Returns nil if their number is another one than the first of them say.
    public init?(_ bytes: some Sequence<UInt8>) {
        // No hash is longer, whatever its source.
        let bytes = Array(bytes.prefix(64))
        guard bytes.count >= 5, Header(bytes).byteCount == bytes.count else { return nil }
        self.bytes = bytes
    }

    /// Creates a hash from its text in Base64, with or without padding, also in the alphabet for URLs. Returns nil for
    /// any other text.
    public init?(base64 text: String) {
        guard text.utf8.count <= 64 else { return nil }
        var digits = text.utf8.map { digit in
            switch digit {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: digit
            }
        }
        while digits.count % 4 != 0 { digits.append(UInt8(ascii: "=")) }
        guard let data = Data(base64Encoded: Data(digits)) else { return nil }
        self.init(data)
    }

    /// Creates the hash of a picture. A picture with more than 100 pixels on a side is scaled down before.
    ///
    /// - Throws: The errors of ``RasterImage/resized(to:inLinearLight:)`` and ``RasterImage/converted(to:)``.
    public init(_ image: RasterImage) throws(ImageError) {
        bytes = Encoder(try image.fitting(100)).bytes
    }

    /// The hash in Base64, with padding.
    public var base64: String { Data(bytes).base64EncodedString() }

    /// The width of the original divided by its height, roughly.
    public var aspectRatio: Double { Double(header.width) / Double(header.height) }

    /// The average color of the original.
    public var averageColor: ImageColor {
        let averages = Averages(bytes, header)
        let (red, green, blue) = Self.colors(luma: averages.luma, yellow: averages.yellow, red: averages.red)
        return ImageColor(
            red: Self.byte(red), green: Self.byte(green), blue: Self.byte(blue), alpha: Self.byte(averages.alpha))
    }

    private var header: Header { Header(bytes) }

    /// Returns red, green and blue from the channels of a hash.
    private static func colors(luma: Double, yellow: Double, red: Double) -> (Double, Double, Double) {
        let blue = luma - 2.0 / 3.0 * yellow
        let sum = (3 * luma - blue + red) / 2
        return (sum, sum - red, blue)
    }

    /// Returns a channel as the reference writes it: clamped, without rounding.
    private static func byte(_ value: Double) -> UInt8 { UInt8(max(0, 255 * min(1, value))) }

    /// Returns the nearest number; the greater one of two.
    private static func rounded(_ value: Double) -> Int { Int((value + 0.5).rounded(.down)) }
}

extension ThumbHash {
    /// The beginning of a hash: its shape.
    private struct Header {
        let hasAlpha: Bool
        let isLandscape: Bool
        /// The numbers of waves of the brightness in both directions.
        let width: Int
        let height: Int

        /// - Parameter bytes: At least five bytes.
        init(_ bytes: [UInt8]) {
            hasAlpha = bytes[2] & 0x80 != 0
            isLandscape = bytes[4] & 0x80 != 0
            // Zero is in no hash of an encoder.
            let (short, long) = (max(1, Int(bytes[3] & 7)), hasAlpha ? 5 : 7)
            (width, height) = isLandscape ? (long, short) : (short, long)
        }

        var lumaWaves: WaveGrid { WaveGrid(columns: max(3, width), rows: max(3, height)) }

        var byteCount: Int {
            let waves = lumaWaves.count + 2 * WaveGrid.color.count + (hasAlpha ? WaveGrid.alpha.count : 0)
            return (hasAlpha ? 6 : 5) + (waves + 1) / 2
        }
    }

    /// The average brightness, the differences of the colors, and the opacity.
    private struct Averages {
        let luma: Double
        /// Red and green above blue.
        let yellow: Double
        /// Red above green.
        let red: Double
        let alpha: Double

        init(_ bytes: [UInt8], _ header: Header) {
            let value = Int(bytes[0]) | Int(bytes[1]) << 8 | Int(bytes[2]) << 16
            luma = Double(value & 63) / 63
            yellow = Double(value >> 6 & 63) / 31.5 - 1
            red = Double(value >> 12 & 63) / 31.5 - 1
            alpha = header.hasAlpha ? Double(bytes[5] & 15) / 15 : 1
        }
    }
}

// MARK: Hash → picture

extension ThumbHash {
    /// Returns the picture: 32 pixels on its longer side, in the shape of the original.
    public func image() -> RasterImage {
        let header = header
        let size = PixelSize(
            width: aspectRatio > 1 ? 32 : max(1, Self.rounded(32 * aspectRatio)),
            height: aspectRatio > 1 ? max(1, Self.rounded(32 / aspectRatio)) : 32)
        let averages = Averages(bytes, header)
        let scales = Int(bytes[3]) | Int(bytes[4]) << 8
        var weights = Weights(bytes, from: header.hasAlpha ? 6 : 5)
        func field(_ grid: WaveGrid, scale: Double) -> WaveField {
            WaveField(grid, weights: weights.next(grid.count, scale: scale), size: size)
        }
        let luma = field(header.lumaWaves, scale: Double(bytes[2] >> 2 & 31) / 31)
        // The colors are a little stronger than those of the original, as in the reference.
        let yellow = field(.color, scale: Double(scales >> 3 & 63) / 63 * 1.25)
        let red = field(.color, scale: Double(scales >> 9 & 63) / 63 * 1.25)
        let alpha = header.hasAlpha ? field(.alpha, scale: Double(bytes[5] >> 4) / 15) : nil
        var pixels: [UInt8] = []
        pixels.reserveCapacity(size.pixelCount * 4)
        for y in 0..<size.height {
            for x in 0..<size.width {
                let (r, g, b) = Self.colors(
                    luma: averages.luma + luma.value(x, y), yellow: averages.yellow + yellow.value(x, y),
                    red: averages.red + red.value(x, y))
                let opacity = Self.byte(averages.alpha + (alpha?.value(x, y) ?? 0))
                let levels = SIMD3(Self.byte(r), Self.byte(g), Self.byte(b))
                for channel in 0..<3 { pixels.append(UInt8((Int(levels[channel]) * Int(opacity) + 127) / 255)) }
                pixels.append(opacity)
            }
        }
        return RasterImage(
            pixels: PixelBuffer(pixels), size: size, format: nil, metadata: RasterImage.Metadata(originalSize: size))
    }

    /// Reads weights, of which each has four bits.
    private struct Weights {
        private let bytes: [UInt8]
        private var index: Int

        init(_ bytes: [UInt8], from start: Int) {
            self.bytes = bytes
            index = start * 2
        }

        mutating func next(_ count: Int, scale: Double) -> [Double] {
            (0..<count).map { _ in
                let weight = bytes[index / 2] >> (index % 2 * 4) & 15
                index += 1
                return (Double(weight) / 7.5 - 1) * scale
            }
        }
    }
}

// MARK: Picture → hash

extension ThumbHash {
    private struct Encoder {
        let bytes: [UInt8]

        init(_ image: RasterImage) {
            let size = image.size
            let pixels = image.pixels.bytes
            let alphas = stride(from: 3, to: pixels.count, by: 4).map { Double(pixels[$0]) / 255 }
            let opacity = alphas.reduce(0, +)
            // The bytes are premultiplied: sums of them are weighted by the opacity.
            let average = (0..<3).map { channel in
                let sum = stride(from: channel, to: pixels.count, by: 4).reduce(0) { $0 + Double(pixels[$1]) / 255 }
                return opacity > 0 ? sum / opacity : 0
            }
            let hasAlpha = opacity < Double(size.pixelCount)
            var (luma, yellow, red): ([Double], [Double], [Double]) = ([], [], [])
            for (index, alpha) in alphas.enumerated() {
                // Over the average color, so that transparent parts need no waves.
                func color(_ channel: Int) -> Double {
                    average[channel] * (1 - alpha) + Double(pixels[index * 4 + channel]) / 255
                }
                let (r, g, b) = (color(0), color(1), color(2))
                luma.append((r + g + b) / 3)
                yellow.append((r + g) / 2 - b)
                red.append(r - g)
            }
            let (limit, longer) = (hasAlpha ? 5 : 7, Double(max(size.width, size.height)))
            let columns = max(1, ThumbHash.rounded(Double(limit * size.width) / longer))
            let rows = max(1, ThumbHash.rounded(Double(limit * size.height) / longer))
            let lumas = Channel(luma, of: size, on: WaveGrid(columns: max(3, columns), rows: max(3, rows)))
            let (yellows, reds) = (Channel(yellow, of: size, on: .color), Channel(red, of: size, on: .color))
            let opacities = hasAlpha ? Channel(alphas, of: size, on: .alpha) : nil
            let isLandscape = size.width > size.height
            var head = Bits()
            head.append(63 * lumas.average, bits: 6)
            head.append(31.5 + 31.5 * yellows.average, bits: 6)
            head.append(31.5 + 31.5 * reds.average, bits: 6)
            head.append(31 * lumas.scale, bits: 5)
            head.append(hasAlpha ? 1 : 0, bits: 1)
            head.append(Double(isLandscape ? rows : columns), bits: 3)
            head.append(63 * yellows.scale, bits: 6)
            head.append(63 * reds.scale, bits: 6)
            head.append(isLandscape ? 1 : 0, bits: 1)
            if let opacities {
                head.append(15 * opacities.average, bits: 4)
                head.append(15 * opacities.scale, bits: 4)
            }
            for weight in lumas.weights + yellows.weights + reds.weights + (opacities?.weights ?? []) {
                head.append(15 * weight, bits: 4)
            }
            bytes = head.bytes
        }
    }

    /// Writes numbers, the least significant bit of each first.
    private struct Bits {
        private(set) var bytes: [UInt8] = []
        private var count = 0

        mutating func append(_ value: Double, bits: Int) {
            let number = min(max(0, ThumbHash.rounded(value)), 1 << bits - 1)
            for bit in 0..<bits {
                if count % 8 == 0 { bytes.append(0) }
                bytes[count / 8] |= UInt8(number >> bit & 1) << (count % 8)
                count += 1
            }
        }
    }

    /// The average of a channel, and the weights of its waves from 0 to 1. `scale` is the size of the greatest one.
    private struct Channel {
        let average: Double
        let scale: Double
        let weights: [Double]

        init(_ values: [Double], of size: PixelSize, on grid: WaveGrid) {
            let (across, down) = (Waves(grid.columns, length: size.width), Waves(grid.rows, length: size.height))
            func weight(_ column: Int, _ row: Int) -> Double {
                var sum = 0.0
                for y in 0..<size.height {
                    let factor = down.value(row, y)
                    for x in 0..<size.width { sum += values[x + y * size.width] * across.value(column, x) * factor }
                }
                return sum / Double(size.pixelCount)
            }
            average = weight(0, 0)
            let found = (0..<grid.rows).flatMap { row in grid.columns(of: row).map { weight($0, row) } }
            let scale = found.reduce(0) { max($0, abs($1)) }
            self.scale = scale
            weights = scale > 0 ? found.map { 0.5 + 0.5 / scale * $0 } : found
        }
    }
}

extension RasterImage {
    /// Returns the image with at most this many pixels on a side.
    func fitting(_ length: Int) throws(ImageError) -> RasterImage {
        let longer = max(size.width, size.height)
        guard longer > length else { return try converted(to: .sRGB) }
        func scaled(_ side: Int) -> Int { max(1, Int((Double(side) * Double(length) / Double(longer)).rounded())) }
        return try resized(to: PixelSize(width: scaled(size.width), height: scaled(size.height))).converted(to: .sRGB)
    }
}
