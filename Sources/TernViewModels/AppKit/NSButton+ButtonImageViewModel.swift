#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit
public import TernImages

/// Shows the image of `.normal` as its image, and that of `.selected` as its alternate image, which AppKit shows while
/// the button is on or, by its type, pressed. Other states and backgrounds are not shown.
extension NSButton: ButtonImageViewModel {
    /// Sets the image, or the alternate image.
    public func showImage(_ shown: ShownImage, as part: ButtonImagePart, for state: ButtonState) {
        switch (part, state) {
        case (.image, .normal): image = shown.content.nsImage
        case (.image, .selected): alternateImage = shown.content.nsImage
        default: break
        }
        shown.transition?.end()
    }

    /// The bounds in pixels; nil before the layout.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { pixelSize }
}
#endif
