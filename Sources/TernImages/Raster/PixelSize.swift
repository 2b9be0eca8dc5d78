/// A width and a height in whole pixels.
public struct PixelSize: Sendable, Hashable, CustomStringConvertible {
    /// Pixels from left to right.
    public var width: Int
    /// Pixels from top to bottom.
    public var height: Int

    /// A size in pixels.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The size as `400×300`.
    public var description: String { "\(width)×\(height)" }

    /// Width times height; `Int.max` if that does not fit.
    public var pixelCount: Int {
        let (product, overflow) = width.multipliedReportingOverflow(by: height)
        return overflow ? .max : product
    }

    /// The size with width and height exchanged.
    var turned: PixelSize { PixelSize(width: height, height: width) }
}
