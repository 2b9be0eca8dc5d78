import CTernCodecs

extension ImageProcessors {
    /// A colour or another picture over the picture (source-over), as a shade or a watermark.
    public struct Overlay: ImageProcessor {
        /// Where another picture goes.
        public enum Placement: Sendable, Hashable {
            /// Over all of it, resized to its size without regard to proportions.
            case stretched
            /// In the middle, in its own size.
            case centered
            /// In its own size, its top left pixel at a place from the top left; what lies outside is cut off.
            case at(x: Int, y: Int)
        }

        private enum Content {
            case color(ImageColor)
            case image(RasterImage, Placement, opacity: UInt32)
        }

        /// The identity: the colour; or the identifier of the other picture, its placement, and its opacity.
        public let identifier: ProcessorIdentity
        private let content: Content

        /// Lays a colour over all of the picture, also where that is transparent.
        public init(_ color: ImageColor) {
            content = .color(color)
            identifier = ProcessorIdentity(library: "overlay.color", [color.number])
        }

        /// Lays another picture over the picture, with an opacity from 0 to 1.
        ///
        /// The identifier names the other picture: equal identifiers must mean equal pictures.
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

        /// The picture under the overlay. Errors are those of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            switch content {
            case .color(let color): return try unsafe image.mapped { unsafe tern_cover($0, $1, $2, color.codec) }
            case .image(let above, .stretched, let opacity):
                return try Self.lay(above.resized(to: image.size), x: 0, y: 0, opacity, on: image)
            case .image(let above, .centered, let opacity):
                let x = (image.size.width - above.size.width) / 2
                let y = (image.size.height - above.size.height) / 2
                return try Self.lay(above, x: x, y: y, opacity, on: image)
            case .image(let above, .at(let x, let y), let opacity):
                return try Self.lay(above, x: x, y: y, opacity, on: image)
            }
        }

        private static func lay(
            _ above: RasterImage, x: Int, y: Int, _ opacity: UInt32, on image: RasterImage
        ) throws(ImageError) -> RasterImage {
            let columns = shared(x, above.size.width, with: image.size.width)
            let lines = shared(y, above.size.height, with: image.size.height)
            let stride = image.bytesPerRow
            return try unsafe image.rows(image.size) { source, base, first, count in
                unsafe tern_flip_rows(source, false, false, base, stride, first, count)
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

        /// The rows or columns of the picture that one of a length, laid at a place, comes to lie on.
        private static func shared(_ place: Int, _ length: Int, with all: Int) -> Range<Int> {
            guard place < all, place > -length else { return 0..<0 }
            return max(0, place)..<min(all - place, length) + place
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Overlay {
    /// A colour over all of the picture, also where that is transparent.
    public static func overlay(_ color: ImageColor) -> Self { Self(color) }

    /// Another picture over the picture; equal identifiers must mean equal pictures.
    public static func overlay(
        _ image: RasterImage, identifier: String, placement: ImageProcessors.Overlay.Placement = .stretched,
        opacity: Double = 1
    ) -> Self {
        Self(image, identifier: identifier, placement: placement, opacity: opacity)
    }
}
