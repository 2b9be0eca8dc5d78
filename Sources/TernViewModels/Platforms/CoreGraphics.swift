#if canImport(CoreGraphics)
import Foundation
import TernImages

extension PixelSize {
    /// Creates the size in pixels that covers a size in points; nil for less than one pixel.
    init?(_ points: CGSize, scale: CGFloat) {
        let (width, height) = ((points.width * scale).rounded(.up), (points.height * scale).rounded(.up))
        // The bounds also exclude NaN and the infinite proposals of an unbounded layout.
        guard width >= 1, height >= 1, width <= 1_048_576, height <= 1_048_576 else { return nil }
        self.init(width: Int(width), height: Int(height))
    }
}
#endif
