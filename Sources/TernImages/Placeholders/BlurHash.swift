#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A picture in 20 to 30 characters, to show until the real one has come: its colors, blurred
/// ([BlurHash](https://blurha.sh)).
///
/// ```swift
/// let picture = BlurHash("LEHV6nWB2yk8pyo0adR*.7kCMdnj")?.image(size: PixelSize(width: 32, height: 32))
/// ```
///
/// Texts and pixels are those of the reference implementation. A hash knows neither the shape of the original nor its
/// transparency: prefer ``ThumbHash`` for new pictures.
public struct BlurHash: Sendable, Hashable, CustomStringConvertible {
    /// The hash as text: 4 characters and 2 for each component.
    public let text: String
    /// The number of components across, from 1 to 9.
    public let columns: Int
    /// The number of components from top to bottom, from 1 to 9.
    public let rows: Int
    /// Red, green and blue of each component, in linear light.
    private let components: [SIMD3<Double>]

    /// Creates a hash from its text. Returns nil if a character is of another alphabet, or their number is another one
    /// than the first of them says.
    public init?(_ text: String) {
        guard (6...166).contains(text.utf8.count) else { return nil }
        let digits = text.utf8.compactMap(Self.digit)
        guard digits.count == text.utf8.count, digits[0] < 81 else { return nil }
        (columns, rows) = (digits[0] % 9 + 1, digits[0] / 9 + 1)
        guard digits.count == 4 + 2 * columns * rows else { return nil }
        let average = digits[2..<6].reduce(0) { $0 * 83 + $1 }
        guard average < 1 << 24 else { return nil }
        let greatest = Double(digits[1] + 1) / 166
        var components = [
            SIMD3(Light.linear(average >> 16), Light.linear(average >> 8 & 255), Light.linear(average & 255))
        ]
        for index in 1..<(columns * rows) {
            let value = digits[4 + index * 2] * 83 + digits[5 + index * 2]
            guard value < 19 * 19 * 19 else { return nil }
            let levels = SIMD3(Double(value / 361), Double(value / 19 % 19), Double(value % 19))
            let parts = (levels - 9) / 9
            components.append(
                SIMD3(Self.signed(parts.x, 2), Self.signed(parts.y, 2), Self.signed(parts.z, 2)) * greatest)
        }
        self.text = text
        self.components = components
    }

    /// Creates the hash of a picture. A picture with more than 100 pixels on a side is scaled down before. Transparent
    /// parts count as black.
    ///
    /// - Parameters:
    ///   - columns: The number of components across, from 1 to 9; a number beyond is clamped.
    ///   - rows: The number of components from top to bottom, from 1 to 9; a number beyond is clamped.
    /// - Throws: The errors of ``RasterImage/resized(to:inLinearLight:)`` and ``RasterImage/converted(to:)``.
    public init(_ image: RasterImage, columns: Int = 4, rows: Int = 3) throws(ImageError) {
        (self.columns, self.rows) = (min(max(1, columns), 9), min(max(1, rows), 9))
        let components = Self.components(of: try image.fitting(100), self.columns, self.rows)
        let greatest = components.dropFirst().reduce(0) { max($0, abs($1.x), abs($1.y), abs($1.z)) }
        let level = min(82, max(0, Int((greatest * 166 - 0.5).rounded(.down))))
        let scale = Double(level + 1) / 166
        func part(_ value: Double) -> Int {
            min(18, max(0, Int((Self.signed(value / scale, 0.5) * 9 + 9.5).rounded(.down))))
        }
        let average = components[0]
        var text = Self.text(self.columns - 1 + (self.rows - 1) * 9, count: 1)
        text += Self.text(components.count > 1 ? level : 0, count: 1)
        text += Self.text(Light.byte(average.x) << 16 | Light.byte(average.y) << 8 | Light.byte(average.z), count: 4)
        for component in components.dropFirst() {
            text += Self.text((part(component.x) * 19 + part(component.y)) * 19 + part(component.z), count: 2)
        }
        self.text = text
        self.components = BlurHash(text)?.components ?? components
    }

    /// The same as ``text``.
    public var description: String { text }

