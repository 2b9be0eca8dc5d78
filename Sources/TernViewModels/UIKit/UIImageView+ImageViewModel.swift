#if canImport(UIKit) && !os(watchOS)
public import TernImages
public import UIKit

/// Shows `.image` and `.animation` as its image and `.highlighted` as its highlighted image; other slots are not shown.
///
/// A transition is a cross-dissolve of a quarter of a second. For loads with `ImageDisplay.fitsView`, call
/// `imageSizesChanged()` where the view is laid out, as in `layoutSubviews()`.
extension UIImageView: ImageViewModel {
    /// Sets the image of a slot.
    public func showImage(_ shown: ShownImage, in slot: ImageSlot) {
        let image = shown.content.uiImage
        guard let transition = shown.transition else { return setImage(image, in: slot) }
        UIView.transition(with: self, duration: 0.25, options: [.transitionCrossDissolve, .allowUserInteraction]) {
            self.setImage(image, in: slot)
        } completion: { _ in
            transition.end()
        }
    }

    /// The bounds in pixels; nil before the layout.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { pixelSize }

    private func setImage(_ image: UIImage?, in slot: ImageSlot) {
        switch slot {
        case .image, .animation: self.image = image
        case .highlighted: highlightedImage = image
        default: break
        }
    }
}
#endif
