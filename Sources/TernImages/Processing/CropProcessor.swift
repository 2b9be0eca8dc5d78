import CTernCodecs

extension ImageProcessors {
    /// A part of the picture, its pixels as they are.
    public struct Crop: ImageProcessor {
        /// The identity: the size, and the place if there is one.
        public let identifier: ProcessorIdentity
        private let size: PixelSize
        private let origin: Origin?

        private struct Origin {
            let x: Int
            let y: Int
        }

        /// The middle of the picture: the size in pixels, or as much of it as the picture has.
        public init(to size: PixelSize) {
            self.size = size
            origin = nil
            identifier = ProcessorIdentity(library: "crop.middle", [Double(size.width), Double(size.height)])
        }

        /// The part of a rectangle in pixels, from the top left, that lies in the picture.
        public init(x: Int, y: Int, width: Int, height: Int) {
            size = PixelSize(width: width, height: height)
            origin = Origin(x: x, y: y)
            identifier = ProcessorIdentity(library: "crop", [Double(x), Double(y), Double(width), Double(height)])
        }

        /// The part; throws the kind `.invalidArgument` if the picture has nothing of it.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let all = image.size
            let columns = range(origin?.x, size.width, of: all.width)
            let rows = range(origin?.y, size.height, of: all.height)
            guard !columns.isEmpty, !rows.isEmpty else {
                let place = origin.map { " from \($0.x), \($0.y)" } ?? ""
                throw ImageError(
                    .invalidArgument, format: image.format, "\(all) pixels have nothing of \(size)\(place)")
            }
            if columns.count == all.width, rows.count == all.height { return image }
            let target = PixelSize(width: columns.count, height: rows.count)
            return try unsafe image.rows(target) { source, base, first, count in
                let part = unsafe tern_picture(
                    pixels: source.pixels + rows.lowerBound * source.stride + columns.lowerBound * 4,
                    stride: source.stride, width: UInt32(target.width), height: UInt32(target.height))
                unsafe tern_flip_rows(part, false, false, base, target.width * 4, first, count)
                return true
            }
        }

        private func range(_ start: Int?, _ length: Int, of all: Int) -> Range<Int> {
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
    /// The middle of the picture: the size in pixels, or as much of it as the picture has.
    public static func crop(to size: PixelSize) -> Self { Self(to: size) }

    /// The part of a rectangle in pixels, from the top left, that lies in the picture.
    public static func crop(x: Int, y: Int, width: Int, height: Int) -> Self {
        Self(x: x, y: y, width: width, height: height)
    }
}