    /// The average color of the original.
    public var averageColor: ImageColor {
        let average = components[0]
        return ImageColor(
            red: UInt8(Light.byte(average.x)), green: UInt8(Light.byte(average.y)), blue: UInt8(Light.byte(average.z)))
    }

    // MARK: Text

    private static let alphabet = Array(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8)
    private static let digits = Dictionary(uniqueKeysWithValues: zip(alphabet, 0...))

    private static func digit(_ character: UInt8) -> Int? { digits[character] }

    /// Returns the last digits of a number in base 83.
    private static func text(_ number: Int, count: Int) -> String {
        var (characters, rest) = ([UInt8](), number)
        for _ in 0..<count {
            characters.append(alphabet[rest % 83])
            rest /= 83
        }
        return String(decoding: characters.reversed(), as: UTF8.self)
    }

    /// Returns the power of a value's size, with the value's sign.
    private static func signed(_ value: Double, _ exponent: Double) -> Double {
        copysign(pow(abs(value), exponent), value)
    }
}

extension BlurHash {
    /// Returns the picture in a size. The hash does not know the shape of the original.
    ///
    /// - Parameter size: The size; each side is clamped to 1 through 512 pixels. A small picture that is shown larger
    ///   looks the same as a large one.
    public func image(size: PixelSize = PixelSize(width: 32, height: 32)) -> RasterImage {
        let size = PixelSize(width: min(max(1, size.width), 512), height: min(max(1, size.height), 512))
        let across = Waves(columns, length: size.width, center: 0)
        let down = Waves(rows, length: size.height, center: 0)
        // The sums across of each row of components, by row and column of pixels.
        var sums = [SIMD3<Double>](repeating: .zero, count: rows * size.width)
        for row in 0..<rows {
            for x in 0..<size.width {
                for column in 0..<columns {
                    sums[row * size.width + x] += components[row * columns + column] * across.value(column, x)
                }
            }
        }
        var pixels: [UInt8] = []
        pixels.reserveCapacity(size.pixelCount * 4)
        for y in 0..<size.height {
            for x in 0..<size.width {
                var color = SIMD3<Double>.zero
                for row in 0..<rows { color += sums[row * size.width + x] * down.value(row, y) }
                for channel in 0..<3 { pixels.append(UInt8(Light.byte(color[channel]))) }
                pixels.append(255)
            }
        }
        return RasterImage(
            pixels: PixelBuffer(pixels), size: size, format: nil, metadata: RasterImage.Metadata(originalSize: size))
    }

    /// Returns the components of a picture: the first is the average.
    private static func components(of image: RasterImage, _ columns: Int, _ rows: Int) -> [SIMD3<Double>] {
        let (size, pixels) = (image.size, image.pixels.bytes)
        let table = (0..<256).map(Light.linear)
        let across = Waves(columns, length: size.width, center: 0)
        let down = Waves(rows, length: size.height, center: 0)
        return (0..<rows).flatMap { row in
            (0..<columns).map { column in
                var sum = SIMD3<Double>.zero
                for y in 0..<size.height {
                    for x in 0..<size.width {
                        let at = (y * size.width + x) * 4
                        let color = SIMD3(
                            table[Int(pixels[at])], table[Int(pixels[at + 1])], table[Int(pixels[at + 2])])
                        sum += color * (across.value(column, x) * down.value(row, y))
                    }
                }
                return sum * ((row == 0 && column == 0 ? 1 : 2) / Double(size.pixelCount))
            }
        }
    }

    /// Levels of sRGB and linear light (IEC 61966-2-1).
    private enum Light {
        /// The light between each level and the next.
        private static let borders = (0..<255).map { linear(Double($0) + 0.5) }

        static func linear(_ level: Int) -> Double { linear(Double(level)) }

        private static func linear(_ level: Double) -> Double {
            let value = level / 255
            return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }

        /// Returns the level that is nearest to a light. A search takes a third of the time of a power.
        static func byte(_ value: Double) -> Int {
            var (low, high) = (0, 255)
            while low < high {
                let middle = (low + high) / 2
                if value >= borders[middle] { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }
}
