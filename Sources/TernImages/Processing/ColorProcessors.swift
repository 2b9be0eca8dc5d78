import CTernCodecs

extension ImageProcessors {
    /// A colour laid on the picture where it is opaque (source-atop): an opaque colour leaves the shape alone.
    public struct Tint: ImageProcessor {
        /// The identity: the colour.
        public let identifier: ProcessorIdentity
        private let color: ImageColor

        /// Tints with a colour, the stronger the more opaque it is.
        public init(_ color: ImageColor) {
            self.color = color
            identifier = ProcessorIdentity(library: "tint", [color.number])
        }

        /// The picture tinted, its alpha as it was. Errors are those of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            try unsafe image.mapped { unsafe tern_tint($0, $1, $2, color.codec) }
        }
    }

    /// The picture in greys: the Rec. 709 luma of its sRGB values (ITU-R BT.709, §3).
    public struct Monochrome: ImageProcessor {
        /// The identity, of which there is one.
        public let identifier = ProcessorIdentity(library: "monochrome")

        /// Takes the colours away.
        public init() {}

        /// The picture in greys, its alpha as it was. Errors are those of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            try unsafe image.mapped { unsafe tern_luma($0, $1, $2) }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Tint {
    /// A colour laid on the picture where it is opaque.
    public static func tint(_ color: ImageColor) -> Self { Self(color) }
}

extension ImageProcessor where Self == ImageProcessors.Monochrome {
    /// The picture in greys.
    public static func monochrome() -> Self { Self() }
}
