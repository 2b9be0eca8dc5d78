import CTernCodecs

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension ImageProcessors {
    /// Rotates the image clockwise: without loss by multiples of 90°, with anti-aliased edges by other angles.
    ///
    /// The result is as large as the rotated image needs. The background fills its corners and the transparent parts of
    /// the image; after a rotation by a multiple of 90° there is no background.
    public struct Rotate: ImageProcessor {
        /// The identity: the angle from 0° to 360°, and the background.
        public let identifier: ProcessorIdentity
        private let degrees: Double
        private let background: ImageColor

        /// Creates a rotation by degrees, counterclockwise if negative, over a background, clear by default.
        public init(degrees: Double, background: ImageColor = .clear) {
            let rest = degrees.truncatingRemainder(dividingBy: 360)
            let turn = rest < 0 ? rest + 360 : rest
            // A tiny negative angle is rounded to 360.
            self.degrees = turn == 360 ? 0 : turn
            self.background = background
            identifier = ProcessorIdentity(library: "rotate", [self.degrees, background.number])
        }

        /// Returns the rotated image. Throws `.invalidArgument` for an angle that is not finite.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            guard degrees.isFinite else {
                throw ImageError(.invalidArgument, format: image.format, "cannot rotate by \(degrees)°")
            }
            switch degrees {
            case 0: return image
            case 180:
                return try unsafe image.renderedByRows(image.size, of: .all) { source, base, first, count in
                    unsafe tern_flip_rows(
                        source, image.bytesPerPixel, true, true, base, image.bytesPerRow, first, count)
                    return true
                }
            case 90, 270:
                let target = image.size.turned
                return try unsafe image.renderedByRows(target, of: .all) { source, base, first, count in
                    let bytes = image.bytesPerPixel
                    unsafe tern_turn_rows(source, bytes, degrees == 90, base, target.width * bytes, first, count)
                    return true
                }
            default: return try turned(image)
            }
        }

        private func turned(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let (cosine, sine) = (cos(degrees * .pi / 180), sin(degrees * .pi / 180))
            let (width, height) = (Double(image.size.width), Double(image.size.height))
            // A rounding error must not add a pixel.
            func length(_ exact: Double) -> Int { max(1, Int((exact - 1e-6).rounded(.up))) }
            let target = PixelSize(
                width: length(width * abs(cosine) + height * abs(sine)),
                height: length(width * abs(sine) + height * abs(cosine)))
            let background = try image.inOwnSpace(background)
            return try unsafe image.renderedByRows(target) { source, base, first, count in
                unsafe tern_rotate_rows(
                    source, cosine, sine, background, base, target.width * 4, UInt32(target.width),
                    UInt32(target.height), first, count)
                return true
            }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Rotate {
    /// Rotates the image clockwise by degrees, over a background, clear by default. The result is as large as it needs
    /// to be.
    public static func rotate(degrees: Double, background: ImageColor = .clear) -> Self {
        Self(degrees: degrees, background: background)
    }
}

extension ImageProcessors {
    /// Mirrors the image, without loss.
    public struct Flip: ImageProcessor {
        /// The sides that are exchanged.
        public enum Axis: Sendable, Hashable {
            /// Left and right.
            case horizontal
            /// Top and bottom.
            case vertical
        }

        /// The identity: the axis.
        public let identifier: ProcessorIdentity
        private let axis: Axis

        /// Creates a flip along an axis.
        public init(_ axis: Axis) {
            self.axis = axis
            identifier = ProcessorIdentity(library: axis == .horizontal ? "flip.horizontal" : "flip.vertical")
        }

        /// Returns the mirrored image. Throws the errors of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            try unsafe image.renderedByRows(image.size, of: .all) { source, base, first, count in
                unsafe tern_flip_rows(
                    source, image.bytesPerPixel, axis == .horizontal, axis == .vertical, base, image.bytesPerRow,
                    first, count)
                return true
            }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Flip {
    /// Mirrors the image: `.horizontal` exchanges left and right.
    public static func flip(_ axis: ImageProcessors.Flip.Axis) -> Self { Self(axis) }
}

extension ImageProcessors {
    /// Cuts out a part of the image. The pixels do not change.
    public struct Crop: ImageProcessor {
        /// The identity: the size, and the origin if there is one.
        public let identifier: ProcessorIdentity
        private let size: PixelSize
        private let origin: Origin?

        private struct Origin {
            let x: Int
            let y: Int
        }

        /// Creates a crop to the middle of the image, with a size in pixels or less if the image is smaller.
        public init(to size: PixelSize) {
            self.size = size
            origin = nil
            identifier = ProcessorIdentity(library: "crop.middle", [Double(size.width), Double(size.height)])
        }

        /// Creates a crop to the part of a rectangle, in pixels from the top left, that lies in the image.
        public init(x: Int, y: Int, width: Int, height: Int) {
            size = PixelSize(width: width, height: height)
            origin = Origin(x: x, y: y)
            identifier = ProcessorIdentity(library: "crop", [Double(x), Double(y), Double(width), Double(height)])
        }

        /// Returns the part. Throws `.invalidArgument` if it is empty.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let all = image.size
            let columns = range(from: origin?.x, length: size.width, total: all.width)
            let rows = range(from: origin?.y, length: size.height, total: all.height)
            guard !columns.isEmpty, !rows.isEmpty else {
                let place = origin.map { " from \($0.x), \($0.y)" } ?? ""
                throw ImageError(
                    .invalidArgument, format: image.format,
                    "a crop to \(size)\(place) lies outside the image of \(all) pixels")
            }
            if columns.count == all.width, rows.count == all.height { return image }
            let target = PixelSize(width: columns.count, height: rows.count)
            let bytes = image.bytesPerPixel
            return try unsafe image.renderedByRows(target, of: .all) { source, base, first, count in
                let part = unsafe tern_picture(
                    pixels: source.pixels + rows.lowerBound * source.stride + columns.lowerBound * bytes,
                    stride: source.stride, width: UInt32(target.width), height: UInt32(target.height))
                unsafe tern_flip_rows(part, bytes, false, false, base, target.width * bytes, first, count)
                return true
            }
        }

        private func range(from start: Int?, length: Int, total all: Int) -> Range<Int> {
            guard length > 0 else { return 0..<0 }
            guard let start else {
                let kept = min(length, all)
                return (all - kept) / 2..<(all - kept) / 2 + kept
            }
            let (end, overflow) = start.addingReportingOverflow(length)
            let first = max(0, start)
            return first..<max(first, overflow ? all : min(end, all))
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Crop {
    /// Crops to the middle of the image, with a size in pixels or less if the image is smaller.
    public static func crop(to size: PixelSize) -> Self { Self(to: size) }

    /// Crops to the part of a rectangle, in pixels from the top left, that lies in the image.
    public static func crop(x: Int, y: Int, width: Int, height: Int) -> Self {
        Self(x: x, y: y, width: width, height: height)
    }
}

extension ImageProcessors {
    /// Resizes the image with Lanczos3, with its proportions.
    public struct Resize: ImageProcessor {
        /// The identity: the size, the mode, whether the image may be enlarged, and whether light is averaged.
        public let identifier: ProcessorIdentity
        private let target: PixelSize
        private let mode: ImageDecodingOptions.ContentMode
        private let allowsUpsampling: Bool
        private let inLinearLight: Bool

        /// Creates a resize to a size in pixels. A smaller image is unchanged unless `allowsUpsampling`. With
        /// `inLinearLight` the light of pixels is averaged, as `RasterImage.resized(to:inLinearLight:)` does.
        public init(
            to target: PixelSize, mode: ImageDecodingOptions.ContentMode = .fit, allowsUpsampling: Bool = false,
            inLinearLight: Bool = false
        ) {
            self.target = target
            self.mode = mode
            self.allowsUpsampling = allowsUpsampling
            self.inLinearLight = inLinearLight
            let name =
                switch mode {
                case .fit: allowsUpsampling ? "enlarge.fit" : "resize.fit"
                case .fill: allowsUpsampling ? "enlarge.fill" : "resize.fill"
                case .atLeast: allowsUpsampling ? "enlarge.least" : "resize.least"
                }
            identifier = ProcessorIdentity(
                library: inLinearLight ? name + ".light" : name, [Double(target.width), Double(target.height)])
        }

        /// Returns the image within, covering or filling the size. Throws the errors of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            guard target.width > 0, target.height > 0 else {
                throw ImageError(
                    .invalidArgument, format: image.format, "cannot resize \(image.size) to \(target) pixels")
            }
            let (scaled, cropped) = sizes(of: image.size)
            return try image.resized(to: scaled, inLinearLight: inLinearLight).cropped(to: cropped)
        }

        /// Returns the size to resize to, and the size to crop to.
        func sizes(of size: PixelSize) -> (scaled: PixelSize, cropped: PixelSize) {
            let across = Double(target.width) / Double(size.width)
            let down = Double(target.height) / Double(size.height)
            let factor = mode == .fit ? min(across, down) : max(across, down)
            guard allowsUpsampling, factor > 1 else {
                let plan = DecodingPlan(size: size, target: target, mode: mode)
                return (plan.scaled, plan.cropped)
            }
            // A side above 2³¹ pixels is an error later; here the number must fit.
            func length(_ of: Int) -> Int { Int(min(Double(of) * factor, 0x1p31).rounded()) }
            let scaled = PixelSize(width: length(size.width), height: length(size.height))
            guard mode == .fill else { return (scaled, scaled) }
            let kept = PixelSize(
                width: min(target.width, scaled.width), height: min(target.height, scaled.height))
            return (scaled, kept)
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Resize {
    /// Resizes the image to a size in pixels, with its proportions. It is enlarged only with `allowsUpsampling`.
    public static func resize(
        to size: PixelSize, mode: ImageDecodingOptions.ContentMode = .fit, allowsUpsampling: Bool = false,
        inLinearLight: Bool = false
    ) -> Self {
        Self(to: size, mode: mode, allowsUpsampling: allowsUpsampling, inLinearLight: inLinearLight)
    }
}
