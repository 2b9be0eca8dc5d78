#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit
public import TernImages

/// Shows the slots `.image` and `.animation`, and ignores others. The image changes at once, and a transition ends
/// immediately.
///
/// For loads with `ImageDisplay.decodesToViewSize`, call `imageSizesChanged()` when the view is laid out, as in
/// `layout()`.
extension NSImageView: ImageViewModel {
    /// Sets the image.
    public func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
        if slot == .image || slot == .animation { image = update.content.nsImage }
        update.transition?.end()
    }

    /// The bounds in pixels; nil before the layout.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { pixelSize }
}

/// Shows the image of `.normal` as its image, and that of `.selected` as its alternate image, which AppKit shows while
/// the button is on or, depending on its type, pressed. Ignores other states and backgrounds.
extension NSButton: ButtonImageViewModel {
    /// Sets the image or the alternate image.
    public func showImage(_ update: ImageUpdate, as part: ButtonImagePart, for state: ButtonState) {
        switch (part, state) {
        case (.image, .normal): image = update.content.nsImage
        case (.image, .selected): alternateImage = update.content.nsImage
        default: break
        }
        update.transition?.end()
    }

    /// The bounds in pixels; nil before the layout.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { pixelSize }
}

extension NSImage {
    /// Creates an image that shares its pixels with a decoded image, with the size in points; nil if Core Graphics
    /// fails. Copies no pixels.
    @MainActor
    public convenience init?(_ image: RasterImage) {
        guard let cgImage = image.sharedCGImage else { return nil }
        let (width, height) = (Double(image.size.width) / image.scale, Double(image.size.height) / image.scale)
        self.init(cgImage: cgImage, size: NSSize(width: width, height: height))
    }
}

extension ImageContent {
    /// The decoded image, or an `NSImage` that was given as `.custom`; nil for any other content.
    @MainActor
    public var nsImage: NSImage? {
        switch self {
        case .none: nil
        case .image(let image): NSImage(image)
        case .custom(let custom): custom as? NSImage
        }
    }
}

extension NSView {
    /// The bounds in pixels; nil before the layout and while the view is not in a window.
    var pixelSize: PixelSize? { window.flatMap { PixelSize(bounds.size, scale: $0.backingScaleFactor) } }
}

/// Shows the fraction between its minimum and maximum value, and an indeterminate bar while the total is unknown.
extension NSProgressIndicator: ProgressViewModel {
    /// Sets the value or animates the bar.
    public func showProgress(_ progress: ProgressUpdate) {
        isIndeterminate = progress.fraction == nil
        if let fraction = progress.fraction { doubleValue = minValue + fraction * (maxValue - minValue) }
        // No effect on a determinate bar.
        if progress.fraction == nil, !progress.isFinished { startAnimation(nil) } else { stopAnimation(nil) }
    }
}

/// Animates while a task runs. AppKit does not report whether an indicator is animating, so animations that others
/// started are not seen.
extension NSProgressIndicator: ActivityViewModel {
    /// A Boolean value that indicates whether a binding has started the animation.
    public var isActivityShown: Bool { bindings[value: .isAnimating] ?? false }

    /// Starts the animation.
    public func beginActivity() {
        bindings[value: .isAnimating] = true
        startAnimation(nil)
    }

    /// Stops the animation.
    public func endActivity() {
        bindings[value: .isAnimating] = nil
        stopAnimation(nil)
    }
}

extension BindingKey<Bool> {
    fileprivate static var isAnimating: Self { Self("is animating") }
}

extension NSAlert {
    /// Creates an alert with AppKit's default button, to run in a window's `showAlert(_:)`.
    public convenience init(_ alert: TaskAlert) {
        self.init()
        messageText = alert.title
        informativeText = alert.message
    }
}
#endif
