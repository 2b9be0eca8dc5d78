extension ImageProcessors {
    /// The picture at another size, its proportions kept, by Lanczos3.
    public struct Resize: ImageProcessor {
        /// The identity: size, mode, and whether it may grow.
        public let identifier: ProcessorIdentity
        private let target: PixelSize
        private let mode: ImageDecodingOptions.ContentMode
        private let allowsUpsampling: Bool

        /// Meets the size in pixels as the mode says. A smaller picture stays as it is unless `allowsUpsampling`.
        public init(
            to target: PixelSize, mode: ImageDecodingOptions.ContentMode = .fit, allowsUpsampling: Bool = false
        ) {
            self.target = target
            self.mode = mode
            self.allowsUpsampling = allowsUpsampling
            let name =
                switch mode {
                case .fit: allowsUpsampling ? "enlarge.fit" : "resize.fit"
                case .fill: allowsUpsampling ? "enlarge.fill" : "resize.fill"
                case .atLeast: allowsUpsampling ? "enlarge.least" : "resize.least"
                }
            identifier = ProcessorIdentity(library: name, [Double(target.width), Double(target.height)])
        }

        /// The picture within, covering or filling the size. Errors are those of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            guard target.width > 0, target.height > 0 else {
                throw ImageError(
                    .invalidArgument, format: image.format, "cannot resize \(image.size) to \(target) pixels")
            }
            let (scaled, cropped) = sizes(of: image.size)
            return try image.resized(to: scaled).cropped(to: cropped)
        }

        /// The size to resize to, and what is kept of it.
        func sizes(of size: PixelSize) -> (scaled: PixelSize, cropped: PixelSize) {
            let across = Double(target.width) / Double(size.width)
            let down = Double(target.height) / Double(size.height)
            let factor = mode == .fit ? min(across, down) : max(across, down)
            guard allowsUpsampling, factor > 1 else {
                let plan = DecodingPlan(size: size, target: target, mode: mode)
                return (plan.scaled, plan.cropped)
            }
            // Past 2³¹ pixels a side it is an error all the same: what matters is that the number fits.
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
    /// The picture at a size in pixels, its proportions kept; never larger than it is unless `allowsUpsampling`.
    public static func resize(
        to size: PixelSize, mode: ImageDecodingOptions.ContentMode = .fit, allowsUpsampling: Bool = false
    ) -> Self {
        Self(to: size, mode: mode, allowsUpsampling: allowsUpsampling)
    }
}
