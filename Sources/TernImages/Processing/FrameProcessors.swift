extension ImageProcessors {
    /// The largest circle in the middle of the picture, in a square of its size. Its edge is anti-aliased.
    public struct Circle: ImageProcessor {
        /// The identity: the border.
        public let identifier: ProcessorIdentity
        private let border: ImageBorder?

        /// A circle, with a border along its inner edge if there is one.
        public init(border: ImageBorder? = nil) {
            self.border = border
            identifier = ProcessorIdentity(library: "circle", border?.numbers ?? [])
        }

        /// The circle; transparent around it. Errors are those of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let radius = Double(min(image.size.width, image.size.height)) / 2
            return try image.framed(square: true, radii: [radius, radius, radius, radius], border: border)
        }
    }

    /// The picture with round corners, anti-aliased.
    public struct RoundedCorners: ImageProcessor {
        /// A set of corners.
        public struct Corners: OptionSet, Sendable, Hashable {
            /// One bit for each corner, from the top left clockwise.
            public let rawValue: Int

            /// A set by its bits.
            public init(rawValue: Int) { self.rawValue = rawValue }

            /// The corner at the top left.
            public static let topLeft = Corners(rawValue: 1)
            /// The corner at the top right.
            public static let topRight = Corners(rawValue: 2)
            /// The corner at the bottom right.
            public static let bottomRight = Corners(rawValue: 4)
            /// The corner at the bottom left.
            public static let bottomLeft = Corners(rawValue: 8)
            /// All four.
            public static let all: Corners = [.topLeft, .topRight, .bottomRight, .bottomLeft]
        }

        /// The identity: radius, unit, corners, border.
        public let identifier: ProcessorIdentity
        private let radius: Double
        private let unit: ImageUnit
        private let corners: Corners
        private let border: ImageBorder?

        /// Rounds corners by a radius, which counts as half the shorter side if it is longer than that.
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

        /// The picture with round corners, transparent beyond them. Errors are those of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            let most = Double(min(image.size.width, image.size.height)) / 2
            let wanted = unit.pixels(radius, scale: image.scale)
            let given = wanted > most ? most : wanted
            let each: [Corners] = [.topLeft, .topRight, .bottomRight, .bottomLeft]
            return try image.framed(radii: each.map { corners.contains($0) ? given : 0 }, border: border)
        }
    }

    /// The picture with a line along its inner edge.
    public struct Border: ImageProcessor {
        /// The identity: width, colour, unit.
        public let identifier: ProcessorIdentity
        private let border: ImageBorder

        /// Paints a border over the outermost pixels; the size stays.
        public init(_ border: ImageBorder) {
            self.border = border
            identifier = ProcessorIdentity(library: "border", border.numbers)
        }

        /// The picture with the border. Errors are those of `ImageProcessor`.
        public func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
            try image.framed(radii: [0, 0, 0, 0], border: border)
        }
    }
}

extension ImageProcessor where Self == ImageProcessors.Circle {
    /// The largest circle in the middle of the picture, in a square of its size.
    public static func circle(border: ImageBorder? = nil) -> Self { Self(border: border) }
}

extension ImageProcessor where Self == ImageProcessors.RoundedCorners {
    /// The picture with round corners, all by default, of a radius in pixels by default.
    public static func roundedCorners(
        radius: Double, unit: ImageUnit = .pixels, corners: ImageProcessors.RoundedCorners.Corners = .all,
        border: ImageBorder? = nil
    ) -> Self {
        Self(radius: radius, unit: unit, corners: corners, border: border)
    }
}

extension ImageProcessor where Self == ImageProcessors.Border {
    /// The picture with a line along its inner edge, of a width in pixels by default.
    public static func border(width: Double, color: ImageColor, unit: ImageUnit = .pixels) -> Self {
        Self(ImageBorder(width: width, color: color, unit: unit))
    }
}
