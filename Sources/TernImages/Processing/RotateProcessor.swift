import CTernCodecs

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension ImageProcessors {
    /// The picture turned clockwise: by multiples of 90° without loss, by other angles with anti-aliased edges.
    ///
    /// The result is as large as the turned picture needs. Its corners, and what is transparent in the picture, show
    /// the background; by multiples of 90° nothing is laid under the picture.
    public struct Rotate: ImageProcessor {
        /// The identity: the angle from 0° to 360°, and the background.
        public let identifier: ProcessorIdentity
        private let degrees: Double
        private let background: ImageColor

        /// Turns by degrees, negative ones counterclockwise, over a background, clear by default.
        public init(degrees: Double, background: ImageColor = .clear) {
            let rest = degrees.truncatingRemainder(dividingBy: 360)
            let turn = rest < 0 ? rest + 360 : rest
            // A hair's breadth under zero is rounded to 360.
            self.degrees = turn == 360 ? 0 : turn
            self.background = background
            identifier = ProcessorIdentity(library: "rotate", [self.degrees, background.number])
        }

        /// The picture turned; throws `.invalidArgument` for an angle that is no number.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            guard degrees.isFinite else {
                throw ImageError(.invalidArgument, format: image.format, "cannot rotate by \(degrees)°")
            }
            switch degrees {
            case 0: return image
            case 180:
                return try unsafe image.rows(image.size) { source, base, first, count in
                    unsafe tern_flip_rows(source, true, true, base, image.bytesPerRow, first, count)
                    return true
                }
            case 90, 270:
                let target = image.size.turned
                return try unsafe image.rows(target) { source, base, first, count in
                    unsafe tern_turn_rows(source, degrees == 90, base, target.width * 4, first, count)
                    return true
                }
            default: return try turned(image)
            }
        }

        private func turned(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let (cosine, sine) = (cos(degrees * .pi / 180), sin(degrees * .pi / 180))
            let (width, height) = (Double(image.size.width), Double(image.size.height))
            // What rounding adds to a whole number of pixels is not worth another one.
            func length(_ exact: Double) -> Int { max(1, Int((exact - 1e-6).rounded(.up))) }
            let target = PixelSize(
                width: length(width * abs(cosine) + height * abs(sine)),
                height: length(width * abs(sine) + height * abs(cosine)))
            return try unsafe image.rows(target) { source, base, first, count in
                unsafe tern_rotate_rows(
                    source, cosine, sine, background.codec, base, target.width * 4, UInt32(target.width),
                    UInt32(target.height), first, count)
                return true
            }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Rotate {
    /// The picture turned clockwise by degrees, as large as it needs, over a background, clear by default.
    public static func rotate(degrees: Double, background: ImageColor = .clear) -> Self {
        Self(degrees: degrees, background: background)
    }
}
