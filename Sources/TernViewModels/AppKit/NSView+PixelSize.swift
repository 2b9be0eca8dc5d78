#if canImport(AppKit) && !targetEnvironment(macCatalyst)
import AppKit
import TernImages

extension NSView {
    /// The bounds in pixels; nil before the view's layout, and while it is in no window.
    var pixelSize: PixelSize? { window.flatMap { PixelSize(bounds.size, scale: $0.backingScaleFactor) } }
}
#endif
