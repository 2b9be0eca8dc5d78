import CTernCodecs

extension ImageProcessors {
    /// Cuts out the largest circle in the middle of the image, as a square. The edge is anti-aliased.
    public struct Circle: ImageProcessor {
        /// The identity: the border.
        public let identifier: ProcessorIdentity
        private let border: ImageBorder?

        /// Creates the processor, with an optional border along the inner edge.
        public init(border: ImageBorder? = nil) {
            self.border = border
            identifier = ProcessorIdentity(library: "circle", border?.numbers ?? [])
        }

        /// Returns the circle, transparent around it. Throws the errors of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let radius = Double(min(image.size.width, image.size.height)) / 2
            return try image.framed(square: true, radii: [radius, radius, radius, radius], border: border)
        }
    }

    /// Rounds the corners of the image, anti-aliased.
    public struct RoundedCorners: ImageProcessor {
        /// A set of corners.
        public struct Corners: OptionSet, Sendable, Hashable {
            /// One bit for each corner, from the top left clockwise.
            public let rawValue: Int

            /// Creates a set from its bits.
            public init(rawValue: Int) { self.rawValue = rawValue }

            /// The corner at the top left.
            public static let topLeft = Corners(rawValue: 1)
            /// The corner at the top right.
            public static let topRight = Corners(rawValue: 2)
            /// The corner at the bottom right.
            public static let bottomRight = Corners(rawValue: 4)
            /// The corner at the bottom left.
            public static let bottomLeft = Corners(rawValue: 8)
            /// All corners.
            public static let all: Corners = [.topLeft, .topRight, .bottomRight, .bottomLeft]
        }

        /// The identity: the radius, its unit, the corners, and the border.
        public let identifier: ProcessorIdentity
        private let radius: Double
        private let unit: ImageUnit
        private let corners: Corners
        private let border: ImageBorder?

        /// Creates the processor. A radius above half the shorter side counts as half the shorter side.
        public init(
            radius: Double, unit: ImageUnit = .pixels, corners: Corners = .all, border: ImageBorder? = nil
        ) {
            self.radius = radius
            self.unit = unit
            self.corners = corners.intersection(.all)
            self.border = border
            let numbers = [radius, unit.number, Double(self.corners.rawValue)]
            identifier = ProcessorIdentity(library: "corners", numbers + (border?.numbers ?? []))
        }

        /// Returns the image with round corners, transparent beyond them. Throws the errors of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let most = Double(min(image.size.width, image.size.height)) / 2
            let wanted = unit.pixels(radius, scale: image.scale)
            let given = wanted > most ? most : wanted
            let each: [Corners] = [.topLeft, .topRight, .bottomRight, .bottomLeft]
            return try image.framed(radii: each.map { corners.contains($0) ? given : 0 }, border: border)
        }
    }

    /// Paints a line along the inner edge of the image.
    public struct Border: ImageProcessor {
        /// The identity: the width, the colour, and the unit.
        public let identifier: ProcessorIdentity
        private let border: ImageBorder

        /// Creates the processor. The border covers the outermost pixels; the size does not change.
        public init(_ border: ImageBorder) {
            self.border = border
            identifier = ProcessorIdentity(library: "border", border.numbers)
        }

        /// Returns the image with the border. Throws the errors of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            try image.framed(radii: [0, 0, 0, 0], border: border)
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Circle {
    /// Cuts out the largest circle in the middle of the image, as a square.
    public static func circle(border: ImageBorder? = nil) -> Self { Self(border: border) }
}

extension ImageProcessor where Self == ImageProcessors.RoundedCorners {
    /// Rounds the corners, by default all, with a radius in pixels by default.
    public static func roundedCorners(
        radius: Double, unit: ImageUnit = .pixels, corners: ImageProcessors.RoundedCorners.Corners = .all,
        border: ImageBorder? = nil
    ) -> Self {
        Self(radius: radius, unit: unit, corners: corners, border: border)
    }
}

extension ImageProcessor where Self == ImageProcessors.Border {
    /// Paints a line along the inner edge, with a width in pixels by default.
    public static func border(width: Double, color: ImageColor, unit: ImageUnit = .pixels) -> Self {
        Self(ImageBorder(width: width, color: color, unit: unit))
    }
}

extension RasterImage {
    /// Returns the image, or its middle square, with round corners and a border along its inner edge.
    ///
    /// The radii are in pixels, clockwise from the top left, each at most half the shorter side.
    func framed(square: Bool = false, radii: [Double], border: ImageBorder?) throws(ImageError) -> RasterImage {
        let line = border.map { $0.unit.pixels($0.width, scale: scale) } ?? 0
        guard radii.count == 4, radii.allSatisfy({ $0.isFinite && $0 >= 0 }), line.isFinite, line >= 0 else {
            throw ImageError(
                .invalidArgument, format: format, "radii \(radii) or a border of \(line) pixels are invalid")
        }
        let side = min(size.width, size.height)
        let target = square ? PixelSize(width: side, height: side) : size
        let (left, top) = ((size.width - target.width) / 2, (size.height - target.height) / 2)
        let color = try inOwnSpace(border?.color ?? .clear)
        return try unsafe renderedByRows(target, work: target.width * 8) { source, base, first, count in
            let part = unsafe tern_picture(
                pixels: source.pixels + top * source.stride + left * 4, stride: source.stride,
                width: UInt32(target.width), height: UInt32(target.height))
            return unsafe tern_frame_rows(part, radii, line, color, base, target.width * 4, first, count)
        }
    }
}
