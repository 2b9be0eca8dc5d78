import CTernCodecs

/// A colour in sRGB, 8 bits a channel, with straight alpha.
public struct ImageColor: Sendable, Hashable {
    /// Red, 0 to 255.
    public var red: UInt8
    /// Green, 0 to 255.
    public var green: UInt8
    /// Blue, 0 to 255.
    public var blue: UInt8
    /// Opacity: 0 is clear, 255 opaque.
    public var alpha: UInt8

    /// A colour of its channels, opaque by default.
    public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
        self.red = red
        self.green = green
        self.blue = blue
        self.alpha = alpha
    }

    /// Nothing at all.
    public static let clear = ImageColor(red: 0, green: 0, blue: 0, alpha: 0)
    /// Opaque black.
    public static let black = ImageColor(red: 0, green: 0, blue: 0)
    /// Opaque white.
    public static let white = ImageColor(red: 255, green: 255, blue: 255)

    /// The same colour with another opacity, 0 to 1; beyond that the nearer of both.
    public func opacity(_ opacity: Double) -> ImageColor {
        var color = self
        color.alpha = UInt8((min(1, max(0, opacity)) * 255).rounded())
        return color
    }

    /// The four channels as one number, for an identity.
    var number: Double { Double(UInt32(red) << 24 | UInt32(green) << 16 | UInt32(blue) << 8 | UInt32(alpha)) }

    var codec: tern_color { tern_color(red: red, green: green, blue: blue, alpha: alpha) }
}
