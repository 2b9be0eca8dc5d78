#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit
public import TernImages

/// Shows `.image` and `.animation`; other slots are not shown. Changes at once: a transition counts as ended.
///
/// For loads with `ImageDisplay.fitsView`, call `imageSizesChanged()` where the view is laid out, as in `layout()`.
extension NSImageView: ImageViewModel {
    /// Sets the image.
    public func showImage(_ shown: ShownImage, in slot: ImageSlot) {
        if slot == .image || slot == .animation { image = shown.content.nsImage }
        shown.transition?.end()
    }

    /// The bounds in pixels; nil before the layout.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { pixelSize }
}
#endif
