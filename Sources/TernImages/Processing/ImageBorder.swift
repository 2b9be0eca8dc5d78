/// What a length is measured in.
public enum ImageUnit: Sendable, Hashable {
    /// Pixels of the picture that is processed.
    case pixels
    /// Points: as many pixels as the picture's `scale` says.
    case points

    func pixels(_ length: Double, scale: Double) -> Double { self == .pixels ? length : length * scale }

    /// What stands in an identity for it.
    var number: Double { self == .pixels ? 0 : 1 }
}

/// A line along the inner edge of a picture.
public struct ImageBorder: Sendable, Hashable {
    /// How wide it is, from the edge inwards; fractions of a pixel are anti-aliased.
    public var width: Double
    /// Its colour. The picture shows through one that is not opaque.
    public var color: ImageColor
    /// What the width is measured in.
    public var unit: ImageUnit

    /// A border of a width, in pixels by default.
    public init(width: Double, color: ImageColor, unit: ImageUnit = .pixels) {
        self.width = width
        self.color = color
        self.unit = unit
    }

    /// What an identity says of it.
    var numbers: [Double] { [width, color.number, unit.number] }
}
