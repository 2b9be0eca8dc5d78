#if canImport(UIKit) && !os(watchOS)
import TernImages
import UIKit

extension UIView {
    /// The bounds in pixels; nil before the view's layout, and while it knows no screen.
    var pixelSize: PixelSize? { PixelSize(bounds.size, scale: traitCollection.displayScale) }
}
#endif
