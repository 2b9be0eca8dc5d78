#if canImport(CoreGraphics)
import Foundation
import TernImages

extension PixelSize {
    /// What covers so many points; nil for less than a pixel.
    init?(_ points: CGSize, scale: CGFloat) {
        let (width, height) = ((points.width * scale).rounded(.up), (points.height * scale).rounded(.up))
        // Also not for what is no number, and what a layout that is not bounded offers.
        guard width >= 1, height >= 1, width <= 1_048_576, height <= 1_048_576 else { return nil }
        self.init(width: Int(width), height: Int(height))
    }
}
#endif
