import TernImages

/// A picture made by code: a sun over hills. Each number has its own, told by the colour of its sun.
struct Photo: Sendable, Hashable {
    let number: Int

    typealias Color = SIMD3<UInt8>

    /// Different for each number below 1,000.
    var sun: Color {
        Color(
            UInt8(255 - number % 10 * 3), UInt8(245 - number / 10 % 10 * 9), UInt8(200 - number / 100 % 10 * 14))
    }

    /// Where the middle of the sun is, in parts of the picture's width and height.
    static let sunPlace = (x: 0.5, y: 0.375)

    /// The picture at a size; nil for a size without pixels.
    func drawn(width: Int, height: Int) -> RasterImage? {
        let hue = Double(number * 47 % 360)
        let (zenith, horizon) = (Self.color(hue, 0.55, 0.55), Self.color(hue + 40, 0.35, 0.98))
        let hills = (0..<3).map { layer in
            (color: Self.color(hue + 80, 0.5, 0.55 - 0.15 * Double(layer)), line: line(of: layer, width, height))
        }
        let (sunX, sunY) = (Double(width) * Self.sunPlace.x, Double(height) * Self.sunPlace.y)
        let radius = Double(height) * 0.16
        let sun = sun
        var bytes: [UInt8] = []
        bytes.reserveCapacity(width * height * 4)
        for y in 0..<height {
            let depth = Double(y) / Double(height)
            let sky = zenith + (horizon - zenith) * min(1, depth * 1.4)
            let sky8 = Color(truncatingIfNeeded: SIMD3<Int>(sky * 255))
            let distanceY = (Double(y) - sunY) * (Double(y) - sunY)
            for x in 0..<width {
                var pixel = sky8
                let distance = (Double(x) - sunX) * (Double(x) - sunX) + distanceY
                if distance < radius * radius { pixel = sun }
                for hill in hills where y > hill.line[x] {
                    pixel = Color(truncatingIfNeeded: SIMD3<Int>(hill.color * 255))
                }
                bytes.append(pixel.x)
                bytes.append(pixel.y)
                bytes.append(pixel.z)
                bytes.append(255)
            }
        }
        return RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes)
    }

    /// The upper edge of a range of hills, for each column; all of them below the sun.
    private func line(of layer: Int, _ width: Int, _ height: Int) -> [Int] {
        let seed = Double(number * 7 + layer * 13)
        return (0..<width).map { column in
            let x = Double(column) / Double(width) * 6
            let wave = wave(x * 0.9 + seed) * 0.06 + wave(x * 2.3 + seed * 1.7) * 0.025
            return Int(Double(height) * (0.68 + 0.11 * Double(layer) + wave))
        }
    }

    /// Like a sine, from -1 to 1, of parabolas.
    private func wave(_ x: Double) -> Double {
        let phase = x - (x / 2).rounded(.down) * 2
        return phase < 1 ? 4 * phase * (1 - phase) : -4 * (phase - 1) * (2 - phase)
    }

    /// A colour of a hue in degrees, a saturation and a brightness, each channel from 0 to 1.
    private static func color(_ hue: Double, _ saturation: Double, _ brightness: Double) -> SIMD3<Double> {
        func channel(_ offset: Double) -> Double {
            let place = (hue / 60 + offset).truncatingRemainder(dividingBy: 6)
            return brightness * (1 - saturation * max(0, min(place, 4 - place, 1)))
        }
        return SIMD3(channel(5), channel(3), channel(1))
    }
}
