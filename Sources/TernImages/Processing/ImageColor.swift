import CTernCodecs

/// A colour in sRGB with 8 bits per channel and straight alpha.
public struct ImageColor: Sendable, Hashable {
    /// Red, 0 to 255.
    public var red: UInt8
    /// Green, 0 to 255.
    public var green: UInt8
    /// Blue, 0 to 255.
    public var blue: UInt8
    /// Opacity: 0 is clear, 255 opaque.
    public var alpha: UInt8

    /// Creates a colour, opaque by default.
    public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
        self.red = red
        self.green = green
        self.blue = blue
        self.alpha = alpha
    }

    /// Transparent black.
    public static let clear = ImageColor(red: 0, green: 0, blue: 0, alpha: 0)
    /// Opaque black.
    public static let black = ImageColor(red: 0, green: 0, blue: 0)
    /// Opaque white.
    public static let white = ImageColor(red: 255, green: 255, blue: 255)

    /// Returns the colour with another opacity, clamped to 0–1.
    public func opacity(_ opacity: Double) -> ImageColor {
        var color = self
        color.alpha = UInt8((min(1, max(0, opacity)) * 255).rounded())
        return color
    }

    /// The four channels as one number, for an identity.
    var number: Double { Double(UInt32(red) << 24 | UInt32(green) << 16 | UInt32(blue) << 8 | UInt32(alpha)) }

    var codec: tern_color { tern_color(red: red, green: green, blue: blue, alpha: alpha) }
}

/// The unit of a length.
public enum ImageUnit: Sendable, Hashable {
    /// Pixels of the processed image.
    case pixels
    /// Points: `scale` pixels of the image each.
    case points

    func pixels(_ length: Double, scale: Double) -> Double { self == .pixels ? length : length * scale }

    /// The number that represents the unit in an identity.
    var number: Double { self == .pixels ? 0 : 1 }
}

/// A line along the inner edge of an image.
public struct ImageBorder: Sendable, Hashable {
    /// The width, from the edge inwards. Fractions of a pixel are anti-aliased.
    public var width: Double
    /// The colour. The image shows through a translucent colour.
    public var color: ImageColor
    /// The unit of the width.
    public var unit: ImageUnit

    /// Creates a border, with a width in pixels by default.
    public init(width: Double, color: ImageColor, unit: ImageUnit = .pixels) {
        self.width = width
        self.color = color
        self.unit = unit
    }

    /// The numbers that represent the border in an identity.
    var numbers: [Double] { [width, color.number, unit.number] }
}
