import Testing

@testable import TernImages

/// Returns an image of premultiplied RGBA bytes, rows from the top.
func picture(_ width: Int, _ height: Int, _ bytes: [UInt8], scale: Double = 1) throws -> RasterImage {
    try #require(RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes, scale: scale))
}

/// Returns an image with one colour.
func flat(_ width: Int, _ height: Int, _ pixel: [UInt8], scale: Double = 1) throws -> RasterImage {
    try picture(width, height, (0..<width * height).flatMap { _ in pixel }, scale: scale)
}

/// Returns an image with random premultiplied pixels from a seed; some clear, some opaque.
func noise(_ width: Int, _ height: Int, seed: UInt64) throws -> RasterImage {
    var random = SplitMix(state: seed)
    let bytes = (0..<width * height).flatMap { _ in
        let kind = random.next() % 4
        let alpha = kind == 0 ? 0 : kind == 1 ? 255 : random.next() % 256
        return (0..<3).map { _ in UInt8(random.next() % (alpha + 1)) } + [UInt8(alpha)]
    }
    return try picture(width, height, bytes)
}

/// A random number generator that is the same in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

extension RasterImage {
    var bytes: [UInt8] { pixels.bytes }

    func pixel(_ x: Int, _ y: Int) -> [UInt8] { Array(bytes[(y * size.width + x) * 4..<(y * size.width + x) * 4 + 4]) }

    /// Returns the sum of a channel over all pixels.
    func sum(_ channel: Int) -> Double {
        stride(from: channel, to: bytes.count, by: 4).reduce(0) { $0 + Double(bytes[$1]) }
    }

    /// Returns whether no colour is above its alpha.
    var isPremultiplied: Bool {
        stride(from: 0, to: bytes.count, by: 4).allSatisfy { at in
            max(bytes[at], bytes[at + 1], bytes[at + 2]) <= bytes[at + 3]
        }
    }
}
