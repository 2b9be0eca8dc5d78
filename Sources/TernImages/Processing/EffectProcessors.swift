import CTernCodecs

extension ImageProcessors {
    /// Lays a colour or another image over the image (source-over), for example a shade or a watermark.
    public struct Overlay: ImageProcessor {
        /// The place of the other image.
        public enum Placement: Sendable, Hashable {
            /// Over the whole image, stretched to its size.
            case stretched
            /// In the middle, in its own size.
            case centered
            /// In its own size, with its top left pixel at a point from the top left. The part outside is cut off.
            case at(x: Int, y: Int)
        }

        private enum Content {
            case color(ImageColor)
            case image(RasterImage, Placement, opacity: UInt32)
        }

        /// The identity: the colour; or the identifier of the other image, its placement, and its opacity.
        public let identifier: ProcessorIdentity
        private let content: Content

        /// Lays a colour over the whole image, transparent parts included.
        public init(_ color: ImageColor) {
            content = .color(color)
            identifier = ProcessorIdentity(library: "overlay.color", [color.number])
        }

        /// Lays another image over the image, with an opacity from 0 to 1.
        ///
        /// The identifier names the other image: equal identifiers must mean equal images.
        public init(
            _ image: RasterImage, identifier: String, placement: Placement = .stretched, opacity: Double = 1
        ) {
            let part = opacity.isNaN ? 65_536 : (min(1, max(0, opacity)) * 65_536).rounded()
            content = .image(image, placement, opacity: UInt32(part))
            self.identifier =
                switch placement {
                case .stretched: ProcessorIdentity(library: "overlay.stretched", text: identifier, [part])
                case .centered: ProcessorIdentity(library: "overlay.centered", text: identifier, [part])
                case .at(let x, let y):
                    ProcessorIdentity(library: "overlay.at", text: identifier, [part, Double(x), Double(y)])
                }
        }

