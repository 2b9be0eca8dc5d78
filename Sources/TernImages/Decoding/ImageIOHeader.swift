#if canImport(ImageIO)
import CoreGraphics
import Foundation
import ImageIO

/// What ImageIO reads of a picture before it decodes it.
struct ImageIOHeader {
    /// The size in pixels as stored, before orientation.
    let stored: PixelSize
    /// EXIF's, 1 to 8.
    let orientation: Int
    let hasProfile: Bool

    /// Nil if the properties say no size.
    init?(_ properties: NSDictionary) {
        guard let width = properties.object(forKey: kCGImagePropertyPixelWidth) as? NSNumber,
            let height = properties.object(forKey: kCGImagePropertyPixelHeight) as? NSNumber
        else { return nil }
        stored = PixelSize(width: width.intValue, height: height.intValue)
        let turn = (properties.object(forKey: kCGImagePropertyOrientation) as? NSNumber)?.intValue ?? 1
        orientation = (1...8).contains(turn) ? turn : 1
        hasProfile = properties.object(forKey: kCGImagePropertyProfileName) != nil
    }

    /// The size as shown.
    var upright: PixelSize { turned(stored) }

    /// Between the size as shown and as stored, either way.
    func turned(_ size: PixelSize) -> PixelSize { orientation >= 5 ? size.turned : size }

    func plan(_ options: ImageDecodingOptions) -> DecodingPlan { DecodingPlan(size: upright, options) }
}
#endif
