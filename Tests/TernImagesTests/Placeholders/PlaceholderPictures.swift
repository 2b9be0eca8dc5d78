@testable import TernImages

/// Pictures by formula, and digests of pixels: `ThumbHashTests` and `BlurHashTests` compare with what the packages
/// thumbhash-python 1.0.1 and blurhash 1.1.5 of PyPI make of the same pictures.
enum PlaceholderPictures {
    /// - Parameter isOpaque: Whether transparent pixels are shown in the color that they have.
    static func picture(_ kind: Int, _ width: Int, _ height: Int, isOpaque: Bool = false) -> RasterImage {
        var bytes: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                let (color, isClear): ([Int], Bool) =
                    switch kind {
                    case 1: ([(x * 37 + y * 91) % 256, (x * x + y * 17) % 256, (x * 5 + y * y * 3) % 256], false)
                    case 4: ([x * 3 % 256, 255 - y * 2 % 256, (x + y) % 256], (x / 4 + y / 3) % 2 == 0)
                    default:
                        (
                            [
                                x * x * 255 / (width * width), y * y * y * 255 / (height * height * height),
                                x * y * 255 / (width * height),
                            ], false
                        )
                    }
                bytes += isClear && !isOpaque ? [0, 0, 0, 0] : color.map { UInt8($0) } + [255]
            }
        }
        let size = PixelSize(width: width, height: height)
        return RasterImage(
            pixels: PixelBuffer(bytes), size: size, format: nil, metadata: RasterImage.Metadata(originalSize: size))
    }

    /// FNV-1a of 64 bits.
    static func digest(_ image: RasterImage) -> UInt64 {
        image.pixels.bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