        /// Returns the image under the overlay. Throws the errors of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            switch content {
            case .color(let color):
                let color = try image.inOwnSpace(color)
                return try unsafe image.mappingPixels { unsafe tern_cover($0, $1, $2, color) }
            case .image(let above, .stretched, let opacity):
                return try Self.lay(above.resized(to: image.size), x: 0, y: 0, opacity: opacity, on: image)
            case .image(let above, .centered, let opacity):
                let x = (image.size.width - above.size.width) / 2
                let y = (image.size.height - above.size.height) / 2
                return try Self.lay(above, x: x, y: y, opacity: opacity, on: image)
            case .image(let above, .at(let x, let y), let opacity):
                return try Self.lay(above, x: x, y: y, opacity: opacity, on: image)
            }
        }

        private static func lay(
            _ given: RasterImage, x: Int, y: Int, opacity: UInt32, on image: RasterImage
        ) throws(ImageError) -> RasterImage {
            let above: RasterImage
            switch image.colorSpace {
            case given.colorSpace: above = try given.converted(to: .asStored(.uint8))
            case .sRGB: above = try given.converted(to: .sRGB)
            case .displayP3: above = try given.converted(to: .displayP3)
            case .profile, .numbers: throw image.needsKnownSpace
            }
            let columns = overlap(at: x, length: above.size.width, total: image.size.width)
            let lines = overlap(at: y, length: above.size.height, total: image.size.height)
            let stride = image.bytesPerRow
            return try unsafe image.renderedByRows(image.size) { source, base, first, count in
                unsafe tern_flip_rows(source, image.bytesPerPixel, false, false, base, stride, first, count)
                unsafe above.pixels.bytes.withUnsafeBufferPointer { bytes in
                    guard let start = bytes.baseAddress, let under = unsafe source.pixels else { return }
                    for row in lines.clamped(to: Int(first)..<Int(first + count)) {
                        let place = row * stride + columns.lowerBound * 4
                        let from = (row - y) * above.bytesPerRow + (columns.lowerBound - x) * 4
                        unsafe tern_over(under + place, start + from, base + place, columns.count, opacity)
                    }
                }
                return true
            }
        }

        /// Returns the rows or columns of the image that the other image covers.
        private static func overlap(at place: Int, length: Int, total all: Int) -> Range<Int> {
            guard place < all, place > -length else { return 0..<0 }
            return max(0, place)..<min(all - place, length) + place
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Overlay {
    /// Lays a colour over the whole image, transparent parts included.
    public static func overlay(_ color: ImageColor) -> Self { Self(color) }

    /// Lays another image over the image. Equal identifiers must mean equal images.
    public static func overlay(
        _ image: RasterImage, identifier: String, placement: ImageProcessors.Overlay.Placement = .stretched,
        opacity: Double = 1
    ) -> Self {
        Self(image, identifier: identifier, placement: placement, opacity: opacity)
    }
}

extension ImageProcessors {
    /// Lays a colour over the opaque parts of the image (source-atop): an opaque colour keeps only the shape.
    public struct Tint: ImageProcessor {
        /// The identity: the colour.
        public let identifier: ProcessorIdentity
        private let color: ImageColor

        /// Creates a tint. The more opaque the colour, the stronger the tint.
        public init(_ color: ImageColor) {
            self.color = color
            identifier = ProcessorIdentity(library: "tint", [color.number])
        }

        /// Returns the tinted image with unchanged alpha. Throws the errors of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let color = try image.inOwnSpace(color)
            return try unsafe image.mappingPixels { unsafe tern_tint($0, $1, $2, color) }
        }
    }

    /// Turns the image to greys: the Rec. 709 luma of its sRGB values (ITU-R BT.709, §3). An image in Display P3 gets the
    /// luma of its own values, weighted by the luminances of its primaries.
    public struct Monochrome: ImageProcessor {
        /// The identity, without parameters.
        public let identifier = ProcessorIdentity(library: "monochrome")

        /// Creates the processor.
        public init() {}

        /// Returns the image in greys with unchanged alpha. Throws the errors of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let isP3 = image.colorSpace == .displayP3
            guard isP3 || image.colorSpace == .sRGB else { throw image.needsKnownSpace }
            return try unsafe image.mappingPixels { unsafe tern_luma($0, $1, $2, isP3) }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Tint {
    /// Lays a colour over the opaque parts of the image.
    public static func tint(_ color: ImageColor) -> Self { Self(color) }
}

extension ImageProcessor where Self == ImageProcessors.Monochrome {
    /// Turns the image to greys.
    public static func monochrome() -> Self { Self() }
}

extension ImageProcessors {
    /// Blurs the image with a Gaussian. The image is mirrored at its edges, so that they do not darken.
    ///
    /// A radius of up to 2.5 pixels uses the kernel itself; a larger one uses three box blurs of the same variance,
    /// whose cost does not grow with the radius.
    public struct GaussianBlur: ImageProcessor {
        /// The identity: the radius and its unit.
        public let identifier: ProcessorIdentity
        private let radius: Double
        private let unit: ImageUnit

        /// Creates a blur with a radius: the standard deviation of the Gaussian, as in CSS `blur()` (Filter Effects 1,
        /// §6.1).
        public init(radius: Double, unit: ImageUnit = .pixels) {
            self.radius = radius
            self.unit = unit
            identifier = ProcessorIdentity(library: "blur", [radius, unit.number])
        }

        /// Returns the blurred image. Throws `.invalidArgument` for a negative or infinite radius.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let wanted = unit.pixels(radius, scale: image.scale)
            guard wanted.isFinite, wanted >= 0 else {
                throw ImageError(.invalidArgument, format: image.format, "cannot blur by a radius of \(wanted) pixels")
            }
            // Below this radius, the weight of a neighbour is less than half a level.
            guard wanted > 0.25 else { return image }
            let size = image.size
            // The sums of a box have 32 bits.
            let sigma = min(wanted, 32_000)
            let work = Int(clamping: tern_blur_memory(UInt32(size.width), UInt32(size.height), sigma))
            return try unsafe image.rendered(size, work: work) { (source, base) throws(ImageError) in
                let stride = image.bytesPerRow
                try image.forEachGroup(of: size.width) {
                    unsafe tern_blur_columns(source, sigma, base, stride, $0, $1)
                }
                try image.forEachGroup(of: size.height) {
                    unsafe tern_blur_rows(base, stride, source.width, source.height, sigma, $0, $1)
                }
            }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.GaussianBlur {
    /// Blurs the image with a Gaussian. The radius is its standard deviation, in pixels by default.
    public static func gaussianBlur(radius: Double, unit: ImageUnit = .pixels) -> Self {
        Self(radius: radius, unit: unit)
    }
}
