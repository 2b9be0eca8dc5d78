import CTernCodecs

extension ImageProcessors {
    /// The picture blurred by a Gaussian. At its edges it is continued by its mirror image: nothing fades or darkens.
    ///
    /// Up to a radius of 2.5 pixels by the kernel itself, above by three box blurs of the same variance, whose cost does
    /// not grow with the radius.
    public struct GaussianBlur: ImageProcessor {
        /// The identity: radius and unit.
        public let identifier: ProcessorIdentity
        private let radius: Double
        private let unit: ImageUnit

        /// Blurs by a radius: the Gaussian's standard deviation, as of `blur()` in CSS (Filter Effects 1, §6.1).
        public init(radius: Double, unit: ImageUnit = .pixels) {
            self.radius = radius
            self.unit = unit
            identifier = ProcessorIdentity(library: "blur", [radius, unit.number])
        }

        /// The picture blurred; throws `.invalidArgument` for a radius under zero or without end.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let wanted = unit.pixels(radius, scale: image.scale)
            guard wanted.isFinite, wanted >= 0 else {
                throw ImageError(.invalidArgument, format: image.format, "cannot blur by a radius of \(wanted) pixels")
            }
            // Under this, a neighbour's weight is less than half a level.
            guard wanted > 0.25 else { return image }
            let size = image.size
            // With a radius of twice the longer side nothing is left but the mean.
            let sigma = min(wanted, Double(max(size.width, size.height)) * 2)
            let work = Int(clamping: tern_blur_memory(UInt32(size.width), UInt32(size.height), sigma))
            return try unsafe image.made(size, work: work) { (source, base) throws(ImageError) in
                let stride = image.bytesPerRow
                try image.inGroups(of: size.width) {
                    unsafe tern_blur_columns(source, sigma, base, stride, $0, $1)
                }
                try image.inGroups(of: size.height) {
                    unsafe tern_blur_rows(base, stride, source.width, source.height, sigma, $0, $1)
                }
            }
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.GaussianBlur {
    /// The picture blurred by a Gaussian of a radius (its standard deviation), in pixels by default.
    public static func gaussianBlur(radius: Double, unit: ImageUnit = .pixels) -> Self {
        Self(radius: radius, unit: unit)
    }
}
