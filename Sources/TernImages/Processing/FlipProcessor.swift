import CTernCodecs

extension ImageProcessors {
    /// The picture mirrored, without loss.
    public struct Flip: ImageProcessor {
        /// Which ends change places.
        public enum Axis: Sendable, Hashable {
            /// Left and right.
            case horizontal
            /// Top and bottom.
            case vertical
        }

        /// The identity: the axis.
        public let identifier: ProcessorIdentity
        private let axis: Axis

        /// Mirrors along an axis.
        public init(_ axis: Axis) {
            self.axis = axis
            identifier = ProcessorIdentity(library: axis == .horizontal ? "flip.horizontal" : "flip.vertical")
        }

        /// The picture mirrored. Errors are those of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            try unsafe image.rows(image.size) { source, base, first, count in
                unsafe tern_flip_rows(
                    source, axis == .horizontal, axis == .vertical, base, image.bytesPerRow, first, count)
                return true
            }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Flip {
    /// The picture mirrored: `.horizontal` exchanges left and right.
    public static func flip(_ axis: ImageProcessors.Flip.Axis) -> Self { Self(axis) }
}
